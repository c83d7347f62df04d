package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Bounds of scraping: how often at most, the largest page, and from how many endpoints at once.
const (
	shortestScrape = time.Second
	mostPage       = 16 << 20 // bytes
	mostEndpoints  = 4096
	// failing is the number of pages that an endpoint must owe in a row before the journal tells: one late page is in
	// the metrics (up) and in the sum that is told at the end, and a machine that goes off owes one or two.
	failing = 3
)

// scraper takes the pages of everything on the run's machines that serves counters, all at once and on a cadence of
// its own, so that one which hangs delays neither the others nor the run's own metrics. It is used by one goroutine.
type scraper struct {
	x        *execution
	source   target.ScrapeSource // nil when the cluster is none
	vms      target.VMAddressed  // nil when the cluster's VMs have no addresses
	period   time.Duration
	deadline time.Duration // of one page, below period
	client   *http.Client
	known    map[endpointKey]*endpoint
	round    int
	blind    bool // the endpoints cannot be listed
	excess   bool // there are too many

	pages, missing int // of all endpoints so far, missing those that did not come
}

type endpointKey struct{ machine, name string }

// endpoint holds what is kept of one from round to round.
type endpoint struct {
	key      endpointKey
	get      target.Getter
	exporter *record.Exporter
	page     bytes.Buffer
	busy     chan struct{} // holds a token while get is at work, which may be beyond the deadline
	missing  int           // pages since one came
	round    int           // in which it was last there
	gone     bool
}

// newScraper returns nil where nothing can be scraped. In a simulated run nothing is: time there is not the world's.
func (x *execution) newScraper() *scraper {
	s := &scraper{x: x, period: max(x.interval(), shortestScrape), known: map[endpointKey]*endpoint{}}
	s.deadline = s.period * 9 / 10
	s.source, _ = x.cluster.(target.ScrapeSource)
	if v, ok := x.cluster.(target.VMAddressed); ok && x.req.Facts.Can(target.VMExporters) {
		s.vms = v
	}
	counting := x.req.Scenario != nil && slices.ContainsFunc(x.req.Scenario.Workloads, func(w scenario.Workload) bool {
		_, counts := x.req.Engines[w.Generator].(workload.Counting)
		return counts
	})
	if s.source == nil && s.vms == nil && !counting || x.req.Facts.Simulated {
		return nil
	}
	s.client = &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: s.deadline}).DialContext, MaxConnsPerHost: 4, MaxIdleConnsPerHost: 4,
			IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		},
		// A page elsewhere would be counted as this machine's.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}
	return s
}

// scrape goes on until ctx is done.
func (s *scraper) scrape(ctx context.Context) {
	defer s.client.CloseIdleConnections()
	clk := s.x.req.Clock
	for next := clk.Now(); clk.Sleep(ctx, next.Sub(clk.Now())) == nil; {
		if err := s.x.guarded(func() error { s.all(ctx); return nil }); err != nil {
			s.x.record(result.Event{Kind: result.KindWarning, Text: "scraping ends", Error: sentence(err)})
			return
		}
		late := clk.Now().Sub(next)
		next = next.Add(s.period + late.Truncate(s.period)) // rounds that this one took the time of are left out
	}
}

// sum tells how many pages did not come in the whole run.
func (s *scraper) sum() {
	if s != nil && s.missing > 0 {
		s.x.record(result.Event{Kind: result.KindNote, Data: result.EventData{Pages: s.pages, Missing: s.missing},
			Text: fmt.Sprintf("%d of %d pages of exporters did not come in time or could not be read: see the metric up",
				s.missing, s.pages)})
	}
}

// all scrapes every endpoint once.
func (s *scraper) all(ctx context.Context) {
	s.round++
	list := s.list(ctx)
	var g sync.WaitGroup
	for _, e := range list {
		g.Go(func() {
			if err := s.x.guarded(func() error { s.one(ctx, e); return nil }); err != nil {
				s.tell(e, err)
			}
		})
	}
	g.Wait()
	if ctx.Err() == nil {
		s.pages += len(list)
		for _, e := range list {
			if e.missing > 0 {
				s.missing++
			}
		}
	}
	for key, e := range s.known {
		if e.round == s.round {
			continue
		}
		if !e.gone {
			e.gone, e.missing = true, 0
			_ = e.exporter.Gone(e.exporter.Now()) // what is wrong with the metrics is told by their own writer
		}
		if len(e.busy) == 0 { // else it must not be asked twice at a time when it is back
			delete(s.known, key)
		}
	}
}

