package regular

import (
	"errors"
	"path/filepath"
)

// Inside returns the slash path of name below dir, when it is there.
func Inside(dir, name string) (string, bool) {
	absDir, err1 := filepath.Abs(dir)
	absName, err2 := filepath.Abs(name)
	rel, err3 := filepath.Rel(absDir, absName)
	if errors.Join(err1, err2, err3) != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
