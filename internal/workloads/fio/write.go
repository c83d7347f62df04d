package fio

import (
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
)

// Sections get names of our own: fio puts names into file names and cuts them, and a line of the file is a name away
// from being an option. The number is the place of the author's name among the different ones of the file.
const ownPrefix = "section-"

func ownSection(i int) string { return ownPrefix + strconv.Itoa(i+1) }

// ownName finds our names in what fio says.
var ownName = lazyregexp.New(`\b` + ownPrefix + `[0-9]{1,4}\b`)

// ownIndex is the inverse of ownSection, -1 for other names.
func ownIndex(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, ownPrefix))
	if err != nil || n < 1 || ownSection(n-1) != name {
		return -1
	}
	return n - 1
}

// sectionNames are the different names of a file's jobs in order.
func sectionNames(f *fiofile.File) []string {
	jobs := f.Jobs()
	names := make([]string, len(jobs))
	for i := range jobs {
		names[i] = jobs[i].Name
	}
	return distinct(names)
}

// streamNames are the same names, taken from the streams of a job.
func streamNames(streams []result.Stream) []string {
	names := make([]string, len(streams))
	for i := range streams {
		names[i] = streams[i].Name
	}
	return distinct(names)
}

func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		had := seen[name]
		seen[name] = true
		return had
	})
}

// plain matches the value of any option but filename.
var plain = lazyregexp.New(`^(?:[0-9A-Za-z%,./:_-]|"[^"]*")*$`)

// write makes the file fio gets. It is the last look at it as well: a line that the table and the forms should not have
// let through is an objection, whoever put it there.
func (a *adaptation) write() {
	own := make(map[string]string)
	for i, name := range sectionNames(a.out) {
		own[name] = ownSection(i)
	}
	var b strings.Builder
	for i := range a.out.Sections {
		s := &a.out.Sections[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		name := own[s.Name]
		if s.Name == fiofile.Global {
			name = fiofile.Global
		}
		b.WriteString("[" + name + "]\n")
		for _, o := range s.Options {
			line := o.Key
			if !o.Flag {
				line += "=" + o.Value
			}
			known, ok := a.option(fiofile.Option{Key: o.Key})
			switch {
			case len(line) > fiofile.MaxLine:
				a.object(s, o, "the line it makes for fio is too long; name fewer disks, or move the run folder")
			case !ok, known.action == drop, known.action == refuse,
				o.Key != "filename" && !plain.MatchString(o.Value), strings.ContainsFunc(o.Value, unwritable):
				a.object(s, o, "it cannot be written into fio's job file")
			}
			b.WriteString(line + "\n")
		}
	}
	a.text = []byte(b.String())
}
