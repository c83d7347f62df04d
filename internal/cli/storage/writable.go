package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/storage/device/guard"
	"plimsoll/internal/storage/direct"
	"plimsoll/unit"
)

// writable may be written: a file made for it, or a device that the guard has claimed.
type writable struct {
	*direct.File
	claim *guard.Claim // of a device
	size  int64        // that is to be written, in bytes
	final string       // the name that the file is given once it is whole; "" when it has that from the first byte
}

const consentUsage = "the consent `phrase` of a device, as plimsoll device check prints it: all on it is overwritten"

// openToWrite makes a file, only where nothing is yet and where there is room for all of it; or claims a device, of
// which all is meant when size is 0. With whole the file has its name only once it is finished. A device that holds one
// of the folders to keep is refused.
func openToWrite(ctx context.Context, phase, name, consent string, size int64, whole bool,
	keep ...string) (*writable, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.Mode()&fs.ModeDevice != 0:
		return claimToWrite(ctx, phase, name, consent, size, keep)
	case err == nil && info.Mode().IsRegular():
		return nil, exit.Errorf(exit.Refused, "give a name that does not exist yet, or remove the file",
			"%s: %s: it exists, and nothing is overwritten", phase, name)
	case err == nil && info.IsDir():
		return nil, exit.Usagef("give the name of a file to make in it", "%s: %s: it is a folder", phase, name)
	case err == nil:
		return nil, exit.Errorf(exit.Refused, "", "%s: %s: it is neither a new file nor a block device", phase, name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	case size <= 0:
		return nil, exit.Usagef("for example --size 4GiB", "%s: %s: how large is the file to be? give --size", phase,
			name)
	}
	if whole {
		_, _ = outfile.Clean(filepath.Dir(name)) // what is left there is in nobody's way
	}
	free, err := direct.Free(filepath.Dir(name))
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if free < size {
		return nil, exit.Errorf(exit.Refused, "", "%s: %s: %s are asked for, and its file system has %s left", phase,
			name, unit.Bytes(size), unit.Bytes(free))
	}
	w := &writable{size: size}
	if whole {
		var f *os.File
		if f, err = outfile.Temporary(filepath.Dir(name), 0o644); err == nil {
			w.final = name
			w.File, err = direct.Of(f)
		}
	} else {
		w.File, err = direct.Create(name)
	}
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if err := syncFolder(name); err != nil { // before anything in it is said to be safe
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, errors.Join(err, w.remove()))
	}
	return w, nil
}

func claimToWrite(ctx context.Context, phase, name, consent string, size int64, keep []string) (*writable, error) {
	claim, err := guard.ForWriting(ctx, nil, name, consent, keep...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", phase, err)
	}
	f, err := direct.Of(claim.File())
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	w := &writable{File: f, claim: claim, size: size}
	whole := f.Bytes / direct.Align * direct.Align
	if size == 0 {
		w.size = whole
	}
	if w.size > whole {
		err = exit.Usagef(
			"",
			"%s: %s: %s are asked for, and it has %s",
			phase,
			name,
			unit.Bytes(size),
			unit.Bytes(whole),
		)
	}
	if err = errors.Join(err, claim.Recheck(ctx)); err != nil {
		return nil, errors.Join(err, claim.Release())
	}
	return w, nil
}

// finish makes what was written safe.
func (w *writable) finish() error {
	if w.Device {
		return w.Sync()
	}
	if err := errors.Join(w.Truncate(w.size), w.Sync()); err != nil || w.final == "" {
		return err
	}
	err := os.Link(w.Name(), w.final) // somebody may have made a file of that name meanwhile, which stays
	if err == nil {
		err = os.Remove(w.Name())
	} else if errors.Is(err, fs.ErrExist) {
		err = errors.New("somebody has made a file of that name meanwhile, which stays")
	} else if _, there := os.Lstat(w.final); errors.Is(there, fs.ErrNotExist) { // not every file system has links
		err = os.Rename(w.Name(), w.final)
	}
	return errors.Join(err, syncFolder(w.final))
}

// syncFolder makes the name of a new file safe.
func syncFolder(name string) error {
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// remove takes back a file that was not finished. A device is only let go.
func (w *writable) remove() error {
	if w.Device {
		return w.Close()
	}
	return errors.Join(w.Close(), os.Remove(w.Name()))
}

// bypassed says how a file or device is read and written.
func bypassed(f *direct.File) string {
	if f.Direct {
		return "past the page cache"
	}
	return fmt.Sprintf("through the page cache, for %s", f.Why)
}
