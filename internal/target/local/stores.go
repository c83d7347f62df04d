package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// storeFolders reads the option dir: one folder, or several with ":" between them, on whose file systems data disks are
// put. Nothing is made in them yet; all objections are returned at once.
func storeFolders(text string) (dirs []string, err error) {
	if text == "" {
		return nil, nil
	}
	parts := []string{text}
	if _, err := os.Stat(text); err != nil && strings.Contains(text, ":") { // else a folder whose name holds one
		parts = strings.Split(text, ":")
	}
	var objections []error
	var real []string
	for _, dir := range parts {
		at, err := storeFolder(dir)
		if err != nil {
			objections = append(objections, err)
			continue
		}
		for i, other := range real {
			switch {
			case other == at:
				err = fmt.Errorf("%s: is the same folder as %s", dir, dirs[i])
			case strings.HasPrefix(at+"/", other+"/"):
				err = fmt.Errorf("%s: lies in %s: they share what is below them", dir, dirs[i])
			case strings.HasPrefix(other+"/", at+"/"):
				err = fmt.Errorf("%s: holds %s: they share what is below them", dir, dirs[i])
			}
			if err != nil {
				objections = append(objections, err)
				break
			}
		}
		if err == nil {
			real, dirs = append(real, at), append(dirs, dir)
		}
	}
	return dirs, errors.Join(objections...)
}

// storeFolder is a folder without symbolic links, if disks may be put in it.
func storeFolder(dir string) (string, error) {
	if dir == "" {
		return "", errors.New(`a folder without a name: between two ":" nothing is said`)
	}
	info, err := os.Stat(dir)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return "", fmt.Errorf("%s: %w: name a folder on the file system to be tested", dir, path.Err)
	case err != nil:
		return "", fmt.Errorf("%s: %w", dir, err)
	case info.Mode().Type()&(fs.ModeDevice|fs.ModeCharDevice) != 0:
		return "", fmt.Errorf("%s: is a device, and nothing here writes to devices yet: whatever is on it would be "+
			"lost; make a file system on it, mount it, and name its folder", dir)
	case !info.IsDir():
		return "", fmt.Errorf("%s: is no folder: what is in it would be lost; name the folder that it lies in", dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return "", fmt.Errorf("%s: nothing can be made in it: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return real, err
}
