package terminal_test

import (
	"strings"
	"testing"

	"plimsoll/internal/report/terminal"
)

func TestPlainText(t *testing.T) {
	got := terminal.PlainText(`<p>One &amp; two <b>three</b></p><img src="x"><!-- no --><ul><li>four</li></ul>` +
		"\x1b[31m")
	if want := "One & two three\n\nfour\n\n\\u001b[31m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWrap(t *testing.T) {
	if got, want := terminal.Wrap("one two  three\nfour", 9), "one two\nthree\nfour"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A table that is bounded leaves spare columns out, then goes on below in its last column, then cuts, and never its
// first.
func TestTableFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fits int
		last string
		want string
	}{
		{60, "ok", "RUN      SIZE   NAME                      STATE\nr-00001  1 KiB  a rather long name of it  ok\n"},
		{45, "ok", "RUN      NAME                      STATE\nr-00001  a rather long name of it  ok\n"},
		{30, "ok", "RUN      NAME            STATE\nr-00001  a rather long…  ok\n"},
		{5, "ok", "RUN      NAME      STATE\nr-00001  a rathe…  ok\n"},
		{62, "the last column goes on below where it has room", "RUN      NAME                      STATE\n" +
			"r-00001  a rather long name of it  the last column goes on\n                                   below where it has room\n"},
	} {
		table := terminal.Table{Head: []string{"RUN", "SIZE", "NAME", "STATE"}, Fits: c.fits, Spare: []string{"SIZE"}}
		table.Add("r-00001", "1 KiB", "a rather long name of it", c.last)
		var b strings.Builder
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("%d: got\n%swant\n%s", c.fits, b.String(), c.want)
		}
	}
}
