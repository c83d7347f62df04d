package scaling

import "testing"

// Tests whose concurrency is made of two things that vary each beside the other are no curve.
func TestGrid(t *testing.T) {
	t.Parallel()
	of := func(pairs ...[2]string) (out []map[string]string) {
		for _, p := range pairs {
			out = append(out, map[string]string{"iodepth": p[0], "numjobs": p[1]})
		}
		return out
	}
	for name, c := range map[string]struct {
		made []map[string]string
		want string
	}{
		"depth alone":   {of([2]string{"1", "4"}, [2]string{"2", "4"}, [2]string{"4", "4"}), ""},
		"jobs alone":    {of([2]string{"8", "1"}, [2]string{"8", "2"}), ""},
		"both together": {of([2]string{"1", "1"}, [2]string{"2", "2"}, [2]string{"4", "4"}), ""},
		"jobs after depth": {of([2]string{"1", "1"}, [2]string{"2", "1"}, [2]string{"4", "1"}, [2]string{"4", "2"}),
			"numjobs"},
		"a grid of two depths": {of([2]string{"1", "1"}, [2]string{"1", "2"}, [2]string{"1", "4"}, [2]string{"8", "1"},
			[2]string{"8", "2"}, [2]string{"8", "4"}), "iodepth"},
		"none says": {make([]map[string]string, 4), ""},
	} {
		if got := Grid(c.made); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
