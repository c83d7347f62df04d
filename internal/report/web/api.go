package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
)

// Kinds of error of Prometheus' HTTP API, and the codes that it answers with.
// https://prometheus.io/docs/prometheus/latest/querying/api/
const (
	badData     = "bad_data"
	execution   = "execution"
	timeout     = "timeout"
	canceled    = "canceled"
	unavailable = "unavailable"
	notFound    = "not_found"
	internal    = "internal"
)

var codes = map[string]int{
	badData: http.StatusBadRequest, execution: http.StatusUnprocessableEntity, timeout: http.StatusServiceUnavailable,
	canceled: 499, unavailable: http.StatusServiceUnavailable, notFound: http.StatusNotFound,
	internal: http.StatusInternalServerError,
}

// retryAfter is how many seconds who was sent away is to wait.
const retryAfter = "5"

// reply answers every question of the API.
type reply struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

// question is one request of the API with its parameters.
type question struct {
	site *Site
	r    *http.Request
	form map[string][]string
}

func (q question) get(name string) string {
	if all := q.form[name]; len(all) > 0 {
		return all[0]
	}
	return ""
}

// wrong is an error of whoever asks.
type wrong struct{ error }

// answerer gives an answer's data and warnings.
type answerer func(context.Context, question) (reply, error)

// answering wraps an answer: parameters, its turn, and the forms of data and errors.
func (s *Site) answering(answer answerer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, code, err := s.ask(r, answer)
		if err != nil {
			body, code = encode(failed(err))
		}
		s.write(w, body, code)
	}
}

func failed(err error) reply {
	return reply{Status: "error", ErrorType: kindOf(err), Error: err.Error()}
}

func (s *Site) ask(r *http.Request, answer answerer) (body []byte, code int, err error) {
	leave, err := s.asking.enter()
	if err != nil {
		return nil, 0, err
	}
	left := sync.OnceFunc(leave)
	defer left()
	if err := formOnly(r); err != nil {
		return nil, 0, err
	}
	if err := r.ParseForm(); err != nil {
		return nil, 0, wrong{fmt.Errorf("the parameters cannot be read: %w", err)}
	}
	q := question{s, r, r.Form}
	longest := longestAsk
	if text := q.get("timeout"); text != "" {
		d, err := series.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, 0, wrong{fmt.Errorf("parameter timeout: %q is no duration above 0, like 30s", text)}
		}
		longest = min(longest, d)
	}
	ctx, cancel := s.limited(r.Context(), longest)
	defer cancel()
	done, err := s.asking.turn(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	left()
	ctx, enough := s.frugal(ctx)
	defer enough()
	out, err := answer(ctx, q)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, 0, err
	}
	out.Status = "success"
	body, code = encode(out)
	return body, code, nil
}

// formOnly refuses what is posted as anything but a form: its parameters would be taken for none.
func formOnly(r *http.Request) error {
	if r.Method != http.MethodPost || r.ContentLength == 0 {
		return nil
	}
	const form = "application/x-www-form-urlencoded"
	given := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(given); err != nil || kind != form {
		return wrong{fmt.Errorf("content type %.100q: want %s", given, form)}
	}
	return nil
}

