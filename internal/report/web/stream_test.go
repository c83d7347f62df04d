package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/report/web"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// follower reads what a page that follows a run is sent.
type follower struct {
	*testing.T
	lines *bufio.Scanner
	code  int
	leave context.CancelFunc
}

func (s *tester) follow(id string) *follower {
	s.Helper()
	ctx, leave := context.WithTimeout(s.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/runs/"+id+"/live", nil)
	if err != nil {
		s.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	f := &follower{T: s.T, lines: bufio.NewScanner(answer.Body), code: answer.StatusCode,
		leave: func() { leave(); answer.Body.Close() }}
	f.lines.Buffer(nil, 8<<20)
	s.Cleanup(f.leave)
	return f
}

// next is the next event with its data, "" when there is none.
func (f *follower) next() (event string, part struct{ ID, HTML string }) {
	f.Helper()
	for f.lines.Scan() {
		line := f.lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &part); err != nil {
				f.Fatal(err)
			}
			return event, part
		}
	}
	return "", part
}

// TestStream: every page of a run is sent the same, each part again when it has changed, and at last that it is over.
func TestStream(t *testing.T) {
	needs.Time(t)
	s := serve(t)
	const id = "20260301-100000-live-0001"
	live := s.run(id, "live", t0).work(60)
	one, other := s.follow(id), s.follow(id)
	for _, want := range []string{"live-now", "live-results", "live-journal"} {
		event, part := one.next()
		if _, same := other.next(); event != "part" || part.ID != want || same != part {
			t.Errorf("%s %q, want %q and the same for both: %q and %q", event, part.ID, want, part.HTML, same.HTML)
		}
	}
	live.event(result.Event{Kind: result.KindAnnotation, Text: "the <neighbour> begins"})
	live.work(5)
	s.pass(3 * time.Second)
	for {
		event, part := one.next()
		if event == "" {
			t.Fatal("the journal was not sent again")
		}
		if part.ID == "live-journal" {
			if want := `class="stretch"`; !strings.Contains(part.HTML, want) ||
				!strings.Contains(part.HTML, "the &lt;neighbour&gt; begins") {
				t.Errorf("no %s, or no words: %s", want, part.HTML)
			}
			break
		}
	}
	one.leave()
	stopped := web.New(web.Options{Folders: func() ([]string, error) { return result.Folders(s.root) }, Now: s.now})
	server := httptest.NewServer(stopped.Handler())
	defer server.Close()
	cut := (&tester{T: t, url: server.URL}).follow(id)
	cut.next()
	stopped.Stopping()
	for event := "part"; event != ""; {
		if event, _ = cut.next(); event == "over" {
			t.Error("of a run that goes on a site that stops says that it is over: its pages load themselves of a site that is gone")
		}
	}
	if err := stopped.Close(); err != nil {
		t.Error(err)
	}
	live.end(result.StatusSucceeded)
	for event := ""; event != "over"; {
		if event, _ = other.next(); event == "" {
			t.Fatal("it did not say that it is over")
		}
	}
	if late := s.follow(id); late.code != http.StatusOK {
		t.Errorf("of a run that has ended: %d", late.code)
	} else if event, _ := late.next(); event != "over" {
		t.Errorf("of a run that has ended: %q", event)
	}
	if none := s.follow("20260301-100000-none-0009"); none.code != http.StatusNotFound {
		t.Errorf("of no run: %d", none.code)
	}
}

// TestStreamBounded: so many pages follow runs and no more; those that were closed make room.
func TestStreamBounded(t *testing.T) {
	s := serve(t)
	const id, most = "20260301-100000-live-0001", 200
	live := s.run(id, "live", t0).work(5)
	pages := make([]*follower, most)
	for i := range pages {
		if pages[i] = s.follow(id); pages[i].code != http.StatusOK {
			t.Fatalf("page %d: %d", i, pages[i].code)
		}
	}
	if f := s.follow(id); f.code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", f.code)
	}
	pages[0].leave()
	within(t, 30*time.Second, "a page that was closed makes room", func() bool {
		f := s.follow(id)
		defer f.leave()
		return f.code == http.StatusOK
	})
	for _, f := range pages {
		f.leave()
	}
	live.end(result.StatusStopped)
}

