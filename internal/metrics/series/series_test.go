package series_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"plimsoll/hist"
	"plimsoll/internal/metrics/series"
)

var t0 = time.Unix(1_700_000_000, 0).UTC()

func at(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }

func TestMain(m *testing.M) {
	if dir := os.Getenv("SERIES_TEST_CRASH"); dir != "" {
		writeForever(dir)
	}
	goleak.VerifyTestMain(m)
}

func commit(t testing.TB, b *series.Batch) {
	t.Helper()
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

func label(v string) []series.Label { return []series.Label{{Name: "instance", Value: v}} }

func query(t testing.TB, s *series.Store, q string, end float64) []series.Series {
	t.Helper()
	got, err := s.Range(t.Context(), q, t0, at(end), 10*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return got
}

func TestRangeOfCounters(t *testing.T) {
	s := open(t)
	for i := range 31 {
		b := s.Batch()
		b.Float("x_total", label("b"), at(float64(i)), float64(i*20))
		b.Float("x_total", label("a"), at(float64(i)), float64(i*10))
		commit(t, b)
	}
	points := func(v float64) []series.Point { return []series.Point{{at(10), v}, {at(20), v}, {at(30), v}} }
	want := []series.Series{{label("a"), points(10)}, {label("b"), points(20)}}
	if d := cmp.Diff(want, query(t, s, `sum by (instance) (irate(x_total[30s]))`, 30)); d != "" {
		t.Error(d)
	}
	got, err := s.Instant(t.Context(), `sum(x_total)`, at(30))
	if d := cmp.Diff([]series.Series{{[]series.Label{}, []series.Point{{at(30), 900}}}}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	oldest, newest, ok := s.Bounds()
	if !ok || !oldest.Equal(t0) || !newest.Equal(at(30)) {
		t.Error(oldest, newest, ok)
	}
}

func TestRefusals(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		name, query string
		end         float64
		step        time.Duration
		want        string
	}{
		{"syntax", "sum(", 10, time.Second, "unclosed left parenthesis"},
		{"step", "x", 10, 0, "must be positive"},
		{"order", "x", -10, time.Second, "is before the start"},
		{"points", "x", 11001, time.Second, "more than 11000 points"},
		{"text", `"words"`, 10, time.Second, "string"},
	} {
		_, err := s.Range(t.Context(), c.query, t0, at(c.end), c.step)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A clock that steps back by less than the window loses no point, and a second point for a moment is left out and
// counted.
func TestOutOfOrder(t *testing.T) {
	s := open(t)
	for _, sec := range []float64{100, 101, 40, 41, 102} {
		b := s.Batch()
		b.Float("x", label("a"), at(sec), sec)
		commit(t, b)
	}
	b := s.Batch()
	b.Float("x", label("a"), at(102), 7)
	b.Float("x", label("a"), at(103), 103)
	commit(t, b)
	if b.Dropped() > 1 {
		t.Errorf("%d points dropped", b.Dropped())
	}
	got, err := s.Range(t.Context(), "x", at(39), at(103), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[time.Time]float64{}
	for _, p := range got[0].Points {
		seen[p.Time] = p.Value
	}
	for _, sec := range []float64{40, 41, 100, 101, 102, 103} {
		if seen[at(sec)] != sec {
			t.Errorf("at %v: %v, want %v", sec, seen[at(sec)], sec)
		}
	}
}

// Quantiles of native histograms are within the stated error of the exact ones.
func TestNativeHistogramError(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &hist.Histogram{}
		n := rapid.IntRange(1, 60).Draw(rt, "n")
		for range n {
			h.Add(uint64(rapid.Int64Range(1, 1e12).Draw(rt, "v")), uint64(rapid.IntRange(1, 1000).Draw(rt, "count")))
		}
		s, err := series.Open(t.TempDir(), series.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		b := s.Batch()
		b.Histogram("d_seconds", label("a"), t0, h)
		commit(t, b)
		for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
			got, err := s.Instant(t.Context(), fmt.Sprintf("histogram_quantile(%g, d_seconds)", q), t0)
			if err != nil || len(got) != 1 {
				rt.Fatal(got, err)
			}
			exact, _ := h.Quantile(q)
			want := float64(exact) / 1e9
			// The interpolation may stop in the neighbouring rank's bucket only where ranks fall on an edge; allow for
			// one bucket's width and ours.
			if v := got[0].Points[0].Value; math.Abs(v-want) > want*(0.0905+2*hist.RelativeError) && !onEdge(h, q) {
				rt.Fatalf("q%g: %v, exact %v", q, v, want)
			}
		}
		got, err := s.Instant(t.Context(), "histogram_count(d_seconds)", t0)
		if err != nil || got[0].Points[0].Value != float64(h.Count()) {
			rt.Fatal("count", got, err)
		}
		got, err = s.Instant(t.Context(), "histogram_sum(d_seconds)", t0)
		if err != nil || math.Abs(got[0].Points[0].Value-h.Sum()/1e9) > 1e-9*h.Sum() {
			rt.Fatal("sum", got, err)
		}
	})
}

// onEdge reports whether the rank of q is so near the edge of a bucket that the two definitions of a quantile may
// choose different values.
func onEdge(h *hist.Histogram, q float64) bool {
	rank, seen := q*float64(h.Count()), 0.0
	for _, b := range h.Buckets() {
		seen += float64(b.Count)
		if math.Abs(seen-rank) <= 1 {
			return true
		}
	}
	return false
}

func TestReadOnlyLeavesFilesAlone(t *testing.T) {
	dir, views := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", views)
	s, err := series.Open(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 { // more than a chunk, so that chunk files exist
		b := s.Batch()
		b.Float("x_total", label("a"), at(float64(i)), float64(i))
		commit(t, b)
	}
	read := func() {
		t.Helper()
		before := tree(t, dir)
		r, err := series.OpenReadOnly(dir, series.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := query(t, r, "irate(x_total[30s])", 390)
		if len(got) != 1 || len(got[0].Points) != 39 {
			t.Errorf("got %v", got)
		}
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("the database changed while it was looked at:\n%s", d)
		}
		b := r.Batch()
		b.Float("x_total", label("a"), at(500), 1)
		if err := b.Commit(); !errors.Is(err, series.ErrReadOnly) {
			t.Errorf("append: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("the database changed:\n%s", d)
		}
		if left, err := os.ReadDir(views); len(left) > 0 || err != nil {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	read() // while it is being written
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	read()
}

// A log of several segments, damaged in the middle, is repaired in the view alone: points before the damage are there,
// and the files are as they were.
func TestReadOnlyRepairsNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	for part := range 4 { // each opening begins a segment
		s, err := series.Open(dir, series.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			b := s.Batch()
			b.Float("x", label("a"), at(float64(part*50+i)), 1)
			commit(t, b)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "0*"))
	if err != nil || len(segments) < 4 {
		t.Fatal(segments, err)
	}
	count := func() float64 {
		t.Helper()
		before := tree(t, dir)
		r, err := series.OpenReadOnly(dir, series.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Instant(t.Context(), `count_over_time(x[1000s])`, at(199))
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("the database changed:\n%s", d)
		}
		return got[0].Points[0].Value
	}
	if n := count(); n != 200 {
		t.Errorf("%v points, want 200", n)
	}
	b, err := os.ReadFile(segments[1])
	if err != nil {
		t.Fatal(err)
	}
	for i := 500; i < 600; i++ {
		b[i] ^= 0x5a
	}
	if err := os.WriteFile(segments[1], b, 0o644); err != nil {
		t.Fatal(err)
	}
	if n := count(); n < 50 || n >= 200 {
		t.Errorf("damaged in the middle: %v points of 200", n)
	}
}

// tree lists files with their contents' sizes, modification times and links, and folders.
func tree(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err == nil && info.IsDir() {
			out[p] = "folder"
		}
		if err == nil && info.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out[p] = fmt.Sprint(len(b), info.ModTime(), info.Sys().(*syscall.Stat_t).Nlink, string(b[:min(len(b), 64)]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// writeForever is the process that is killed in TestCrash.
func writeForever(dir string) {
	s, err := series.Open(dir, series.Options{})
	for i := 0; err == nil && i < 1_000_000; i++ {
		b := s.Batch()
		for k := range 50 {
			b.Float("x_total", label(fmt.Sprint(k)), at(float64(i)), float64(i))
		}
		err = b.Commit()
		if i == 300 {
			fmt.Println("ready")
		}
	}
	os.Exit(1)
}

// A database whose process was killed, and one whose log is torn or damaged besides, is read up to the damage.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "SERIES_TEST_CRASH="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	count := func() int {
		t.Helper()
		r, err := series.OpenReadOnly(dir, series.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := r.Instant(t.Context(), `count_over_time(x_total{instance="7"}[1000000s])`, at(999_000))
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		return int(got[0].Points[0].Value)
	}
	whole := count()
	if whole < 300 {
		t.Errorf("%d points, at least 300 were committed", whole)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "0*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	last := segments[len(segments)-1]
	b, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(b) / 2; i < len(b)/2+200; i++ {
		b[i] ^= 0x5a
	}
	if err := os.WriteFile(last, b[:len(b)*3/4], 0o644); err != nil {
		t.Fatal(err)
	}
	if n := count(); n == 0 || n >= whole {
		t.Errorf("damaged: %d points of %d", n, whole)
	}
}

func TestOpenReadOnlyOfNothing(t *testing.T) {
	if _, err := series.OpenReadOnly(filepath.Join(t.TempDir(), "none"), series.Options{}); err == nil {
		t.Error("no error")
	}
	r, err := series.OpenReadOnly(t.TempDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := r.Bounds(); ok {
		t.Error("an empty database has points")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func ExampleStore() {
	dir, _ := os.MkdirTemp("", "series")
	defer os.RemoveAll(dir)
	store, err := series.Open(dir, series.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	for i := range 20 {
		b := store.Batch()
		b.Float("reads_total", []series.Label{{Name: "instance", Value: "vm-0"}}, t0.Add(time.Duration(i)*time.Second),
			float64(150*i))
		if err := b.Commit(); err != nil {
			fmt.Println(err)
		}
	}
	got, err := store.Instant(context.Background(), "irate(reads_total[30s])", t0.Add(19*time.Second))
	fmt.Println(got[0].Label("instance"), got[0].Points[0].Value, err)
	// Output: vm-0 150 <nil>
}

// TestSlices: a query gives the same in any number of slices, and a query over too many samples is evaluated in slices
// by itself, unless it asks for its own start or end.
func TestSlices(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	s, err := series.Open(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		b := s.Batch()
		for k := range 10 {
			if i > 20*k {
				b.Float("ops_total", []series.Label{{Name: "vm", Value: fmt.Sprint(k)}},
					t0.Add(time.Duration(i)*time.Second), float64(i*(k+1)))
			}
		}
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"irate(ops_total[30s])", "sum(rate(ops_total[1m]))", "ops_total > 300"} {
		var want []series.Series
		for _, c := range []struct{ most, slices int }{{0, 1}, {0, 2}, {0, 7}, {0, 1000}, {500, 1}, {500, 3}} {
			view, err := series.OpenReadOnly(dir, series.Options{MaxSamples: c.most})
			if err != nil {
				t.Fatal(err)
			}
			got, err := view.RangeInSlices(t.Context(), query, t0, t0.Add(199*time.Second), time.Second, c.slices)
			if err != nil {
				t.Fatalf("%s, %+v: %v", query, c, err)
			}
			if want == nil {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("%s, %+v: %s", query, c, diff)
			}
			if err := view.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	view, err := series.OpenReadOnly(dir, series.Options{MaxSamples: 500})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if _, err := view.Range(t.Context(), "ops_total - ops_total @ end()", t0, t0.Add(199*time.Second),
		time.Second); err == nil || !strings.Contains(err.Error(), "too many samples") {
		t.Errorf("a query that asks for its end in slices: %v", err)
	}
}

// TestCostlyQueries: a query that would take minutes is refused at once; one that takes too long, or is not wanted any
// more, ends.
func TestCostlyQueries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	s, err := series.Open(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 600 {
		b := s.Batch()
		b.Float("x", label("a"), at(float64(i)), float64(i%7))
		commit(t, b)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, q string, o series.Options) ([]series.Series, error) {
		view, err := series.OpenReadOnly(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		return view.Range(ctx, q, t0, at(599), time.Second)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	const refused = "values for every series"
	const twice = "max_over_time(max_over_time(x[1m:1ms])[1m:1ms])"
	ctx, none := t.Context(), series.Options{}
	for _, c := range []struct {
		name, query string
		ctx         context.Context
		options     series.Options
		want        string
	}{
		{"plain", "x", ctx, none, ""},
		{"subquery", "max_over_time(rate(x[1m])[5m:1s])", ctx, none, ""},
		{"subquery without a step", "max_over_time(x[5m:])", ctx, none, ""},
		{"milliseconds", "max_over_time(x[5s:1ms])", ctx, none, ""},
		{"many milliseconds", "max_over_time(x[1h:1ms])", ctx, none, refused},
		{"milliseconds of milliseconds", "sum(" + twice + ") + 1", ctx, none, refused},
		{"long windows", "1 + quantile_over_time(0.5, x[10000d])", ctx, none, refused},
		{"too long", "max_over_time(x[20s:1ms])", ctx, series.Options{QueryTimeout: 1}, "it takes more than 1ns"},
		{"too many for one moment", "max_over_time(x[5m:1ms])", ctx, series.Options{MaxSamples: 1000},
			"too many samples"},
		{"not wanted any more", "max_over_time(x[20s:1ms])", cancelled, none, "context canceled"},
	} {
		got, err := ask(c.ctx, c.query, c.options)
		if c.want == "" && (err != nil || len(got) != 1) ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d series, %v; want %q", c.name, len(got), err, c.want)
		}
	}
	view, err := series.OpenReadOnly(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	_, err = view.Instant(t.Context(), twice, at(599))
	if err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("at one moment: %v", err)
	}
}

// A series has ended from its marker on, whether it begins again or not, in a database of either kind.
func TestAnyEnded(t *testing.T) {
	for name, opts := range map[string]series.Options{"logged": {}, "timeless": {Timeless: true}} {
		dir := filepath.Join(t.TempDir(), "metrics")
		s, err := series.Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			b := s.Batch()
			at := t0.Add(time.Duration(i) * time.Second)
			b.Float("node", []series.Label{{Name: "vm", Value: "a"}}, at, 1)
			v := 1.0
			if i == 5 {
				v = series.Ended()
			}
			b.Float("node", []series.Label{{Name: "vm", Value: "b"}}, at, v)
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		view, err := series.OpenReadOnly(dir, series.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		for _, c := range []struct {
			match    string
			from, to int
			want     bool
		}{{"node", 0, 9, true}, {"node", 0, 4, false}, {"node", 5, 5, true}, {"node", 6, 9, false}, {`node{vm="a"}`, 0, 9, false},
			{"off", 0, 9, false}} {
			got, err := view.AnyEnded(t.Context(), series.Selection{Match: []string{c.match},
				From: t0.Add(time.Duration(c.from) * time.Second), To: t0.Add(time.Duration(c.to) * time.Second)})
			if err != nil || got != c.want {
				t.Errorf("%s, %v: %v, %v", name, c, got, err)
			}
		}
	}
}
