package jinja_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/scenario/jinja"
)

func ExampleRender() {
	out, _ := jinja.Render("{% for i in range(n) %}{{ i ** 2 }}{{ ', ' if not loop.last }}{% endfor %}",
		map[string]any{"n": int64(4)})
	fmt.Println(out.Text)
	_, objections := jinja.Render("iops: {{ iops / node }}", map[string]any{"iops": int64(100), "nodes": int64(4)})
	fmt.Println(objections[0].At, objections[0].What, objections[0].Hint)
	// Output:
	// 0, 1, 4, 9
	// 16 undefined name "node" did you mean "nodes"?
}

// given are the variables of the known answers.
func given() map[string]any {
	row := func(name string, v int64) map[string]any { return map[string]any{"name": name, "v": v} }
	return map[string]any{
		"i": int64(4200), "n": int64(4), "neg": int64(-7), "f": 1800.0, "half": 2.5, "b": true, "z": nil,
		"s": "abc", "t": "Hello World", "csv": "a,b,c", "e": []any{}, "l": []any{int64(3), int64(1), int64(2)},
		"m": []any{"a", "B", "c"}, "mix": []any{int64(1), 2.5, "x", nil},
		"d": map[string]any{"k": int64(1), "v": "x"}, "rows": []any{row("a", 1), row("b", 2)},
	}
}

