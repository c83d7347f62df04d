package scenario_test

import (
	"strings"
	"testing"

	"plimsoll/scenario"

	"github.com/google/go-cmp/cmp"
)

func TestGroupPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		group scenario.Group
		nodes int
		want  []int
		error string
	}{
		{"per node is round-robin", scenario.Group{Nodes: scenario.Selector{Text: ":2"}, CountPerNode: 2}, 4,
			[]int{0, 1, 0, 1}, ""},
		{"per cluster is round-robin", scenario.Group{Nodes: scenario.Selector{Text: "2,0"}, CountPerCluster: 5}, 4,
			[]int{2, 0, 2, 0, 2}, ""},
		{"neither count is one per selected node", scenario.Group{Nodes: scenario.Selector{Text: "1:"}}, 4,
			[]int{1, 2, 3}, ""},
		{"no selector is all nodes", scenario.Group{}, 3, []int{0, 1, 2}, ""},
		{"the cluster count wins over none per node", scenario.Group{CountPerCluster: 1}, 3, []int{0}, ""},
		{"empty selection per node", scenario.Group{Name: "OLTP", Nodes: scenario.Selector{Text: ":n-1"},
			CountPerNode: 1}, 1, nil, `vm group "OLTP": nodes ":n-1" selects no node on a cluster of 1`},
		{"empty selection per cluster", scenario.Group{Nodes: scenario.Selector{Text: ":n/2"}, CountPerCluster: 3}, 1,
			nil, "selects no node"},
		{"out of bounds", scenario.Group{Nodes: scenario.Selector{Text: "1,2"}}, 2, nil,
			"node 2 is out of bounds on 2 nodes"},
		{"too many", scenario.Group{CountPerCluster: 10_001}, 2, nil, "10001 members"},
		{"too many per node", scenario.Group{CountPerNode: 1 << 60}, 2, nil, "members on 2 nodes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.group.Place(c.nodes)
			if c.error != "" {
				if err == nil || !strings.Contains(err.Error(), c.error) {
					t.Fatalf("error %v, want one with %q", err, c.error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	most, err := scenario.Group{CountPerCluster: scenario.MaxGroupSize}.Place(3)
	if err != nil || len(most) != scenario.MaxGroupSize {
		t.Errorf("the largest group: %d members, %v", len(most), err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Node 0": "Node_0", "a__b": "a_b", "a _ b": "a_b", "x.y-z": "x.y-z", "Größe": "Gr_e", " ": "_", "": "",
		"A/B (C)": "A_B_C_",
	} {
		if got := scenario.Sanitise(in); got != want {
			t.Errorf("Sanitise(%q) = %q, want %q", in, got, want)
		}
	}
	const id = 1700000000000
	for _, c := range []struct{ got, want string }{
		{scenario.VMName(id, "Node 0", 3), "__curie_test_1700000000000_Node_0_0003"},
		{scenario.VMName(id, "A", 12345), "__curie_test_1700000000000_A_12345"},
		{scenario.VMName(id, strings.Repeat("x", 60), 1), "__curie_test_1700000000000_" + strings.Repeat("x", 61-27)},
		{scenario.TemplateName(id, "ubuntu1604", "Node 0"), "__curie_goldimage_1700000000000_ubuntu1604_Node_0"},
		{scenario.TemplateName(id, "../a/b\n", "G"), "__curie_goldimage_1700000000000_.._a_b__G"},
		{scenario.EntityName(id, "OLTP_3"), "__curie_1700000000000_OLTP_3"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
