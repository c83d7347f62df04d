package web

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"plimsoll/internal/report"
	"plimsoll/result"
)

// Bounds of pages that follow a run.
const (
	mostFollowers = 200             // pages that follow runs, of all runs together
	liveEvery     = 2 * time.Second // between two looks at a run, at least
	lookShare     = 100             // a page may cost one part of so many of a processor
	mostRest      = 2 * time.Minute // between two looks at a run, at most
	sendWithin    = 10 * time.Second
	sayAlive      = 15 * time.Second // when nothing changes: a proxy would close what is silent
)

// parts are what changes on the page of a run that goes on: the template that makes each is called as its element is.
var parts = []string{"live-now", "live-results", "live-journal"}

//go:embed assets/live.js
var liveScript string

// followScript is that of a page that follows a run.
func followScript() template.JS { return report.ZoneScript() + template.JS(liveScript) }

// feed holds what all pages that follow one run are sent. One goroutine looks at the run and writes each part down
// once, however many pages there are; it ends with the last of them.
type feed struct {
	mu      sync.Mutex
	sent    map[string][]byte // the newest of each part, as it is sent
	number  map[string]int    // of the change that each is from
	changes int
	over    bool          // nothing changes any more
	changed chan struct{} // closed and made anew at every change
	pages   int
	stop    context.CancelFunc
	ended   chan struct{}
}

// feeds are those of all runs that are followed.
type feeds struct {
	mu    sync.Mutex
	of    map[string]*feed // by the run's folder
	pages int
}

// follow is the feed of a run for one more page, which must leave it; nil when there are too many pages.
func (s *Site) follow(b book) (f *feed, leave func()) {
	all := &s.feeds
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.pages == mostFollowers {
		return nil, nil
	}
	all.pages++
	f = all.of[b.dir]
	if f == nil || f.isOver() {
		ctx, stop := context.WithCancel(s.stopping)
		f = &feed{sent: map[string][]byte{}, number: map[string]int{}, changed: make(chan struct{}), stop: stop,
			ended: make(chan struct{})}
		if all.of == nil {
			all.of = map[string]*feed{}
		}
		all.of[b.dir] = f
		go s.feed(ctx, b, f)
	}
	f.pages++
	return f, func() {
		all.mu.Lock()
		all.pages--
		f.pages--
		last := f.pages == 0
		if last && all.of[b.dir] == f {
			delete(all.of, b.dir)
		}
		all.mu.Unlock()
		if last {
			f.stop()
			<-f.ended
		}
	}
}

// feed looks at a run until it ends or nobody follows it.
func (s *Site) feed(ctx context.Context, b book, f *feed) {
	defer close(f.ended)
	for {
		before := spent()
		over := s.look(ctx, b, f)
		if ctx.Err() != nil {
			return // the run goes on all the same
		}
		if over {
			f.put("", nil)
			return
		}
		s.rest(ctx, b, f, spent()-before)
	}
}

// rest waits until a run is looked at again: by what the last look cost and how many pages share it, or as soon as its
// manifest says something else, as at its end.
func (s *Site) rest(ctx context.Context, b book, f *feed, cost time.Duration) {
	began, mark := time.Now(), markOf(b.dir, "manifest.json")
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.feeds.mu.Lock()
		pages := f.pages
		s.feeds.mu.Unlock()
		if time.Since(began) >= restOf(cost, pages) || markOf(b.dir, "manifest.json") != mark {
			return
		}
	}
}

// restOf is how long to wait after a look that cost so much processor time.
func restOf(cost time.Duration, pages int) time.Duration {
	return min(max(liveEvery, lookShare*cost/time.Duration(max(1, pages))), mostRest)
}

