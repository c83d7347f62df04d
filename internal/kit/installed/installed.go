// Package installed finds what belongs to this program besides itself, wherever it was installed: beside it, as a build
// and an unpacked archive have it, or in libexec or lib of the same prefix, as packages have it.
package installed

import (
	"os"
	"path/filepath"
)

// folders are those below the folder of the program in which a file may lie, the likeliest first.
var folders = []string{".", "../libexec/plimsoll", "../lib/plimsoll"}

// Path is where the first of the names is that is there; where none is, the likeliest place of the first.
func Path(names ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if to, err := filepath.EvalSymlinks(self); err == nil {
		self = to
	}
	return In(filepath.Dir(self), names...), nil
}

// In is the same for a program that lies in a folder.
func In(dir string, names ...string) string {
	for _, name := range names {
		for _, folder := range folders {
			path := filepath.Join(dir, folder, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return filepath.Join(dir, names[0])
}
