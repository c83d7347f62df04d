package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
)

// beginnings are how the page of each scenario begins that the simulated cluster runs: the answer to its question. Of
// the others TestOf of package answer has the sorts.
var beginnings = map[string]string{
	"ab-durable-log":  `^With flush_every 1 instead of 0, write IOPS of Log writes: [\d,]+ IOPS instead of [\d,]+ IOPS, .* interval `,
	"block-size-grid": `^Read bandwidth of Reads is highest at block_size=256k queue_depth=16: [\d.]+ GiB/s \(95 % interval `,
	"boot-storm":      `^40 VMs of Desktop .*: each answered 15 s after its start .*; Steady: [\d,]+ IOPS`,
	"bulk-load":       `^Load wrote .* GiB/s \(.*\); Load without checksums wrote .* GiB/s \(`,
	"db-colocation":   `^OLTP: 4,000 IOPS alone, 4,000 with DSS .*95 %: `,
	"db-locality":     `^With placement moved instead of beside, read IOPS of Transactions: .* IOPS, .* interval `,
	"four-corners":    `^Random read was steady: .* \(95 %: .*Sequential read .*Random write .*Sequential write `,
	"hot-spots":       `^With access distribution .* instead of uniform, .* \(95 %: `,
	"ilm":             `^Read 16k .* from its first .* on`,
	"mixed-bursty":    `^Of \d workloads that were set against others the one that changed most is .* steady: .*95 %: `,
	"node-loss":       `^After .* Kept back at 90 % of its former .* IOPS after 1 min .* between `,
	"power-loss":      `^After .* OLTP back at 90 % .* between .*whether any of the [\d,]+ reads of Ledger check met a lost write is not known`,
	"restore":         `^Restore wrote .* in .*: .* \(`,
	"scale-out":       `^Throughput grew ×\d.* from [\d,]+ to [\d,]+ IOPS.* 95 %: `,
	"storage-integrity": `^Whether any of the [\d,]+ reads of Stamped check met a lost write is not known, since a simulated cluster reads ` +
		`nothing back\.`,
	"worn-in": `^Random write was steady: .* \(95 %: .*Random read was steady: `,
}

// TestAnswersFirst runs every scenario of the library that the simulated cluster can run, and reads with what its text,
// its Markdown, its page and its JSON begin.
func TestAnswersFirst(t *testing.T) {
	needs.Time(t)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range beginnings {
			if !yield(n) {
				return
			}
		}
	}) {
		t.Run(name, func(t *testing.T) {
			s := session{t: t, runs: t.TempDir()}
			out, err := s.command(t.Context(), "run", name, "--target", "sim", "-q").Output()
			if err != nil {
				t.Fatal(err)
			}
			text := sentences(string(out))
			if !regexp.MustCompile(beginnings[name]).MatchString(text) {
				t.Errorf("the summary begins: %s", text)
			}
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

// plainOf is what a document begins with, without markup.
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
