package prism

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/kit/answer"
	"plimsoll/internal/kit/regular"
)

// Bounds on what a server can make us do.
const (
	mostBody  = 64 << 20 // of one answer
	mostPages = 10_000   // of one list
	longWait  = 30 * time.Second
)

// Client reads one Prism. It is safe for concurrent use.
type Client struct {
	options Options
	http    *http.Client
	session *session
	version atomic.Pointer[spoken]
	offset  atomic.Int64 // of the server's clock to ours, in nanoseconds
	dated   atomic.Bool

	mu      sync.Mutex
	secret  string // password or key, "" when it is to be read
	known   configuration
	fetched map[string]kept // answers with an ETag
}

// kept is an answer that a server may say has not changed.
type kept struct {
	tag  string
	body []byte
}

// New makes a client, and returns all objections to the options at once. It connects to nothing.
func New(o Options) (*Client, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	jar := new(session)
	jar.end()
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: o.Insecure}, // asked for, and shown in a metric
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 4,
		MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
	}
	return &Client{options: o, fetched: map[string]kept{}, session: jar, http: &http.Client{
		Transport: transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version is the version of the API that is spoken, Auto when that is not known yet.
func (c *Client) Version() Version {
	if v := c.version.Load(); v != nil {
		return v.Version
	}
	return c.options.Version
}

// ClockOffset is how far the server's clock is before ours, by the last answer, to a second; ok when it told its time.
func (c *Client) ClockOffset() (offset time.Duration, ok bool) {
	return time.Duration(c.offset.Load()), c.dated.Load()
}

// now is the time by the server's clock.
func (c *Client) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// call is one request and its repeats, counted.
type call struct {
	kind     Kind
	requests *atomic.Int64
	question []byte // what is asked by POST, nil for GET
}

// get asks for a path and decodes the answer into to. What may be unchanged since (tagged) is asked for with its ETag.
func (c *Client) get(ctx context.Context, of call, path string, query url.Values, tagged bool, to any) error {
	var err error
	renewed := false
	for try := 0; ; try++ {
		began := time.Now()
		var body []byte
		var wait time.Duration
		body, wait, err = c.once(ctx, of.question, path, query, tagged)
		of.requests.Add(1)
		if err == nil {
			if e := json.Unmarshal(body, to); e != nil {
				err = &Error{Broken, path, errors.New("the answer is not the JSON that was expected: " + form(e))}
			}
		}
		reason := ReasonOf(err)
		again := try < c.options.Retries && (reason == Limited || reason == Server || reason == Unreachable ||
			reason == Slow || reason == Broken)
		if reason == Refused && !renewed { // a session that ended, or a password that was changed
			again, renewed = true, true
			c.forget()
		}
		if err != nil && ctx.Err() != nil {
			again = false
		}
		c.options.Observe(Answer{of.kind, time.Since(began), reason, again})
		if !again {
			return err
		}
		if wait == 0 {
			wait = time.Duration((0.5 + rand.Float64()) * float64(200*time.Millisecond<<try)) // a jitter
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(wait, longWait)):
		}
	}
}

// form returns what is wrong with JSON, without quoting it.
func form(err error) string {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%q holds a %s", wrong.Field, wrong.Value)
	case errors.As(err, &syntax):
		return fmt.Sprintf("it breaks off or is wrong after %d bytes", syntax.Offset)
	}
	return "wrong form"
}

