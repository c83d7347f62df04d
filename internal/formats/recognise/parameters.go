package recognise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert"
)

// IsCall reports whether a name is the command line of a tool instead, as in plimsoll run 'fio --name=t --rw=read'.
func IsCall(name string) bool {
	_, known := convert.ByContent([]byte(name))
	return known && strings.Contains(strings.TrimSpace(name), " ")
}

// Tool is the tool whose parameters a file holds, by the end of its name or, of names that say nothing, by how it
// begins.
func Tool(name string) (convert.Tool, bool) {
	t, ok := convert.ByFile(name)
	if ok && t.Name == "diskspd" { // batch files may be of another
		if of, known := convert.ByContent(Head(name)); known && of.Name == "fio" {
			return of, true
		}
	}
	if ok || slices.Contains([]string{".yml", ".yaml", ".zip"}, strings.ToLower(filepath.Ext(name))) {
		return t, ok
	}
	if _, err := os.Stat(name); err != nil && IsCall(name) {
		return convert.ByContent([]byte(name))
	}
	return convert.ByContent(Head(name))
}
