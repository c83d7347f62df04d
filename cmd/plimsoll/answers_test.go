package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/scenarios"
)

// TestAnswersFirst runs every scenario of the library on the simulated cluster, which refuses those that are not of
// block I/O, and reads with what text, Markdown, page and JSON of the others begin: the answer to the question, a
// golden. What the refused ones begin with on this machine is read by db.txtar, db-failover.txtar and
// TestAnswersOfRealLoads.
func TestAnswersFirst(t *testing.T) {
	needs.Time(t)
	for _, name := range scenarios.Names() {
		t.Run(name, func(t *testing.T) {
			s := session{t: t, runs: t.TempDir()}
			file := filepath.Join("testdata", "answers", name+".txt")
			cmd := s.command(t.Context(), "run", name, "--target", "sim", "-q")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if strings.Contains(errs.String(), "the simulated cluster models block I/O") {
				if _, stale := os.Stat(file); stale == nil {
					t.Errorf("it has an answer and is refused: %s", &errs)
				}
				return
			}
			if err != nil {
				t.Fatal(err, &errs)
			}
			text := sentences(string(out))
			if !answers(text) {
				t.Errorf("it begins with no answer: %q", text)
			}
			golden.Compare(t, file, []byte(text+"\n"))
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
				if at := strings.Index(strings.ReplaceAll(plainOf(t, format, doc), "\u00a0", " "), text); at < 0 {
					t.Errorf("%s does not have %q:\n%.600s", format, text, plainOf(t, format, doc))
				}
			}
		})
	}
}

// TestAnswersOfRealLoads reads with what runs begin, on this machine, whose loads the simulated cluster refuses.
func TestAnswersOfRealLoads(t *testing.T) {
	needs.Long(t, "databases and processors at work, one run after another")
	needs.Fio(t)
	needs.Sysbench(t)
	needs.StressNg(t)
	_, err := postgres.Folder()
	needs.That(t, err == nil, "postgresql", "apt-get install postgresql")
	const short = ` \(no interval of its rate: it has \d+ points of 1 s, and 25 are needed\)\.`
	for args, want := range map[string]string{
		"cpu-and-memory --set load_secs=10 --set pause_secs=1 --nodes 2 --allow-host-commands": `CPU: event ` +
			`[\d.,]+ events/s, .*; Memory: write [\d.,]+ writes/s`,
		"busy-neighbour --set alone_secs=10 --set together_secs=10 --allow-host-commands": `Tenant: [\d.,]+ ` +
			`events/s alone, [\d.,]+ with Neighbour \(.*(95 %: |no interval)`,
		"db-checkpoint --once --set scale=1 --set measure_secs=10": `Writers: transaction [\d.,]+ transactions/s, ` +
			`.* p99 .*, held to the 300 transactions/s its job asks for.*` + short,
		"db-density --set databases=2 --set step_secs=10 --set clients=2": `Database 1: [\d.,]+ transactions/s ` +
			`alone, [\d.,]+ with Database 2 \(.*(95 %: |no interval)`,
		"db-hugepages --once --set pages=none --set measure_secs=5 --set scale=1": `Lookups: transaction [\d.,]+ ` +
			`transactions/s, .*` + short,
		"db-mixed-bursty --set bursty=1 --set burst_secs=5 --set rate=100": `Steady: [\d.,]+ transactions/s alone, ` +
			`[\d.,]+ with Burst 1 \(.*(95 %: |no interval)`,
		"db-numa --once --set load=fio --set measure_secs=30 --size-scale 0.01": `(Whether "NUMA nodes are balanced" holds ` +
			`cannot be told .*; )?Reads(: read| was steady:) [\d.,]+ IOPS.*(95 %: |no interval)`,
		"db-scale-up --once --set measure_secs=5": `Lookups: transaction [\d.,]+ transactions/s, ` +
			`.*` + short,
	} {
		s := session{t: t, runs: t.TempDir()}
		out, err := s.command(t.Context(), append([]string{"run", "-q"}, strings.Fields(args)...)...).Output()
		text := sentences(string(out))
		if !answers(text) || !regexp.MustCompile(`^(warning: )?`+want).MatchString(text) {
			t.Errorf("%s: %v, begins with %q, want %q", args, err, text, want)
		}
	}
}

// answers reports whether a sentence has a number, not only names with digits, and says how far it can be trusted: an
// interval, the span in which something was seen, a count of all there is, or why there is none.
func answers(text string) bool {
	number := regexp.MustCompile(`[\d.,]+ ?(IOPS|[KMGT]iB|(min|ms|µs|s)\b|[a-z ]+/s|reads )`)
	trusted := regexp.MustCompile(`9[0-9.]+ %( interval|:)|\(within |; between |each once|no interval|` +
		`no rate has an interval|is not known, since `)
	return number.MatchString(text) && trusted.MatchString(text)
}

func TestAnswers(t *testing.T) {
	for text, want := range map[string]bool{
		"Reads was steady: 4,000 IOPS (95 %: 3,990 to 4,010).":                      true,
		"Reads: read 4,000 IOPS (no interval of its rate: it ended).":               true,
		"CPU: event 907 events/s, mean 4.38 ms; no rate has an interval: it ended.": true,

		"Database 1: 300 transactions/s alone (−34.9 %; the rate wanders).": false,
		"Reads was steady.":                       false,
		"Node 1 ran (95 %: as planned).":          false,
		"Database 1: 300 transactions/s alone.":   false,
		"No operation failed (no interval).":      false,
		"Load wrote 1 TiB in 5 min (within 5 s).": true,
		"": false,
	} {
		if answers(text) != want {
			t.Errorf("%q answers: %v", text, !want)
		}
	}
}

// sentences are the first line of a summary after what changes the meaning of all numbers, and a title.
func sentences(out string) string {
	parts := strings.Split(out, "\n\n")
	at := 1
	if len(parts) < 3 {
		return out
	}
	if strings.HasPrefix(parts[1], "Scaled: ") ||
		!strings.Contains(parts[1], "\n") && !strings.HasSuffix(parts[1], ".") {
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
		return strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&", "&#43;",
			"+").Replace(page)
	}
	return strings.NewReplacer(`\_`, "_", `\(`, "(").Replace(string(doc))
}
