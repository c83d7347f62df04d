package experiment

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/fstest"
	"time"
)

// A bit of a record or of its events that is turned round is told, or changes nothing.
func TestFlips(t *testing.T) {
	t.Parallel()
	f, err := Create(t.TempDir(), Record{Version: FormatVersion, ID: "x", Repeats: 2,
		Factors:  []Factor{{Name: "depth", Levels: []any{4, 8}}},
		Cells:    []Cell{{Number: 1, Levels: []Level{{"depth", 4}}}, {Number: 2, Levels: []Level{{"depth", 8}}}},
		Sequence: []Planned{{Sequence: 1, Cell: 1, Repeat: 1}, {Sequence: 2, Cell: 2, Repeat: 1}}}, fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Extend(16); err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{Started, Done, Started, Failed} {
		if err := f.Append(Event{Time: time.Unix(int64(i), 0).UTC(), Sequence: 1 + i/2, State: state, RunID: "r",
			Error: "{}"}); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (Record, []Event, []string, error) {
		f, err := Open(f.Dir())
		if err != nil {
			return Record{}, nil, nil, err
		}
		events, err := f.Events()
		return f.Record(), events, f.VerifySums(), err
	}
	record, events, bad, err := read()
	if err != nil || bad != nil || len(events) != 4 || len(record.Cells) != 3 {
		t.Fatalf("%d cells, %d events, %q, %v", len(record.Cells), len(events), bad, err)
	}
	for _, name := range []string{recordFile, cellsFile} {
		path := filepath.Join(f.Dir(), name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for bit := 0; bit < 8*len(good); bit += 5 {
			data := bytes.Clone(good)
			data[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			r, e, bad, err := read()
			if err == nil && bad == nil && !(reflect.DeepEqual(r, record) && reflect.DeepEqual(e, events)) {
				t.Errorf("%s: bit %d, in %q, is told by nothing", name, bit,
					data[max(0, bit/8-20):min(len(data), bit/8+20)])
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
