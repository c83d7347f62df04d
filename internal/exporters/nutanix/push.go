package nutanix

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"

	"plimsoll/internal/exporters/nutanix/prism"
)

// Bounds of pushing.
const (
	pushTimeout = 15 * time.Second
	mostAtOnce  = 5_000 // series in one remote write
)

// pusher sends what polls gave to one place.
type pusher struct {
	to   Push
	http *http.Client
	log  *slog.Logger

	mu     sync.Mutex
	pushes int
	failed int
	broken bool
}

func newPusher(to Push, log *slog.Logger) *pusher {
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: to.roots, MinVersion: tls.VersionTLS12},
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 2}
	return &pusher{to: to, log: log, http: &http.Client{Transport: t, Timeout: pushTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (p *pusher) close() { p.http.CloseIdleConnections() }

func (p *pusher) kind() string {
	if p.to.Pushgateway != "" {
		return "pushgateway"
	}
	return "remote_write"
}

// tell adds what is to be said of the pushes themselves; n is the place in the configuration.
func (p *pusher) tell(page *page, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	which := []string{"push", fmt.Sprint(n), "to", p.kind()}
	page.add("nutanix_exporter_pushes_total", "counter", "Pushes that were tried.", float64(p.pushes), which...)
	page.add("nutanix_exporter_push_failures_total", "counter", "Pushes that failed.", float64(p.failed), which...)
}

// push sends what is known of a cluster, once: what is lost is followed by newer values soon.
func (p *pusher) push(ctx context.Context, x *Exporter, s *source) {
	var err error
	if p.to.Pushgateway != "" {
		var page bytes.Buffer
		if err = x.Page(&page, s.of.Name, false); err == nil {
			err = p.send(ctx, http.MethodPut, p.group(s.of.Name), &page, "Content-Type", Format)
		}
	} else {
		err = p.remoteWrite(ctx, s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pushes++
	switch {
	case err != nil && ctx.Err() == nil:
		p.failed++
		if !p.broken {
			p.log.Warn("push failed", "to", p.kind(), "error", err.Error())
		}
		p.broken = true
	case err == nil && p.broken:
		p.log.Info("push works again", "to", p.kind())
		p.broken = false
	}
}

// group is the address of a cluster's group on a Pushgateway.
func (p *pusher) group(cluster string) string {
	key := func(name, value string) string {
		if strings.Contains(value, "/") || value == "" {
			return "/" + name + "@base64/" + base64.RawURLEncoding.EncodeToString([]byte(value))
		}
		return "/" + name + "/" + url.PathEscape(value)
	}
	return strings.TrimSuffix(p.to.Pushgateway, "/") + "/metrics" + key("job", p.to.Job) + key("cluster", cluster)
}

// remove deletes the group of a cluster, so that nobody reads values of a program that has ended.
func (p *pusher) remove(ctx context.Context, cluster string) {
	if p.to.Pushgateway == "" || p.to.Keep {
		return
	}
	if err := p.send(ctx, http.MethodDelete, p.group(cluster), nil); err != nil {
		p.log.Warn("group not deleted from the Pushgateway", "cluster", cluster, "error", err.Error())
	}
}

// send makes one request; headers are names and values in turn.
func (p *pusher) send(ctx context.Context, method, to string, body io.Reader, headers ...string) error {
	r, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if read := p.to.Password.Reader(); read != nil {
		password, err := read(ctx)
		if err != nil {
			return err
		}
		r.SetBasicAuth(p.to.User, password)
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return err // its address has no password
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: status %d", method, r.URL.Path, answer.StatusCode)
	}
	return nil
}

// remoteWrite sends the values with the time of their poll, some thousand at a time.
func (p *pusher) remoteWrite(ctx context.Context, s *source) error {
	var request []byte
	n := 0
	var failed error
	flush := func() {
		if n == 0 || failed != nil {
			return
		}
		failed = p.send(ctx, http.MethodPost, p.to.RemoteWrite, bytes.NewReader(snappy.Encode(nil, request)),
			"Content-Type", "application/x-protobuf", "Content-Encoding", "snappy",
			"X-Prometheus-Remote-Write-Version", "0.1.0", "User-Agent", "plimsoll")
		request, n = request[:0], 0
	}
	by, _ := s.good(time.Now())
	for _, kind := range prism.Kinds() {
		part := by[kind].part
		at := part.At.UnixMilli()
		each(s.of.Name, kind, part.Entities, func(v series) {
			request = timeSeries(request, p.to.Job, v, at)
			if n++; n == mostAtOnce {
				flush()
			}
		})
	}
	flush()
	return failed
}

// timeSeries appends one series with one point, as the protocol buffers of remote write 1.0 have it: field 1 of the
// request is a series; in it field 1 is a label (name, value), field 2 a point (double, milliseconds).
func timeSeries(b []byte, job string, v series, at int64) []byte {
	pairs := append(pairsOf(v.labels), [2]string{"__name__", v.metric}, [2]string{"job", job})
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var one []byte
	field := func(b []byte, n byte, data []byte) []byte {
		return append(binary.AppendUvarint(append(b, n<<3|2), uint64(len(data))), data...)
	}
	for _, pair := range pairs {
		one = field(one, 1, field(field(nil, 1, []byte(pair[0])), 2, []byte(pair[1])))
	}
	point := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(v.value))
	point = binary.AppendUvarint(append(point, 2<<3), uint64(at)) // after 1970
	return field(b, 1, field(one, 2, point))
}

// pairsOf are labels as label wrote them.
func pairsOf(b []byte) (out [][2]string) {
	for len(b) > 0 {
		name, rest, _ := bytes.Cut(b, []byte(`="`))
		var value []byte
		i := 0
		for ; i < len(rest) && rest[i] != '"'; i++ {
			c := rest[i]
			if c == '\\' {
				if i++; rest[i] == 'n' {
					c = '\n'
				} else {
					c = rest[i]
				}
			}
			value = append(value, c)
		}
		out = append(out, [2]string{string(name), string(value)})
		b = bytes.TrimPrefix(rest[min(len(rest), i+1):], []byte(","))
	}
	return out
}
