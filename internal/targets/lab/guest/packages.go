//go:build linux

package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	regularfile "plimsoll/internal/kit/regular"
)

// programs of the machine that a kind is built with, and the package each comes with.
var programs = map[Kind][]string{
	Worker: {"apt-get:apt", "apt-cache:apt", "dpkg-deb:dpkg", "dpkg-query:dpkg", "dpkg-source:dpkg-dev", "gcc:gcc",
		"make:make", "patch:patch", "mkfs.ext4:e2fsprogs", "qemu-img:qemu-utils"},
	Pod: {"apt-get:apt", "apt-cache:apt", "dpkg-deb:dpkg", "dpkg-query:dpkg", "dpkg-source:dpkg-dev", "gcc:gcc",
		"make:make",
		"patch:patch"},
	Debian: {"apt-get:apt", "apt-cache:apt", "dpkg-deb:dpkg", "dpkg-scanpackages:dpkg-dev", "mmdebstrap:mmdebstrap",
		"mkfs.ext4:e2fsprogs", "qemu-img:qemu-utils"},
}

// libraries that the worker's fio is linked with, and the package each comes with.
var libraries = map[string]string{"/usr/include/libaio.h": "libaio-dev", "/usr/include/zlib.h": "zlib1g-dev"}

// missing says what a kind cannot be built without.
func missing(kind Kind) (errs []error) {
	if runtime.GOARCH != "amd64" {
		return []error{fmt.Errorf("guest image: built on amd64 only, this is %s", runtime.GOARCH)}
	}
	var absent, packages []string
	for _, p := range programs[kind] {
		name, pkg, _ := strings.Cut(p, ":")
		if _, err := lookProgram(name); err != nil {
			absent, packages = append(absent, name), append(packages, pkg)
		}
	}
	for file, pkg := range libraries {
		if _, err := os.Stat(file); kind != Debian && err != nil {
			absent, packages = append(absent, path.Base(file)), append(packages, pkg)
		}
	}
	if len(absent) > 0 {
		slices.Sort(absent)
		slices.Sort(packages)
		errs = append(errs, fmt.Errorf("guest image: not on this machine: %s: apt-get install %s",
			strings.Join(absent, ", "), strings.Join(slices.Compact(packages), " ")))
	}
	if kind == Debian && os.Geteuid() != 0 {
		errs = append(errs, errors.New("guest image: a debian is built by root only"))
	}
	return errs
}

// lookProgram finds a program, also where only root looks for it.
func lookProgram(name string) (string, error) {
	found, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err != nil {
			found, err = exec.LookPath(filepath.Join(dir, name))
		}
	}
	return found, err
}

// command runs a program to its end and gives its output. It ends with ctx and with this process, and with it
// everything it has mounted.
func command(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	program, err := lookProgram(name)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &out, &errs
	c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC", "SOURCE_DATE_EPOCH=0", "DEBIAN_FRONTEND=noninteractive")
	c.Env = append(c.Env, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if os.Geteuid() == 0 {
		c.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 20 * time.Second
	runtime.LockOSThread() // whose end Pdeathsig is about
	defer runtime.UnlockOSThread()
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		said := strings.Split(strings.TrimSpace(errs.String()+"\n"+tail(out.String())), "\n")
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.Join(said[max(0, len(said)-8):], "; "))
	}
	return out.Bytes(), nil
}

func tail(s string) string { return s[max(0, len(s)-1000):] }

// part is a file of Debian's that goes into an image.
type part struct {
	URL, Name, Hash string // Hash is SHA256:...
}

// pkg is the package's name and the rest of the file's.
func (p part) pkg() string { return strings.TrimSuffix(p.Name, ".deb") }

// printed reads what apt-get --print-uris says.
var printed = regexp.MustCompile(`(?m)^'([^']+)' (\S+) \d+ ?(\S*)$`)

