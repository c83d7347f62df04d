package scenario

import (
	"strings"
	"testing"
)

// The known answers are those of Jinja 3.1 on Python, with numbers printed to 12 digits as the language says.
func TestRenderValues(t *testing.T) {
	t.Parallel()
	vars := func() map[string]any {
		return map[string]any{"i": int64(4200), "f": 1800.0, "s": "x", "b": true, "z": nil, "l": []any{"serva.fio"},
			"m": []any{int64(1), 1.5, 2.0, nil, "it's", false}, "half": 1e16}
	}
	for source, want := range map[string]string{
		"{{ i + 1.96 * i ** (1/2) }}": "4327.02251769", "{{ i + 1.96 * i ** (1/2.0) }}": "4327.02251769", "{{ i - 1.96 * i ** (1/2) }}": "4072.97748231",
		"{{ 1.96 * 6300 ** (1/2) }}": "155.570177091",
		"{{ 2**10 }}":                "1024", "{{ 2**3**2 }}": "64", "{{ -2**2 }}": "4", "{{ 2**-1 }}": "0.5", "{{ 0**0 }}": "1", "{{ (-2)**63 }}": "-9223372036854775808",
		"{{ 7200/4 }}": "1800.0", "{{ 1/2 }}": "0.5", "{{ 761266176 / 1024 / 1024 }}": "726.0", "{{ 100/10/5 }}": "2.0",
		"{{ 7//2 }} {{ -7//2 }} {{ 7//-2 }} {{ -7%3 }} {{ 7%-3 }}": "3 -4 -4 2 -2", "{{ 7.5//2 }} {{ -7.5%2 }} {{ -0.1//1 }}": "3.0 0.5 -1.0",
		"{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42|round }} {{ 1234.5|round(-2) }}":                                        "2.0 4.0 2.67 42 1200.0",
		`{{ 2.1|round(0,"ceil") }} {{ 2.9|round(0,"floor") }} {{ 2.9|int }} {{ "5"|int }} {{ -2.9|int }}`:                                   "3.0 2.0 2 5 -2",
		"{{ 1 if 2 > 1 else 3 }}|{{ 1 if 2 < 1 }}|{{ not 0 }}|{{ 1 and 0 }}|{{ 0 or 5 }}":                                                   "1||True|0|5",
		"{{ 1 == 1.0 }} {{ 's' == s }} {{ s != 'x' }} {{ not 1 == 2 }} {{ 1 > 0 and 2 > 1 }} {{ z == z }}":                                  "True False False True True True",
		"{{ 3 - -2 }} {{ (1+2)*3 }} {{ 1+2*3 }} {{ 10-2-3 }} {{ True + 1 }} {{ b * 3 }}":                                                    "5 9 7 5 2 3",
		"{% for v in range(3) %}{{ v }},{% endfor %}":                                                                                       "0,1,2,",
		"{% for v in range(5,0,-2) %}{{ v }},{% endfor %}{% for v in range(2,4) %}{{ v }}{% endfor %}{% for v in range(-1) %}x{% endfor %}": "5,3,1,23",
		"{% for i in range(2) %}{{ i }}{% endfor %}{{ i }}":                                                                                 "014200", // the loop's variable ends with the loop
		"{% if i > 1 %}a{% else %}b{% endif %}{% if 0 %}a{% elif s == 'x' %}c{% else %}d{% endif %}{% if 0 %}x{% endif %}":                  "ac",
		"{{ 1e3 }} {{ 1.5e-7 }} {{ 123456789012345.0 }} {{ 0.1 + 0.2 }} {{ 1e11 }} {{ 1e12 }} {{ half }} {{ 0x1f }}":                        "1000.0 1.5e-07 1.23456789012e+14 0.3 100000000000.0 1e+12 1e+16 31",
		"{{ l }} {{ m }} {{ z }} {{ b }} {{ f }}":                                                                                           `['serva.fio'] [1, 1.5, 2.0, None, "it's", False] None True 1800.0`,
		"a\n{{s}}\n":  "a\nx", // one final newline is dropped
		"a\n\n":       "a\n",
		"{{ '}}' }}":  "}}",
		"{ { x } } %": "{ { x } } %",
		"":            "",
	} {
		out, objections := render(source, vars(), map[string]bool{})
		if len(objections) > 0 {
			t.Errorf("%q: %s", source, objections[0].what)
		} else if out.text != want {
			t.Errorf("%q: got %q, want %q", source, out.text, want)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		at     int
		want   string
	}{
		{"{{ x }}", 3, `undefined name "x"`}, {"a: {{ iop }}", 6, `undefined name "iop"`}, {"{{ x + 1 }}", 3, "undefined"},
		{"{{ 1/0 }}", 4, "division by zero"}, {"{{ 1//0 }}", 4, "division by zero"}, {"{{ 1%0 }}", 4, "division by zero"}, {"{{ 0.0**-1 }}", 6, "division by zero"}, {"{{ 1.0/0 }}", 6, "division by zero"},
		{"{{ 10.0**400 }}", 3, "not a finite number"}, {"{{ 1e400 }}", 3, "64 bits"}, {"{{ (-1)**0.5 }}", 4, "not a finite number"},
		{"{{ 9223372036854775807 + 1 }}", 3, "64 bits"}, {"{{ 2**63 }}", 3, "64 bits"}, {"{{ 99999999999999999999 }}", 3, "64 bits"}, {"{{ -9223372036854775807 - 2 }}", 3, "64 bits"},
		{"{% set a = 1 %}", 0, "{% set %}"}, {"a\n  {% include 'x' %}", 4, "{% include %}"}, {"{% raw %}{{ x }}{% endraw %}", 0, "{% raw %}"}, {"{% macro a() %}", 0, "{% macro %}"},
		{"{{ iops|upper }}", 8, "filter |upper"}, {"{{ iops|default(1) }}", 8, "filter |default"}, {"{{ 1.5|round(method='floor') }}", 7, "arguments of |round"}, {"{{ 's'|int }}", 7, "|int"}, {"{{ 's'|round }}", 7, "|round"},
		{"{% for x in iops %}{% endfor %}", 12, "a for over something else"}, {"{% for x in range(1.5) %}{% endfor %}", 18, "whole numbers"}, {"{% for x in range(1,2,0) %}{% endfor %}", 17, "step of range"}, {"{% for x in range() %}{% endfor %}", 17, "1 to 3"},
		{"{% for i in range(3) if i %}{% endfor %}", 21, `"if" after the range`}, {"{% for i in range(3) %}{% else %}{% endfor %}", 32, "{% else %} without"},
		{"{% for i in range(3) %}", 23, "expected tag endfor"}, {"{% endfor %}", 11, "{% endfor %} without"}, {"{% if %}{% endif %}", 7, "expected either"},
		{"{{ 1 + }}", 7, "expected either"}, {"{{ (1 }}", 3, "nbalanced"}, {"{{ }}", 3, "expected either"}, {"{{ 1 ", 5, "expected"}, {"{{ a b }}", 5, "expected"},
		{"{{ loop.index }}", 7, "attribute .index"}, {"{{ loop }}", 3, "the name loop"}, {"{# c #}", 0, "comments"}, {"{{- 1 }}", 0, "white-space control"}, {"{{ 1 -}}", 5, "white-space control"},
		{"{{ [1,2] }}", 3, "a list"}, {"{{ (1,2) }}", 3, "a tuple"}, {"{{ {1:2} }}", 3, "a mapping"}, {"{{ range(3) }}", 8, `call of "range"`}, {"{{ iops[0] }}", 7, "subscript"},
		{"{{ 1 < 2 < 3 }}", 9, "chain of comparisons"}, {"{{ 'a' < 1 }}", 7, "cannot compare"}, {"{{ 'a' ~ 'b' }}", 7, "operator ~"}, {"{{ 'a' + 'b' }}", 7, "needs numbers"}, {"{{ '%s' % 1 }}", 8, "needs numbers"},
		{"{{ iops is defined }}", 3, `test "defined"`}, {"{{ 1 in iops }}", 5, "the test in"}, {"{{ ( in ) }}", 5, "the test in"}, {"{{ 010 }}", 3, "leading zero"}, {"{{ -'a' }}", 3, "a sign before"},
		{"{{ \"a }}", 8, "cannot read"}, {"{{ " + strings.Repeat("(", 60), 53, "too long"}, {"{{ 1" + strings.Repeat("+1", 400) + " }}", 502, "too long"},
		{strings.Repeat("{% if 1 %}", 30) + strings.Repeat("{% endif %}", 30), 206, "nested more than"},
		{"{% for i in range(10000000) %}a{% endfor %}", 7, "evaluations"}, {"{% for i in range(100000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}", 35, "evaluations"},
		{"{% for i in range(1000000) %}" + strings.Repeat("x", 1000) + "{% endfor %}", 7, "larger than"},
	} {
		out, objections := render(c.source, map[string]any{"iops": int64(5)}, map[string]bool{})
		if len(objections) == 0 {
			t.Errorf("%.60q: rendered to %.60q", c.source, out.text)
			continue
		}
		o := objections[0]
		if !strings.Contains(o.what, c.want) || o.at != c.at {
			t.Errorf("%.60q: offset %d: %s; want offset %d and %q", c.source, o.at, o.what, c.at, c.want)
		}
	}
}

func TestRenderNamesAllUndefined(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	_, objections := render("{{ a }} {{ b + known }} {{ a }}", map[string]any{"known": int64(1)}, used)
	var got []string
	for _, o := range objections {
		got = append(got, o.what)
	}
	want := `template: undefined name "a"|template: undefined name "b"|template: undefined name "a"`
	if strings.Join(got, "|") != want || !used["known"] {
		t.Errorf("got %q, used %v", got, used)
	}
}

// TestOrigin follows each line of a rendered text back to the template.
func TestOrigin(t *testing.T) {
	t.Parallel()
	source := "one: 1\n{% for i in range(2) %}\n- Grö{{ i }}: {x: {{ i }}}\n{% endfor %}\nlast: ü x\n"
	out, objections := render(source, map[string]any{}, map[string]bool{})
	if len(objections) > 0 {
		t.Fatal(objections[0].what)
	}
	starts := lineStarts(source)
	for _, c := range []struct{ line, col, wantLine, wantCol int }{
		{1, 1, 1, 1}, {1, 6, 1, 6},
		{3, 3, 3, 3}, {3, 6, 3, 6}, {3, 10, 3, 16}, {3, 13, 3, 19},
		{5, 3, 3, 3}, {5, 13, 3, 19},
		{7, 1, 5, 1}, {7, 9, 5, 9}, {99, 1, 5, 1},
	} {
		line, col := lineCol(source, starts, out.origin(out.offset(c.line, c.col)))
		if line != c.wantLine || col != c.wantCol {
			t.Errorf("rendered %d:%d comes from %d:%d, want %d:%d\n%s", c.line, c.col, line, col, c.wantLine, c.wantCol, out.text)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"{{ a ** (1/2) }}", "{% for i in range(3) %}{{ i }}{% endfor %}", "{% if a %}b{% elif 0 %}{% else %}{% endif %}",
		"{{ ( in ) }}", "{{ 1|round(2) }}", "{{ 'a\\nb' }}", "{%", "{{ 1 if }}", "{{ a.b[0](1, c=2) }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if strings.Count(source, "range") > 1 {
			return // nested loops only spend the time of the fuzzer
		}
		out, objections := render(source, map[string]any{"a": int64(4), "b": 1.5, "c": "x"}, map[string]bool{})
		if (out == nil) != (len(objections) > 0) {
			t.Fatalf("%q: neither text nor objection, or both", source)
		}
		for _, o := range objections {
			if o.at < 0 || o.at > len(source)+1 {
				t.Fatalf("%q: offset %d", source, o.at)
			}
			if strings.Contains(o.what, "template reader failed") {
				t.Fatalf("%q: %s", source, o.what)
			}
		}
		if out != nil {
			for at := range len(out.text) {
				if src := out.origin(at); src < 0 || src >= len(source) {
					t.Fatalf("%q: byte %d comes from %d", source, at, src)
				}
			}
		}
	})
}
