package compare_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/result"
)

// Loads of unlike options, and servers of unlike settings, are named and refused, also where one side has what the
// other leaves as it is; what is varied on purpose is not, by its short name.
func TestUnlikeLoadsAndServersAreRefused(t *testing.T) {
	t.Parallel()
	with := func(facts ...string) compare.Side {
		s := side("", random(1), 0, 1, steady)
		for _, f := range facts {
			parts := strings.Split(f, "|")
			s.Runs[0].Manifest.Environment = append(slices.Clone(s.Runs[0].Manifest.Environment), result.Fact{
				Group: parts[0], Name: parts[1], Value: parts[2], Across: result.MustAgree})
		}
		return s
	}
	base := []string{"load pg|mode|simple", "database server|fsync|on"}
	for name, c := range map[string]struct {
		a, b    []string
		vary    []string
		refused string
	}{
		"alike": {base, base, nil, ""},
		"mode": {base, []string{"load pg|mode|prepared", base[1]}, nil,
			`load pg mode: A has "simple", B has "prepared"`},
		"option of one": {base, append(slices.Clone(base), "load pg|rate|5"), nil, `load pg rate: A has "not given", B has "5"`},
		"setting": {base, []string{base[0], "database server|fsync|off"}, nil,
			`database server fsync: A has "on", B has "off"`},
		"setting of one": {base, append(slices.Clone(base), "database server|work_mem|1GB"), nil,
			`work_mem: A has "default"`},
		"setting, varied": {base, append(slices.Clone(base), "database server|work_mem|1GB"),
			[]string{"server.work_mem"}, ""},
		"setting, full name": {base, []string{base[0], "database server|fsync|off"},
			[]string{"database server fsync"}, ""},
		"nothing was stated": {nil, base, nil, ""},
		"varied, but another": {base, []string{"load pg|mode|x", "database server|fsync|off"},
			[]string{"server.fsync"}, "load pg mode"},
	} {
		a, b := with(c.a...), with(c.b...)
		a.Name, b.Name = "A", "B"
		d, err := compare.Of([]compare.Side{a, b}, compare.Options{Vary: c.vary})
		const loose = "Commits of B did not wait for the disk (fsync off): a crash loses some, and its rates are not " +
			"those of a server that keeps them."
		off := slices.Contains(c.b, "database server|fsync|off")
		if err == nil && slices.Contains(d.Mind, loose) != off {
			t.Errorf("%s: above the comparison stands %q", name, d.Mind)
		}
		var refusal *compare.Refusal
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.refused != "" && (!errors.As(err, &refusal) || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
}