// spent is the processor time of this process so far: of a look it is what the look took, or more.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// look writes down what has changed of a run since the last time, and reports whether it goes on no more.
func (s *Site) look(ctx context.Context, b book, f *feed) (over bool) {
	folder, err := result.Open(b.dir)
	if err != nil || folder.Manifest().Status != result.StatusExecuting {
		return true
	}
	done, err := s.reading.turn(ctx)
	if err != nil {
		return true
	}
	defer done()
	v := &runView{Run: rowOf(b)}
	events, _, err := folder.Events()
	if err != nil {
		return false // the next look may read it
	}
	s.live(ctx, b, folder, events, v)
	drawings := v.Drawings // made here, and escaped
	*v = report.Shown(*v)
	v.Drawings = drawings
	for _, part := range parts {
		var html bytes.Buffer
		if err := templates().ExecuteTemplate(&html, part, v); err != nil {
			return true
		}
		data, err := json.Marshal(map[string]string{"id": part, "html": html.String()})
		if err != nil {
			return true
		}
		f.put(part, fmt.Appendf(nil, "event: part\ndata: %s\n\n", data))
	}
	return false
}

// put keeps a part that differs from what it was, and has the pages send it; of no name: there is no more.
func (f *feed) put(part string, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if part == "" {
		f.over = true
	} else if bytes.Equal(f.sent[part], text) {
		return
	} else {
		f.changes++
		f.sent[part], f.number[part] = text, f.changes
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// since returns what changed after a change, the number of the last, whether there is more to come, and what tells of
// it.
func (f *feed) since(n int) (texts [][]byte, last int, over bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, part := range parts {
		if f.number[part] > n {
			texts = append(texts, f.sent[part])
		}
	}
	return texts, f.changes, f.over, f.changed
}

// stream answers with what changes of a run that goes on, as server-sent events, until it ends or the page is closed.
func (s *Site) stream(w http.ResponseWriter, r *http.Request) {
	b, ok := s.shelf.find(r.PathValue("id"))
	if !ok {
		s.notMade(w, r, errMissing(r.PathValue("id")))
		return
	}
	f, leave := s.follow(b)
	if f == nil {
		s.notMade(w, r, errBusy)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	send := func(texts ...[]byte) bool {
		_ = to.SetWriteDeadline(time.Now().Add(sendWithin)) // where there is none, nobody is slow
		_, err := w.Write(slices.Concat(texts...))
		return err == nil && to.Flush() == nil
	}
	if !send([]byte("retry: 5000\n\n")) {
		return
	}
	seen := 0
	for {
		texts, last, over, changed := f.since(seen)
		if len(texts) > 0 && !send(texts...) {
			return
		}
		if seen = last; over {
			send([]byte("event: over\ndata: {}\n\n"))
			return
		}
		alive := time.NewTimer(sayAlive)
		select {
		case <-changed:
		case <-alive.C:
			if !send([]byte(": still here\n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.stopping.Done(): // the page asks the next server
			return
		}
		alive.Stop()
	}
}

// tile is one figure of a run that goes on.
type tile struct{ Name, Value, Note string }

// tiles are the newest figures of a run: what its workloads do, the slowest of them, errors, and the time. Rates are
// added up within a unit only: requests and transactions make no sum.
func tiles(data *result.Data, p *progress, errors string) (out []tile) {
	for _, panel := range data.Panels {
		if panel.Kind != "workload" {
			continue
		}
		name, together := map[string]string{"throughput": "Rate", "bandwidth": "Bandwidth"}[panel.Name], true
		if panel.Name == "p99" {
			name, together = "Latency, p99", false
		}
		if name == "" {
			continue
		}
		sums := sumsOf(panel)
		for _, s := range sums {
			note := "of " + s.of[0]
			switch {
			case !together:
			case len(s.of) > 1:
				note = fmt.Sprintf("of %d workloads together", len(s.of))
			case len(sums) == 1:
				note = ""
			}
			value := s.sum
			if !together {
				value = s.most
			}
			out = append(out, tile{name, report.Quantity(value, s.unit), note})
		}
	}
	if errors != "" {
		out = append(out, tile{"Errors", errors, "so far"})
	}
	if p != nil && p.Steps > 0 {
		done := fmt.Sprintf("%d %%", p.Percent)
		if p.Open {
			done = fmt.Sprintf("step %d of %d", p.Number, p.Steps)
		}
		out = append(out, tile{"Progress", done, p.Elapsed + " so far"})
	}
	return out
}

// sumOf are the newest values of a panel in one unit.
type sumOf struct {
	unit      string
	sum, most float64
	of        []string // workloads; that with the most is first
}

func sumsOf(panel result.Panel) (out []sumOf) {
	for _, s := range panel.Series {
		v, ok := newest(s)
		if !ok {
			continue
		}
		unit := cmp.Or(s.Unit, panel.Unit)
		i := slices.IndexFunc(out, func(o sumOf) bool { return o.unit == unit })
		if i < 0 {
			i, out = len(out), append(out, sumOf{unit: unit, most: v})
		}
		o := &out[i]
		o.sum += v
		if o.of = append(o.of, s.Name); v > o.most {
			o.most, o.of[0], o.of[len(o.of)-1] = v, s.Name, o.of[0]
		}
	}
	return out
}

// newest is the last value of a series, where it is among its last points: what has ended has none.
func newest(s result.Series) (float64, bool) {
	const points = 4
	for i := len(s.Values) - 1; i >= max(0, len(s.Values)-points); i-- {
		if v := s.Values[i]; v != nil {
			return *v, true
		}
	}
	return 0, false
}

// inWords says an entry of the journal as a person would.
func inWords(e result.Event) event {
	text := strings.TrimSpace(strings.Join(slices.DeleteFunc([]string{e.Name, e.Text}, func(s string) bool {
		return s == ""
	}), ": "))
	say := map[string]string{
		result.KindRunStart: "The run begins", result.KindRunEnd: "The run ends",
		result.KindPhase:     "Phase " + e.Phase + " begins",
		result.KindStepStart: fmt.Sprintf("Step %d begins", e.Step),
		result.KindStepEnd:   fmt.Sprintf("Step %d is done", e.Step),
		result.KindWorkload:  "Load", result.KindWarning: "Warning", result.KindFault: "Fault",
		result.KindBoot:      "Booted",
		result.KindMigration: "Moved", result.KindNodeReturn: "A node is back",
		result.KindOperation: "Platform", result.KindPrecondition: "Preparation",
	}[e.Kind]
	switch {
	case e.Kind == result.KindStepStart:
		text = cmp.Or(e.Text, e.Name)
	case e.Kind == result.KindStepEnd && e.Error != "":
		say, text = fmt.Sprintf("Step %d failed", e.Step), ""
	case e.Kind == result.KindStepEnd && e.Text != "":
		say, text = fmt.Sprintf("Step %d was %s", e.Step, e.Text), ""
	case e.Kind == result.KindStepEnd, e.Kind == result.KindPhase:
		text = ""
	}
	if e.Error != "" {
		text = strings.TrimSpace(text + " " + e.Error)
	}
	if does := map[string]string{result.WorkloadStart: "begins", result.WorkloadEnd: "ends"}[e.Text]; does != "" &&
		e.Kind == result.KindWorkload && e.Error == "" {
		say, text = "Load "+does, e.Name
		if e.Data.Prefill {
			say, text = "Prefill "+does, strings.TrimSuffix(e.Name, "_prefill")
		}
	}
	text = result.SpokenNames(text)
	out := event{At: e.Time.UTC().Truncate(time.Second), Kind: say, Text: text}
	out.Mark = map[string]string{result.KindFault: "fault", result.KindWarning: "fault",
		result.KindAnnotation: "stretch", result.KindPhase: "stretch"}[e.Kind]
	switch {
	case e.Error != "":
		out.Mark = "fault"
	case e.Data.State == result.FaultOver, e.Data.State == result.PowerOn:
		out.Mark = ""
	}
	if out.Kind == "" {
		out.Kind, out.Text = out.Text, ""
	}
	return out
}
