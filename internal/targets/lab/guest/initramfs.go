//go:build linux

package guest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// entry is a file of an initramfs; modes are as stat(2) has them.
type entry struct {
	mode uint32
	data []byte // of a link, where it leads
}

const (
	folder  = 0o040000
	regular = 0o100000
	symlink = 0o120000
)

// archive writes files as the newc cpio that the kernel unpacks: sorted, owned by root, of 1970.
func (u unpacked) archive() []byte {
	all := maps.Clone(u)
	for name := range u {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = entry{mode: folder | 0o755}
			}
		}
	}
	var out bytes.Buffer
	pad := func() { out.Write(make([]byte, -out.Len()&3)) }
	write := func(inode int, name string, e entry) {
		links := 1
		if e.mode&folder == folder {
			links = 2
		}
		fmt.Fprintf(&out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
			inode, e.mode, 0, 0, links, 0,
			len(e.data), 0, 0, 0, 0, len(name)+1, 0, name)
		pad()
		out.Write(e.data)
		pad()
	}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		write(i+1, name, all[name])
	}
	write(0, "TRAILER!!!", entry{})
	return out.Bytes()
}

// compressed is the archive as the kernel reads it: one goroutine, so that it is the same each time.
func (u unpacked) compressed() ([]byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, err
	}
	return w.EncodeAll(u.archive(), nil), w.Close()
}

// drivers that the first program loads, in this order, after what each of them depends on. That virtio_scsi comes last
// is what lets it find its disks while sd_mod waits to be told their order.
var drivers = []string{"virtio_pci", "virtio_net", "virtio_blk", "virtio_rng", "button", "evdev",
	"sd_mod", "virtio_scsi"}

// modules adds the kernel's modules for drivers and the list of them in the order of loading.
func (u unpacked) modules(tree unpacked, version string) error {
	known, builtin := map[string]entry{}, map[string]bool{}
	root := path.Join("lib/modules", version)
	module := func(file string) string {
		return strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".ko"), "-", "_")
	}
	for name, e := range u {
		if strings.HasPrefix(name, root+"/") && strings.HasSuffix(name, ".ko") {
			known[module(name)] = e
		}
	}
	list, err := u.file(path.Join(root, "modules.builtin"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list.data)) {
		builtin[module(strings.TrimSpace(line))] = true
	}
	var order []string
	var load func(name string) error
	load = func(name string) error {
		if builtin[name] || slices.Contains(order, name) {
			return nil
		}
		e, ok := known[name]
		if !ok {
			return fmt.Errorf("kernel %s has no module %q", version, name)
		}
		needs, err := depends(e.data)
		if err != nil {
			return fmt.Errorf("kernel %s: module %q: %w", version, name, err)
		}
		for _, need := range needs {
			if err := load(strings.ReplaceAll(need, "-", "_")); err != nil {
				return err
			}
		}
		order = append(order, name)
		tree[path.Join("modules", name+".ko")] = entry{mode: regular | 0o644, data: e.data}
		return nil
	}
	for _, d := range drivers {
		if err := load(d); err != nil {
			return err
		}
	}
	tree["modules/order"] = entry{mode: regular | 0o644, data: []byte(strings.Join(order, "\n") + "\n")}
	return nil
}

// depends reads from a module what must be loaded before it.
func depends(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("says nothing of itself")
	}
	info, err := s.Data()
	if err != nil {
		return nil, err
	}
	for pair := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(pair, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
