package nutanix

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"plimsoll/internal/exporters/nutanix/prism"
)

// Bounds of polling.
const (
	mostPolls   = 4                // clusters polled at a time; the others wait for a place
	longestHold = 10 * time.Minute // between tries after the password was refused, so that no account is locked
)

// source is one cluster and what it last said.
type source struct {
	config Config
	of     Cluster
	client *prism.Client
	log    *slog.Logger
	stop   context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	blocks  map[prism.Kind]block
	tried   map[prism.Kind]trial
	counts  map[[2]string]int // answers by kind and reason
	latency map[string]summary
	polls   int
	skipped int
	whole   bool // whether the last poll gave all kinds
	waiting bool
	refused int // polls in turn whose password was refused
}

type summary struct {
	sum   float64 // seconds
	count int
}

// trial is how the last poll of a kind went, good or not.
type trial struct {
	took     time.Duration
	requests int
	failures int // since the beginning
	reason   prism.Reason
}

func newSource(c Config, of Cluster, log *slog.Logger) (*source, error) {
	s := &source{config: c, of: of, log: log.With("cluster", of.Name), blocks: map[prism.Kind]block{},
		tried: map[prism.Kind]trial{}, counts: map[[2]string]int{}, latency: map[string]summary{},
		ended: make(chan struct{}), stop: func() {}}
	var err error
	s.client, err = of.client(c, s.observe)
	return s, err
}

func (s *source) observe(a prism.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[[2]string{a.Kind.String(), string(a.Reason)}]++
	l := s.latency[a.Kind.String()]
	s.latency[a.Kind.String()] = summary{l.sum + a.Took.Seconds(), l.count + 1}
}

// run polls until ctx is done. A poll that takes longer than the cadence makes it skip, never overlap.
func (s *source) run(ctx context.Context, places chan struct{}, after func(context.Context, *source)) {
	defer close(s.ended)
	defer s.client.Close()
	next := time.Now().Add(time.Duration(rand.Int64N(int64(s.config.Poll/20) + 1))) // spread, no secret
	for {
		wait := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		s.setWaiting(true)
		select {
		case <-ctx.Done():
			return
		case places <- struct{}{}:
		}
		s.setWaiting(false)
		s.poll(ctx)
		<-places
		if ctx.Err() == nil && after != nil {
			after(ctx, s)
		}
		next = next.Add(s.hold())
		if late := time.Since(next); late > 0 {
			n := int(late/s.config.Poll) + 1
			s.mu.Lock()
			s.skipped += n
			s.mu.Unlock()
			next = next.Add(time.Duration(n) * s.config.Poll)
		}
	}
}

func (s *source) setWaiting(v bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = v
}

// hold is how long to wait for the next poll.
func (s *source) hold() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.config.Poll
	for range min(s.refused, 20) {
		d = min(2*d, max(longestHold, s.config.Poll))
	}
	return d
}

