package series_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/series"
)

var ofRun = []series.Label{
	{Name: "instance", Value: "vm-1"},
	{Name: "vm_group", Value: "G"},
	{Name: "scenario_id", Value: "7"},
}

// latest returns what an instant query finds at a second, by the labels it was written with.
func latest(t testing.TB, s *series.Store, q string, second float64) map[string]float64 {
	t.Helper()
	found, err := s.Instant(t.Context(), q, at(second))
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	out := map[string]float64{}
	for _, f := range found {
		var ls []string
		for _, l := range f.Labels {
			ls = append(ls, l.Name+"="+l.Value)
		}
		out[strings.Join(ls, " ")] = f.Points[0].Value
	}
	return out
}

func page(t testing.TB, s *series.Source, second float64, text string) {
	t.Helper()
	if _, err := s.Append(series.Page{Text: []byte(text), Time: at(second)}); err != nil {
		t.Fatalf("at %v: %v", second, err)
	}
}

// The labels of the run win; what the page said of the same name is kept beside them. Types, times and comments are
// not used.
func TestPageOfASource(t *testing.T) {
	s := open(t)
	src := s.Source(ofRun, series.Limits{})
	n, err := src.Append(
		series.Page{Time: at(1), ContentType: "text/plain; version=0.0.4", Text: []byte(`# HELP a_total A.
# TYPE a_total counter
a_total{instance="other",exported_vm_group="x",vm_group="y"} 5 1000
a_total{mode="idle"} 1e3
# TYPE h histogram
h_bucket{le="0.5"} 3
h_bucket{le="+Inf"} 4
h_sum 2
h_count 4
nan NaN
a_total{mode="idle"} 77
`)},
	)
	if n != 7 || err != nil {
		t.Errorf("%d series, error %v", n, err)
	}
	own := "instance=vm-1 "
	want := map[string]float64{
		"__name__=a_total exported_exported_vm_group=y exported_instance=other exported_vm_group=x " +
			own + "scenario_id=7 vm_group=G": 5,
		"__name__=a_total " + own + "mode=idle scenario_id=7 vm_group=G": 1000,
		"__name__=h_bucket " + own + "le=0.5 scenario_id=7 vm_group=G":   3,
		"__name__=h_bucket " + own + "le=+Inf scenario_id=7 vm_group=G":  4,
		"__name__=h_sum " + own + "scenario_id=7 vm_group=G":             2,
		"__name__=h_count " + own + "scenario_id=7 vm_group=G":           4,
	}
	if d := cmp.Diff(want, latest(t, s, `{scenario_id="7", __name__!="nan"}`, 1)); d != "" {
		t.Error(d)
	}
	if !src.Serves("a_total") || !src.Serves("h_sum") || src.Serves("a") {
		t.Error("what it serves is wrong")
	}
}

func TestOpenMetricsPage(t *testing.T) {
	s := open(t)
	n, err := s.Source(ofRun, series.Limits{}).Append(
		series.Page{
			Time:        at(1),
			ContentType: "application/openmetrics-text; version=1.0.0; charset=utf-8",
			Text: []byte(
				"# TYPE a counter\n# UNIT a_seconds seconds\na_total 5 # {trace=\"x\"} 1\na_created 3\n# EOF\n"),
		},
	)
	if n != 1 || err != nil {
		t.Errorf("%d series, error %v", n, err)
	}
}

