package cli

import "testing"

// What is said of several jobs alike stands there once.
func TestMoreJobs(t *testing.T) {
	t.Parallel()
	text := `a.fio:5:11: [file [1] directory=tmp: "tmp" is not there`
	for _, want := range []string{
		`a.fio:5:11: [file [1] and 1 more directory=tmp: "tmp" is not there`,
		`a.fio:5:11: [file [1] and 2 more directory=tmp: "tmp" is not there`,
	} {
		if text = moreJobs(text); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
	if got := jobOfPlace.ReplaceAllString(text, ""); got != `a.fio:5:11: directory=tmp: "tmp" is not there` {
		t.Errorf("got %q", got)
	}
}
