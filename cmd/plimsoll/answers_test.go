package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
)

// simulated are the scenarios that the simulated cluster runs; with what the page of each begins, the answer to its
// question, is a golden. Of the others TestOf of package answer has the sorts.
var simulated = strings.Fields(`ab-durable-log block-size-grid boot-storm bulk-load db-colocation db-locality
	four-corners hot-spots ilm mixed-bursty node-loss power-loss restore scale-out storage-integrity worn-in`)

// TestAnswersFirst runs every scenario of the library that the simulated cluster can run, and reads with what its text,
// its Markdown, its page and its JSON begin.
func TestAnswersFirst(t *testing.T) {
	needs.Time(t)
	for _, name := range simulated {
		t.Run(name, func(t *testing.T) {
			s := session{t: t, runs: t.TempDir()}
			out, err := s.command(t.Context(), "run", name, "--target", "sim", "-q").Output()
			if err != nil {
				t.Fatal(err)
			}
			text := sentences(string(out))
			golden.Compare(t, filepath.Join("testdata", "answers", name+".txt"), []byte(text+"\n"))
			folders, err := filepath.Glob(filepath.Join(s.runs, "*"))
			if err != nil || len(folders) != 1 {
				t.Fatalf("%v, %v", folders, err)
			}
			formats := []string{"json"}
			if name == "ab-durable-log" || name == "power-loss" { // of each sort one: the others are made the same way
				formats = []string{"json", "md", "text", "html"}
			}
			for _, format := range formats {
				doc, err := s.command(t.Context(), "report", folders[0], "-o", format).Output()
				if err != nil {
					t.Fatal(err)
				}
				if at := strings.Index(plainOf(t, format, doc), text); at < 0 {
					t.Errorf("%s does not have %q:\n%.600s", format, text, plainOf(t, format, doc))
				}
			}
		})
	}
}

// sentences are the first line of a summary after what changes the meaning of all numbers, and a title.
func sentences(out string) string {
	parts := strings.Split(out, "\n\n")
	at := 1
	if strings.Count(parts[1], "\n") == 0 && !strings.HasSuffix(parts[1], ".") {
		at++ // the title of an experiment
	}
	line, _, _ := strings.Cut(strings.TrimSpace(parts[at]), "\n")
	return line
}

// plainOf returns what a document begins with, without markup.
func plainOf(t *testing.T, format string, doc []byte) string {
	t.Helper()
	switch format {
	case "json":
		var all struct {
			InShort []json.RawMessage `json:"in_short"`
		}
		if err := json.Unmarshal(doc, &all); err != nil || len(all.InShort) == 0 {
			t.Fatal(err)
		}
		var short struct{ Sentence string }
		if json.Unmarshal(all.InShort[0], &short) == nil {
			return short.Sentence
		}
		var line string
		if err := json.Unmarshal(all.InShort[0], &line); err != nil {
			t.Fatal(err)
		}
		return line
	case "html":
		_, page, _ := strings.Cut(string(doc), `<h2 id="answer">In short</h2>`)
		page, _, _ = strings.Cut(page, "</p>")
		page = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, "")
		return strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&", "&#43;", "+").Replace(page)
	}
	return strings.NewReplacer(`\_`, "_", `\(`, "(").Replace(string(doc))
}
