package runs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/report/web"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
)

// FolderIndex knows what lies in a folder of run folders. Asked again, it looks at the folder itself and at what it
// could not tell before: a folder of ten thousand runs is not gone through each time.
type FolderIndex struct {
	root   string
	mu     sync.Mutex
	read   time.Time               // when
	marked time.Time               // the folder's own time then
	kinds  map[string]folderIs     // by name
	names  []string                // in order
	inside map[string]*FolderIndex // of runs of experiments
}

type folderIs int

const (
	unknownFolder folderIs = iota // it may become something
	runFolder
	experimentFolder
)

// oldEnough is how old the last change of a folder must be for its time to tell whether there was another.
const oldEnough = 2 * time.Second

// NewFolderIndex is of a folder that was not looked at yet. The folders that it gives are absolute: what is kept of
// them is found again from another working directory.
func NewFolderIndex(root string) *FolderIndex {
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return &FolderIndex{root: root}
}

// Look returns the folders of runs and of experiments, in the order of their names.
func (x *FolderIndex) Look() (runs, experiments []string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	info, err := os.Stat(x.root)
	if errors.Is(err, fs.ErrNotExist) {
		x.kinds, x.names = nil, nil
		return nil, nil, nil
	}
	if err == nil && (x.kinds == nil || !info.ModTime().Equal(x.marked) || x.read.Sub(x.marked) < oldEnough) {
		err = x.list(info.ModTime())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("runs: %w", err)
	}
	for _, name := range x.names {
		dir := filepath.Join(x.root, name)
		if x.kinds[name] == unknownFolder {
			x.kinds[name] = kindOfFolder(dir)
		}
		switch x.kinds[name] {
		case runFolder:
			runs = append(runs, dir)
		case experimentFolder:
			experiments = append(experiments, dir)
		}
	}
	return runs, experiments, nil
}

func (x *FolderIndex) list(marked time.Time) error {
	x.read, x.marked = time.Now(), marked
	entries, err := os.ReadDir(x.root)
	if err != nil {
		return err
	}
	known := x.kinds
	x.kinds, x.names = make(map[string]folderIs, len(entries)), x.names[:0]
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && !strings.HasPrefix(name, ".") {
			x.kinds[name] = known[name]
			x.names = append(x.names, name)
		}
	}
	return nil
}

func kindOfFolder(dir string) folderIs {
	switch {
	case result.IsFolder(dir):
		return runFolder
	case experiment.Is(dir):
		return experimentFolder
	}
	return unknownFolder
}

// Folders are the folders of all runs, those of experiments included.
func (x *FolderIndex) Folders() ([]string, error) {
	dirs, experiments, err := x.Look()
	if err != nil {
		return nil, err
	}
	if x.inside == nil {
		x.inside = map[string]*FolderIndex{}
	}
	for _, e := range experiments {
		if x.inside[e] == nil {
			x.inside[e] = NewFolderIndex(filepath.Join(e, experiment.RunsFolder))
		}
		inside, _, err := x.inside[e].Look()
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, inside...)
	}
	return dirs, nil
}

// IndexFile is the file of the user's cache that keeps what lists show of the runs there are; "" where there is none.
func (st *Store) IndexFile() string {
	cache, err := os.UserCacheDir()
	dir, bad := filepath.Abs(st.RunsDir)
	if err != nil || bad != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(cache, "plimsoll", fmt.Sprintf("runs-%x.index", sum[:8]))
}

// listed are the runs that belong to no experiment, newest first, each as far as a list shows it.
func (st *Store) listed() ([]web.Listed, error) {
	index := NewFolderIndex(st.RunsDir)
	list, err := web.List(web.Options{Folders: index.Folders, Now: st.Now, Version: console.BuildVersion().Program,
		Index: st.IndexFile()})
	list = slices.DeleteFunc(list, func(l web.Listed) bool { return filepath.Dir(l.Dir) != index.root })
	for i := range list {
		list[i].Dir = filepath.Join(st.RunsDir, filepath.Base(list[i].Dir)) // as the user names it
	}
	return list, err
}
