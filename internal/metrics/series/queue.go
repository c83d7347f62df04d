package series

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	common "github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// mostAnswer is how much of a server's answer is read, in bytes.
const mostAnswer = 64 << 10

// queue sends points to one server, in the order of the log. The log's reader waits when the queue is full.
type queue struct {
	of       *Sender
	entry    *config.RemoteWriteConfig
	external labels.Labels
	api      *remote.API
	log      *wlog.Watcher
	series   map[chunks.HeadSeriesRef]*sentSeries // of the log's reader alone

	points chan point
	ctx    context.Context // done when nothing more is to be sent
	cancel context.CancelFunc
	over   chan struct{} // closed when the last request is over

	read, took, dropped, handled atomic.Int64 // points: of the log, taken, left out by rules, taken or refused
}

// sentSeries is a series of the log; without labels when a rule leaves it out.
type sentSeries struct {
	labels  []prompb.Label
	segment int
}

type point struct {
	labels []prompb.Label
	sample prompb.Sample
	h      *histogram.Histogram
}

func newQueue(of *Sender, entry *config.RemoteWriteConfig, external labels.Labels) (*queue, error) {
	q := &queue{of: of, entry: entry, external: external, series: map[chunks.HeadSeriesRef]*sentSeries{},
		points: make(chan point, max(entry.QueueConfig.Capacity, 1)), over: make(chan struct{})}
	client, err := common.NewClientFromConfig(entry.HTTPClientConfig, "remote_write")
	if err != nil {
		return nil, err
	}
	client.Timeout = time.Duration(entry.RemoteTimeout)
	client.Transport = withHeaders{client.Transport, entry.Headers}
	options := []remote.APIOption{remote.WithAPIHTTPClient(client), remote.WithAPIPath(""),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: time.Duration(entry.QueueConfig.MinBackoff),
			Max: time.Duration(entry.QueueConfig.MaxBackoff)})}
	if q.api, err = remote.NewAPI(entry.URL.String(), options...); err != nil {
		return nil, err
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.log = wlog.NewWatcher(wlog.NewWatcherMetrics(nil), wlog.NewLiveReaderMetrics(nil), slog.New(slog.DiscardHandler),
		entry.Name, q, of.store.db.Dir(), false, true, false, nil)
	return q, nil
}

// withHeaders adds headers to requests, and bounds what is read of an answer: of one that takes the points, nothing
// beyond its head, after which a server may go on slowly or never end.
type withHeaders struct {
	http.RoundTripper
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("User-Agent", "plimsoll")
	answer, err := w.RoundTripper.RoundTrip(r)
	if err == nil && answer.StatusCode/100 == 2 {
		_ = answer.Body.Close() // nobody reads it
		answer.Body = http.NoBody
	} else if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, mostAnswer), answer.Body}
	}
	return answer, err
}

func (q *queue) begin() {
	go q.send()
	q.log.Start()
}

