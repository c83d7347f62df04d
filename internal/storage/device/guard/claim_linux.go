package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/storage/device"
)

// machine is the machine that we run on, and an absolute path on it.
func machine(system fs.FS, path string) (fs.FS, string) {
	if system == nil {
		system = os.DirFS("/")
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return system, path
}

// Check says what a device is and everything that stands against overwriting it, consent apart: see Consent. keep are
// folders whose device must stay, by absolute paths, such as that of the run; the system's own is always among them.
// system is the root folder of the machine, nil for this one. The error is ctx's.
func Check(ctx context.Context, system fs.FS, path string, keep ...string) (device.Device, []Objection, error) {
	system, path = machine(system, path)
	d, no := find(system, path)
	if no != nil {
		return d, []Objection{*no}, ctx.Err()
	}
	l := look{ctx: ctx, system: system, device: d}
	if err := l.all(keep); err != nil {
		return d, l.list, err
	}
	if !isReal(system) {
		return d, l.list, nil
	}
	f, no := open(d, path, os.O_RDONLY|unix.O_EXCL)
	if no != nil {
		l.object(no.Kind, no.About, no.Do, "%s", no.Text)
		return d, l.list, nil
	}
	return d, l.list, f.Close()
}

// isReal reports whether the machine is one with devices to open, rather than a picture of one.
func isReal(system fs.FS) bool {
	f, err := system.Open("proc/self/mountinfo")
	if err != nil {
		return false
	}
	defer f.Close()
	_, ok := f.(*os.File)
	return ok
}

func (l *look) all(keep []string) error { return errors.Join(l.use(keep, true), l.signatures()) }

// Claim is a device that is ours to write to, or to read from, until Release.
type Claim struct {
	system fs.FS
	device device.Device
	f      *os.File
	path   string
	keep   []string
}

// ForWriting claims a device for writing, if nothing stands against it and typed is the consent for it. keep and system
// are as for Check. The error is a Refusal with all objections, or ctx's.
func ForWriting(ctx context.Context, system fs.FS, path, typed string, keep ...string) (*Claim, error) {
	system, path = machine(system, path)
	d, no := find(system, path)
	if no != nil {
		return nil, refusal(path, []Objection{*no})
	}
	l := look{ctx: ctx, system: system, device: d}
	f, no := open(d, path, os.O_RDWR|unix.O_EXCL)
	if no != nil {
		l.list = append(l.list, *no)
	}
	// From here on nobody else can mount it, make something of it or claim it: what is seen now stays.
	err := l.all(keep)
	if no := Consent(d, typed); no != nil {
		l.list = append(l.list, *no)
	}
	if err = errors.Join(err, refusal(path, l.list)); err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return &Claim{system, d, f, f.Name(), keep}, nil
}

// open opens a device by its own node, or by the path that was given where that has no node, and makes sure that what
// was opened is that device. A whole disk is locked as well, which keeps udev from looking into it meanwhile.
func open(d device.Device, path string, flag int) (*os.File, *Objection) {
	var f *os.File
	var err error
	for _, node := range []string{d.Node, path} {
		if f, err = os.OpenFile(node, flag|unix.O_NONBLOCK, 0); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, unix.EBUSY):
		return nil, &Objection{Busy, d.Node, "somebody holds it exclusively, as mounts, arrays and volumes do",
			"lsblk, fuser -v and cat /proc/mdstat tell who"}
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES) && d.ReadOnly:
		return nil, &Objection{ReadOnly, d.Node, "cannot be opened for writing: " + device.Reason(err), ""}
	case errors.Is(err, fs.ErrPermission):
		return nil, &Objection{Unseen, d.Node, "cannot be opened: " + device.Reason(err), privilege()}
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, fs.ErrNotExist):
		return nil, &Objection{Gone, d.Node, "cannot be opened: " + device.Reason(err),
			"look whether it is still there"}
	default:
		return nil, &Objection{Busy, d.Node, "cannot be opened: " + device.Reason(err), ""}
	}
	no := is(d, f)
	if no == nil && flag&unix.O_EXCL != 0 && d.Disk == nil {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			no = &Objection{Busy, d.Node, "somebody has locked it (flock)", "lslocks tells who"}
		}
	}
	if no != nil {
		_ = f.Close() // nothing was written
		return nil, no
	}
	return f, nil
}

// is objects when an open file is not that device.
func is(d device.Device, f *os.File) *Objection {
	info, err := f.Stat()
	if err == nil {
		if number, ok := device.NumberOf(info); ok && info.Mode()&fs.ModeCharDevice == 0 && number == d.Number {
			return nil
		}
	}
	return &Objection{LinkChanged, f.Name(), "leads to another device than when it was looked at (" + d.Number + ")",
		"give it again"}
}

// Device returns what was claimed, as it was then.
func (c *Claim) Device() device.Device { return c.device }

// File is the open device.
func (c *Claim) File() *os.File { return c.f }

// Path is the device's own node: links that lead to it may change, this does not. A tool opens it beside the claim,
// without O_EXCL.
func (c *Claim) Path() string { return c.path }

// Recheck looks again just before a write: that it is still this device, of this size, and that nobody uses it.
func (c *Claim) Recheck(ctx context.Context) error {
	d := c.device
	now, err := device.Read(c.system, d.Name)
	if err != nil || now.Number != d.Number {
		return refusal(c.path, []Objection{{Gone, d.Node, "is gone since it was claimed", "look at the kernel's log"}})
	}
	l := look{ctx: ctx, system: c.system, device: now}
	changed := func(what, was, is string) {
		if was != is {
			l.object(Changed, d.Node, "look at it anew with plimsoll device inspect "+d.Node,
				"its %s was %s when it was claimed, and is %s", what, was, is)
		}
	}
	changed("identity", d.Identity.Phrase, now.Identity.Phrase)
	changed("size in bytes", fmt.Sprint(d.SizeBytes), fmt.Sprint(now.SizeBytes))
	changed("number among the disks of this boot", fmt.Sprint(d.Sequence), fmt.Sprint(now.Sequence))
	if size, err := c.f.Seek(0, io.SeekEnd); err != nil || size != now.SizeBytes {
		changed("size in bytes", fmt.Sprint(d.SizeBytes), fmt.Sprint(size))
	}
	if info, err := fs.Stat(c.system, strings.TrimPrefix(c.path, "/")); err != nil {
		l.object(LinkChanged, c.path, "", "is not there any more: %s", device.Reason(err))
	} else if number, ok := device.NumberOf(info); !ok || number != d.Number {
		l.object(LinkChanged, c.path, "", "leads to device %s, not to %s", number, d.Number)
	}
	if err := l.use(c.keep, false); err != nil {
		return err
	}
	return refusal(c.path, l.list)
}

// Release lets the device go. Calling it again is fine.
func (c *Claim) Release() error {
	if err := c.f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return nil
}

// OpenRead opens a device for reading only, in use or not. Its tool must be told to only read as well.
func OpenRead(ctx context.Context, system fs.FS, path string) (*Claim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	system, path = machine(system, path)
	d, no := find(system, path)
	if no == nil {
		var f *os.File
		if f, no = open(d, path, os.O_RDONLY); no == nil {
			return &Claim{system, d, f, f.Name(), nil}, nil
		}
	}
	return nil, refusal(path, []Objection{*no})
}
