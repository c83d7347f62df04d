package pgload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// evaluate gives the value of an expression, with x = 5, null and a text of the server's.
func evaluate(text string) string {
	var vars names
	e, err := parseExpression(text, &vars)
	if err != nil {
		return "refused: " + err.Error()
	}
	s := &scope{random: rand.New(rand.NewPCG(1, 2))}
	for _, name := range vars.order {
		s.vars = append(s.vars, map[string]value{"x": intOf(5), "n": {kind: null}, "w": {kind: words, text: " 2.5 "},
			"bad": {kind: words, text: "a word"}, defaultSeed: intOf(7)}[name])
	}
	v, err := e(s)
	if err != nil {
		return "error: " + err.Error()
	}
	return v.String()
}

// expressions and their values, which are pgbench's, see TestExpressionsBesidePgbench.
var expressions = map[string]string{
	"1 + 2 * 3":            "7",
	"(1 + 2) * 3 - -4":     "13",
	"7 / 2":                "3",
	"-7 / 2":               "-3",
	"-7 % 3":               "-1",
	"7.0 / 2":              "3.5",
	"1.0 / 3":              "0.333333333333333",
	"0.1 + 0.2":            "0.3",
	"1e15 + 1e5":           "1.0000000001e+15",
	"1e15":                 "1e+15",
	"1.0 / 0":              "Infinity",
	"-1 / 0.0":             "-Infinity",
	"-9223372036854775808": "-9223372036854775808",
	"9223372036854775808": "refused: 9223372036854775808 is out of range of whole numbers; a float has a point or " +
		"an exponent",
	"1 << 4 | 3 # 1 & 7":                      "2",
	"~5 + 1":                                  "-7",
	"1 = 1.0 and not 2 > 3":                   "true",
	"1 <> 2 or 1 / 0 = 1":                     "true",
	"null and false":                          "NULL",
	"null or 1 = 1":                           "NULL",
	"null + 1":                                "NULL",
	":n is null and :x notnull":               "true",
	":x is not true":                          "true",
	"case when :x > 4 then 'a' end":           "refused: \"'a' end\" is not expected in an expression",
	"case when :x > 4 then 1 else 1 / 0 end":  "1",
	"case when null then 1 end":               "NULL",
	":w * 2":                                  "5",
	":bad":                                    `error: "a word" is neither a number nor a boolean`,
	":y + 1":                                  `error: variable "y" has no value`,
	"abs(-3) + abs(-0.5)":                     "3.5",
	"greatest(1, 5, 3) + least(4, 2.5)":       "7.5",
	"mod(17, 5) + int(2.5) + int(3.5)":        "8",
	"pow(2, 10) + sqrt(16) + ln(exp(1))":      "1029",
	"double(3) / 2":                           "1.5",
	"pi() > 3.14 and pi() < 3.15":             "true",
	"hash_fnv1a(10, 5432)":                    "-7793829335365542153",
	"hash_murmur2(10, 5432)":                  "-5817877081768721676",
	"hash(10, 5432) = hash_murmur2(10,5432)":  "true",
	"hash(3) = hash(3, 7)":                    "true",
	"permute(-5, 1, 0)":                       "0",
	"permute(1, 0)":                           "error: permute: its size is 0; want at least 1",
	"permute(0, 2, 5432)":                     "0",
	"permute(4, 5, -1)":                       "4",
	"permute(-3, 1000, 10)":                   "942",
	"permute(123456, 9223372036854775807, 9)": "7643142998421529377",
	"permute(7, 4611686018427387904, 3)":      "1737337973135996246",
	"random(5, 5) + random_zipfian(1, 1, 2)":  "6",
	"random(2, 1)":                            "error: random: from 2 to 1: there is no number",
	"random_gaussian(1, 9, 1)":                "error: random_gaussian: its parameter is 1; want at least 2",
	"9223372036854775807 + 1":                 "error: the result is out of range of whole numbers",
	"9223372036854775807 * 2":                 "error: the result is out of range of whole numbers",
	"1 / 0":                                   "error: division by zero",
	"1 + (1 = 1)":                             "error: true is no number",
	"(1 << 64) + (1 << -1) + (-1 >> 70)":      "-9223372036854775808",
	"":                                        "refused: an expression is missing at the end",
	"1 2":                                     `refused: "2" is not expected there`,
	"nothing(1)":                              `refused: "nothing" is no function; a variable is written :nothing`,
	"mod(1)":                                  "refused: mod: it has 1 argument; want 2",
	"(1":                                      `refused: ")" is missing at the end`,
	"0x10":                                    `refused: "0x10" is no number`,
	strings.Repeat("(", 1000):                 "refused: expressions are nested more than 200 deep",
}