// list are the endpoints there are now: those that the cluster names, the servers of loads, and the ports of the VMs
// that are on.
func (s *scraper) list(ctx context.Context) (list []*endpoint) {
	var all []target.Endpoint
	var err error
	if s.source != nil {
		all, err = s.source.Endpoints(ctx)
	}
	all = append(slices.Clone(all), s.x.env.Loads.Counted()...)
	groups := map[string]string{} // by VM
	if machines, vmErr := s.x.cluster.VMs(ctx); vmErr == nil {
		for _, vm := range machines {
			if vm.Power == target.On && !vm.Template {
				groups[vm.Name] = vm.Group
				all = append(all, s.ports(vm)...)
			}
		}
	}
	if err != nil && !s.blind && ctx.Err() == nil {
		s.x.record(result.Event{Kind: result.KindWarning, Text: "the exporters of the target cannot be listed",
			Error: sentence(err)})
	}
	s.blind = err != nil
	for _, t := range all {
		machine, group := t.Machine, ""
		if t.VM != "" {
			machine, group = t.VM, groups[t.VM]
			if group == "" {
				continue // it is off, and answers later
			}
		}
		key := endpointKey{machine, t.Name}
		e := s.known[key]
		if e == nil {
			if len(s.known) >= mostEndpoints {
				s.tooMany(len(all))
				continue
			}
			e = &endpoint{
				key:      key,
				exporter: s.x.recorder.Exporter(t.Name, machine, group),
				busy:     make(chan struct{}, 1),
			}
			s.known[key] = e
		}
		if e.round == s.round {
			continue // named twice
		}
		e.get, e.round, e.gone = t.Get, s.round, false
		list = append(list, e)
	}
	return list
}

func (s *scraper) tooMany(n int) {
	if !s.excess {
		s.excess = true
		s.x.record(result.Event{Kind: result.KindWarning,
			Text: fmt.Sprintf("%d exporters: more than %d are not scraped", n, mostEndpoints)})
	}
}

// ports are what the scenario says its VMs serve, where their addresses are known.
func (s *scraper) ports(vm target.VM) (list []target.Endpoint) {
	if s.vms == nil {
		return nil
	}
	address := s.vms.VMAddress(vm.Name)
	if address == "" {
		return nil
	}
	for _, g := range s.x.req.Scenario.Groups {
		if g.Name != vm.Group {
			continue
		}
		for _, port := range g.ExporterPorts {
			name := strconv.Itoa(port)
			url := "http://" + net.JoinHostPort(address, name) + "/metrics"
			list = append(list, target.Endpoint{Name: name, VM: vm.Name, Get: target.FromURL(s.client, url)})
		}
	}
	return list
}

// one scrapes an endpoint.
func (s *scraper) one(ctx context.Context, e *endpoint) {
	at, began := e.exporter.Now(), s.x.req.Clock.Now()
	page, kind, err := s.page(ctx, e)
	if ctx.Err() != nil {
		return // the run goes on to something else; that is no failure of the endpoint
	}
	took := s.x.req.Clock.Now().Sub(began)
	if err == nil {
		err = e.exporter.Served(series.Page{Text: page, ContentType: kind, Time: at}, took)
	} else {
		_ = e.exporter.Failed(at, took) // what is wrong with the metrics is told by their own writer
	}
	s.tell(e, err)
}

// tell enters into the journal that an endpoint fails for good, or is back.
func (s *scraper) tell(e *endpoint, err error) {
	was := e.missing
	if e.missing++; err == nil {
		e.missing = 0
	}
	event := result.Event{Kind: result.KindNote, Name: e.key.machine, Data: result.EventData{Endpoint: e.key.name},
		Text: fmt.Sprintf("exporter %q of %s is back", e.key.name, e.key.machine)}
	switch {
	case err == nil && was < failing, err != nil && e.missing != failing:
		return
	case err != nil:
		event.Kind, event.Error = result.KindWarning, sentence(err)
		event.Text = fmt.Sprintf("exporter %q of %s cannot be scraped", e.key.name, e.key.machine)
	}
	s.x.record(event)
}

// page gets a page within the deadline, whatever the endpoint does. What it returns is valid until the next call for e.
func (s *scraper) page(ctx context.Context, e *endpoint) (page []byte, kind string, err error) {
	select {
	case e.busy <- struct{}{}:
	default:
		return nil, "", fmt.Errorf("it gave no page within %v, and is still at it", s.deadline)
	}
	limited, cancel := clock.WithTimeout(ctx, s.x.req.Clock, s.deadline)
	defer cancel()
	type answer struct {
		kind string
		err  error
	}
	done := make(chan answer, 1)
	get := e.get
	go func() {
		var a answer
		a.err = s.x.guarded(func() (err error) {
			a.kind, err = read(limited, get, &e.page)
			return err
		})
		<-e.busy
		done <- a
	}()
	late := fmt.Errorf("it gave no page within %v", s.deadline)
	select {
	case a := <-done:
		if a.err != nil && limited.Err() != nil {
			a.err = late
		}
		return e.page.Bytes(), a.kind, a.err
	case <-limited.Done():
		return nil, "", late
	}
}

// read gets a page of bounded size.
func read(ctx context.Context, get target.Getter, into *bytes.Buffer) (kind string, err error) {
	body, kind, err := get(ctx)
	if err != nil {
		return "", err
	}
	into.Reset()
	_, err = into.ReadFrom(io.LimitReader(body, mostPage+1))
	if err = errors.Join(err, body.Close()); err == nil && into.Len() > mostPage {
		err = fmt.Errorf("its page is larger than %d MiB", mostPage>>20)
	}
	return kind, err
}

// sharedCounters tells of the machine whose counters stand for those of its VMs, when there is one.
func (s *scraper) sharedCounters(ctx context.Context) *result.SharedCounters {
	if s.source == nil {
		return nil
	}
	all, err := s.source.Endpoints(ctx)
	if err != nil {
		return nil // the first round tells
	}
	for _, e := range all {
		if e.Shared && e.VM == "" {
			return &result.SharedCounters{Instance: e.Machine, Endpoint: e.Name}
		}
	}
	return nil
}