// A series that vanishes is not carried on, and is the same one when it comes back; so are all of a source that does
// not answer.
func TestSeriesThatVanish(t *testing.T) {
	s := open(t)
	src := s.Source(nil, series.Limits{})
	page(t, src, 1, "a 1\nb 1\n")
	page(t, src, 2, "a 2\n")
	page(t, src, 3, "b 3\n")
	if err := src.End(at(4)); err != nil {
		t.Fatal(err)
	}
	if err := src.End(at(5)); err != nil { // nothing is left to end
		t.Fatal(err)
	}
	page(t, src, 6, "a 6\n")
	var got []map[string]float64
	for second := 1; second <= 6; second++ {
		got = append(got, latest(t, s, `{__name__=~"a|b"}`, float64(second)))
	}
	want := []map[string]float64{
		{"__name__=a": 1, "__name__=b": 1},
		{"__name__=a": 2},
		{"__name__=b": 3},
		{},
		{},
		{"__name__=a": 6},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What cannot be read leaves nothing behind, and the next page is read.
func TestPagesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ name, text, kind, want string }{
		{"garbage", "a 1\n<html>no page</html>\n", "", `page: after 1 series: expected a valid start token, got "<"`},
		{"value", "a 1\nb one\n", "", `page: after 1 series: `},
		{"not UTF-8", "a{x=\"\xff\"} 1\n", "", `page: after 0 series: invalid UTF-8 label value`},
		{"binary", "\x0a\x05\x01\x02a\x00", "application/vnd.google.protobuf", `page: after 0 series: `},
		{"cut short", "a{x=\"1", "", `page: after 0 series: `},
		{"no end", "a 1\n", "application/openmetrics-text", `page: after 1 series: data does not end with # EOF`},
		{"series", "a 1\nb 1\nc 1\nd 1\n", "", `page: more than 3 series`},
		{"lines", strings.Repeat("# c\n", 11), "", `page: 11 lines: more than 10 are not read`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			src := s.Source(nil, series.Limits{Series: 3, Lines: 10})
			page(t, src, 1, "a 1\n")
			_, err := src.Append(series.Page{Text: []byte(c.text), ContentType: c.kind, Time: at(2)})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if d := cmp.Diff(map[string]float64{"__name__=a": 1}, latest(t, s, `{__name__=~".+"}`, 2)); d != "" {
				t.Error(d)
			}
			if src.Serves("b") {
				t.Error("what a refused page had counts as served")
			}
			page(t, src, 3, "a 3\nb 3\n")
			if d := cmp.Diff(map[string]float64{"__name__=a": 3, "__name__=b": 3},
				latest(t, s, `{__name__=~".+"}`, 3)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A source that makes new series all the time ends; one whose series come and go does not.
func TestSeriesThatAreAlwaysNew(t *testing.T) {
	s := open(t)
	src := s.Source(nil, series.Limits{Series: 2})
	for i := range 100 {
		page(t, src, float64(i), fmt.Sprintf("a{x=\"%d\"} 1\n", i%5))
	}
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = src.Append(series.Page{Text: fmt.Appendf(nil, "a{y=\"%d\"} 1\n", i), Time: at(float64(100 + i))})
	}
	if want := "page: more than 20 different series over time: it makes new ones all the time"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A counter that starts anew, and a name that becomes something else, are as with Prometheus: rates see the restart.
func TestCountersThatRestart(t *testing.T) {
	s := open(t)
	src := s.Source(nil, series.Limits{})
	for i, v := range []int{100, 110, 3, 13} {
		page(t, src, float64(10*i),
			fmt.Sprintf("# TYPE a_total %s\na_total %d\n", []string{"counter", "gauge"}[i%2], v))
	}
	if got := latest(t, s, `increase(a_total[31s])`, 30); len(got) != 1 || slices.Collect(maps.Values(got))[0] < 22 {
		t.Errorf("increase %v, want 10 + 3 + 10 or a little more", got)
	}
}

// Series of a machine stand for those of the VMs on it where a selector asks for VMs, and are there once otherwise.
func TestSharedSeries(t *testing.T) {
	s := open(t)
	src := s.Source(
		[]series.Label{{Name: "instance", Value: "host"}, {Name: "endpoint", Value: "e"}, {Name: "id", Value: "1"}},
		series.Limits{})
	b := s.Batch()
	b.Float("load",
		[]series.Label{{Name: "instance", Value: "vm-1"}, {Name: "vm_group", Value: "A"}, {Name: "id", Value: "1"}},
		at(30), 100)
	b.Float("other", []series.Label{{Name: "instance", Value: "host"}}, at(30), 5)
	commit(t, b)
	for i := range 31 {
		page(t, src, float64(i), fmt.Sprintf("load{cpu=\"0\"} %d\nload{cpu=\"1\"} %d\n", i, 2*i))
	}
	vm := func(name, group string) []series.Label {
		return []series.Label{{Name: "instance", Value: name}, {Name: "vm_group", Value: group}}
	}
	s.Share(
		series.Shared{
			Of: []series.Label{{Name: "instance", Value: "host"}, {Name: "endpoint", Value: "e"}},
			As: [][]series.Label{vm("vm-1", "A"),
				vm("vm-2", "A"), vm("vm-3", "B")},
		},
	)
	for q, want := range map[string]map[string]float64{
		`sum(load{id="1"})`:                                   {"": 190}, // the machine once, and what vm-1 has
		`count by (instance) (load)`:                          {"instance=host": 2, "instance=vm-1": 1},
		`sum by (instance) (load{id="1",vm_group="A"})`:       {"instance=vm-1": 190, "instance=vm-2": 90},
		`sum by (instance, cpu) (load{vm_group="B",cpu="1"})`: {"cpu=1 instance=vm-3": 60},
		`sum by (instance) (irate(load{vm_group=~"A|B"}[30s]))`: {"instance=vm-1": 3, "instance=vm-2": 3,
			"instance=vm-3": 3},
		`sum by (vm_group) (load{vm_group!="A"})`: {"vm_group=B": 90},
		`sum(load{vm_group=~".*"})`:               {"": 370},
		`sum(load{instance="host"})`:              {"": 90},
		`sum(load{vm_group=""})`:                  {"": 90},
		`sum(load{instance="vm-2"})`:              {"": 90},
		`load{vm_group="A",id="2"}`:               {},
		`sum(other)`:                              {"": 5},
		`sum(other{instance="host"})`:             {"": 5},
		`sum(other{vm_group="A"})`:                {},
	} {
		if d := cmp.Diff(want, latest(t, s, q, 30)); d != "" {
			t.Errorf("%s: %s", q, d)
		}
	}
	for q, want := range map[string]bool{`load{vm_group="A"}`: true, `load{id="1"}`: false} {
		ctx, used := series.Sharing(t.Context())
		if _, err := s.Range(ctx, q, at(0), at(30), time.Second); err != nil || used() != want {
			t.Errorf("%s: shared %v, want %v; error %v", q, used(), want, err)
		}
	}
}

// Any page is read or refused, and what follows is read.
func FuzzPage(f *testing.F) {
	f.Add([]byte("# TYPE a counter\na{b=\"c\"} 1 2\n"), false)
	f.Add([]byte("# TYPE a counter\na_total{b=\"c\"} 1 2 # {} 1\n# EOF\n"), true)
	f.Add([]byte("a NaN\nb +Inf\n{\"quoted.name\",x=\"y\"} 3\n"), false)
	s, err := series.Open(f.TempDir(), series.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	second := 0.0
	f.Fuzz(func(t *testing.T, text []byte, openMetrics bool) {
		kind := ""
		if openMetrics {
			kind = "application/openmetrics-text"
		}
		src := s.Source(ofRun, series.Limits{Series: 100, Lines: 100})
		second++
		n, err := src.Append(series.Page{Text: text, ContentType: kind, Time: at(second)})
		if err != nil && n != 0 || n > 100 {
			t.Errorf("%d series and %v", n, err)
		}
		second++
		page(t, src, second, "after 1\n")
	})
}

// What a page of a machine costs after the first: as many series as a node_exporter of a machine with two CPUs has.
func BenchmarkPage(b *testing.B) {
	s, err := series.Open(b.TempDir(), series.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var text []byte
	for i := range 500 {
		text = fmt.Appendf(text, "node_things_total{device=\"d%d\",mode=\"m\"} %d\n", i, i*1000)
	}
	src := s.Source(ofRun, series.Limits{})
	second := 0.0
	for b.Loop() {
		second++
		if _, err := src.Append(series.Page{Text: text, Time: at(second)}); err != nil {
			b.Fatal(err)
		}
	}
}