// TestKnownAnswers renders templates, written by hand and drawn at random, whose answers were given by Jinja2 2.11.3 on
// Python 2.7 (the published engine's), or by Jinja2 3.1.6 on Python 3.11 where the former only marks a text as Unicode
// or cannot read the template. Both had StrictUndefined. Those marked as refused are errors there.
func TestKnownAnswers(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/known-answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	answers := 0
	for lines := bufio.NewScanner(f); lines.Scan(); answers++ {
		var want struct {
			Source, Out string
			Refused     bool
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		out, objections := jinja.Render(want.Source, given())
		switch {
		case want.Refused && out != nil:
			t.Errorf("%q: rendered to %q, want an error", want.Source, out.Text)
		case !want.Refused && out == nil:
			t.Errorf("%q: %s, want %q", want.Source, objections[0].What, want.Out)
		case !want.Refused && out.Text != want.Out:
			t.Errorf("%q: got %q, want %q", want.Source, out.Text, want.Out)
		}
	}
	if answers < 400 {
		t.Errorf("%d known answers only", answers)
	}
}

// TestRefuses checks what is said of a template that cannot be rendered, and where.
func TestRefuses(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for _, c := range []struct {
		source string
		at     int
		want   string
	}{
		// Names.
		{"{{ x }}", 3, `undefined name "x"`}, {"a: {{ iop }}", 6, `undefined name "iop"`},
		{"{{ x + 1 }}", 3, "undefined"},
		{"{{ loop }}", 3, `undefined name "loop"`}, {"{{ d.x }}", 5, `a mapping has no attribute "x"`},
		{"{{ l[7] }}", 4, "a list has no item 7"}, {"{{ l.append(1) }}", 5, `no attribute "append"`},
		{"{% for i in l %}{{ loop.previtem }}{% endfor %}", 24, "no loop.previtem"},
		{"{{ l|map(attribute='x')|list }}", 5, "|map: the number 3 has no item 'x'"}, {"{{ e|first + 1 }}", 5,
			"|first of nothing"},
		{"{{ (1 if 0) + 1 }}", 6, "an if without else"},
		// Arithmetic.
		{"{{ 1/0 }}", 4, "division by zero"}, {"{{ 1//0 }}", 4, "division by zero"},
		{"{{ 1%0 }}", 4, "division by zero"},
		{"{{ 0.0**-1 }}", 6, "division by zero"}, {"{{ 1.0/0 }}", 6, "division by zero"},
		{"{{ 10.0**400 }}", 3, "not a finite number"}, {"{{ 1e400 }}", 3, "64 bits"}, {"{{ (-1)**0.5 }}", 3,
			"not a finite number"},
		{"{{ 9223372036854775807 + 1 }}", 3, "64 bits"}, {"{{ 2**63 }}", 3, "64 bits"},
		{"{{ 99999999999999999999 }}", 3,
			"64 bits"},
		{"{{ -9223372036854775807 - 2 }}", 3, "64 bits"}, {"{{ 'inf'|float }}", 9, "not a finite number"},
		{"{{ 1e300|int }}", 9, "64 bits"},
		{"{{ 'a' + 1 }}", 7, "+ cannot take the text"}, {"{{ -'a' }}", 3, "a sign before"}, {"{{ 'a' < 1 }}", 7,
			"cannot compare"},
		{"{{ 1 in 2 }}", 5, "nothing can be in the number 2"}, {"{{ 010 }}", 3, "leading zero"},
		// Constructs.
		{"a\n  {% include 'x' %}", 7, "{% include %}: not part"}, {"{% macro a() %}", 3, "{% macro %}: not part"},
		{"{% call x() %}", 3, "{% call %}"}, {"{% import 'x' as y %}", 3, "{% import %}"}, {"{% extends 'x' %}", 3,
			"{% extends %}"},
		{"{% block a %}", 3, "{% block %}"}, {"{% from 'x' import y %}", 3, "{% from %}"},
		{"{% do x %}", 3, "{% do %}"},
		{"{% fro i in l %}", 3, "{% fro %}"}, {"{% for x in l recursive %}{% endfor %}", 14, "recursive"},
		{"{{ f(*l) }}",
			5, "arguments with *"},
		{"{{ n|uper }}", 5, "the filter |uper"}, {"{{ n is od }}", 8, "the test od"}, {"{{ n|round(dig=1) }}", 15,
			`no argument "dig"`},
		{"{{ n|round(1, 'half') }}", 5, `no method "half"`}, {"{{ n|replace('a') }}", 5, "lacks its argument new"},
		{"{{ n|upper(1) }}", 11, "takes 0 arguments"}, {"{{ 'a'() }}", 6, "cannot be called"}, {"{{ '%q' % 1 }}", 8,
			`the format "%q"`},
		// Syntax.
		{"{% for x in 5 %}{% endfor %}", 12, "cannot go through the number 5"},
		{"{% for x in range(1.5) %}{% endfor %}",
			17, "whole numbers"},
		{"{% for x in range(1,2,0) %}{% endfor %}", 17, "a step of 0"},
		{"{% for x in range() %}{% endfor %}", 17, "1 to 3"},
		{"{% for a, b in [1] %}{% endfor %}", 7, "cannot go through"}, {"{% for a, b in [(1,)] %}{% endfor %}", 7,
			"2 names for 1 values"},
		{"{% for i in l %}", 3, "{% for %} does not end"}, {"{% endfor %}", 3, "{% endfor %} without"},
		{"{% if %}{% endif %}", 6, "expected an expression"},
		{"{% if 1 %}{% else %}{% else %}{% endif %}", 23, "{% else %} without"}, {"{% for %}", 7, "expected"},
		{"{{ 1 + }}", 7, "expected an expression"}, {"{{ (1 }}", 6, "expected )"},
		{"{{ }}", 3, "expected an expression"},
		{"{{ 1 ", 0, "the tag {{ does not end"}, {"{{ a b }}", 5, "expected }}"},
		{"{# a", 0, "a comment that does not end"},
		{"{{ 1) }}", 4, ") without its beginning"}, {"{{ \"a }}", 3, "quote"}, {"{{ 1 ? 2 }}", 5, `cannot read '?'`},
		{"{% set n %}", 3, "{% set %} does not end"},
		{"{% set 1 = 2 %}", 7, "nothing can be assigned"}, {"{% set d.k = 2 %}", 9,
			"cannot assign to an attribute of a mapping"}, {"{% raw %}x", 0, "raw"},
		// Bounds.
		{"{{ " + strings.Repeat("(", 99) + strings.Repeat(")", 99) + "}}", 63, "nested more than"},
		{"{{ " + strings.Repeat("-", 99) + "1 }}", 63, "nested more than"},
		{"{{ 1" + strings.Repeat("+1", 12000) + " }}", 0, "parts"}, {strings.Repeat("{% if 1 %}",
			30) + strings.Repeat("{% endif %}", 30), 193, "nested more than"},
		{"{% for i in range(10000000) %}a{% endfor %}", 17, "evaluations"},
		{"{% for i in range(100000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}", 45, "evaluations"},
		{"{% for i in range(500000) %}" + strings.Repeat("x", 1000) + "{% endfor %}", 28, "larger than"},
		{"{{ 'a' * 100000000 }}", 7, "larger than"}, {"{{ [1] * 100000000 }}", 7, "evaluations"},
		{"{{ 'a' * 9223372036854775807 }}", 7, "larger than"},
		{"{% set x = 'aaaaaaaa' %}{% for i in range(40) %}{% set x = x ~ x %}{{ x }}{% endfor %}", -1, ""},
		{"{% set n = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}", 78,
			"larger than"},
		{"{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", 97,
			"prints as more than"},
		{"{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x == n.x " +
			"+ [] }}", 99, "evaluations"},
		{"{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}", 92,
			"nested more than"},
		{"{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x == [n.x] }}",
			94,
			"nested more than"},
		{"{{ '%999999999d' % 1 }}", 17, "width"}, {"{{ 'x'.zfill(999999999) }}", 12, "larger than"},
		{"{{ 'abc'|replace('', 'x' * 8000000) }}", 9, "larger than"},
	} {
		out, objections := jinja.Render(c.source, map[string]any{"n": int64(5), "l": []any{int64(3)}, "e": []any{},
			"d": map[string]any{"k": int64(1)}})
		switch {
		case c.at < 0 && len(objections) > 0:
			t.Errorf("%.80q: %s", c.source, objections[0].What)
		case c.at < 0:
		case len(objections) == 0:
			t.Errorf("%.80q: rendered to %.60q", c.source, out.Text)
		case !strings.Contains(objections[0].What, c.want) || objections[0].At != c.at:
			t.Errorf("%.80q: offset %d: %s; want offset %d and %q", c.source, objections[0].At, objections[0].What,
				c.at, c.want)
		}
	}
}

func TestAllUndefinedNames(t *testing.T) {
	t.Parallel()
	_, objections := jinja.Render("{{ a }} {{ b + known + c }}{% for i in d %}{{ i.x|upper ~ e }}{% endfor %}"+
		"{% if f %}{{ g }}{% endif %}"+
		"{% set h = i0 %}{{ h }}{% set j, k = l %}{{ j + k }}{{ [m, 1]|sum }}{{ known is defined and p|default(q) "+
		"}}{{ a }}",
		map[string]any{"known": int64(1)})
	var got []string
	for _, o := range objections {
		got = append(got, strings.Split(o.What, `"`)[1])
	}
	if want := "a b c d e f g i0 l l m q a"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
}

func TestUsed(t *testing.T) {
	t.Parallel()
	out, _ := jinja.Render("{{ a }}{% for b in [1] %}{{ b }}{% endfor %}{% set c = 1 %}{{ c }}",
		map[string]any{"a": nil,
			"b": nil, "c": nil})
	if len(out.Used) != 1 || !out.Used["a"] {
		t.Errorf("used %v, want a: the others are read from the template's own", out.Used)
	}
}

// TestOrigin follows each byte of a rendered text back to the template.
func TestOrigin(t *testing.T) {
	t.Parallel()
	source := "one: 1\n{% for i in range(2) -%}\n- Grö{{ i }}: {x: {{- i }}}\n{% endfor %}\nlast{# c #}: ü\n"
	out, objections := jinja.Render(source, nil)
	if len(objections) > 0 {
		t.Fatal(objections[0].What)
	}
	for at := range len(out.Text) {
		src := out.Origin(at)
		number := out.Text[at] == '0' || out.Text[at] == '1' && at > 5
		if number && source[src:src+2] != "{{" || !number && source[src] != out.Text[at] {
			t.Errorf("byte %d, %q, comes from %d, %q", at, out.Text[at], src, source[src:src+2])
		}
	}
}

func FuzzRender(f *testing.F) {
	known, err := os.ReadFile("testdata/known-answers.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(known)) {
		var answer struct{ Source string }
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			f.Fatal(err)
		}
		f.Add(answer.Source)
	}
	for _, s := range []string{"{{ ( in ) }}", "{%", "{{ 1 if }}", "{{ a.b[0](1, c=2) }}", "{% set x %}{% for",
		"{{ n|map('map', 'map') }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if strings.Count(source, "range")+strings.Count(source, "%}")/4 > 5 {
			return // nested loops only spend the time of the fuzzer
		}
		out, objections := jinja.Render(source, given())
		if (out == nil) != (len(objections) > 0) {
			t.Fatalf("%q: neither text nor objection, or both", source)
		}
		for _, o := range objections {
			if o.At < 0 || o.At > len(source) || strings.Contains(o.What, "template reader failed") {
				t.Fatalf("%q: offset %d: %s", source, o.At, o.What)
			}
		}
		if out != nil {
			for at := range len(out.Text) {
				if src := out.Origin(at); src < 0 || src >= len(source) {
					t.Fatalf("%q: byte %d comes from %d", source, at, src)
				}
			}
		}
	})
}
