package analysis

import (
	"testing"

	"plimsoll/result"
)

// Machines are said by their groups, which have names of the author's; what only looks like one keeps its name.
func TestMembersOfGroups(t *testing.T) {
	t.Parallel()
	d := &result.Data{VMs: []result.VM{{Name: "Load_0000", Group: "Load"},
		{Name: "__curie_test_17_DB_0000", Group: "DB"},
		{Name: "DB_0001", Group: "DB"}, {Name: "DB_0010", Group: "DB"}, {Name: "My DB_0000", Group: "My DB"},
		{Name: "given", Group: "Other"}},
		Workloads: []result.Workload{{VM: "DB_0001", Group: "DB"}, {VM: "late_0000", Group: "late"}}}
	m := membersOf(d)
	for said, want := range map[string]string{
		"The clock of Load_0000 was 288 ms ahead.":             "The clock of the VM of Load was 288 ms ahead.",
		"On DB_0000, DB_0001, DB_0010 and 1 more they paused.": "On VMs 0, 1, 10 of DB and 1 more they paused.",
		"the 2 servers (DB_0000 and DB_0001)":                  "the 2 servers (VMs 0 and 1 of DB)",
		"On __curie_test_17_DB_0000 and Load_0000":             "On VM 0 of DB and the VM of Load",
		"DB_0001, Load_0000, late_0000":                        "VM 1 of DB, the VM of Load, the VM of late",
		"DB_0001, given and DB_0010":                           "VM 1 of DB, given and VM 10 of DB",
		"My DB_0000 and DB_0000":                               "The VM of My DB and VM 0 of DB",
		"raw/Load_0000/out, Load_0000/out, XLoad_0000":         "raw/Load_0000/out, Load_0000/out, XLoad_0000",
		"DB_0002 is no machine, nor Load_00000 nor _0000":      "DB_0002 is no machine, nor Load_00000 nor _0000",
		"nothing": "nothing", "": "",
	} {
		if got := m.say(said); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}
