package vioperf

import (
	"bytes"
	"errors"
	"path/filepath"
	"sync"
	"syscall"
)

// fake is a machine without a disk: files in memory, with faults.
type fake struct {
	mu          sync.Mutex
	free, total int64
	files       map[string]*fakeFile
	fault       func(f *fakeFile, offset int64) error // of writes
	damage      func(f *fakeFile)                     // before files are read back
	looks       int
	looked      func(n int) // at free space, the n-th time
}

func (f *fake) machine() *machine {
	return &machine{
		look: func(dir string) (Place, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.looks++; f.looked != nil {
				f.looked(f.looks)
			}
			return Place{Path: dir, Type: "fakefs", FreeBytes: f.free, TotalBytes: f.total, NoDevice: "it is fake"}, nil
		},
		create: func(name string, direct bool) (file, string, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.files == nil {
				f.files = map[string]*fakeFile{}
			}
			one := &fakeFile{on: f, name: filepath.Base(name)}
			f.files[one.name] = one
			if !direct {
				return one, "asked for", nil
			}
			return one, "", nil
		},
		open: func(name string, _ bool) (file, string, error) {
			one, ok := f.files[name]
			if !ok {
				return nil, "", syscall.ENOENT
			}
			return one, "", nil
		},
		disk:    func(p Place) Place { return p },
		count:   func(Place) counters { return counters{} },
		buffers: func(n int) ([]byte, func(), error) { return make([]byte, n), func() {}, nil },
		cores:   func() int { return 2 },
		waiting: func(int) func() { return func() {} },
	}
}

type fakeFile struct {
	on   *fake
	name string
	mu   sync.Mutex
	data []byte
	bad  map[int64]error // reads at these offsets fail
}

func (f *fakeFile) WriteAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.on.fault != nil {
		if err := f.on.fault(f, offset); err != nil {
			return 0, err
		}
	}
	if grow := offset + int64(len(p)) - int64(len(f.data)); grow > 0 {
		f.data = append(f.data, make([]byte, grow)...)
		f.on.mu.Lock()
		f.on.free -= grow
		f.on.mu.Unlock()
	}
	return copy(f.data[offset:], p), nil
}

func (f *fakeFile) ReadAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.bad[offset]; err != nil {
		return 0, err
	}
	return bytes.NewReader(f.data).ReadAt(p, offset)
}

func (f *fakeFile) Forget() error {
	if f.on.damage != nil {
		f.on.damage(f)
	}
	return nil
}

func (f *fakeFile) Sync() error  { return nil }
func (f *fakeFile) Close() error { return nil }

var errMedium = errors.New("input/output error")
