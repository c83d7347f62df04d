package series_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/metrics/series"
)

// What others ask is measured before it is parsed: what is deep, long or heavy is refused with what is wrong with it,
// what boards ask is answered.
func TestBoundsOfQueries(t *testing.T) {
	u := unionOf(member(t, "one", 0, 100, 1))
	many := func(n int, s string) string { return strings.Repeat(s, n) }
	nested := func(n int, before, after string) string { return many(n, before) + "x" + many(n, after) }
	names := strings.TrimSuffix(many(500, "20261122-120812-db-colocation-96ff|"), "|")
	for _, c := range []struct{ name, query, want string }{
		{"parentheses", nested(100, "(", ")"), ""},
		{"parentheses, deep", nested(101, "(", ")"), "it is nested more than 100 deep"},
		{"parentheses, very deep", nested(20_000, "(", ")"), "it is nested more than 100 deep"},
		{"parentheses that never close", many(20_000, "("), "it is nested more than 100 deep"},
		{"functions, deep", nested(5000, "abs(", ")"), "it is nested more than 100 deep"},
		{"parentheses in a text", `x{a!="` + many(20_000, "(") + `"}`, ""},
		{"a long text", `x{a!="` + many(40_000, "(") + `"}`, "its texts have more than 32768 bytes"},
		{"a long query", many(70_000, " ") + "x", "it has more than 65536 bytes"},
		{"a sum", "1" + many(2000, "+1"), ""},
		{"a long sum", "1" + many(2500, "+1"), "it has more than 5000 parts"},
		{"signs", many(30_000, "-") + "x", "it has more than 5000 parts"},
		{"many selectors", "x" + many(100, "+x"), "it selects series 101 times, more than 100"},
		{"all runs of a board", `x{run=~"` + names + `"}`, ""},
		{"repeats", `x{a=~"` + many(51, ".{1000}") + `"}`, "its regular expressions are too large"},
		{"repeats within repeats", `x{a=~"` + many(60, "((a{30}){30})") + `"}`, "its regular expressions are too large"},
		{"repeats that match nothing", `x{a!~"` + many(51, ".{1000}") + `"}`, "its regular expressions are too large"},
		{"classes", `x{a=~"` + many(33, `\\pL`) + `"}`, "more than 32 classes of characters"},
		{"classes behind escapes", `x{a=~"` + many(33, `\x5cpL`) + `"}`, "more than 32 classes of characters"},
		{"label_replace", `label_replace(x, "a", "$1", "instance", "(.*)")`, ""},
		{"label_replace, large pattern", `label_replace(x, "a", "$1", "instance", "` + many(51, ".{1000}") + `")`,
			"its regular expressions are too large"},
		{"labels that double", many(30, "label_replace(") + "x" + many(30, `, "a", ("$1$1"), "a", "(.*)")`),
			"its functions make labels"},
		{"labels that are joined", many(30, "label_join(") + "x" + many(30, `, "a", "", "a", "a")`),
			"its functions make labels"},
		{"a long label", `count_values("` + many(3000, "a") + `", x)`, "its functions make labels"},
		{"windows", `quantile_over_time(0.9, x[1h])`, ""},
		{"sorted windows of milliseconds", `quantile_over_time(0.9, x[100d:1s])`, "it looks at"},
		{"sum of long windows", `sum_over_time(x[5000d])`, "it looks at"},
		{"wrong", `sum(`, "unclosed left parenthesis"},
	} {
		_, err := u.AnswerAt(t.Context(), c.query, at(50), 0)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, series.ErrBadQuery) ||
			!strings.Contains(err.Error(), c.want) || len(err.Error()) > 400) {
			t.Errorf("%s: %.400v, want %q", c.name, err, c.want)
		}
		_, err = u.AnswerOver(t.Context(), c.query, at(0), at(10), 10*time.Second, 0)
		if (err != nil) != (c.want != "") {
			t.Errorf("%s, over a time: %.400v, want %q", c.name, err, c.want)
		}
	}
}

// Selectors of series are bounded as queries are, all of them together.
func TestBoundsOfSelectors(t *testing.T) {
	u := unionOf(member(t, "one", 0, 100, 1))
	many := func(n int, s string) (out []string) {
		for range n {
			out = append(out, s)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		match []string
		want  string
	}{
		{"some", many(100, `x{a!="b"}`), ""},
		{"many", many(101, `x`), "101 selectors are more than 100"},
		{"repeats", many(10, `x{a=~"`+strings.Repeat(".{1000}", 6)+`"}`), "its regular expressions are too large"},
		{"repeats behind one that is wrong",
			append([]string{`x{"`}, many(10, `x{a=~"`+strings.Repeat(".{1000}", 6)+`"}`)...),
			"its regular expressions are too large"},
		{"long", many(3, `x{a="`+strings.Repeat("(", 30_000)+`"}`), "its texts have more than 32768 bytes"},
		{"wrong", []string{`x{` + strings.Repeat("a", 1000)}, "unexpected end of input"},
	} {
		sel := series.Selection{Match: c.match}
		for what, ask := range map[string]func(context.Context) error{
			"series": func(ctx context.Context) error { _, _, err := u.Labels(ctx, sel); return err },
			"names":  func(ctx context.Context) error { _, _, err := u.LabelNames(ctx, sel); return err },
			"values": func(ctx context.Context) error { _, _, err := u.LabelValues(ctx, "a", sel); return err },
		} {
			err := ask(t.Context())
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, series.ErrBadQuery) ||
				!strings.Contains(err.Error(), c.want) || len(err.Error()) > 500) {
				t.Errorf("%s, %s: %.600v, want %q", c.name, what, err, c.want)
			}
		}
	}
}
