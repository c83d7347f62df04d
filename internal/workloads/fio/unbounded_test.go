package fio

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

// piece is how much comes at once.
const piece = 256 << 10

// unbounded are outputs made to be read again and again. Each is repeated up to the size that is asked for.
var unbounded = map[string]struct{ head, again, tail string }{
	"objects that never close":    {"", "{\"a\":1,\n", ""},
	"reports that never close":    {"", "{\n\"fio version\":\"fio-3.33\",\"jobs\":[\n", ""},
	"the same on one line":        {"", `{"fio version":"fio-3.33","jobs":[`, ""},
	"closed at last":              {"", "{\"a\":1,\n", "\n}\n"},
	"braces in column 0":          {"", "{\n", "\n}\n"},
	"braces and words":            {"", "{\nfio: this is an error\n", "\n}\n"},
	"whole objects, no reports":   {"", "{\"a\":1}\n", "\n}\n"},
	"siblings in an open array":   {"{\"jobs\":[\n", "{\"a\":1},\n", "\n}\n"},
	"nested as deep as may be":    {"", "{\"jobs\":[{\"read\":{\"lat_ns\":{\"bins\":\n", "\n}\n"},
	"a string without an end":     {"{\"a\":\"", `\"x`, "\n}\n"},
	"backslashes":                 {"{\"a\":\"", `\\`, "\n}\n"},
	"first keys without a brace":  {"{", `"fio version"  `, "\n}\n"},
	"first keys after a brace":    {"", `{   "fio version"`, "\n}\n"},
	"blanks":                      {"{", " ", "\n}\n"},
	"blanks between braces":       {"", "{     \n     \n", "\n}\n"},
	"one long line":               {"", "x", "\n}\n"},
	"more jobs than fio can have": {"{\"jobs\":[", "{},", "{}]\n}\n"},
	"closings":                    {"", "}\n", ""},
	"zeros":                       {"", "\x00", "\n}\n"},
}

// What reading costs is in proportion to what there is to read, so that output out of proportion is read in minutes,
// not in days. Were it the square of it, this test would not end.
func TestParseIsLinear(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for name, h := range unbounded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size := 4 << 20
			text := h.head + strings.Repeat(h.again, size/len(h.again)) + h.tail
			p := newParser(&workloadtest.Recorder{}, workload.Declared{})
			for r := strings.NewReader(text); ; {
				buf := make([]byte, piece)
				n, err := r.Read(buf)
				if p.Feed(buf[:n]); err == io.EOF {
					break
				}
			}
			if _, err := p.Finish(); err == nil {
				t.Error("this holds no report")
			}
			if most := int64(maxDepth+2) * int64(len(text)); p.looked > most {
				t.Errorf("%d bytes were looked at of %d", p.looked, len(text))
			}
		})
	}
}

// Nesting is followed as deep as any report goes, and not where it would exhaust the stack.
func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]string{maxDepth: "", maxDepth + 1: "it is nested more than 32 deep"} {
		s := scanner{b: []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))}
		if err := s.skip(); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%d deep: %v, want %q", depth, err, want)
		}
	}
}

// Output without an end is read as it comes, in the memory of one report, and the report after it is found.
func TestParseOutputWithoutEnd(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	report := at(1000, 10).String()
	endless := bytes.Repeat([]byte("{\"a\":1,\n"), maxDocument/8+piece)
	var sink workloadtest.Recorder
	p := newParser(&sink, workload.Declared{})
	for range 4 {
		for i := 0; i < len(endless); i += piece {
			p.Feed(endless[i:min(i+piece, len(endless))])
			if cap(p.buf) > 4*maxDocument {
				t.Fatalf("%d bytes are kept", cap(p.buf))
			}
		}
	}
	p.Feed([]byte("\n}\n" + report))
	outcome, err := p.Finish()
	if err != nil || outcome.Reports != 1 || len(sink.Warnings) == 0 {
		t.Errorf("%d reports, %q, %v", outcome.Reports, sink.Warnings, err)
	}
}
