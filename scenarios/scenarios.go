// Package scenarios is the library that comes with the program: one folder per scenario, in the published scenario
// language, readable without unpacking anything.
//
// The folders are data; this file only carries them. It refuses nothing: whether a scenario is valid is package
// scenario's affair.
package scenarios

import (
	"embed"
	"io/fs"
)

//go:embed */*.yml */*.fio
var files embed.FS

// Names lists the scenarios, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // an embedded root is always readable
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Open returns the folder of a scenario; ok is false when there is none of that name.
func Open(name string) (dir fs.FS, ok bool) {
	if !fs.ValidPath(name) || name == "." {
		return nil, false
	}
	if _, err := fs.Stat(files, name+"/test.yml"); err != nil {
		return nil, false
	}
	dir, err := fs.Sub(files, name)
	return dir, err == nil
}
