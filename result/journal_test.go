package result

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func FuzzJournal(f *testing.F) {
	f.Add([]byte("{\"time\":\"2026-11-21T20:45:00Z\",\"kind\":\"note\"}\n{\"kind\":\"pha"))
	f.Add([]byte("\x00\n\n{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		events, skipped, err := readJournal(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")) + 1; len(events)+len(skipped) > lines {
			t.Fatalf("%d events and %d skipped of %d lines", len(events), len(skipped), lines)
		}
		var again bytes.Buffer
		for _, e := range events {
			if e.Kind == "" {
				t.Fatal("an event without a kind")
			}
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			again.Write(append(line, '\n'))
		}
		if read, skipped, err := readJournal(&again); len(read) != len(events) || skipped != nil || err != nil {
			t.Fatalf("written again: %d events of %d, %v %v", len(read), len(events), skipped, err)
		}
	})
}

func TestOverlongLineIsSkipped(t *testing.T) {
	text := "{\"kind\":\"note\",\"text\":\"" + strings.Repeat("x", longestLine) + "\"}\n{\"kind\":\"note\"}\n"
	events, skipped, err := readJournal(strings.NewReader(text))
	if len(events) != 1 || len(skipped) != 1 || err != nil {
		t.Error(len(events), skipped, err)
	}
}
