package terminal

import (
	"strings"
	"testing"
)

// Colours are put to words that begin a line or stand alone in a table, whatever pieces a line comes in, and nowhere
// else; what is no terminal gets none.
func TestPaint(t *testing.T) {
	t.Parallel()
	for want, pieces := range map[string][]string{
		red + "invalid:" + plain + " no\n":                  {"invalid: no\n"},
		yellow + "warning:" + plain + " a\nb warning: c\n":  {"warning: a\nb warning: c\n"},
		"- " + yellow + "warning:" + plain + " of a list\n": {"- warning: of a list\n"},
		"a: warning: b\n": {"a: ", "warning: b\n"},
		green + "✓" + plain + " A\n" + red + "✗" + plain + " B\n": {"✓ A\n✗ B\n"},
		"iops  1 %  " + red + "worse" + plain + "  x\n":           {"iops  1 %  worse  x\n"},
		"it got worse  and failed\n":                              {"it got worse  and failed\n"},
		"run: complete   (" + red + "failed" + plain + ")\n":      {"run: complete   (failed)\n"},
	} {
		var b strings.Builder
		p := &painter{w: &b, begins: true}
		for _, piece := range pieces {
			if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
	var b strings.Builder
	if Paint(&b) != &b {
		t.Error("what is no terminal is painted")
	}
}
