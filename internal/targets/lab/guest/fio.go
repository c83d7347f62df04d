//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// A worker's fio is built from Debian's source. Debian's own program is linked with the clients of Ceph, Gluster and
// RDMA: 100 MB that an emulated machine would have to load and relocate each time fio starts.
//
// An option that configure does not know makes it print its help, after which make configures again by itself, for the
// processor of this machine: that is looked for below.
var fioOptions = []string{"--build-static", "--disable-native", "--disable-rdma", "--disable-rados", "--disable-rbd",
	"--disable-http", "--disable-gfapi", "--disable-pmem"}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// fio gives a static fio, from the cache if it was built of the same source by the same compiler, and what
// it is made of.
func (b *builder) fio(ctx context.Context) (program, key string, source []part, err error) {
	source, err = b.fioSource(ctx)
	if err != nil {
		return "", "", nil, err
	}
	compiler, err := command(ctx, "", nil, "gcc", "--version")
	if err != nil {
		return "", "", nil, err
	}
	linked, err := command(ctx, "", nil, "dpkg-query", "-W", "libc6-dev", "libaio-dev", "zlib1g-dev", "binutils")
	if err != nil {
		return "", "", nil, err
	}
	key = hashOf(recipe, fmt.Sprint(source), string(compiler), string(linked), fmt.Sprint(fioOptions))
	dir, err := b.stage("fio-"+key, func(dir string) error { return b.buildFio(ctx, dir, source) })
	return filepath.Join(dir, "fio"), key, source, err
}

// fioSource finds the source of the fio that apt would install. Lists of sources are kept in the cache, for few
// machines have them.
func (b *builder) fioSource(ctx context.Context) ([]part, error) {
	out, err := apt(ctx, "apt-cache", "madison", "fio")
	if err != nil {
		return nil, noLists(err)
	}
	candidate := regexp.MustCompile(`(?m)^\s*fio\s+\|\s+(\S+?)(?:\+b\d+)?\s+\|\s+(\S+) (\S+)/(\S+) amd64 Packages`)
	m := candidate.FindStringSubmatch(string(out))
	if m == nil {
		return nil, noLists(errors.New("apt knows no package fio"))
	}
	dir := filepath.Join(b.cache, "apt")
	options := ""
	if _, err := os.Stat(keyring); err == nil {
		options = "[signed-by=" + keyring + "] "
	}
	list := filepath.Join(dir, "sources.list")
	err = errors.Join(os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o755),
		os.MkdirAll(filepath.Join(dir, "archives", "partial"), 0o755))
	if err != nil {
		return nil, err
	}
	line := "deb-src " + options + strings.Join(m[2:5], " ") + "\n"
	if err := os.WriteFile(list, []byte(line), 0o644); err != nil {
		return nil, err
	}
	ask := func(args ...string) ([]part, error) {
		out, err := apt(ctx, "apt-get", append([]string{"-o", "Dir::Etc::SourceList=" + list, "-o",
			"Dir::Etc::SourceParts=-", "-o", "Dir::State::Lists=" + filepath.Join(dir, "lists"),
			"-o", "Dir::Cache=" + dir,
			"-o", "APT::Sandbox::User=root", "-qq"}, args...)...)
		return parts(out), err
	}
	source := []string{"source", "--print-uris", "fio=" + m[1]}
	found, err := ask(source...)
	if err != nil || len(found) == 0 {
		b.Log("looking up the source of fio %s", m[1])
		if _, err := ask("update"); err != nil {
			return nil, err
		}
		if found, err = ask(source...); err != nil {
			return nil, err
		}
	}
	found = slices.DeleteFunc(found, func(p part) bool { return strings.HasSuffix(p.Name, ".asc") })
	if len(found) < 2 {
		return nil, fmt.Errorf("apt knows no source of fio %s at %q", m[1], strings.TrimSpace(line))
	}
	return found, nil
}

// buildFio builds fio in a folder and leaves nothing but the program.
func (b *builder) buildFio(ctx context.Context, dir string, source []part) error {
	packages, err := b.fetch(ctx, source)
	if err != nil {
		return err
	}
	b.Log("building fio")
	dsc := slices.IndexFunc(source, func(p part) bool { return strings.HasSuffix(p.Name, ".dsc") })
	if dsc < 0 {
		return fmt.Errorf("fio: the source %v has no .dsc", source)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	src := filepath.Join(work, "src")
	steps := [][]string{
		{"dpkg-source", "--no-check", "-x", filepath.Join(packages, source[dsc].Name), src},
		append([]string{filepath.Join(src, "configure")}, fioOptions...),
		{"make", "-j" + strconv.Itoa(runtime.NumCPU()), "fio"},
		{"strip", "fio"},
	}
	for i, s := range steps {
		in := src
		if i == 0 {
			in = work
		}
		flags := []string{"EXTFLAGS=-ffile-prefix-map=" + src + "=."}
		if _, err := command(ctx, in, flags, s[0], s[1:]...); err != nil {
			return fmt.Errorf("fio: %w", err)
		}
	}
	config, err := os.ReadFile(filepath.Join(src, "config-host.mak"))
	if err != nil {
		return err
	}
	if strings.Contains(string(config), "CONFIG_BUILD_NATIVE") {
		return fmt.Errorf("fio: configure did not take the options %q: it built for this machine's processor",
			fioOptions)
	}
	if err := os.Rename(filepath.Join(src, "fio"), filepath.Join(dir, "fio")); err != nil {
		return err
	}
	if err := staticAMD64(filepath.Join(dir, "fio")); err != nil {
		return fmt.Errorf("fio: %w", err)
	}
	return os.RemoveAll(work)
}
