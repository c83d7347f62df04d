package visible_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/testkit/visibletest"
)

func TestLineAndText(t *testing.T) {
	for _, c := range []struct{ in, line, text string }{
		{"plain, µ, 漢字, ½, é", "plain, µ, 漢字, ½, é", "plain, µ, 漢字, ½, é"},
		{"a\tb\nc\rd", `a\tb\nc\rd`, "a\tb\nc" + `\rd`},
		{"\x1b[31m\x00\x7f\u009b", `\u001b[31m\u0000\u007f\u009b`, `\u001b[31m\u0000\u007f\u009b`},
		{"a\u202eb\u200b\ufeff", `a\u202eb\u200b\ufeff`, `a\u202eb\u200b\ufeff`},
		{"\U000e0041", `\udb40\udc41`, `\udb40\udc41`},
		{"\xff\xc3(", "\ufffd\ufffd(", "\ufffd\ufffd("},
		{"\u00a0\u3000", "\u00a0\u3000", "\u00a0\u3000"},
	} {
		if got := visible.Line(c.in); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.in, got, c.line)
		}
		if got := visible.Text(c.in); got != c.text {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.text)
		}
	}
	for _, h := range visibletest.Texts {
		got := visible.Line(h.Text)
		if visibletest.Loose(got) != "" || strings.ContainsAny(got, "\n\t") || visible.Line(got) != got {
			t.Errorf("%s: Line gave %q", h.Name, got)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"ab", 1, "…"},
		{"\xff\xff\xff", 2, "\xff…"},
	} {
		if got := visible.Cut(c.in, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

// TestWriter: whatever the pieces in which a text comes, the wall passes what Text makes of the whole.
func TestWriter(t *testing.T) {
	for _, h := range visibletest.Texts {
		want := visible.Text(h.Text)
		if h.Name == "half a character" {
			want = "end \ufffd" // of one character that is missing its end, one sign
		}
		for name, r := range map[string]io.Reader{
			"whole":  strings.NewReader(h.Text),
			"bytes":  iotest.OneByteReader(strings.NewReader(h.Text)),
			"halves": iotest.HalfReader(strings.NewReader(h.Text)),
		} {
			var b bytes.Buffer
			w := visible.NewWriter(&b)
			_, err := io.Copy(struct{ io.Writer }{w}, r)
			if err := errors.Join(err, w.Close()); err != nil || b.String() != want {
				t.Errorf("%s, %s: %v\n got %q\nwant %q", h.Name, name, err, b.String(), want)
			}
		}
	}
}

// TestWriterKeepsJSON: the values of a JSON document are the same behind the wall.
func TestWriterKeepsJSON(t *testing.T) {
	for _, h := range visibletest.Texts {
		in := strings.ToValidUTF8(h.Text, "?")
		var b bytes.Buffer
		w := visible.NewWriter(&b)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		var got string
		if err := errors.Join(e.Encode(in), json.Unmarshal(b.Bytes(), &got)); err != nil || got != in {
			t.Errorf("%s: %v\n got %q\nwant %q\nfrom %s", h.Name, err, got, in, b.String())
		}
		if loose := visibletest.Loose(b.String()); loose != "" {
			t.Errorf("%s: %s", h.Name, loose)
		}
	}
}

func TestWriterHandsOnErrors(t *testing.T) {
	if n, err := visible.NewWriter(failing{}).Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no") }

func TestFprintf(t *testing.T) {
	var b bytes.Buffer
	_, _ = visible.Fprintf(&b, "%s|%q|%-6s|%5d|%.1f|%v|%*d\n%s\n",
		"a\nb\x1b", "\u202e", "ä", 7, 2.55, errors.New("x\ny"), 3, 1, visible.Lines("p\nq\x1b"))
	want := `a\nb\u001b|"\u202e"|ä     |    7|2.5|x\ny|  1` + "\np\nq" + `\u001b` + "\n"
	if b.String() != want {
		t.Errorf("\n got %q\nwant %q", b.String(), want)
	}
	b.Reset()
	_, _ = visible.Fprintf(&b, "%s", strings.Repeat("ä", 1<<20))
	if n := utf8.RuneCount(b.Bytes()); n != visible.Longest {
		t.Errorf("an endless argument took %d characters", n)
	}
}

func FuzzWriter(f *testing.F) {
	for _, h := range visibletest.Texts {
		f.Add(h.Text, 3)
	}
	f.Fuzz(func(t *testing.T, in string, cut int) {
		var b bytes.Buffer
		w := visible.NewWriter(&b)
		at := min(max(cut, 0), len(in))
		for _, part := range []string{in[:at], in[at:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if loose := visibletest.Loose(b.String()); loose != "" {
			t.Fatal(loose)
		}
		if utf8.ValidString(in) && b.String() != visible.Text(in) {
			t.Fatalf("%q became %q", in, b.String())
		}
	})
}
