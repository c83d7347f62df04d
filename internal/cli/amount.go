package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"plimsoll/internal/direct"
	"plimsoll/internal/exit"
	"plimsoll/internal/visible"
	"plimsoll/unit"
)

// amount tells how far something with a known number of bytes is, now and then, and how long the rest will take.
type amount struct {
	mu    sync.Mutex
	w     io.Writer
	now   func() time.Time
	phase string
	began time.Time
	told  time.Time
}

// calm is how often an amount is told.
const calm = 5 * time.Second

func (a *app) amount(phase string) *amount {
	return &amount{w: a.notes(), now: a.now, phase: phase, began: a.now(), told: a.now()}
}

// tell may be called at any rate, from several goroutines.
func (p *amount) tell(done, of int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.told) < calm || done >= of || done <= 0 {
		return
	}
	p.told = now
	took := now.Sub(p.began)
	left := time.Duration(float64(took) / float64(done) * float64(of-done))
	visible.Fprintf(p.w, "%s: %s of %s, %s, %s left\n", p.phase, unit.Bytes(done), unit.Bytes(of),
		unit.Bandwidth(float64(done)/took.Seconds()).Decimal(), left.Round(time.Second))
}

// sizeFlag is a number of bytes.
type sizeFlag unit.Bytes

// String implements pflag.Value.
func (s *sizeFlag) String() string { return unit.Bytes(*s).Exact() }

// Type implements pflag.Value.
func (s *sizeFlag) Type() string { return "size" }

// Set implements pflag.Value.
func (s *sizeFlag) Set(text string) error {
	b, err := unit.ParseBytes(text)
	if err == nil && b < 1 {
		err = errors.New("want at least 1 byte")
	}
	*s = sizeFlag(b)
	return err
}

// makeNew makes a file to write to: only where nothing is yet, and where there is room for all of it.
func makeNew(phase, name string, size int64) (*direct.File, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.Mode().IsRegular():
		return nil, exit.Errorf(exit.Refused, "give a name that does not exist yet, or remove the file",
			"%s: %s: it exists, and nothing is overwritten", phase, name)
	case err == nil && info.IsDir():
		return nil, exit.Usagef("give the name of a file to make in it", "%s: %s: it is a folder", phase, name)
	case err == nil:
		return nil, exit.Errorf(exit.Refused, "", "%s: %s: it is neither a new file nor a device that may be written",
			phase, name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	case size <= 0:
		return nil, exit.Usagef("for example --size 4GiB", "%s: %s: how large is the file to be? give --size", phase, name)
	}
	free, err := direct.Free(filepath.Dir(name))
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if free < size {
		return nil, exit.Errorf(exit.Refused, "", "%s: %s: %s are asked for, and its file system has %s left", phase, name,
			unit.Bytes(size), unit.Bytes(free))
	}
	f, err := direct.Create(name)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return f, nil
}

// bypassed says how a file or device is read and written.
func bypassed(f *direct.File) string {
	if f.Direct {
		return "past the page cache"
	}
	return fmt.Sprintf("through the page cache, for %s", f.Why)
}
