//go:build linux

package guest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	regularfile "plimsoll/internal/kit/regular"
)

//go:embed files/init
var firstProgram []byte

//go:embed files/inittab
var inittab []byte

// console starts every kernel: with its errors on the serial line, no waiting after a panic, and no test of
// the timer, which an emulated one does not pass when the machine below is busy.
const console = "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0 no_timer_check"

// Of the disk that workers keep their files on. It is sparse.
const workBytes = 8 << 30

// worker builds a worker: all that it is fits into the initramfs. What it is to keep when its power goes lies on a
// disk.
func (b *builder) worker(ctx context.Context) (Image, error) {
	fio, key, source, err := b.fio(ctx)
	if err != nil {
		return Image{}, err
	}
	base, err := b.initrd(ctx, "dropbear-bin")
	if err != nil {
		return Image{}, err
	}
	id := hashOf(base.key, key, fmt.Sprint(workBytes))
	i := Image{Append: console, MemoryBytes: 128 << 20, Root: "work.raw", RootFormat: "raw",
		Packages: append(base.names(), names(source)...)}
	slices.Sort(i.Packages)
	return b.image(id, i, func(dir string) error {
		b.Log("putting together a worker")
		tree, debs, err := base.begin(ctx, dir)
		if err != nil {
			return err
		}
		const sshd = "usr/sbin/dropbear"
		if tree[sshd], err = debs.file(sshd); err != nil {
			return err
		}
		if err := debs.needed(tree, tree[sshd]); err != nil {
			return err
		}
		program, err := regularfile.Read(fio, os.O_RDONLY, regularfile.Document)
		if err != nil {
			return err
		}
		tree["usr/bin/fio"] = entry{mode: regular | 0o755, data: program}
		text := func(name string, mode uint32, s string) { tree[name] = entry{mode: regular | mode, data: []byte(s)} }
		text("etc/inittab", 0o644, string(inittab))
		text("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n")
		text("etc/group", 0o644, "root:x:0:\n")
		text("etc/shells", 0o644, "/bin/sh\n")
		text("etc/acpi/PWRF/00000080", 0o755, "#!/bin/sh\nexec poweroff\n")
		return errors.Join(tree.initrd(dir), fileSystem(ctx, filepath.Join(dir, i.Root), "work", workBytes))
	})
}

// base holds what the initramfs of every kind begins with.
type base struct {
	b       *builder
	key     string
	version string // of the kernel
	kernel  part
	parts   []part
}

// initrd finds what an initramfs with more packages is made of, before any of it is fetched.
func (b *builder) initrd(ctx context.Context, more ...string) (*base, error) {
	i := &base{b: b}
	var err error
	if i.kernel, i.version, err = kernel(ctx); err != nil {
		return nil, err
	}
	if i.parts, err = closure(ctx, append([]string{"busybox-static"}, more...)...); err != nil {
		return nil, err
	}
	agent, err := regularfile.Read(b.Agent, os.O_RDONLY, regularfile.Document)
	if err != nil {
		return nil, err
	}
	i.key = hashOf(recipe, fmt.Sprint(i.kernel, i.parts), string(firstProgram), string(inittab), string(agent), console)
	return i, nil
}

func (i *base) names() []string { return append(names(i.parts), i.kernel.pkg()) }

func names(list []part) (all []string) {
	for _, p := range list {
		all = append(all, p.pkg())
	}
	return all
}

// begin writes the kernel and gives the beginning of the initramfs, and the files of all its packages.
func (i *base) begin(ctx context.Context, dir string) (tree, debs unpacked, err error) {
	packages, err := i.b.fetch(ctx, append(slices.Clone(i.parts), i.kernel))
	if err != nil {
		return nil, nil, err
	}
	tree, debs = unpacked{}, unpacked{}
	for _, p := range append(slices.Clone(i.parts), i.kernel) {
		err = errors.Join(err, debs.unpack(ctx, filepath.Join(packages, p.Name), func(name string) bool {
			return !strings.HasPrefix(name, "usr/share/")
		}))
	}
	if err != nil {
		return nil, nil, err
	}
	vmlinuz, err := debs.file("boot/vmlinuz-" + i.version)
	if err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel"), vmlinuz.data, 0o644); err != nil {
		return nil, nil, err
	}
	if tree["bin/busybox"], err = debs.file("bin/busybox"); err != nil {
		return nil, nil, err
	}
	agent, err := regularfile.Read(i.b.Agent, os.O_RDONLY, regularfile.Document)
	if err != nil {
		return nil, nil, err
	}
	tree["usr/bin/plimsoll-agent"] = entry{mode: regular | 0o755, data: agent}
	tree["init"] = entry{mode: regular | 0o755, data: firstProgram}
	return tree, debs, debs.modules(tree, i.version)
}

// initrd writes an initramfs.
func (u unpacked) initrd(dir string) error {
	data, err := u.compressed()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "initrd"), data, 0o644)
}
