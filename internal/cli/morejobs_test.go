package cli

import (
	"errors"
	"testing"

	"plimsoll/internal/contract/workload"
)

// What is said of several jobs alike stands there once.
func TestMoreJobs(t *testing.T) {
	t.Parallel()
	var r refusals
	add := func(job, why string) {
		r.add(workload.Place{Where: "a.fio:5:11", Job: job, Says: "directory=tmp"}, errors.New(why))
	}
	add("file [1", `"tmp" is not there`)
	for _, want := range []string{
		`a.fio:5:11: [file [1] and 1 more directory=tmp: "tmp" is not there`,
		`a.fio:5:11: [file [1] and 2 more directory=tmp: "tmp" is not there`,
	} {
		add(want, `"tmp" is not there`)
		if got := errors.Join(r.errors()...).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	add("other", `"tmp" is no folder`)
	if got := r.errors(); len(got) != 2 || got[1].Error() != `a.fio:5:11: [other] directory=tmp: "tmp" is no folder` {
		t.Errorf("got %q", got)
	}
}
