package series_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/metrics/series"
)

// member is a database of the union with the series x{instance="a"} = value at every ten seconds of its time.
func member(t *testing.T, name string, from, to, value float64, more ...series.Label) series.Member {
	t.Helper()
	s := open(t)
	for sec := from; sec <= to; sec += 10 {
		b := s.Batch()
		b.Float("x", append(label("a"), more...), at(sec), value)
		commit(t, b)
	}
	return series.Member{
		Name: name,
		From: at(from),
		To:   at(to),
		Open: func(context.Context) (*series.Store, func(), error) {
			return s, func() {}, nil
		},
	}
}

func unionOf(members ...series.Member) *series.Union {
	return series.NewUnion("run", func() []series.Member { return members }, series.Options{})
}

// notOpened fails the test when it is opened.
func notOpened(t *testing.T, m series.Member) series.Member {
	m.Open = func(context.Context) (*series.Store, func(), error) {
		t.Errorf("%s was opened", m.Name)
		return nil, nil, errors.New("not to be opened")
	}
	return m
}

func TestUnion(t *testing.T) {
	one, two := member(t, "one", 0, 100, 1), member(t, "two", 50, 150, 2, series.Label{Name: "run", Value: "inner"})
	late := notOpened(t, series.Member{Name: "late", From: at(1000), To: at(2000)})
	u := unionOf(one, two, late)
	for _, c := range []struct {
		query string
		sec   float64
		want  string
	}{
		{`x`, 70, `[{"metric":{"__name__":"x","exported_run":"inner","instance":"a","run":"two"},"value":[1700000070,"2"]},` +
			`{"metric":{"__name__":"x","instance":"a","run":"one"},"value":[1700000070,"1"]}]`},
		{`sum by (run) (x)`, 20, `[{"metric":{"run":"one"},"value":[1700000020,"1"]}]`},
		{`x{run="two"}`, 70, `[{"metric":{"__name__":"x","exported_run":"inner","instance":"a","run":"two"},"value":[1700000070,"2"]}]`},
		{`x{run=~"t.*|one",run!="one",exported_run="inner"}`, 70, `[{"metric":{"__name__":"x","exported_run":"inner",` +
			`"instance":"a","run":"two"},"value":[1700000070,"2"]}]`},
		{`x{exported_run=""}`, 70, `[{"metric":{"__name__":"x","instance":"a","run":"one"},"value":[1700000070,"1"]}]`},
		{`x{run=""}`, 70, `[]`},
		{`scalar(sum(x))`, 70, `[1700000070,"3"]`},
		{`"words"`, 70, `[1700000070,"words"]`},
	} {
		got, err := u.AnswerAt(t.Context(), c.query, at(c.sec), 0)
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		if string(got.Result) != c.want || len(got.Warnings)+len(got.Infos) > 0 {
			t.Errorf("%s: %s\nwant %s\n%q %q", c.query, got.Result, c.want, got.Warnings, got.Infos)
		}
	}
	got, err := u.AnswerOver(t.Context(), `x{run="one"}`, at(0), at(20), 10*time.Second, 0)
	const want = `[{"metric":{"__name__":"x","instance":"a","run":"one"},` +
		`"values":[[1700000000,"1"],[1700000010,"1"],[1700000020,"1"]]}]`
	if err != nil || got.Type != "matrix" || string(got.Result) != want {
		t.Errorf("%s %s %v", got.Type, got.Result, err)
	}
}

func TestUnionLabels(t *testing.T) {
	one, two := member(t, "one", 0, 100, 1), member(t, "two", 50, 150, 2, series.Label{Name: "run", Value: "inner"})
	broken := series.Member{Name: "broken", Open: func(context.Context) (*series.Store, func(), error) {
		return nil, nil, errors.New("the folder is damaged")
	}}
	u := unionOf(one, two, broken)
	const warning = `run "broken" is left out: the folder is damaged`
	check := func(what string, got, want any, warnings, wantWarnings []string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		if !slices.Equal(warnings, wantWarnings) {
			t.Errorf("%s: warnings %q", what, warnings)
		}
	}
	names, warnings, err := u.LabelNames(t.Context(), series.Selection{})
	check("names", names, []string{"__name__", "exported_run", "instance", "run"}, warnings, []string{warning}, err)
	runs, warnings, err := u.LabelValues(t.Context(), "run", series.Selection{})
	check("runs", runs, []string{"broken", "one", "two"}, warnings, nil, err)
	runs, warnings, err = u.LabelValues(t.Context(), "run", series.Selection{Match: []string{"x"}, From: at(120)})
	check("runs with x late", runs, []string{"two"}, warnings, []string{warning}, err)
	values, warnings, err := u.LabelValues(t.Context(), "exported_run",
		series.Selection{Match: []string{`{run="two"}`}})
	check("inner", values, []string{"inner"}, warnings, nil, err)
	found, warnings, err := u.Labels(t.Context(),
		series.Selection{Match: []string{`x{run="one"}`, `{instance="a",run=~"one|two"}`}})
	check("series", found, [][]series.Label{
		{
			{Name: "__name__", Value: "x"},
			{Name: "exported_run", Value: "inner"},
			{Name: "instance", Value: "a"},
			{Name: "run", Value: "two"},
		},
		{{Name: "__name__", Value: "x"}, {Name: "instance", Value: "a"}, {Name: "run", Value: "one"}},
	}, warnings, nil, err)
	found, warnings, err = u.Labels(t.Context(), series.Selection{Match: []string{`x{run=~"one|two"}`}, Limit: 1})
	if len(found) != 1 || err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "first 1 ") {
		t.Errorf("limited: %v %q %v", found, warnings, err)
	}
}