// TestTilesOfUnlikeLoads: rates of what is counted alike are added up, others are not.
func TestTilesOfUnlikeLoads(t *testing.T) {
	s := serve(t)
	r := s.run("20260301-103000-live-0001", "live", t0.Add(30*time.Minute))
	b := r.store.Batch()
	for i, w := range []struct {
		name, op, noun string
		rate           int
		block          result.Block
	}{{"Orders", "order", "orders", 40, ""}, {"OLTP", "read", "reads", 100, result.BlockRead}, {"DSS",
		"read", "reads", 300,
		result.BlockRead}} {
		raw := result.RawJob{VM: "vm0", Group: "G", Workload: w.name, Engine: "fio", Phase: "run", Start: r.at,
			Operations: []result.Operation{{Name: w.op, Noun: w.noun, Block: w.block}}}
		if err := r.folder.WriteRawJob(raw); err != nil {
			t.Fatal(i, err)
		}
		for second := range 60 {
			b.Float(record.WorkloadOps, []series.Label{{Name: "scenario_id", Value: "7"},
				{Name: "instance", Value: "vm0"}, {Name: "vm_group", Value: "G"}, {Name: "workload", Value: w.name},
				{Name: "op", Value: w.op}},
				r.at.Add(time.Duration(second)*time.Second), float64(w.rate*second))
		}
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	r.at = r.at.Add(time.Minute)
	_, body, _ := s.get("/runs/20260301-103000-live-0001")
	tile := regexp.MustCompile(`<dt>Rate</dt><dd>([^<]*)</dd>(?:<dd class="of">([^<]*)</dd>)?`)
	var got []string
	for _, m := range tile.FindAllStringSubmatch(body, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"40 orders/s of Orders", "400 IOPS of 2 workloads together"}, got); d != "" {
		t.Errorf("tiles (-want +got)\n%s", d)
	}
	r.end(result.StatusSucceeded)
}

// TestJournalOfMany: what many machines do in one second is one line of the journal.
func TestJournalOfMany(t *testing.T) {
	s := serve(t)
	r := s.run("20260301-103000-live-0001", "live", t0.Add(30*time.Minute))
	const machine = "__curie_test_1767225600000_Base_0007"
	r.event(result.Event{Kind: result.KindBoot, Name: machine, Text: "answered"})
	r.event(result.Event{Kind: result.KindWorkload, Name: "W_prefill", Text: "end",
		Data: result.EventData{Prefill: true}})
	for range 300 {
		r.event(result.Event{Kind: result.KindWorkload, Name: "W", Text: "start"})
	}
	r.event(result.Event{Kind: result.KindWorkload, Name: "W", Text: "start", Data: result.EventData{VM: machine}})
	r.event(result.Event{Kind: result.KindFault, Text: "node 3 lost its power"})
	r.event(result.Event{Kind: result.KindStepStart, Step: 3, Name: "vm_group.PowerOn", Text: "power on group \"G\""})
	r.event(result.Event{Kind: result.KindStepEnd, Step: 3, Name: "vm_group.PowerOn"})
	r.event(result.Event{Kind: result.KindWritten, Name: "W", Text: "all blocks zero"})
	r.event(result.Event{Kind: result.KindWarning, Text: "workload W: all blocks zero"})
	_, body, _ := s.get("/runs/20260301-103000-live-0001")
	if strings.Contains(body, "vm_group.PowerOn") || !strings.Contains(body, `>power on group &#34;G&#34;<`) ||
		strings.Count(body, "all blocks zero") != 1 {
		t.Errorf("the journal is raw, or says a thing twice:\n%.3000s", body[strings.Index(body, "journal"):])
	}
	row := regexp.MustCompile(`<td class="l">Load begins</td><td class="l">W <span class="of">× 300</span></td>`)
	if n := len(row.FindAllString(body, -1)); n != 1 || strings.Count(body, "Load begins") != 1 {
		t.Errorf("%d lines of 300 starts:\n%.3000s", n, body[strings.Index(body, "journal"):])
	}
	for _, said := range []string{`Booted</td><td class="l">VM 7 of Base: answered<`,
		`Prefill ends</td><td class="l">W<`} {
		if !strings.Contains(body, said) {
			t.Errorf("the journal does not say %q", said)
		}
	}
	if !strings.Contains(body, "Nothing has been measured yet.") {
		t.Error("the page does not say that nothing has been measured")
	}
	r.end(result.StatusSucceeded)
}

// A run says when it will end only while its steps last as long as was planned.
func TestNoEndOfALateStep(t *testing.T) {
	s := serve(t)
	r := s.run("20260301-103000-live-0001", "live", t0)
	if err := r.folder.WritePlan(json.RawMessage(`{"steps": [{"number": 1, "estimate_seconds": 60},
		{"number": 2, "estimate_seconds": 30}, {"number": 3, "estimate_unknown": true}]}`)); err != nil {
		t.Fatal(err)
	}
	step := func(n int) {
		r.at = s.now()
		r.event(result.Event{Kind: result.KindStepStart, Step: n, Name: "test.Wait", Text: "wait"})
	}
	for _, c := range []struct {
		step int
		wait time.Duration
		ends string
	}{{1, 20 * time.Second, "to go as planned"}, {0, time.Minute, "step 1 of 3"},
		{2, 5 * time.Second, "to go as planned"},
		{3, time.Second, "step 3 of 3"}} {
		if c.step > 0 {
			step(c.step)
		}
		s.pass(c.wait)
		_, body, _ := s.get("/runs/20260301-103000-live-0001")
		tells := strings.Contains(body, "to go as planned")
		if !strings.Contains(body, c.ends) || tells != strings.HasPrefix(c.ends, "to go") ||
			tells != strings.Contains(body, "<progress") {
			t.Errorf("%+v:\n%.2000s", c, body[strings.Index(body, "<main"):])
		}
	}
	r.end(result.StatusSucceeded)
}
