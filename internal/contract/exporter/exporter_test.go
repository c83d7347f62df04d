package exporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/listen"
	"plimsoll/internal/kit/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a collector made of two functions.
type fake struct {
	Description
	collect func(context.Context, Emit) error
}

func (f fake) Describe() Description                        { return f.Description }
func (f fake) Collect(ctx context.Context, emit Emit) error { return f.collect(ctx, emit) }

var things = Description{Name: "things", Help: "Things.", Families: []Family{
	{Name: "thing_size_bytes", Type: Gauge, Unit: "bytes", Help: "Size of\nthe \\ thing."},
	{Name: "thing_seen_total", Type: Counter, Help: "Things seen."},
	{Name: "thing_*_level", Type: Untyped, Help: "Level of *."},
	{Name: "thing_*_deep_level", Type: Gauge, Help: "Deep level of *."},
}}

func collector(f func(context.Context, Emit) error) Collector { return fake{things, f} }

// text is a page without what changes from one to the next.
func text(t *testing.T, x *Exporter, format string) (page string, failed error) {
	t.Helper()
	var b bytes.Buffer
	failed, err := x.Page(t.Context(), &b, format)
	if err != nil {
		t.Fatal(err)
	}
	out := regexp.MustCompile(`(collector_duration_seconds\{.*\}) .*`).ReplaceAllString(b.String(), "$1 0")
	return regexp.MustCompile(`goversion="[^"]*"`).ReplaceAllString(out, `goversion="go"`), failed
}

func exporterOf(t *testing.T, cs ...Collector) *Exporter {
	t.Helper()
	x, err := New("v1", cs...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestPage(t *testing.T) {
	x := exporterOf(t, collector(func(_ context.Context, emit Emit) error {
		emit("thing_seen_total", 1<<53-1, "kind", "b")
		emit("thing_seen_total", 2.5, "kind", "a", "empty", "")
		emit("thing_size_bytes", math.Inf(1), "z", "1", "a", "quote \" slash \\ line \n bad \xff ümlaut")
		emit("thing_size_bytes", 1e300)
		emit("thing_size_bytes", math.NaN(), "n", "nan")
		emit("thing_size_bytes", math.Inf(-1), "n", "minus")
		emit("thing_water_level", 0)
		emit("thing_water_deep_level", -0.125)
		return nil
	}))
	want := `# HELP plimsoll_exporter_build_info The program that serves this page; always 1.
# TYPE plimsoll_exporter_build_info gauge
plimsoll_exporter_build_info{goversion="go",version="v1"} 1
# HELP plimsoll_exporter_collector_duration_seconds How long the collector took, or was waited for.
# TYPE plimsoll_exporter_collector_duration_seconds gauge
plimsoll_exporter_collector_duration_seconds{collector="things"} 0
# HELP plimsoll_exporter_collector_success Whether the collector gave what it has: 1, or 0.
# TYPE plimsoll_exporter_collector_success gauge
plimsoll_exporter_collector_success{collector="things"} 1
# HELP thing_seen_total Things seen.
# TYPE thing_seen_total counter
thing_seen_total{kind="a"} 2.5
thing_seen_total{kind="b"} 9007199254740991
# HELP thing_size_bytes Size of\nthe \\ thing.
# TYPE thing_size_bytes gauge
thing_size_bytes 1e+300
thing_size_bytes{a="quote \" slash \\ line \n bad � ümlaut",z="1"} +Inf
thing_size_bytes{n="minus"} -Inf
thing_size_bytes{n="nan"} NaN
# HELP thing_water_deep_level Deep level of water.
# TYPE thing_water_deep_level gauge
thing_water_deep_level -0.125
# HELP thing_water_level Level of water.
# TYPE thing_water_level untyped
thing_water_level 0
`
	got, failed := text(t, x, Text)
	if d := cmp.Diff(want, got); d != "" || failed != nil {
		t.Error(d, failed)
	}
	open, _ := text(t, x, OpenMetrics)
	for _, line := range []string{"# TYPE thing_seen counter\n", "thing_seen_total{kind=\"a\"} 2.5\n",
		"# UNIT thing_size_bytes bytes\n",
		"# TYPE thing_water_level unknown\n"} {
		if !strings.Contains(open, line) {
			t.Errorf("the OpenMetrics page lacks %q:\n%s", line, open)
		}
	}
	if !strings.HasSuffix(open, "\n# EOF\n") {
		t.Error("the OpenMetrics page does not end with # EOF")
	}
}

// What is wrong with one collector is told, and keeps nothing else from the page.
func TestWhatWouldBreakThePage(t *testing.T) {
	for _, c := range []struct {
		name string
		emit func(Emit) error
		want string // last words
	}{
		{"not described", func(e Emit) error { e("other", 1); return nil },
			`metric "other" was not described`},
		{"bad name", func(e Emit) error { e("thing_a b_level", 1); return nil },
			`metric "thing_a b_level": the name must be letters, digits, _ and :`},
		{"bad label", func(e Emit) error { e("thing_seen_total", 1, "a-b", "c"); return nil },
			`metric "thing_seen_total": label "a-b": the name must be letters, digits and _, and not begin with __`},
		{"reserved label", func(e Emit) error { e("thing_seen_total", 1, "__name__", "c"); return nil },
			`metric "thing_seen_total": label "__name__": the name must be letters, digits and _, and not begin ` +
				`with __`},
		{"half a label", func(e Emit) error { e("thing_seen_total", 1, "a"); return nil },
			`metric "thing_seen_total": label "a" has no value`},
		{"label twice", func(e Emit) error { e("thing_seen_total", 1, "a", "1", "a", "2"); return nil },
			`metric "thing_seen_total": label "a" twice`},
		{"series twice", func(e Emit) error { e("thing_size_bytes", 1, "x", ""); e("thing_size_bytes", 2); return nil },
			`series thing_size_bytes twice`},
		{"error", func(Emit) error { return errors.New("no \"answer\"\nfrom it") },
			`no "answer" from it`},
		{"long error", func(Emit) error { return errors.New(strings.Repeat("ü", 300)) },
			strings.Repeat("ü", 100) + "…"},
		{"panic", func(Emit) error { panic("oh") },
			`internal error: oh`},
		{"too many", func(e Emit) error {
			for i := range mostSeries {
				e("thing_seen_total", 1, "i", fmt.Sprint(i))
			}
			return nil
		}, "more than 100000 series"},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, failed := text(t, exporterOf(t, collector(func(_ context.Context, emit Emit) error {
				emit("thing_seen_total", 7, "kept", "yes")
				return c.emit(emit)
			})), Text)
			label := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.want)
			for _, line := range []string{`thing_seen_total{kept="yes"} 7`,
				`plimsoll_exporter_collector_success{collector="things"} 0`,
				`plimsoll_exporter_collector_last_error_info{collector="things",error="` + label + `"} 1`} {
				if !strings.Contains(page, line+"\n") {
					t.Errorf("the page lacks %s:\n%.2000s", line, page)
				}
			}
			if failed == nil {
				t.Error("the failure was not returned")
			}
		})
	}
}