// poll asks for all kinds, one after the other. What concerns all of them ends it at once.
func (s *source) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(3*s.config.Poll, time.Minute))
	defer cancel()
	whole, refused := true, false
	var all prism.Reason // of the failure that the other kinds share
	var cause error
	for _, kind := range s.config.kinds() {
		part, err := prism.Part{At: time.Now()}, cause
		if all == "" {
			part, err = s.client.Poll(ctx, kind)
		}
		if ctx.Err() != nil && err != nil && context.Cause(ctx) == context.Canceled { //nolint:errorlint // ours
			return
		}
		reason := prism.ReasonOf(err)
		switch reason {
		case prism.Refused, prism.Certificate, prism.Unreachable, prism.Secret:
			all, cause = reason, err
		}
		refused = refused || reason == prism.Refused
		whole = whole && err == nil
		s.done(kind, part, reason, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	s.whole = whole
	s.refused++
	if !refused {
		s.refused = 0
	}
}

// done keeps what a poll of a kind gave, or that it failed, and logs what changed.
func (s *source) done(kind prism.Kind, part prism.Part, reason prism.Reason, err error) {
	var b block
	if err == nil {
		b = render(s.of.Name, kind, part)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, before := s.tried[kind], s.blocks[kind]
	now := trial{part.Took, part.Requests, was.failures, reason}
	if err != nil {
		now.failures++
		if reason != was.reason {
			s.log.Warn("poll failed", "kind", kind.String(), "reason", string(reason), "error", err.Error())
		}
	} else {
		if was.reason != "" {
			s.log.Info("poll works again", "kind", kind.String())
		}
		if old := before.part; len(old.Entities) > len(part.Entities) {
			s.log.Info("fewer than before", "kind", kind.String(), "before", len(old.Entities), "now",
				len(part.Entities))
		}
		if n := part.Left.Bad; n > before.part.Left.Bad {
			s.log.Warn("values that are no numbers left out", "kind", kind.String(), "values", n)
		}
		s.blocks[kind] = b
	}
	s.tried[kind] = now
}

// good are the blocks that are young enough to be told.
func (s *source) good(now time.Time) (map[prism.Kind]block, []block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by, list := map[prism.Kind]block{}, []block(nil)
	for _, k := range s.config.kinds() {
		if b, ok := s.blocks[k]; ok && now.Sub(b.part.At) <= s.config.StaleAfter {
			by[k] = b
			list = append(list, b)
		}
	}
	return by, list
}

// polled reports whether a first poll is over, whatever it gave.
func (s *source) polled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls > 0
}

// tell adds what is to be said of the polls themselves.
func (s *source) tell(p *page, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.of.Name
	flag := func(v bool) float64 {
		if v {
			return 1
		}
		return 0
	}
	p.add("nutanix_up", "gauge", "Whether the last poll gave everything it was to give.", flag(s.whole), "cluster",
		name)
	p.add("nutanix_exporter_api_info", "gauge", "The version of the API that is spoken; always 1.", 1,
		"cluster", name, "version", string(s.client.Version()))
	p.add("nutanix_exporter_tls_verified", "gauge", "Whether the cluster's certificate is verified.",
		flag(!s.of.Insecure), "cluster", name)
	if offset, ok := s.client.ClockOffset(); ok {
		p.add("nutanix_exporter_clock_offset_seconds", "gauge", "How far the cluster's clock is before ours.",
			offset.Seconds(), "cluster", name)
	}
	p.add("nutanix_exporter_polls_total", "counter", "Polls that have ended.", float64(s.polls), "cluster", name)
	p.add("nutanix_exporter_polls_skipped_total", "counter",
		"Polls that were left out because the one before took too long.", float64(s.skipped), "cluster", name)
	p.add("nutanix_exporter_poll_waiting", "gauge", "Whether a poll waits for a place beside those of other clusters.",
		flag(s.waiting), "cluster", name)
	for _, k := range s.config.kinds() {
		kind, t := k.String(), s.tried[k]
		p.add("nutanix_exporter_poll_failures_total", "counter", "Polls of a kind that gave nothing.",
			float64(t.failures), "cluster", name, "kind", kind)
		l := s.latency[kind]
		const latency = "How long the API took to answer one request."
		p.add("nutanix_exporter_api_latency_seconds_sum", "summary", latency, l.sum, "cluster", name, "kind", kind)
		p.add("nutanix_exporter_api_latency_seconds_count", "summary", latency, float64(l.count), "cluster", name,
			"kind", kind)
		p.add("nutanix_exporter_poll_duration_seconds", "gauge", "How long the last poll of a kind took.",
			t.took.Seconds(), "cluster", name, "kind", kind)
		p.add("nutanix_exporter_poll_requests", "gauge", "Requests of the last poll of a kind.", float64(t.requests),
			"cluster", name, "kind", kind)
		for _, reason := range reasons {
			if n := s.counts[[2]string{kind, string(reason)}]; n > 0 {
				p.add("nutanix_exporter_api_errors_total", "counter", "Requests that failed, those repeated included.",
					float64(n), "cluster", name, "kind", kind, "reason", string(reason))
			}
		}
		b, ok := s.blocks[k]
		if !ok {
			continue
		}
		age := since(now, b.part.At)
		told := age <= s.config.StaleAfter.Seconds()
		p.add("nutanix_exporter_data_age_seconds", "gauge", "Age of the last good values of a kind.", age,
			"cluster", name, "kind", kind)
		p.add("nutanix_exporter_data_told", "gauge", "Whether they are young enough to be told.", flag(told),
			"cluster", name, "kind", kind)
		p.add("nutanix_exporter_entities", "gauge", "Entities of a kind in them.", float64(len(b.part.Entities)),
			"cluster", name, "kind", kind)
		p.add("nutanix_exporter_series", "gauge", "Series of a kind in them.", float64(b.series), "cluster", name,
			"kind", kind)
		left := b.part.Left
		for _, r := range []struct {
			reason string
			n      int
		}{{"no_sample", left.NoSample}, {"low_io", left.LowIO}, {"stale", left.Stale}, {"unknown", left.Unknown},
			{"bad", left.Bad}} {
			p.add("nutanix_exporter_values_left_out", "gauge", "Values that the API gave and that are not passed on.",
				float64(r.n), "cluster", name, "kind", kind, "reason", r.reason)
		}
	}
}

var reasons = []prism.Reason{prism.Refused, prism.Forbidden, prism.Certificate, prism.Unreachable, prism.Slow,
	prism.Limited, prism.Absent, prism.Server, prism.Broken, prism.Large, prism.Secret, prism.Stopped}