// end waits until what was written is sent, and then ends it all.
func (q *queue) end(ctx context.Context, written int64) {
	for last, since := int64(-1), time.Now(); q.read.Load() < written && ctx.Err() == nil; {
		if now := q.handled.Load() + q.read.Load(); now > last {
			last, since = now, time.Now()
		}
		if time.Since(since) > silence {
			break
		}
		q.log.Notify()
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	all := q.read.Load() >= written
	if !all {
		q.cancel() // the log's reader may wait for room
	}
	q.log.Stop()
	close(q.points)
	select {
	case <-q.over:
	case <-time.After(lastFlush):
	case <-ctx.Done():
	}
	q.cancel()
	<-q.over
}

// send makes the requests: full ones, and whatever there is after a while.
func (q *queue) send() {
	defer close(q.over)
	most := max(q.entry.QueueConfig.MaxSamplesPerSend, 1)
	every := time.NewTicker(cmp.Or(time.Duration(q.entry.QueueConfig.BatchSendDeadline), time.Second))
	defer every.Stop()
	request := &prompb.WriteRequest{}
	for {
		due := false
		select {
		case p, more := <-q.points:
			if !more {
				q.request(request)
				return
			}
			request.Timeseries = append(request.Timeseries, p.series())
		case <-every.C:
			due = true
		}
		if due || len(request.Timeseries) >= most {
			q.request(request)
			request.Timeseries = request.Timeseries[:0]
		}
	}
}

func (p point) series() prompb.TimeSeries {
	if p.h != nil {
		return prompb.TimeSeries{Labels: p.labels,
			Histograms: []prompb.Histogram{prompb.FromIntHistogram(p.sample.Timestamp, p.h)}}
	}
	return prompb.TimeSeries{Labels: p.labels, Samples: []prompb.Sample{p.sample}}
}

// request sends one request until the server takes it or refuses it for good, or nothing more is to be sent.
func (q *queue) request(r *prompb.WriteRequest) {
	n := int64(len(r.Timeseries))
	if n == 0 || q.ctx.Err() != nil {
		return
	}
	_, err := q.api.Write(q.ctx, remote.WriteV1MessageType, r, remote.WithWriteRetryCallback(q.of.failed))
	switch {
	case err == nil:
		q.took.Add(n)
	case q.ctx.Err() != nil: // broken off
	default:
		q.of.failed(err)
	}
	q.handled.Add(n)
}

// put enters a point, and reports whether there is to be another.
func (q *queue) put(ref chunks.HeadSeriesRef, p point) bool {
	s := q.series[ref]
	if s == nil || s.labels == nil {
		q.dropped.Add(1)
		q.read.Add(1)
		return true
	}
	p.labels = s.labels
	select {
	case q.points <- p:
		q.read.Add(1)
		return true
	case <-q.ctx.Done():
		return false
	}
}

// Append implements wlog.WriteTo.
func (q *queue) Append(samples []record.RefSample) bool {
	for _, s := range samples {
		if !q.put(s.Ref, point{sample: prompb.Sample{Timestamp: s.T, Value: s.V}}) {
			return false
		}
	}
	return true
}

// AppendHistograms implements wlog.WriteTo.
func (q *queue) AppendHistograms(samples []record.RefHistogramSample) bool {
	if !q.entry.SendNativeHistograms {
		q.read.Add(int64(len(samples)))
		return true
	}
	for _, s := range samples {
		if !q.put(s.Ref, point{sample: prompb.Sample{Timestamp: s.T}, h: s.H}) {
			return false
		}
	}
	return true
}

// AppendExemplars implements wlog.WriteTo: a Store writes none.
func (q *queue) AppendExemplars([]record.RefExemplar) bool { return true }

// AppendFloatHistograms implements wlog.WriteTo: a Store writes none.
func (q *queue) AppendFloatHistograms([]record.RefFloatHistogramSample) bool { return true }

// StoreMetadata implements wlog.WriteTo: a Store writes none.
func (q *queue) StoreMetadata([]record.RefMetadata) {}

// StoreSeries implements wlog.WriteTo.
func (q *queue) StoreSeries(series []record.RefSeries, segment int) {
	for _, s := range series {
		b := labels.NewBuilder(s.Labels)
		q.external.Range(func(l labels.Label) {
			if s.Labels.Get(l.Name) == "" {
				b.Set(l.Name, l.Value)
			}
		})
		known := &sentSeries{segment: segment}
		if relabel.ProcessBuilder(b, q.entry.WriteRelabelConfigs...) {
			known.labels = prompb.FromLabels(b.Labels(), nil)
		}
		q.series[s.Ref] = known
	}
}

// UpdateSeriesSegment implements wlog.WriteTo.
func (q *queue) UpdateSeriesSegment(series []record.RefSeries, segment int) {
	for _, s := range series {
		if known := q.series[s.Ref]; known != nil {
			known.segment = segment
		}
	}
}

// SeriesReset implements wlog.WriteTo: series of segments that are gone are forgotten.
func (q *queue) SeriesReset(segment int) {
	for ref, s := range q.series {
		if s.segment < segment {
			delete(q.series, ref)
		}
	}
}