func TestExpressions(t *testing.T) {
	for text, want := range expressions {
		if got := evaluate(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Random numbers stay between their bounds, however wide; the most frequent are where the manual says; a permutation
// takes every place once.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Int64().Draw(t, "low")
		high := rapid.Int64Min(low).Draw(t, "high")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		parameter := rapid.Float64Range(2, 50).Draw(t, "parameter")
		for name, f := range map[string]func(*rand.Rand, int64, int64, float64) (int64, error){"gaussian": gaussian,
			"exponential": exponential, "zipfian": zipfian,
			"uniform": func(r *rand.Rand, low, high int64, _ float64) (int64, error) {
				return uniform(r, low, high), nil
			}} {
			if n, err := f(r, low, high, parameter); err != nil || n < low || n > high {
				t.Fatalf("%s(%d, %d, %g) = %d, %v", name, low, high, parameter, n, err)
			}
		}
		size := rapid.Int64Range(2, 300).Draw(t, "size")
		seen := map[int64]bool{}
		for n := range size {
			seen[permute(n, size, low)] = true
		}
		if int64(len(seen)) != size {
			t.Fatalf("%d places of %d", len(seen), size)
		}
	})
	r := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		draw     func() (int64, error)
		of       int64
		low, top float64 // bounds of its share
	}{
		// The shares of the manual's formulas: Gaussian within 1/2.5 of the middle, two thirds; exponential with 5 of
		// 1 to 10, 1 - exp(-0.5) over 1 - exp(-5); Zipf with 2 of 1 to 100, 1/1.635.
		"exponential": {func() (int64, error) { return exponential(r, 1, 10, 5) }, 1, 0.38, 0.41},
		"zipfian":     {func() (int64, error) { return zipfian(r, 1, 100, 2) }, 1, 0.59, 0.63},
		"gaussian":    {func() (int64, error) { return gaussian(r, 1, 5, 2.5) }, 3, 0.37, 0.41},
		"uniform":     {func() (int64, error) { return uniform(r, 1, 4), nil }, 2, 0.23, 0.27},
	} {
		hits := 0
		for range 20_000 {
			n, err := c.draw()
			if err != nil {
				t.Fatal(err)
			}
			if n == c.of {
				hits++
			}
		}
		if share := float64(hits) / 20_000; share < c.low || share > c.top {
			t.Errorf("%s: %d has a share of %g, want %g to %g", name, c.of, share, c.low, c.top)
		}
	}
}

