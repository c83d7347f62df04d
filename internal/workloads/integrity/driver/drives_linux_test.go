package integrity_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// drives are disks that hold what is written in a cache until it is flushed, as files of a file system of this process
// (FUSE). One that lies takes a flush and makes nothing safe. A disk writes down some of what it holds unasked, sector
// by sector, as real ones do. When the power is cut, what is left of the caches is lost and every call fails; with
// power again the disks have what is stable.
type drives struct {
	dir   string
	fd    int
	disks []*drive

	mu  sync.Mutex
	rng *rand.Rand
	off bool
}

// drive is one disk, and the truth about it.
type drive struct {
	name   string
	lies   bool
	stable []byte
	held   map[int64][]byte // sectors in the cache

	meant   map[int64][]byte // blocks as they were written
	order   []int64          // the blocks, as they came
	flushes []int            // how many of them had come when a flush came
}

const (
	sectorBytes = 512
	blockBytes  = 4096
	diskBytes   = 64 << 20
)

// newDrives attaches a disk per name. What is written to the file "power" cuts their power.
func newDrives(t *testing.T, seed uint64, lies bool, size int64, names ...string) *drives {
	t.Helper()
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	needs.That(t, err == nil && os.Geteuid() == 0, "file systems of a process", "run as root where the kernel has FUSE")
	d := &drives{dir: needs.Folder(t), fd: fd, rng: rand.New(rand.NewPCG(seed, 1))}
	for _, name := range names {
		d.disks = append(d.disks, &drive{name: name, lies: lies, stable: make([]byte, size), held: map[int64][]byte{},
			meant: map[int64][]byte{}})
	}
	if err := syscall.Mount("drives", d.dir, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.serve() }()
	t.Cleanup(func() {
		if err := errors.Join(syscall.Unmount(d.dir, syscall.MNT_DETACH), <-served, syscall.Close(fd)); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *drives) path(name string) string { return filepath.Join(d.dir, name) }

// write takes what is written at once into the cache.
func (d *drives) write(k *drive, at int64, b []byte) {
	for i := int64(0); i < int64(len(b)); i += blockBytes {
		k.order = append(k.order, (at+i)/blockBytes)
		k.meant[(at+i)/blockBytes] = bytes.Clone(b[i : i+blockBytes])
	}
	for i := int64(0); i < int64(len(b)); i += sectorBytes {
		k.held[at+i] = bytes.Clone(b[i : i+sectorBytes])
	}
	for at, b := range k.held { // the order of a map is a draw
		if d.rng.IntN(3) == 0 {
			break
		}
		copy(k.stable[at:], b)
		delete(k.held, at)
	}
}

func (k *drive) flush() {
	k.flushes = append(k.flushes, len(k.order))
	if k.lies {
		return
	}
	for at, b := range k.held {
		copy(k.stable[at:], b)
	}
	clear(k.held)
}

func (k *drive) read(at, n int64) []byte {
	at = min(at, int64(len(k.stable)))
	b := bytes.Clone(k.stable[at:min(at+n, int64(len(k.stable)))])
	for i := int64(0); i < int64(len(b)); i += sectorBytes {
		copy(b[i:], k.held[at+i])
	}
	return b
}

// power cuts the power, or gives it back.
func (d *drives) power(on bool) {
	d.off = !on
	for _, k := range d.disks {
		clear(k.held)
	}
}

// came says how many blocks came to a disk.
func (d *drives) came(k *drive) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(k.order)
}

// What is asked of a file system, as linux/fuse.h numbers it.
const (
	fuseLookup, fuseForget, fuseGetattr, fuseSetattr, fuseOpen = 1, 2, 3, 4, 14
	fuseRead, fuseWrite, fuseRelease, fuseFsync, fuseFlush     = 15, 16, 18, 20, 25
	fuseInit, fuseDestroy                                      = 26, 38

	mostWritten = 128 << 10
)

// serve answers until the file system is gone.
func (d *drives) serve() error {
	buf := make([]byte, mostWritten+4096)
	for {
		n, err := syscall.Read(d.fd, buf)
		switch {
		case errors.Is(err, syscall.ENODEV):
			return nil
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.ENOENT):
			continue
		case err != nil:
			return err
		}
		op, node := binary.NativeEndian.Uint32(buf[4:]), binary.NativeEndian.Uint64(buf[16:])
		answer, errno := d.do(op, node, buf[40:n])
		if op == fuseForget {
			continue
		}
		out := binary.NativeEndian.AppendUint32(nil, uint32(16+len(answer)))
		out = binary.NativeEndian.AppendUint32(out, uint32(-int32(errno)))
		out = append(append(out, buf[8:16]...), answer...)
		if _, err := syscall.Write(d.fd, out); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
}

// do is one call. Node 1 is the folder, 2 the file "power", the disks come next.
func (d *drives) do(op uint32, node uint64, b []byte) (answer []byte, errno syscall.Errno) {
	word := binary.NativeEndian.Uint32
	var disk *drive
	touched := op == fuseWrite || op == fuseRead || op == fuseFsync
	if touched && node > 2 {
		disk = d.disks[node-3]
		if op == fuseFsync {
			time.Sleep(2 * time.Millisecond) // a disk takes its time for that
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if touched && node > 2 && d.off {
		return nil, syscall.EIO
	}
	switch op {
	case fuseInit: // version 7.31, and how much may be written at once
		answer = make([]byte, 64)
		for i, v := range map[int]uint32{0: 7, 4: 31, 8: 64 << 10, 20: mostWritten} {
			binary.NativeEndian.PutUint32(answer[i:], v)
		}
		binary.NativeEndian.PutUint32(answer[12:], 1<<5) // FUSE_BIG_WRITES
		return answer, 0
	case fuseLookup:
		name := strings.TrimRight(string(b), "\x00")
		for i, k := range append([]*drive{{name: "power"}}, d.disks...) {
			if k.name == name {
				entry := make([]byte, 40)
				binary.NativeEndian.PutUint64(entry, uint64(i+2))
				return append(entry, d.attributes(uint64(i+2))...), 0
			}
		}
		return nil, syscall.ENOENT
	case fuseGetattr, fuseSetattr:
		return append(make([]byte, 16), d.attributes(node)...), 0
	case fuseOpen: // FOPEN_DIRECT_IO: nothing is kept in this machine's memory
		answer = make([]byte, 16)
		answer[8] = 1
		return answer, 0
	case fuseRead:
		return disk.read(int64(binary.NativeEndian.Uint64(b[8:])), int64(word(b[16:]))), 0
	case fuseWrite:
		n := word(b[16:])
		if disk == nil {
			d.power(false)
			return binary.NativeEndian.AppendUint64(nil, uint64(n)), 0
		}
		d.write(disk, int64(binary.NativeEndian.Uint64(b[8:])), b[40:40+n])
		return binary.NativeEndian.AppendUint64(nil, uint64(n)), 0
	case fuseFsync:
		disk.flush()
	case fuseFlush, fuseRelease, fuseForget, fuseDestroy:
	default:
		return nil, syscall.ENOSYS
	}
	return nil, 0
}

func (d *drives) attributes(node uint64) []byte {
	a := make([]byte, 88)
	binary.NativeEndian.PutUint64(a, node)
	mode := uint32(syscall.S_IFDIR | 0o755)
	if node > 1 {
		mode = syscall.S_IFREG | 0o600
	}
	if node > 2 {
		binary.NativeEndian.PutUint64(a[8:], uint64(len(d.disks[node-3].stable)))
	}
	binary.NativeEndian.PutUint32(a[60:], mode)
	binary.NativeEndian.PutUint32(a[64:], 1)
	binary.NativeEndian.PutUint32(a[80:], blockBytes)
	return a
}
