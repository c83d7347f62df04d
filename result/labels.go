package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// labelsFile has the labels of a run, or of an experiment.
const labelsFile = "labels.json"

// Labels are what people call a run and say about it. They tell nothing that was measured and may change at any time,
// also while the run goes on, so they lie in a file of their own that no collection makes anew; whoever
// changes them renews its sum.
type Labels struct {
	Version int      `json:"version"`
	Name    string   `json:"name,omitempty"`
	Tags    []string `json:"tags,omitempty"` // in order, each once
	Note    string   `json:"note,omitempty"`
}

// Empty reports whether nothing is said.
func (l Labels) Empty() bool { return l.Name == "" && len(l.Tags) == 0 && l.Note == "" }

// How long labels may be, in bytes.
const (
	longestLabel = 64
	longestNote  = 4096
)

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	plainTag  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/=-]*$`)
)

// Check says what is wrong with labels; nil when nothing is.
func (l Labels) Check() error {
	if l.Name != "" && (!plainName.MatchString(l.Name) || len(l.Name) > longestLabel) {
		return fmt.Errorf("%q cannot be a run's name: want letters, digits, dots, dashes and underscores, at most %d, "+
			"a letter or a digit first", l.Name, longestLabel)
	}
	for _, t := range l.Tags {
		if !plainTag.MatchString(t) || len(t) > longestLabel {
			return fmt.Errorf("%q cannot be a tag: want letters, digits and . _ : / = -, at most %d, "+
				"a letter or a digit first", t, longestLabel)
		}
	}
	if len(l.Note) > longestNote || !utf8.ValidString(l.Note) {
		return fmt.Errorf("a note is text of at most %d bytes; this one has %d", longestNote, len(l.Note))
	}
	return nil
}

// ReadLabels reads the labels of the run or the experiment in a folder; the zero value when it has none.
func ReadLabels(dir string) (Labels, error) {
	b, err := readDocument(filepath.Join(dir, labelsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Labels{}, nil
	}
	var l Labels
	if err == nil {
		err = checkVersion(b)
	}
	if err == nil {
		if err = json.Unmarshal(b, &l); err != nil {
			err = fmt.Errorf("damaged: %w", err)
		}
	}
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return Labels{}, fmt.Errorf("run folder: %s: %w", labelsFile, err)
	}
	return l, nil
}

// ChangeLabels changes the labels of the run or the experiment in a folder and returns them. Two that do so at the same
// time come one after the other; a run that goes on is not disturbed. Nothing else in the folder is written.
func ChangeLabels(dir string, change func(*Labels)) (Labels, error) {
	unlock, err := lockNames(dir, unix.LOCK_EX)
	if err != nil {
		return Labels{}, fmt.Errorf("labels: %w", err)
	}
	defer unlock()
	l, err := ReadLabels(dir)
	if err != nil {
		return Labels{}, fmt.Errorf("labels: %s: %w", dir, err)
	}
	change(&l)
	l.Version, l.Note = FormatVersion, strings.TrimSpace(l.Note)
	slices.Sort(l.Tags)
	l.Tags = slices.Compact(l.Tags)
	if err := l.Check(); err != nil {
		return Labels{}, err
	}
	var b bytes.Buffer // of no labels, no file
	if !l.Empty() {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(l)
	}
	if err == nil {
		err = replaceLocked(dir, labelsFile, b.Bytes(), true, (*os.File).Sync)
	}
	if err != nil {
		return Labels{}, fmt.Errorf("labels: %w", err)
	}
	return l, nil
}