func TestScriptObjections(t *testing.T) {
	p := &program{}
	err := p.add("s", "SELECT 1;\n\\set 1x 2\n\\sleep soon\n\\else\n\\gset\n\\shell rm\n\\what\n\\if 1\n\\startpipeline\n"+
		"\\setrandom a 1 2\nSELECT 'no end;\n", 1, false)
	want := []string{
		`s:2: \set: want a name of letters, digits and _, then an expression`,
		`s:3: \sleep: "soon" is neither a whole number nor a variable`,
		`s:4: \else has no \if`,
		`s:5: \gset has no statement before it`,
		`s:6: \shell runs programs, which this driver does not; package "command" runs any program`,
		`s:7: \what is no command; known are \set \sleep \if \elif \else \endif \gset \aset \startpipeline \endpipeline`,
		`s:9: \startpipeline: pipelining changes what is measured; say "pipelining: true"`,
		`s:9: \startpipeline is not expected there: pipelines hold no others, and begin and end outside of \if`,
		`s:10: \setrandom is of old releases: write \set NAME random(LOW, HIGH)`,
		`s:11: "'no end;\n" has no end`,
		`s:8: \if has no \endif`,
		`s:11: \startpipeline has no \endpipeline`,
	}
	if diff := cmp.Diff(want, strings.Split(fmt.Sprint(err), "\n")); diff != "" {
		t.Error(diff)
	}
	if err := (&program{}).add("s", "-- nothing\n\\set a 1\n", 1, false); err == nil {
		t.Error("a script that sends nothing")
	}
	err = (&program{}).add("s", "/* a */ COPY t FROM STDIN;\nSELECT 1 \\; copy t to stdout;\n", 1, false)
	if err == nil || !strings.Contains(err.Error(), "s:1: COPY") || !strings.Contains(err.Error(), "s:2: COPY") {
		t.Errorf("COPY: %v", err)
	}
	p = &program{}
	err = p.add("s", "\\SET b 1\n\\Sleep 10 MS\n\\sleep 7US\n/* b */ SELECT /* c */ 1;\n/* nothing */;", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if c := p.scripts[0].commands; len(c) != 4 || c[1].pause != 10*time.Millisecond ||
		c[2].pause != 7*time.Microsecond ||
		p.statements[0].text != "SELECT 1" || p.statements[0].sql != "/* b */ SELECT /* c */ 1" {
		t.Errorf("%+v, %+v", c, p.statements)
	}
	p = &program{}
	if err := p.add("s", "\\sleep 5\n\\sleep :a us\n\\sleep 10ms\nSELECT :a::int, x[1:2], \":b\", E'\\':c' FROM t;;", 1,
		false); err != nil {
		t.Fatal(err)
	}
	st := p.statements[0]
	if st.sql != `SELECT $1::int, x[1:2], ":b", E'\':c' FROM t` || !slices.Equal(p.names.order, []string{"a"}) ||
		p.scripts[0].commands[0].pause != 5*time.Second || p.scripts[0].commands[1].pause != time.Microsecond {
		t.Errorf("%+v, %+v", st, p.scripts[0])
	}
}

// Whatever a script says, it is read or refused, with a line of its own; what is read has its jumps within.
func FuzzScript(f *testing.F) {
	for _, text := range Builtins {
		f.Add(text)
	}
	f.Add("\\if :a > 1\nSELECT 1 \\gset p_\n\\elif :p_x is null\n\\sleep :a ms\n\\else\n\\endif\n\\set b case when 1 then 2 end")
	f.Add("\\startpipeline\nSELECT $a$ ; $a$, E'\\''; /* /* */ */\n\\endpipeline\n\\set x \\\n 1")
	f.Fuzz(func(t *testing.T, text string) {
		p := &program{}
		err := p.add("s", text, 1, true)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if line == "" {
					t.Errorf("an empty objection in %q", err)
				}
			}
			return
		}
		s := &scope{vars: make([]value, len(p.names.order)), random: rand.New(rand.NewPCG(1, 1))}
		for i := range s.vars {
			s.vars[i] = intOf(int64(i))
		}
		for _, c := range p.scripts[0].commands {
			if c.target < 0 || c.target > len(p.scripts[0].commands) {
				t.Fatalf("%+v", c)
			}
			if c.evaluate != nil {
				_, _ = c.evaluate(s) // it may have no value, but ends
			}
		}
		for _, st := range p.statements {
			if len(st.parts) != len(st.vars)+1 {
				t.Fatalf("%+v", st)
			}
		}
	})
}