func TestNoDataIsNoFailure(t *testing.T) {
	page, failed := text(t,
		exporterOf(t, collector(func(context.Context, Emit) error { return fmt.Errorf("here: %w", ErrNoData) })), Text)
	if !strings.Contains(page, `collector_success{collector="things"} 1`) || strings.Contains(page, "last_error") ||
		failed != nil {
		t.Error(page, failed)
	}
}

// A collector that hangs costs the page its deadline and nothing more; it is not called again before it has returned.
func TestCollectorThatHangs(t *testing.T) {
	release, calls := make(chan struct{}), 0
	quick := fake{
		Description{Name: "quick", Help: "Quick.", Families: []Family{{Name: "quick_total", Type: Counter, Help: "q"}}},
		func(_ context.Context, emit Emit) error { emit("quick_total", 1); return nil },
	}
	x := exporterOf(t, quick, collector(func(_ context.Context, emit Emit) error {
		calls++
		<-release
		emit("thing_seen_total", float64(calls))
		return nil
	}))
	x.Deadline = 20 * time.Millisecond
	for _, words := range []string{"it gave no answer before the deadline", "it is still busy with an earlier page"} {
		page, _ := text(t, x, Text)
		if !strings.Contains(page, "quick_total 1\n") || !strings.Contains(page, words) ||
			strings.Contains(page, "thing_seen_total 1") {
			t.Errorf("want %q in:\n%s", words, page)
		}
	}
	close(release)
	x.Deadline = time.Minute
	page, failed := text(t, x, Text)
	if !strings.Contains(page, "thing_seen_total 2\n") || failed != nil {
		t.Error(page, failed)
	}
}

func TestDescriptionsAreRefused(t *testing.T) {
	bad := Description{
		Name: "Bad Name",
		Families: []Family{
			{Name: "9x", Type: Gauge},
			{Name: "a", Type: "shape"},
			{Name: "b", Type: Gauge},
			{Name: "b", Type: Gauge},
			{Name: "plimsoll_exporter_build_info", Type: Gauge},
			{Name: "two_*_*", Type: Gauge},
		},
	}
	_, err := New("v", fake{Description: things}, fake{Description: bad}, fake{Description: things})
	for _, words := range []string{`name "Bad Name"`, `family "9x": the name`, `family "a": no type is called "shape"`,
		`family "b" is described twice`,
		`family "plimsoll_exporter_build_info" belongs to "the page itself"`, `family "two_*_*"`,
		`collector "things": there are two of that name`,
		`family "thing_seen_total" belongs to "things"`} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v lacks %q", err, words)
		}
	}
}

