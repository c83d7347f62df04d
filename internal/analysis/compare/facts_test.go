package compare

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What differs alike in several groups is one line, whatever it is; another value is another line.
func TestARefusalTellsAFactOfManyOnce(t *testing.T) {
	r := &Refusal{Sides: []Shown{{Name: "A"}, {Name: "B"}}}
	add := func(name, of, a, b string) {
		r.Facts = append(r.Facts, Fact{Name: name, of: of, Refuses: true, Values: []string{a, b}})
	}
	add("nodes", "", "4", "8")
	for i := range 7 {
		add(fmt.Sprintf("prefill of VM_%d", i), fmt.Sprintf("VM_%d", i), "none", "17179869184 bytes")
	}
	add("prefill of Log", "Log", "none", "4096 bytes")
	add("OLTP mix", "OLTP", "about 50 % reads", "about 70 % reads")
	add("Backup mix", "Backup", "about 50 % reads", "about 70 % reads")
	add("variable size", "", "1", "2")
	const want = `compare: nodes: A has "4", B has "8"
compare: prefill of VM_0, VM_1, VM_2, VM_3, VM_4 and 2 more: A has "none", B has "16 GiB"
compare: prefill of Log: A has "none", B has "4 KiB"
compare: OLTP, Backup mix: A has "about 50 % reads", B has "about 70 % reads"
compare: variable size: A has "1", B has "2"`
	if d := cmp.Diff(want, r.Error()); d != "" {
		t.Error(d)
	}
	const names = "nodes; prefill of VM_0, VM_1, VM_2, VM_3, VM_4 and 2 more; prefill of Log; OLTP, Backup mix; " +
		"variable size"
	if d := cmp.Diff(names, r.names()); d != "" {
		t.Error(d)
	}
	if got := r.Facts[1]; got.Values[1] != "17179869184 bytes" || got.Name != "prefill of VM_0" {
		t.Errorf("telling changed the facts: %+v", got)
	}
}
