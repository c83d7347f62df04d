//go:build !linux

package guard

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"plimsoll/internal/storage/device"
)

var errLinux = errors.New("the device guard needs Linux: run this on the machine that has the device")

// Check needs Linux.
func Check(context.Context, fs.FS, string, ...string) (device.Device, []Objection, error) {
	return device.Device{}, nil, errLinux
}

// Claim is a device that is ours to write to, which needs Linux.
type Claim struct{}

// ForWriting needs Linux.
func ForWriting(context.Context, fs.FS, string, string, ...string) (*Claim, error) {
	return nil, errLinux
}

// OpenRead needs Linux.
func OpenRead(context.Context, fs.FS, string) (*Claim, error) { return nil, errLinux }

// Device is of no claim.
func (*Claim) Device() device.Device { return device.Device{} }

// File is of no claim.
func (*Claim) File() *os.File { return nil }

// Path is of no claim.
func (*Claim) Path() string { return "" }

// Recheck needs Linux.
func (*Claim) Recheck(context.Context) error { return errLinux }

// Release has nothing to let go.
func (*Claim) Release() error { return nil }
