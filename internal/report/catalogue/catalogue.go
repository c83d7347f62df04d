// Package catalogue keeps what systems gave for a load, and sets a run beside those that did the same: figures that
// were published, with their source, and records of one's own runs or of a team's, a file each in a folder that may be
// shared.
//
// It matches like with like only: every condition of a load that its kind has must be known of both and be equal, and
// what was simulated stands beside simulated alone. Where a condition is not known the load is beside nothing. It ranks
// systems by one figure at a time and judges none of them.
package catalogue

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/regular"
	"plimsoll/result"
)

// Version is that of a record's file.
const Version = 1

// Load describes a load by its conditions, each under its name, its kind under "load". Equal ones are alike.
type Load map[string]string

// String lists the conditions, the kind first.
func (l Load) String() string {
	text := []string{l["load"]}
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if name != "load" {
			text = append(text, strings.ReplaceAll(name, "_", " ")+" "+l[name])
		}
	}
	return strings.Join(text, ", ")
}

// Figure is one number that a system gave.
type Figure struct {
	Name   string           `json:"name"` // of the operation or measure, or what a check found
	Unit   string           `json:"unit"` // base units
	Value  float64          `json:"value"`
	Low    *float64         `json:"low,omitempty"` // of its interval
	High   *float64         `json:"high,omitempty"`
	Better result.Direction `json:"better,omitempty"`
	// Unfinished: of a search for a mark that had probes left to make.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Same reports whether another figure is of the same thing.
func (f Figure) Same(o Figure) bool { return f.Name == o.Name && f.Unit == o.Unit }

// Mark is the name of the figure that a search for a mark found.
const Mark = "mark"

// Done holds what a system gave for one load. A load may be known by several sets of conditions, each enough by itself:
// as part of a scenario, and by what it asks of the storage.
type Done struct {
	Loads   []Load   `json:"loads"`
	Figures []Figure `json:"figures"`
}

// Record is of one run of one system.
type Record struct {
	Version   int       `json:"version,omitempty"`
	ID        string    `json:"id"` // of the run, or where in its source it stands
	System    string    `json:"system"`
	Source    string    `json:"source"` // a name of Sources, or who added it
	Date      time.Time `json:"date,omitzero"`
	Note      string    `json:"note,omitempty"`
	Simulated bool      `json:"simulated,omitempty"`
	Done      []Done    `json:"done"`
}

// Has reports whether all words stand in a record, in its names and the conditions of its loads, in any case.
func (r Record) Has(words []string) bool {
	text := []string{r.System, r.Source, r.ID, r.Note}
	for _, d := range r.Done {
		for _, l := range d.Loads {
			text = append(text, l.String())
		}
	}
	all := strings.ToLower(strings.Join(text, " "))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(all, strings.ToLower(w)) })
}

// Kinds are those of its loads, each once.
func (r Record) Kinds() (kinds []string) {
	for _, d := range r.Done {
		for _, l := range d.Loads {
			if !slices.Contains(kinds, l["load"]) {
				kinds = append(kinds, l["load"])
			}
		}
	}
	return kinds
}

// Did returns what a record has of a load that is written like this, nil where it has none.
func (r Record) Did(load string) *Done {
	for i, d := range r.Done {
		if slices.ContainsFunc(d.Loads, func(l Load) bool { return l.String() == load }) {
			return &r.Done[i]
		}
	}
	return nil
}

// Source is where published figures come from.
type Source struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Address string `json:"address"`
	Licence string `json:"licence"`
}

//go:embed records.jsonl
var records []byte

//go:embed sources.json
var sources []byte

// Sources are those of the published records.
var Sources = sync.OnceValue(func() (list []Source) {
	if err := json.Unmarshal(sources, &list); err != nil {
		panic("catalogue: sources.json: " + err.Error()) // a test reads it
	}
	return list
})

// Published are the records that come with the program.
var Published = sync.OnceValue(func() (list []Record) {
	lines := bufio.NewScanner(bytes.NewReader(records))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic("catalogue: records.jsonl: " + err.Error()) // a test reads it
		}
		list = append(list, r)
	}
	return list
})

// mostBytes is of a record's file; mostRecords of a folder's; the longest are of what a user adds.
const (
	mostBytes     = 4 << 20
	mostRecords   = 10000
	longestSystem = 256
	longestNote   = 4096
)

// Read gives the records of a folder, none where there is no such folder, and what could not be read.
func Read(dir string) (list []Record, problems []error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("catalogue: %w", err)}
	}
	var files []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			files = append(files, filepath.Join(dir, name))
		}
	}
	if len(files) > mostRecords {
		problems = append(problems, fmt.Errorf("catalogue %s: it has %d records, of which the first %d are read", dir,
			len(files), mostRecords))
		files = files[:mostRecords]
	}
	for _, name := range files {
		r, err := readRecord(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("catalogue: %s: %w", name, err))
			continue
		}
		list = append(list, r)
	}
	return list, problems
}

func readRecord(name string) (r Record, err error) {
	b, err := regular.Read(name, 0, mostBytes)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("it is no record: %w", err)
	}
	switch {
	case r.Version > Version:
		err = fmt.Errorf(
			"written in format version %d; this program reads up to version %d: use a newer plimsoll",
			r.Version,
			Version,
		)
	case r.System == "" || r.ID == "":
		err = errors.New("it is no record: system and id are missing")
	}
	return r, err
}

// Add writes a record to a folder, which is made where it is not there. One that is there and says something else
// stays, unless it is to be replaced.
func Add(dir string, r Record, replace bool) (path string, err error) {
	r.Version = Version
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path = filepath.Join(dir, fileName(r.ID))
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("%s is a link, and what it leads to is not overwritten: remove the link", path)
	}
	b = append(b, '\n')
	there, err := regular.Read(path, 0, mostBytes)
	if !replace && !errors.Is(err, fs.ErrNotExist) && (err != nil || !bytes.Equal(there, b)) {
		of := "is there already"
		if was, err := readRecord(path); err == nil {
			of = fmt.Sprintf("has a record of %s of system %q already", was.ID, was.System)
		}
		return "", fmt.Errorf("%s %s, and what is in it differs: replace it with --replace, or give another folder with --to",
			path, of)
	}
	return path, outfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// Fits reports what keeps a record of this name and note out of a folder.
func Fits(dir, system, note string) error {
	for _, of := range []struct {
		what, text string
		most       int
	}{{"system", system, longestSystem}, {"note", note, longestNote}} {
		if len(of.text) > of.most || !utf8.ValidString(of.text) {
			return fmt.Errorf("a %s is text of at most %d bytes; this one has %d", of.what, of.most, len(of.text))
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		dir = at
	}
	for at := dir; ; at = filepath.Dir(at) { // records within it would be foreign to it too
		if _, err := os.Lstat(filepath.Join(at, "journal.jsonl")); err == nil {
			return fmt.Errorf("%s is a run folder, which keeps what its run wrote and no more: give another folder", at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

func fileName(id string) string {
	return strings.Map(func(c rune) rune {
		if c == '.' || c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '-'
	}, strings.TrimLeft(id, ".")) + ".json"
}

// All are the published records and those of a folder.
func All(dir string) (list []Record, problems []error) {
	own, problems := Read(dir)
	return slices.Concat(Published(), own), problems
}