func TestKindOpens(t *testing.T) {
	table := []target.Option{{Name: "a", Type: target.Count, Default: "1"}, {Name: "b"}}
	k := Kind{Name: "k", Options: table, New: func(o target.Values) (Collector, error) {
		if o.Count("a") != 1 {
			return nil, fmt.Errorf("option %q: %d", "a", o.Count("a"))
		}
		return collector(nil), nil
	}}
	if _, err := k.Open(target.Options{"b": "2"}); err != nil {
		t.Error(err)
	}
	for want, given := range map[string]target.Options{
		"exporter k: option \"a\": \"x\" is no whole number\n" +
			"exporter k: option \"zz\": unknown; known are a, b": {"a": "x", "zz": "4"},
		"exporter k: option \"a\": 3": {"a": "3"},
	} {
		if _, err := k.Open(given); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// serve runs a server on loopback until the test ends or stop is called, which gives its error.
func serve(t *testing.T, x *Exporter, token secret.Secret) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- x.Serve(ctx, listen.Server{Address: "127.0.0.1:0", Token: token,
			Listening: func(a string) { listening <- a }})
	}()
	select {
	case a := <-listening:
		return "http://" + a, func() error { cancel(); return <-ended }
	case err := <-ended:
		cancel()
		t.Fatal(err)
		return "", nil
	}
}

func get(t *testing.T, url string, header ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header
}

func TestServer(t *testing.T) {
	x := exporterOf(t, collector(func(_ context.Context, emit Emit) error { emit("thing_seen_total", 1); return nil }))
	t.Setenv("EXPORTER_TEST_TOKEN", "open sesame")
	source, err := secret.ParseSource("env:EXPORTER_TEST_TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url, stop := serve(t, x, token)
	for _, c := range []struct {
		path, authorization string
		code                int
		body                string
	}{
		{"/metrics", "", 401, "a token is needed"}, {"/metrics", "Bearer wrong", 401, "a token is needed"},
		{"/metrics", "open sesame", 401, "a token is needed"},
		{"/metrics", "Bearer open sesame", 200, "thing_seen_total 1\n"},
		{"/-/healthy", "", 200, "healthy"}, {"/-/ready", "", 200, "ready"},
		{"/", "", 401, "a token is needed"}, {"/", "Bearer open sesame", 404, "not found"},
	} {
		code, body, header := get(t, url+c.path, "Authorization", c.authorization)
		if code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s with %q: %d %s", c.path, c.authorization, code, body)
		}
		if kind := header.Get("Content-Type"); c.code == 200 && c.path == "/metrics" && kind != Text {
			t.Errorf("content type %q", kind)
		}
	}
	_, body, header := get(t, url+"/metrics", "Authorization", "Bearer open sesame", "Accept",
		"application/openmetrics-text; version=1.0.0")
	if header.Get("Content-Type") != OpenMetrics || !strings.HasSuffix(body, "# EOF\n") {
		t.Error(header, body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A stop lets a page under way come to its end, says meanwhile that it is not ready, and then nothing answers.
func TestGracefulStop(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	x := exporterOf(t, collector(func(_ context.Context, emit Emit) error {
		close(entered)
		<-release
		emit("thing_seen_total", 1)
		return nil
	}))
	url, stop := serve(t, x, secret.Secret{})
	page := make(chan string)
	go func() {
		_, body, _ := get(t, url+"/metrics")
		page <- body
	}()
	<-entered
	stopped := make(chan error)
	go func() { stopped <- stop() }()
	close(release)
	if body := <-page; !strings.Contains(body, "thing_seen_total 1\n") {
		t.Error(body)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// The deadline that a scraper announces is kept, with time to spare for the way back.
func TestScrapersDeadline(t *testing.T) {
	var left time.Duration
	x := exporterOf(t, collector(func(ctx context.Context, _ Emit) error {
		at, _ := ctx.Deadline()
		left = time.Until(at)
		return nil
	}))
	url, stop := serve(t, x, secret.Secret{})
	get(t, url+"/metrics", "X-Prometheus-Scrape-Timeout-Seconds", "3")
	if left > 2500*time.Millisecond {
		t.Errorf("the collector had %v of 3 s", left)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
