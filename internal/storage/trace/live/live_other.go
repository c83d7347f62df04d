//go:build !linux

package live

import (
	"context"
	"errors"
	"io"
	"time"
)

// Block is a block device; there is none here.
type Block struct{ Path string }

// Device reports false: block devices are traced on Linux only.
func Device(string) (Block, bool) { return Block{}, false }

// Numbers are those of no device.
func (Block) Numbers() string { return "0,0" }

// ID is that of no device.
func (Block) ID() uint32 { return 0 }

// Options of a session.
type Options struct {
	Duration    time.Duration
	BufferBytes int64 // of each CPU; 0 for the kernel's own
}

// Session is a trace; there is none here.
type Session struct{}

// Start says that it cannot.
func Start(context.Context, Block, Options) (*Session, error) {
	return nil, errors.New("trace: block devices are traced on Linux only; give a file")
}

// Read is at its end.
func (*Session) Read([]byte) (int, error) { return 0, io.EOF }

// Dir is no folder.
func (*Session) Dir() string { return "" }

// Close does nothing.
func (*Session) Close() error { return nil }
