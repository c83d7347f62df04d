package terminal_test

import (
	"testing"

	"plimsoll/internal/terminal"
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