// once asks one time. wait is how long the server wants to be left alone.
func (c *Client) once(ctx context.Context, question []byte, path string, query url.Values, tagged bool) ([]byte,
	time.Duration, error) {
	fail := func(r Reason, err error) ([]byte, time.Duration, error) { return nil, 0, &Error{r, path, err} }
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	address := c.options.URL + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	method := http.MethodGet
	if question != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(question))
	if err != nil {
		return fail(Broken, errors.New("no request can be made of it"))
	}
	if err := c.authorize(ctx, r); err != nil {
		return fail(Secret, err)
	}
	r.Header.Set("Accept", "application/json")
	if question != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	var had kept
	if tagged {
		c.mu.Lock()
		had = c.fetched[address]
		c.mu.Unlock()
		if had.tag != "" {
			r.Header.Set("If-None-Match", had.tag)
		}
	}
	sent := time.Now()
	got, err := c.http.Do(r)
	if err != nil {
		return fail(reasonOf(ctx, err))
	}
	defer got.Body.Close()
	if date, err := http.ParseTime(got.Header.Get("Date")); err == nil {
		middle := sent.Add(time.Since(sent) / 2)
		if off := date.Sub(middle); off > time.Second || off < -2*time.Second { // dates are whole seconds
			c.offset.Store(int64(off.Round(time.Second)))
		} else {
			c.offset.Store(0)
		}
		c.dated.Store(true)
	}
	switch status := got.StatusCode; {
	case status == http.StatusNotModified && had.tag != "":
		return had.body, 0, nil
	case status == http.StatusOK:
	case status == http.StatusUnauthorized:
		return fail(Refused, errors.New("user, password or key is wrong"))
	case status == http.StatusForbidden:
		return fail(Forbidden, errors.New("the user may not read this"))
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return nil, retryAfter(got.Header), &Error{Limited, path, fmt.Errorf("status %d", status)}
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented:
		return fail(Absent, fmt.Errorf("status %d", status))
	default:
		return fail(Server, fmt.Errorf("status %d", status))
	}
	body, err := answer.Read(got.Body, c.options.URL, mostBody)
	_, large := errors.AsType[regular.TooLarge](err)
	switch {
	case large:
		return fail(Large, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fail(Broken, errors.New("the answer breaks off"))
	case err != nil:
		return fail(reasonOf(ctx, err))
	}
	if tag := got.Header.Get("ETag"); tagged && tag != "" && json.Valid(body) {
		c.mu.Lock()
		c.fetched[address] = kept{tag, bytes.Clone(body)}
		c.mu.Unlock()
	}
	return body, 0, nil
}

// authorize puts user and password, or the key, into a request.
func (c *Client) authorize(ctx context.Context, r *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	read := c.options.Password
	if c.options.APIKey != nil {
		read = c.options.APIKey
	}
	if c.secret == "" {
		value, err := read(ctx)
		if err != nil {
			return err
		}
		c.secret = value
	}
	if c.options.APIKey != nil {
		r.Header.Set("X-ntnx-api-key", c.secret)
	} else {
		r.SetBasicAuth(c.options.User, c.secret)
	}
	return nil
}

// forget drops the session and the password, which is read anew.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secret = ""
	c.session.end()
}

// session is a cookie jar that can be emptied. v1 and v2.0 give a session by a cookie, which spares them a look-up in a
// directory for every request.
type session struct{ jar atomic.Pointer[cookiejar.Jar] }

func (s *session) end() {
	jar, _ := cookiejar.New(nil) // it has no error to give
	s.jar.Store(jar)
}

// SetCookies implements http.CookieJar.
func (s *session) SetCookies(u *url.URL, cookies []*http.Cookie) { s.jar.Load().SetCookies(u, cookies) }

// Cookies implements http.CookieJar.
func (s *session) Cookies(u *url.URL) []*http.Cookie { return s.jar.Load().Cookies(u) }

// retryAfter returns what the server asks for: seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, 3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// reasonOf says why no answer came, in words without the address and its query.
func reasonOf(ctx context.Context, err error) (Reason, error) {
	var (
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		name     x509.HostnameError
		verify   *tls.CertificateVerificationError
		notTLS   tls.RecordHeaderError
		outer    *url.Error
		timeouts net.Error
	)
	if errors.As(err, &outer) {
		err = outer.Err
	}
	switch {
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &name), errors.As(err, &verify),
		errors.As(err, &notTLS):
		return Certificate, fmt.Errorf("%w: give the certificate authority that it is of", err)
	case errors.Is(ctx.Err(), context.Canceled):
		return Stopped, context.Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeouts) && timeouts.Timeout():
		return Slow, errors.New("no answer in time")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return Unreachable, errors.New("the connection ended without an answer")
	}
	return Unreachable, err
}
