package nutanix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/kit/listen"
)

// Exporter polls clusters and hands out what they said. It is safe for concurrent use.
type Exporter struct {
	version string
	log     *slog.Logger
	places  chan struct{}

	mu       sync.Mutex
	config   Config
	sources  []*source
	pushers  []*pusher
	reloads  int
	reloaded time.Time
	failed   bool // whether the last reload was refused
	stopping bool
}

// New makes an exporter of a configuration that Check or Parse found good. It connects to nothing yet.
func New(version string, c Config, log *slog.Logger) (*Exporter, error) {
	x := &Exporter{version: version, log: log, places: make(chan struct{}, mostPolls), config: c, reloaded: time.Now()}
	for _, of := range c.Clusters {
		s, err := newSource(c, of, log)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", of.Name, err)
		}
		x.sources = append(x.sources, s)
	}
	for _, p := range c.Push {
		x.pushers = append(x.pushers, newPusher(p, log))
	}
	return x, nil
}

// PollOnce asks every cluster once and waits for the answers.
func (x *Exporter) PollOnce(ctx context.Context) {
	var g sync.WaitGroup
	for _, s := range x.list() {
		g.Go(func() {
			s.poll(ctx)
			s.client.Close()
		})
	}
	g.Wait()
}

func (x *Exporter) list() []*source {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.sources)
}

// Run polls, serves and pushes until ctx is done. A configuration that comes over reload takes the place of the one
// there is when it is good; err is what is wrong with it otherwise, or with the file.
func (x *Exporter) Run(ctx context.Context, s listen.Server, reload <-chan func() (Config, error)) error {
	polling, stop := context.WithCancel(ctx)
	defer stop()
	for _, source := range x.list() {
		x.start(polling, source)
	}
	var g sync.WaitGroup
	g.Go(func() {
		for {
			select {
			case <-polling.Done():
				return
			case read := <-reload:
				x.reload(polling, read)
			}
		}
	})
	s.Open, s.Stopping = []string{"/-/healthy", "/-/ready"}, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.stopping = true
	}
	err := s.Serve(ctx, x.Handler())
	stop()
	g.Wait()
	for _, source := range x.list() {
		<-source.ended
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, p := range x.pushersNow() {
		for _, source := range x.list() {
			p.remove(last, source.of.Name)
		}
		p.close()
	}
	return err
}

func (x *Exporter) start(ctx context.Context, s *source) {
	one, cancel := context.WithCancel(ctx)
	s.stop = cancel
	go s.run(one, x.places, x.push)
}

// push hands what a poll gave to all pushers.
func (x *Exporter) push(ctx context.Context, s *source) {
	for _, p := range x.pushersNow() {
		p.push(ctx, x, s)
	}
}

func (x *Exporter) pushersNow() []*pusher {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.pushers)
}

// reload puts a new configuration in the place of the old one. Clusters whose settings are the same keep what they
// have.
func (x *Exporter) reload(ctx context.Context, read func() (Config, error)) {
	c, err := read()
	var next, gone []*source
	if err == nil {
		old := x.list()
		for _, of := range c.Clusters {
			i := slices.IndexFunc(old, func(s *source) bool { return same(s, c, of) })
			if i >= 0 {
				next = append(next, old[i])
				continue
			}
			s, e := newSource(c, of, x.log)
			if e != nil {
				err = errors.Join(err, e)
				continue
			}
			next = append(next, s)
		}
		gone = slices.DeleteFunc(old, func(s *source) bool { return slices.Contains(next, s) })
	}
	if err != nil {
		x.log.Error("reload refused, the old configuration stays", "error", err.Error())
		x.mu.Lock()
		defer x.mu.Unlock()
		x.failed = true
		return
	}
	for _, s := range gone {
		s.stop()
		<-s.ended
	}
	fresh := slices.DeleteFunc(slices.Clone(next), func(s *source) bool { return slices.Contains(x.list(), s) })
	var pushers []*pusher
	for _, p := range c.Push {
		pushers = append(pushers, newPusher(p, x.log))
	}
	old := x.pushersNow()
	x.mu.Lock()
	x.config, x.sources, x.pushers = c, next, pushers
	x.reloads++
	x.failed, x.reloaded = false, time.Now()
	x.mu.Unlock()
	for _, p := range old {
		for _, s := range gone {
			p.remove(ctx, s.of.Name)
		}
		p.close()
	}
	for _, s := range fresh {
		x.start(ctx, s)
	}
	x.log.Info("configuration reloaded", "clusters", len(next), "new", len(fresh), "gone", len(gone))
}

