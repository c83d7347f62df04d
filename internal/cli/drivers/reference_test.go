package drivers_test

import (
	"testing"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/golden"
)

// TestReference holds the keys of engines' configs as users read them, and every row's bounds and default against its
// type.
func TestReference(t *testing.T) {
	t.Parallel()
	n := 0
	for name, e := range drivers.All().ByName() {
		c, ok := e.(workload.Configured)
		if !ok {
			continue
		}
		n++
		for _, o := range c.Options() {
			if problem := o.Check(); problem != nil {
				t.Errorf("%s: %s: %v", name, o.Name, problem)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d engines have a table", n)
	}
	golden.Compare(t, "testdata/configs.txt", []byte(drivers.All().Reference()["configs"]))
}
