package runs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cli/console"
	"plimsoll/result"
)

func TestDataSheet(t *testing.T) {
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "sheet.yaml")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file := write("device: Example SSD\nrandom-read: 98,000 IOPS\nsequential-read: 540 MB/s\n")
	fact := func(name, value string, kind result.FactKind, number float64) result.Fact {
		return result.Fact{Group: "data sheet", Name: name, Value: value, Kind: kind, Number: number}
	}
	got, err := DataSheet(&console.Console{}, []string{"random-read=5000", file, "random-write=70000"})
	if err != nil {
		t.Fatal(err)
	}
	want := []result.Fact{fact("device", "Example SSD", result.RatedDevice, 0),
		fact("sequential read", "540 MB/s", result.RatedReadBandwidth, 540e6),
		fact("random read", "5000", result.RatedReadRate, 5000), fact("random write", "70000", result.RatedWriteRate,
			70000)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"":    "s.yaml: want lines of NAME: VALUE",
		"- a": "s.yaml: want lines of NAME: VALUE",
		"device: [a]\nrandom-reed: 5\ndevice: x": "s.yaml:1: device: want one value\n--data-sheet: s.yaml:2: no " +
			"rating \"random-reed\"; did you mean \"random-read\"?",
		"random-read: 5\nrandom-read: 6": "s.yaml:2: random-read: is given twice",
		"sequential-read:":               "s.yaml:1: sequential-read: want one value",
	} {
		if _, _, err := parseDataSheet("s.yaml", []byte(text)); err == nil || err.Error() != "--data-sheet: "+want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := DataSheet(&console.Console{}, []string{"none.yaml"}); err == nil {
		t.Error("a file that is not there was read")
	}
}

// A later sheet takes the place of what the run was given.
func TestSheetsReplaceEachOther(t *testing.T) {
	fact := func(kind result.FactKind, value string) result.Fact {
		return result.Fact{Group: "a group", Name: "a name", Value: value, Kind: kind}
	}
	before := []result.Fact{fact("", "kept"), fact(result.RatedReadRate, "1"), fact(result.RatedWriteRate, "2")}
	got := WithSheet(before, []result.Fact{fact(result.RatedReadRate, "3")})
	want := []result.Fact{before[0], before[2], fact(result.RatedReadRate, "3")}
	if diff := cmp.Diff(want, got); diff != "" || before[1].Value != "1" {
		t.Error(diff)
	}
}

func FuzzDataSheet(f *testing.F) {
	f.Add([]byte("device: x\nrandom-read: 98000\n"))
	f.Add([]byte("random-read: 5\nrandom-read: {a: b}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, promises, err := parseDataSheet("sheet.yaml", data)
		for name, value := range promises {
			if err == nil && checkPromise(name, value) != nil {
				t.Errorf("%q: %s: %q was let through", data, name, value)
			}
		}
	})
}
