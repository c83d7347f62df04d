package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
	"plimsoll/scenario"
)

// planned is a plan of a scenario that waits, and the scenario's files.
func planned(t *testing.T) (*plan.Plan, fstest.MapFS) {
	t.Helper()
	files := fstest.MapFS{"test.yml": {Data: []byte("name: n\ndisplay_name: N\nsummary: s\n" +
		"description: d\nestimated_runtime: 1\nvms: []\nworkloads: []\nresults: []\n" +
		"setup: [{test.Wait: {duration_secs: 1}}]\nrun: [{test.Wait: {duration_secs: 1}}]\n")}}
	sc, diagnostics := scenario.Load(files, scenario.LoadOptions{Nodes: 1})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	p, err := plan.Build(sc, target.Facts{Nodes: []target.Node{{Name: "n"}}}, plan.Options{TimeScale: 1, SizeScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	return p, files
}

// A run whose first words cannot be recorded does not begin.
func TestNothingWithoutAJournal(t *testing.T) {
	t.Parallel()
	p, files := planned(t)
	folder, err := result.Create(t.TempDir(), result.Manifest{RunID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	x := &execution{folder: folder,
		req: Request{Clock: clock.Real{}, Plan: p, Files: files, Scenario: &scenario.Scenario{}}}
	err = x.prepare()
	if x.store == nil {
		t.Fatalf("it did not come as far as the journal: %v", err)
	}
	if err := x.store.Close(); err != nil {
		t.Error(err)
	}
	if !errors.Is(err, errJournal) {
		t.Errorf("%v", err)
	}
}

// How often metrics are written and a cluster is asked for its own.
func TestIntervals(t *testing.T) {
	t.Parallel()
	p, _ := planned(t)
	for _, c := range []struct {
		asked     time.Duration
		simulated bool
		long      time.Duration
		interval  time.Duration
		cluster   time.Duration
	}{
		{0, false, time.Minute, time.Second, 6 * time.Second},
		{0, false, 2 * time.Hour, time.Second, time.Minute},
		{0, true, time.Hour, time.Second, time.Minute},
		{0, true, time.Hour + time.Second, 5 * time.Second, time.Minute},
		{2 * time.Second, true, 2 * time.Hour, 2 * time.Second, time.Minute},
		{0, false, 5 * time.Second, time.Second, time.Second},
	} {
		x := &execution{req: Request{Interval: c.asked, Facts: target.Facts{Simulated: c.simulated},
			Plan: p}}
		p.EstimatedSeconds = c.long.Seconds()
		if got := x.interval(); got != c.interval {
			t.Errorf("%+v: every %v", c, got)
		}
		if got := x.clusterPeriod(); got != c.cluster {
			t.Errorf("%+v: cluster every %v", c, got)
		}
	}
}

func TestSome(t *testing.T) {
	t.Parallel()
	for want, items := range map[string][]string{
		"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b, c, d, e": {"a", "b", "c", "d", "e"},
		"a, b, c, d, e and 2 more": {"a", "b", "c", "d", "e", "f", "g"},
	} {
		if got := shortList(items); got != want {
			t.Errorf("%q: %q, want %q", items, got, want)
		}
	}
	if got := sentence(errors.Join(errors.New("a\n\nb"), errors.New("c"))); got != "a; b; c" {
		t.Errorf("%q", got)
	}
}

// addressed is a cluster that can be scraped or whose machines can be, by its methods.
type (
	addressed struct{ target.Cluster }
	sourced   struct{ target.Cluster }
)

func (addressed) VMAddress(string) string { return "192.0.2.7" }

func (sourced) Endpoints(context.Context) ([]target.Endpoint, error) { return nil, nil }

// A cluster is scraped when it or its machines serve anything, and never when it is a model.
func TestWhoIsScraped(t *testing.T) {
	t.Parallel()
	exporters := map[target.Capability]string{target.VMExporters: "over the network"}
	for name, c := range map[string]struct {
		cluster target.Cluster
		facts   target.Facts
		want    bool
	}{
		"nothing serves":                  {nil, target.Facts{}, false},
		"a source":                        {sourced{}, target.Facts{}, true},
		"machines with addresses":         {addressed{}, target.Facts{Capabilities: exporters}, true},
		"machines that serve nothing":     {addressed{}, target.Facts{}, false},
		"a source of a simulated cluster": {sourced{}, target.Facts{Simulated: true}, false},
	} {
		x := &execution{cluster: c.cluster,
			req: Request{Facts: c.facts, Interval: 2 * time.Second, Clock: clock.Real{}}}
		s := x.newScraper()
		if (s != nil) != c.want {
			t.Errorf("%s: %v", name, s)
		}
		if s != nil && (s.period != 2*time.Second || s.deadline != 1800*time.Millisecond || s.deadline >= s.period) {
			t.Errorf("%s: a page within %v, every %v", name, s.deadline, s.period)
		}
		if s != nil {
			s.client.Transport.(*http.Transport).CloseIdleConnections()
		}
	}
}

// body counts how often it is closed.
type body struct {
	io.Reader
	closed int
	err    error
}

func (b *body) Close() error { b.closed++; return b.err }

// A page is read once, closed once, and refused beyond its bound.
func TestReadPage(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for name, c := range map[string]struct {
		size int
		err  error
		want string
	}{
		"empty": {0, nil, ""}, "as large as it may be": {mostPage, nil, ""},
		"too large": {mostPage + 1, nil, "larger than 16 MiB"}, "broken": {3, broken, "connection reset"},
	} {
		b := &body{Reader: strings.NewReader(strings.Repeat("x", c.size)), err: c.err}
		var into bytes.Buffer
		into.WriteString("the page before")
		get := func(context.Context) (io.ReadCloser, string, error) { return b, "text", nil }
		kind, err := read(t.Context(), get, &into)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if kind != "text" || into.Len() != c.size || b.closed != 1 {
			t.Errorf("%s: %q, %d bytes, closed %d times", name, kind, into.Len(), b.closed)
		}
	}
	if _, err := read(t.Context(), func(context.Context) (io.ReadCloser, string, error) { return nil, "", broken },
		&bytes.Buffer{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// What a process costs is of the time since it was looked at first.
func TestMeter(t *testing.T) {
	t.Parallel()
	m := startMeter()
	m.began, m.cpu = m.began.Add(-500*time.Millisecond), m.cpu-0.25
	o := m.read()
	if o.CPUSeconds < 0.25 || o.CPUSeconds > 100 || o.WallSeconds < 0.5 || o.WallSeconds > 100 ||
		o.CorePercent != 100*o.CPUSeconds/o.WallSeconds || o.MaxResidentBytes < 1<<20 {
		t.Errorf("%+v", o)
	}
}

// Metrics that are lost are told of once for each reason, and each makes the measurement incomplete.
func TestLoseMetrics(t *testing.T) {
	t.Parallel()
	var told []string
	folder, err := result.Create(t.TempDir(), result.Manifest{RunID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	x := &execution{folder: folder, req: Request{Clock: clock.Real{}, Observer: observing{func(e result.Event) {
		told = append(told, e.Kind+" "+e.Text+": "+e.Error)
	}}}}
	for _, reason := range []string{"disk full", "disk full", "gone"} {
		x.loseMetrics("metrics could not be written", errors.New(reason))
	}
	const text = result.KindWarning + " metrics could not be written: "
	if got, want := strings.Join(told, "\n"), text+"disk full\n"+text+"gone"; got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(x.lost, ", "); got != "disk full, gone" {
		t.Errorf("lost: %s", got)
	}
}

type observing struct{ event func(result.Event) }

func (o observing) Event(e result.Event) { o.event(e) }
func (observing) Progress(Progress)      {}

// counted is a cluster that counts how often it is asked for its metrics, and has none.
type counted struct {
	target.Cluster
	asked *int
}

func (c counted) ClusterMetrics(context.Context) ([]target.Metric, error) {
	*c.asked++
	return nil, nil
}

// stopped is a clock that stands where it was set.
type stopped struct {
	clock.Clock
	now *time.Time
}

func (s stopped) Now() time.Time { return *s.now }

// A cluster is asked for its metrics when it claims to have them, at once and then when a period has passed.
func TestClusterIsAsked(t *testing.T) {
	t.Parallel()
	claims := map[target.Capability]string{target.ClusterMetrics: "counted"}
	for name, c := range map[string]struct {
		claims map[target.Capability]string
		want   []int // after each second
	}{
		"it claims them": {claims, []int{1, 1, 1, 2, 2, 2, 3}},
		"it does not":    {nil, []int{0, 0, 0, 0, 0, 0, 0}},
	} {
		asked, now := 0, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		w := &watcher{period: 3 * time.Second, x: &execution{cluster: counted{asked: &asked},
			req: Request{Facts: target.Facts{Capabilities: c.claims}, Clock: stopped{now: &now}}}}
		var got []int
		for range c.want {
			w.cluster(t.Context())
			got, now = append(got, asked), now.Add(time.Second)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: asked (-want +got)\n%s", name, diff)
		}
	}
}

// mute is a place whose counters cannot be read while err is not nil.
type mute struct {
	target.Cluster
	err *error
}

func (m mute) ClusterMetrics(context.Context) ([]target.Metric, error) { return nil, *m.err }

func (m mute) HostCounters(context.Context) (target.HostCounters, error) {
	return target.HostCounters{}, *m.err
}

// Counters that cannot be read are told of once, until they could be read again; those of a run that is stopped are
// not.
func TestCountersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	stoppedContext, stop := context.WithCancel(t.Context())
	stop()
	for name, look := range map[string]func(*watcher, context.Context){
		"cluster metrics could not be read":      (*watcher).cluster,
		"counters of the host could not be read": (*watcher).underneath,
	} {
		var told []string
		folder, err := result.Create(t.TempDir(), result.Manifest{RunID: "run"})
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		var failure error
		w := &watcher{x: &execution{folder: folder, cluster: mute{err: &failure}, req: Request{Clock: clock.Real{},
			Facts:    target.Facts{Capabilities: map[target.Capability]string{target.ClusterMetrics: "mute"}},
			Observer: observing{func(e result.Event) { told = append(told, e.Text+": "+e.Error) }}}}}
		for _, one := range []struct {
			ctx context.Context
			err error
		}{
			{t.Context(), nil}, {stoppedContext, errors.New("stopped")}, {t.Context(), errors.New("a")},
			{t.Context(), errors.New("b")}, {t.Context(), nil}, {t.Context(), errors.New("c")},
		} {
			failure = one.err
			look(w, one.ctx)
		}
		if diff := cmp.Diff([]string{name + ": a", name + ": c"}, told); diff != "" {
			t.Errorf("told (-want +got)\n%s", diff)
		}
	}
}

// What a page was asked for with ends with it: an endpoint may go on by itself otherwise.
func TestPageLetsGo(t *testing.T) {
	t.Parallel()
	var asked context.Context
	s := &scraper{x: &execution{req: Request{Clock: clock.Real{}}}, deadline: time.Minute}
	e := &endpoint{busy: make(chan struct{}, 1), get: func(ctx context.Context) (io.ReadCloser, string, error) {
		asked = ctx
		return io.NopCloser(strings.NewReader("page")), "text", nil
	}}
	page, kind, err := s.page(t.Context(), e)
	if string(page) != "page" || kind != "text" || err != nil {
		t.Errorf("%q, %q, %v", page, kind, err)
	}
	if asked.Err() == nil {
		t.Error("the context of the request goes on")
	}
}