func parts(out []byte) (list []part) {
	for _, m := range printed.FindAllSubmatch(out, -1) {
		list = append(list, part{URL: string(m[1]), Name: string(m[2]), Hash: string(m[3])})
	}
	slices.SortFunc(list, func(a, b part) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// apt asks apt as if no package were installed or kept in its archives (--print-uris leaves out what it has), and
// leaves its own files alone.
func apt(ctx context.Context, tool string, args ...string) ([]byte, error) {
	return command(ctx, "", nil, tool, append([]string{"-o", "Dir::State::status=/dev/null", "-o", "Debug::NoLocking=1",
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "-o", "Dir::Cache::archives=/dev/null",
		"-o", "APT::Get::List-Cleanup=false"}, args...)...)
}

// closure gives packages and all that they depend on.
func closure(ctx context.Context, names ...string) ([]part, error) {
	out, err := apt(ctx, "apt-get", append([]string{"install", "--print-uris", "-qq", "-y", "--no-install-recommends"},
		names...)...)
	if err != nil {
		return nil, noLists(err)
	}
	var exact []string
	for _, p := range parts(out) {
		name, rest, _ := strings.Cut(p.Name, "_")
		version, _, _ := strings.Cut(rest, "_")
		if version, err = url.PathUnescape(version); err != nil {
			return nil, fmt.Errorf("package %q: %w", p.Name, err)
		}
		exact = append(exact, name+"="+version)
	}
	return download(ctx, exact...)
}

// download gives packages by name, or name=version, and nothing that they depend on.
func download(ctx context.Context, names ...string) ([]part, error) {
	out, err := apt(ctx, "apt-get", append([]string{"download", "--print-uris", "-qq"}, names...)...)
	if err != nil {
		return nil, noLists(err)
	}
	list := parts(out)
	if len(list) != len(names) {
		return nil, noLists(fmt.Errorf("apt knows %d of the packages %q", len(list), names))
	}
	return list, nil
}

func noLists(err error) error {
	return fmt.Errorf("%w: is this Debian, and has apt-get update been run?", err)
}

// kernel gives the package of Debian's kernel for virtual machines and its version.
func kernel(ctx context.Context) (part, string, error) {
	out, err := apt(ctx, "apt-cache", "depends", "--no-recommends", "linux-image-cloud-amd64")
	if err != nil {
		return part{}, "", noLists(err)
	}
	m := regexp.MustCompile(`Depends: linux-image-(\S+)`).FindSubmatch(out)
	if m == nil {
		return part{}, "", noLists(errors.New("package linux-image-cloud-amd64 names no kernel"))
	}
	list, err := download(ctx, "linux-image-"+string(m[1]))
	if err != nil {
		return part{}, "", err
	}
	return list[0], string(m[1]), nil
}

// fetch has parts in the cache, with the checksum that apt knows, and gives the folder. What is there needs no network.
func (b *builder) fetch(ctx context.Context, list []part) (string, error) {
	dir := filepath.Join(b.cache, "packages")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var args []string
	for _, p := range list {
		if !strings.HasPrefix(p.Hash, "SHA256:") && !strings.HasPrefix(p.Hash, "SHA512:") {
			return "", fmt.Errorf("package %q: apt knows no SHA-256 of it but %q", p.Name, p.Hash)
		}
		if p.Name != filepath.Base(p.Name) {
			return "", fmt.Errorf("package %q: no name of a file", p.Name)
		}
		if !p.whole(dir) {
			args = append(args, p.URL, filepath.Join(dir, p.Name+".part"), p.Hash)
		}
	}
	if len(args) == 0 {
		return dir, nil
	}
	b.Log("downloading %d packages", len(args)/3)
	args = append([]string{"-o", "APT::Sandbox::User=root", "download-file"}, args...)
	if _, err := command(ctx, "", nil, "/usr/lib/apt/apt-helper", args...); err != nil {
		return "", err
	}
	for i := 4; i < len(args); i += 3 {
		if err := os.Rename(args[i], strings.TrimSuffix(args[i], ".part")); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// whole reports whether a folder has the part, with the sum that apt knows.
func (p part) whole(dir string) bool {
	kind, want, _ := strings.Cut(p.Hash, ":")
	h := sha256.New()
	if kind == "SHA512" {
		h = sha512.New()
	}
	sum, err := sumOf(filepath.Join(dir, p.Name), h)
	return err == nil && sum == want
}

// unpacked is the content of packages: by path without the first slash.
type unpacked map[string]entry

// unpack reads a package's files into u, those that want says.
func (u unpacked) unpack(ctx context.Context, deb string, want func(name string) bool) error {
	out, err := command(ctx, "", nil, "dpkg-deb", "--fsys-tarfile", deb)
	if err != nil {
		return err
	}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", deb, err)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if !want(name) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", deb, name, err)
			}
			u[name] = entry{mode: regular | uint32(h.Mode)&0o777, data: data}
		case tar.TypeSymlink:
			u[name] = entry{mode: symlink | 0o777, data: []byte(h.Linkname)}
		}
	}
}

// file gives a file, past links that stay in its folder.
func (u unpacked) file(name string) (entry, error) {
	for range 8 {
		e, ok := u[name]
		if !ok {
			return entry{}, fmt.Errorf("the packages have no %q", name)
		}
		if e.mode&symlink != symlink {
			return e, nil
		}
		name = path.Join(path.Dir(name), path.Base(string(e.data)))
	}
	return entry{}, fmt.Errorf("%q: too many links", name)
}

// needed adds to tree what a program is linked with, found among the packages, and its loader.
func (u unpacked) needed(tree unpacked, program entry) error {
	f, err := elf.NewFile(bytes.NewReader(program.data))
	if err != nil {
		return err
	}
	names, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(p.Open())
			if err != nil {
				return err
			}
			names = append(names, strings.TrimRight(string(loader), "\x00"))
		}
	}
	for _, name := range names {
		to := path.Join("lib/x86_64-linux-gnu", name)
		if path.IsAbs(name) {
			to = name[1:]
		}
		if _, there := tree[to]; there {
			continue
		}
		var found entry
		err := fmt.Errorf("the packages have no library %q", name)
		for _, dir := range []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"} {
			if err != nil {
				found, err = u.file(path.Join(dir, path.Base(name)))
			}
		}
		if err != nil {
			return err
		}
		tree[to] = found
		if err := u.needed(tree, found); err != nil {
			return err
		}
	}
	return nil
}

// staticAMD64 says why a file is no statically linked program for Linux on amd64.
func staticAMD64(name string) error {
	if name == "" {
		return errors.New("none given")
	}
	program, err := regularfile.Open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer program.Close()
	f, err := elf.NewFile(program)
	if err != nil {
		return err
	}
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("is for %v, not for amd64", f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("is not statically linked (CGO_ENABLED=0)")
		}
	}
	return nil
}
