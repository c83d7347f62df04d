package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/kit/exit"
)

// TestBadTables gives every command that reads tables every sort of damage. Each must end with the one exit code for a
// file that cannot be used and an error that names the file, or go on with what it says; none may panic.
func TestBadTables(t *testing.T) {
	t.Parallel()
	commands := map[string][]string{
		"usl": {"usl", "FILE"}, "steady": {"steady", "FILE"}, "rounds": {"steady", "FILE", "--rounds"},
		"changes": {"changes", "FILE"}, "compare": {"compare", "good.csv", "FILE"},
		"baseline set": {"baseline", "set", "b", "FILE"}, "analyze": {"analyze", "FILE"},
	}
	const refused, either = "refused", "either" // either: the error or the answer depends on what the command needs
	for name, c := range map[string]struct{ text, want, says string }{
		"empty":         {"", refused, "no data"},
		"header":        {"n,x\n", refused, "no rows below the header"},
		"binary":        {"\x7fELF\x02\x01\x00\x00", refused, "line 1: byte 0x02 is no text"},
		"utf16":         {"\xff\xfen\x00,\x00", refused, `no rows below the header "n,"`},
		"delimiter":     {"n:x\n1:10\n2:20\n", refused, `"n:x"`},
		"ragged":        {"n,x\n1,10\n2\n", refused, `line 3 has 1 cell, the first has 2: "2"`},
		"twice":         {"x,x\n1,10\n", refused, `columns 1 and 2 are both called "x"`},
		"word":          {"n,x\n1,10\n2,20\n3,oops\n4,40\n", refused, `line 4: x: "oops" is not a number`},
		"infinite":      {"n,x\n1,10\n2,20\n3,Inf\n4,40\n", refused, `line 4: x: "Inf" is not finite`},
		"overflow":      {"n,x\n1,10\n2,20\n3,1e999\n4,40\n", refused, `line 4: x: "1e999" is not finite`},
		"decimal comma": {"n;x\n1;10,500\n2;20,500\n", either, `line 2: x: "10,500" is not a number beyond doubt: 10.500 or 10500?`},
		"units":         {"n,x\n1,10 km\n2,20 km\n", either, `line 2: "10 km" is not a number: write the number alone`},
		"gaps":          {"n,x\n1,10\n2,\n3,NaN\n4,40\n", either, ""},
		"one point":     {"n,x\n1,10\n", either, ""},
		"constant":      {"n,x\n" + strings.Repeat("1,10\n", 60), either, ""},
		"zeros":         {"n,x\n" + strings.Repeat("0,0\n", 60), either, ""},
		"negative":      {"n,x\n-1,-10\n-2,-20\n-3,-30\n-4,-40\n", either, ""},
		"reversed":      {"time,x\n3,10\n2,20\n1,30\n", either, ""},
		"duplicates":    {"time,x\n1,10\n1,20\n1,30\n", either, ""},
		"tiny and huge": {"n,x\n1e-300,1e300\n2e-300,1e-300\n1e300,1\n5,5\n", either, ""},
		"json":          {`[{"n":1,"x":`, refused, "not valid JSON: line 1"},
		"nested":        {`[{"n":{"x":1}}]`, refused, `element 1: "n" holds a list or an object`},
	} {
		for command, line := range commands {
			dir := t.TempDir()
			for file, text := range map[string]string{"bad.csv": c.text, "good.csv": "n,x\n1,10\n2,20\n3,30\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"--dir", filepath.Join(dir, "runs")}
			for _, word := range line {
				if word == "FILE" {
					word = "bad.csv"
				}
				if strings.HasSuffix(word, ".csv") {
					word = filepath.Join(dir, word)
				}
				args = append(args, word)
			}
			a, out, errs := quiet(t)
			code := a.main(args)
			said := errs.String()
			switch {
			case c.want == refused && code != exit.Failed && code != exit.Usage,
				code != exit.Done && code != exit.Failed && code != exit.Usage && code != exit.Refused:
				t.Errorf("%s of %s: exit code %d\n%s", command, name, code, said)
			case code != exit.Done && !strings.Contains(said, "bad.csv"):
				t.Errorf("%s of %s: the error does not name the file: %s", command, name, said)
			case c.want == refused && command != "usl" && !strings.Contains(said, c.says),
				c.says != "" && command != "usl" && !strings.Contains(said, c.says):
				t.Errorf("%s of %s: %q is not said: %s", command, name, c.says, said)
			case bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf")):
				t.Errorf("%s of %s prints what is no number:\n%s", command, name, out)
			}
		}
	}
}
