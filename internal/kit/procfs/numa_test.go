package procfs

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestListsOfNumbers(t *testing.T) {
	for text, want := range map[string][]int{"0-3,8,10-11\n": {0, 1, 2, 3, 8, 10, 11}, "5": {5}, "": nil,
		"x,3-1,-4,2": {2}, "0-99999999999": nil, "7-70000": nil} {
		if diff := cmp.Diff(want, parseList(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestNUMANodes(t *testing.T) {
	const at = "sys/devices/system/node/"
	got := NUMANodes(fstest.MapFS{at + "node0/cpulist": {Data: []byte("0,2\n")},
		at + "node1/cpulist": {Data: []byte("1")}, at + "node1/distance": {},
		at + "nodes/cpulist": {Data: []byte("7")}, at + "node12/cpulist": {Data: []byte("3-4")}})
	if diff := cmp.Diff(map[int]int{0: 0, 1: 1, 2: 0, 3: 12, 4: 12}, got); diff != "" {
		t.Error(diff)
	}
	if got := NUMANodes(fstest.MapFS{}); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8,10-11")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range parseList(text) {
			if n < 0 || n >= mostCPUs {
				t.Errorf("%q: %d", text, n)
			}
		}
	})
}