// same reports whether a source is as the new configuration has it.
func same(s *source, c Config, of Cluster) bool {
	a, b := s.of, of
	equalRoots := a.roots == b.roots || a.roots != nil && a.roots.Equal(b.roots)
	a.roots, b.roots = nil, nil
	return equalRoots && reflect.DeepEqual(a, b) && s.config.Poll == c.Poll &&
		s.config.StaleAfter == c.StaleAfter && *s.config.IOPSFloor == *c.IOPSFloor &&
		slices.Equal(s.config.kinds(), c.kinds())
}

// Page writes what is known of one cluster, or of all of them when target is "": then the clusters' own metrics are
// left out where there are several, for a metric may be on a page only once. packed is for readers that take gzip.
func (x *Exporter) Page(w io.Writer, target string, packed bool) error {
	now, sources := time.Now(), x.list()
	if target != "" {
		sources = slices.DeleteFunc(sources, func(s *source) bool { return s.of.Name != target })
		if len(sources) == 0 {
			return UnknownError(target)
		}
	}
	var p page
	p.add("nutanix_exporter_build_info", "gauge", "The program that serves this page; always 1.", 1,
		"version", x.version, "goversion", runtime.Version())
	x.mu.Lock()
	good := 1.0
	if x.failed {
		good = 0
	}
	p.add("nutanix_exporter_config_last_reload_successful", "gauge",
		"Whether the configuration was good when it was last read.", good)
	p.add("nutanix_exporter_config_last_reload_success_timestamp_seconds", "gauge",
		"When a good configuration was last read.", float64(x.reloaded.UnixMilli())/1000)
	for i, push := range x.pushers {
		push.tell(&p, i+1)
	}
	x.mu.Unlock()
	var blocks []block
	for _, s := range sources {
		s.tell(&p, now)
		if len(sources) == 1 {
			_, blocks = s.good(now)
		}
	}
	return write(w, p.text(), blocks, packed)
}

// Classic writes the cluster's and its containers' figures as lines of ntnx_bash{metric="..."}; target "" is the first
// cluster.
func (x *Exporter) Classic(w io.Writer, target string) error {
	for _, s := range x.list() {
		if target == "" || s.of.Name == target {
			blocks, _ := s.good(time.Now())
			return classic(w, blocks)
		}
	}
	return UnknownError(target)
}

// Entities are the last good ones of a kind of the first cluster, and when they were asked for.
func (x *Exporter) Entities(kind prism.Kind) ([]prism.Entity, time.Time) {
	blocks, _ := x.list()[0].good(time.Now())
	return blocks[kind].part.Entities, blocks[kind].part.At
}

// Failure is why the last poll of the first cluster did not give all it was to give; "" when it did.
func (x *Exporter) Failure() prism.Reason {
	s := x.list()[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.config.kinds() {
		if r := s.tried[k].reason; r != "" {
			return r
		}
	}
	return ""
}

// mostPages is how many pages are written at a time.
const mostPages = 8

// Handler answers /metrics, /probe?target=, /-/healthy and /-/ready.
func (x *Exporter) Handler() http.Handler {
	pages := make(chan struct{}, mostPages)
	answer := func(w http.ResponseWriter, r *http.Request, target string) {
		select {
		case pages <- struct{}{}:
			defer func() { <-pages }()
		default:
			http.Error(w, "too many pages at a time", http.StatusServiceUnavailable)
			return
		}
		packed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
		w.Header().Set("Content-Type", Format)
		if packed {
			w.Header().Set("Content-Encoding", "gzip")
		}
		var unknown UnknownError
		if err := x.Page(w, target, packed); errors.As(err, &unknown) {
			w.Header().Del("Content-Encoding")
			http.Error(w, err.Error(), http.StatusNotFound)
		} // any other: the reader has gone away
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { answer(w, r, "") })
	mux.HandleFunc("GET /probe", func(w http.ResponseWriter, r *http.Request) {
		target := r.URL.Query().Get("target")
		if target == "" {
			http.Error(w, "say which cluster: /probe?target=NAME", http.StatusBadRequest)
			return
		}
		answer(w, r, target)
	})
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		x.mu.Lock()
		stopping := x.stopping
		x.mu.Unlock()
		if stopping || slices.ContainsFunc(x.list(), func(s *source) bool { return !s.polled() }) {
			http.Error(w, "no first poll yet, or stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return mux
}
