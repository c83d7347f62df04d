package result

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a journal was told of machines is read from it again; what cannot be read is left out.
func TestMachinesOfAJournal(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	boot := Boot{VM: "vm", Group: "G", Node: 2, Asked: at, Started: at.Add(time.Second), Answered: at.Add(time.Minute)}
	move := Migration{VM: "vm", Group: "G", From: 2, To: 0, Began: at, Seconds: 3.5, StillSeconds: 0.25, MemoryBytes: 9}
	back := NodeReturn{Node: "n0", Off: at, On: at.Add(time.Second), Ready: at.Add(time.Minute)}
	text, err := json.Marshal([]Event{
		{Kind: KindNodeReturn, Name: "n0", Data: EventData{NodeReturn: &back}}, {Kind: KindNodeReturn},
		{Kind: KindBoot, Name: "vm", Data: EventData{Boot: &boot}},
		{Kind: KindMigration, Name: "vm", Data: EventData{Migration: &move}},
		{Kind: KindBoot}, {Kind: KindNote}})
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("}]"), []byte(`},{"kind":"migration","data":{"migration":"damaged"}}]`), 1)
	var events []Event
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Boot{boot}, BootsOf(events)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Migration{move}, MigrationsOf(events)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]NodeReturn{back}, NodeReturnsOf(events)); diff != "" {
		t.Error(diff)
	}
}