// kindOf is the kind of an error, as Prometheus' API names it.
func kindOf(err error) string {
	var w wrong
	switch {
	case errors.As(err, &w), errors.Is(err, series.ErrBadQuery):
		return badData
	case errors.Is(err, errTooLong), errors.Is(err, series.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return timeout
	case errors.Is(err, context.Canceled):
		return canceled
	case errors.Is(err, errBusy), errors.Is(err, errClosed), errors.Is(err, errTooMuch):
		return unavailable
	}
	return execution
}

// encode writes a reply down.
func encode(out reply) (body []byte, code int) {
	body, err := json.Marshal(out)
	switch {
	case err != nil:
		return []byte(`{"status":"error","errorType":"internal","error":"the answer cannot be written"}`), 500
	case out.ErrorType != "":
		return body, codes[out.ErrorType]
	}
	return body, http.StatusOK
}

// write sends a reply. What does not show in a text is written as JSON writes it, which keeps its meaning.
func (s *Site) write(w http.ResponseWriter, body []byte, code int) {
	if !s.hold(len(body)) {
		body, code = encode(failed(errBusy))
	} else {
		defer s.unsent.Add(-int64(len(body)))
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	wall := visible.NewWriter(w)
	_, _ = wall.Write(body) // the reader may have gone away
	_, _ = io.WriteString(wall, "\n")
	_ = wall.Close()
}

// hold keeps note of an answer that is about to be sent, unless too many bytes wait for slow readers already.
func (s *Site) hold(n int) bool {
	if s.unsent.Add(int64(n)) <= mostUnsent {
		return true
	}
	s.unsent.Add(-int64(n))
	return false
}

func nothing(data any) answerer {
	return func(context.Context, question) (reply, error) { return reply{Data: data}, nil }
}

// moment reads a parameter that is a time.
func (q question) moment(name string, otherwise time.Time) (time.Time, error) {
	text := q.get(name)
	if text == "" {
		return otherwise, nil
	}
	t, err := series.ParseTime(text)
	if err != nil {
		return t, wrong{fmt.Errorf("parameter %s: %w", name, err)}
	}
	return t, nil
}

// limit reads the parameter of that name; 0: none.
func (q question) limit() (int, error) {
	text := q.get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, wrong{fmt.Errorf("parameter limit: %q is no whole number from 0 on", text)}
	}
	return n, nil
}

// refused are parameters that would change what an answer means, and are not known here.
func (q question) refused() error {
	if q.get("lookback_delta") != "" {
		return wrong{errors.New("parameter lookback_delta: it is not known here; use last_over_time(...)")}
	}
	return nil
}

func queryAt(ctx context.Context, q question) (reply, error) {
	at, err := q.moment("time", q.site.now())
	limit, limitErr := q.limit()
	if err := errors.Join(err, limitErr, q.refused()); err != nil {
		return reply{}, err
	}
	a, err := q.site.union.AnswerAt(ctx, q.get("query"), at, limit)
	return reply{Data: a, Warnings: a.Warnings, Infos: a.Infos}, err
}

func queryOver(ctx context.Context, q question) (reply, error) {
	var errs []error
	need := func(name string) time.Time {
		if q.get(name) == "" {
			errs = append(errs, wrong{fmt.Errorf("parameter %s is missing", name)})
			return time.Time{}
		}
		t, err := q.moment(name, time.Time{})
		errs = append(errs, err)
		return t
	}
	start, end := need("start"), need("end")
	step, err := series.ParseDuration(q.get("step"))
	if err != nil {
		errs = append(errs, wrong{fmt.Errorf("parameter step: %w", err)})
	}
	limit, err := q.limit()
	if err := errors.Join(append(errs, err, q.refused())...); err != nil {
		return reply{}, err
	}
	a, err := q.site.union.AnswerOver(ctx, q.get("query"), start, end, step, limit)
	return reply{Data: a, Warnings: a.Warnings, Infos: a.Infos}, err
}

// selection reads what series are meant.
func (q question) selection() (series.Selection, error) {
	start, startErr := q.moment("start", time.Time{})
	end, endErr := q.moment("end", time.Time{})
	limit, err := q.limit()
	sel := series.Selection{Match: q.form["match[]"], From: start, To: end, Limit: limit}
	return sel, errors.Join(startErr, endErr, err)
}

func findSeries(ctx context.Context, q question) (reply, error) {
	sel, err := q.selection()
	if err != nil {
		return reply{}, err
	}
	found, warnings, err := q.site.union.Labels(ctx, sel)
	if err != nil {
		return reply{}, err
	}
	data := make([]map[string]string, 0, len(found))
	for _, ls := range found {
		one := make(map[string]string, len(ls))
		for _, l := range ls {
			one[l.Name] = l.Value
		}
		data = append(data, one)
	}
	return reply{Data: data, Warnings: warnings}, nil
}

func labelNames(ctx context.Context, q question) (reply, error) {
	sel, err := q.selection()
	if err != nil {
		return reply{}, err
	}
	data, warnings, err := q.site.union.LabelNames(ctx, sel)
	return reply{Data: listOf(data), Warnings: warnings}, err
}

func labelValues(ctx context.Context, q question) (reply, error) {
	sel, err := q.selection()
	if err != nil {
		return reply{}, err
	}
	data, warnings, err := q.site.union.LabelValues(ctx, q.r.PathValue("name"), sel)
	return reply{Data: listOf(data), Warnings: warnings}, err
}

// metadata tells what is known of metrics: of one by its name, or of those that the newest runs have.
func metadata(ctx context.Context, q question) (reply, error) {
	limit, err := q.limit()
	if err != nil {
		return reply{}, err
	}
	names := []string{q.get("metric")}
	var warnings []string
	if names[0] == "" {
		names, warnings, err = q.site.newest.LabelValues(ctx, series.MetricName, series.Selection{Limit: limit})
		if err != nil {
			return reply{}, err
		}
	}
	data := make(map[string][]metricData, len(names))
	for _, name := range names {
		d := record.Describe(name)
		data[name] = []metricData{{Type: d.Type, Help: d.Help}}
	}
	return reply{Data: data, Warnings: warnings}, nil
}

// buildInfo tells, in the form that clients know, the version of Prometheus whose query language this is, and ours.
func buildInfo(_ context.Context, q question) (reply, error) {
	return reply{Data: buildData{Version: prometheusVersion(), Revision: q.site.version, GoVersion: goVersion()}}, nil
}

// prometheusVersion is the version of the Prometheus in this program. As a module 3.13.5 is called v0.313.5.
func prometheusVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			rest, ok := strings.CutPrefix(m.Version, "v0.")
			if ok && m.Path == "github.com/prometheus/prometheus" && len(rest) > 3 {
				major, minor := rest[:1], strings.TrimPrefix(rest[1:], "0")
				return major + "." + minor
			}
		}
	}
	return "3.0.0" // every 3 has what clients ask for
}

func goVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.GoVersion
	}
	return ""
}