// Everything that was opened for a question is released after it, whatever becomes of it.
func TestUnionReleases(t *testing.T) {
	m := member(t, "one", 0, 100, 1)
	given, back, inner := 0, 0, m.Open
	m.Open = func(ctx context.Context) (*series.Store, func(), error) {
		given++
		s, _, err := inner(ctx)
		return s, func() { back++ }, err
	}
	u := unionOf(m)
	for _, query := range []string{`x`, `x + on () group_left x`, `sum(x) / 0`, `label_replace(x, "a b", "", "", "")`, `x * on (run) x`} {
		_, _ = u.AnswerAt(t.Context(), query, at(50), 0)
	}
	_, _, _ = u.LabelNames(t.Context(), series.Selection{})
	_, _, _ = u.LabelValues(t.Context(), "run", series.Selection{Match: []string{"x"}})
	_, _, _ = u.Labels(t.Context(), series.Selection{Match: []string{"x"}})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, _ = u.AnswerAt(stopped, `x`, at(50), 0)
	if given != back || given < 8 {
		t.Errorf("%d times opened, %d times released", given, back)
	}
}

func TestUnionBounds(t *testing.T) {
	var many []series.Member
	for i := range 201 {
		many = append(many, notOpened(t, series.Member{Name: fmt.Sprint("r", i)}))
	}
	if _, err := unionOf(many...).AnswerAt(t.Context(), "x", at(0), 0); err == nil ||
		!strings.Contains(err.Error(), "201 runs are concerned") {
		t.Error(err)
	}
	u := unionOf(member(t, "one", 0, 100, 1))
	for _, query := range []string{"sum(", "x{", "sum_over_time(x[1000h:1ms])"} {
		if _, err := u.AnswerAt(t.Context(), query, at(0), 0); !errors.Is(err, series.ErrBadQuery) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := u.AnswerOver(t.Context(), "x", at(0), at(100_000), time.Second, 0); !errors.Is(err,
		series.ErrBadQuery) {
		t.Error(err)
	}
	if _, _, err := u.Labels(t.Context(), series.Selection{Match: []string{`{a=""}`}}); !errors.Is(err,
		series.ErrBadQuery) {
		t.Error(err)
	}
	if _, _, err := u.Labels(t.Context(), series.Selection{}); !errors.Is(err, series.ErrBadQuery) {
		t.Error(err)
	}
}

// Native histograms are in answers as Prometheus' API has them.
func TestAnswerOfHistograms(t *testing.T) {
	s := open(t)
	h := &hist.Histogram{}
	h.Add(1_000_000_000, 3)
	b := s.Batch()
	b.Histogram("d_seconds", label("a"), t0, h)
	commit(t, b)
	got, err := s.AnswerAt(t.Context(), "d_seconds", t0, 0)
	const want = `[{"metric":{"__name__":"d_seconds","instance":"a"},"histogram":[1700000000,` +
		`{"count":"3","sum":"3","buckets":[[0,"1","1.0905077326652577","3"]]}]}]`
	if err != nil || string(got.Result) != want {
		t.Errorf("%s\n%v", got.Result, err)
	}
	got, err = s.AnswerOver(t.Context(), "d_seconds", t0, at(10), 10*time.Second, 0)
	if err != nil || !strings.Contains(string(got.Result), `"histograms":[[1700000000,{"count":"3","sum":"3",`) {
		t.Errorf("%s\n%v", got.Result, err)
	}
}

// What is read as a time or a duration is one that can be written again; nothing panics.
func FuzzParseTimeAndDuration(f *testing.F) {
	for _, s := range []string{"0", "1700000000.5", "-1", "1e18", "NaN", "+Inf", "2026-11-22T10:00:00Z", "1h30m", "7d",
		"0x1p3", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := series.ParseTime(text); err == nil {
			again, err := series.ParseTime(at.Format(time.RFC3339Nano))
			if at.Year() >= 0 && at.Year() < 10000 && (err != nil || !again.Equal(at)) {
				t.Errorf("%q: %v, again %v, %v", text, at, again, err)
			}
		}
		if d, err := series.ParseDuration(text); err == nil {
			again, err := series.ParseDuration(fmt.Sprintf("%.9f", d.Seconds()))
			if off := (again - d).Abs(); err != nil || off > time.Microsecond+d.Abs()/1e6 {
				t.Errorf("%q: %v, again %v, %v", text, d, again, err)
			}
		}
	})
}
