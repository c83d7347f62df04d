// Package recognise says what a file is that somebody names: what a tool left of a load, its parameters, or a table.
package recognise

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/formats/importer"
	"plimsoll/internal/kit/plaintext"
	"plimsoll/internal/kit/regular"
)

// IsTable reports whether an argument is a table rather than a run: standard input, the path of something that is no
// folder, or a name that only a table has, whether or not it exists.
func IsTable(given string) bool {
	if given == "-" {
		return true
	}
	if info, err := os.Stat(given); err == nil {
		return !info.IsDir() && !strings.HasPrefix(given, "@") && !IsOutput(given)
	}
	return slices.Contains([]string{".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".dat"},
		strings.ToLower(filepath.Ext(given)))
}

// What is looked at of a folder of outputs.
const (
	deepestFolder = 3
	mostInFolder  = 1000
)

// Outputs returns what of a folder is read: all files of a known form, in its folders too; of vdbench's reports on the
// intervals, which say the same in several ways, the one that says most, and beside it the histogram; and what else
// lies there and is passed over. main is nil of any other folder, of a run folder and of a scenario.
func Outputs(name string) (main, beside, passed []string) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return nil, nil, nil
	}
	known := func(file string) bool {
		_, _, known, advice := Recognise(filepath.Join(name, file))
		return known && advice == ""
	}
	looked := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := os.ReadDir(filepath.Join(name, dir))
		there := func(file string) bool {
			return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == file })
		}
		if err != nil || there("manifest.json") || there("test.yml") {
			passed = append(passed, filepath.Join(name, dir))
			return
		}
		reports := []string{"flatfile.html", "summary.html", "logfile.html", "totals.html"}
		if there("errorlog.html") && importer.VdbenchFailed(Head(filepath.Join(name, dir, "errorlog.html"))) {
			reports = []string{"logfile.html", "flatfile.html", "summary.html",
				"totals.html"} // which tells what failed
		}
		for _, file := range reports {
			if there(file) && known(filepath.Join(dir, file)) {
				main = append(main, filepath.Join(name, dir, file))
				if there("histogram.html") && known(filepath.Join(dir, "histogram.html")) {
					beside = append(beside, filepath.Join(name, dir, "histogram.html"))
				}
				return
			}
		}
		for _, e := range entries {
			file := filepath.Join(dir, e.Name())
			looked++
			switch {
			case looked > mostInFolder:
				passed = append(passed, filepath.Join(name, file))
			case e.IsDir() && slices.Contains([]string{"/proc", "/sys", "/dev"}, filepath.Join(name, file)):
				// what lies there is no file that somebody left, and some of it is read without end
			case e.IsDir() && depth < deepestFolder:
				walk(file, depth+1)
			case e.Type().IsRegular() && (known(file) || importer.IsFioLog(e.Name())):
				main = append(main, filepath.Join(name, file))
			default:
				passed = append(passed, filepath.Join(name, file))
			}
		}
	}
	walk("", 1)
	return main, beside, passed
}

// Recognise says what a file holds by its beginning; not known where it cannot be read.
func Recognise(name string) (as string, host, known bool, advice string) {
	head, packed := look(name)
	if as, host, known, advice = importer.Recognise(head); known || len(head) < importer.HeadBytes || packed {
		return as, host, known, advice
	}
	f, err := regular.Open(name, os.O_RDONLY)
	if err != nil {
		return "", false, false, ""
	}
	defer f.Close()
	return importer.Recognise(importer.End(f))
}

// Head is the beginning of a file as text, nothing where it cannot be read: unpacked, as UTF-8, and without what a log
// put before its lines.
func Head(name string) []byte {
	head, _ := look(name)
	return head
}

func look(name string) (head []byte, packed bool) {
	f, err := regular.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	in := bufio.NewReader(f)
	begins, _ := in.Peek(4) // what stands in the way of reading comes again
	packed = plaintext.Packed(begins)
	text, done, err := plaintext.Unpack(in)
	if err != nil {
		return nil, packed
	}
	defer done()
	head, err = io.ReadAll(io.LimitReader(plaintext.Reader(text), importer.HeadBytes))
	if err != nil && !packed { // of what is packed and cut short the beginning can be read
		return nil, false
	}
	if log, err := Logged(head); err == nil && log != nil {
		if head, err = io.ReadAll(log.Text(bytes.NewReader(head))); err != nil {
			return nil, packed
		}
	}
	return head, packed
}

// IsOutput reports whether a file holds what a tool left of a load, so that it stands for a run rather than for a
// table.
func IsOutput(name string) bool {
	if name == "-" || strings.HasPrefix(name, "@") || strings.HasPrefix(name, "/dev/") ||
		strings.HasPrefix(name, "/proc/") {
		return false
	}
	files, _, _ := Outputs(name)
	if files == nil {
		files = []string{name}
	}
	return slices.ContainsFunc(files, func(file string) bool {
		_, host, known, advice := Recognise(file)
		return known && !host && advice == ""
	})
}
