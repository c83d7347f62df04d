package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
)

// What one Answer holds at most; beyond it is an error that says so.
const (
	mostAnswerSeries = 50_000
	mostAnswerPoints = 1_000_000
	mostNotes        = 20 // warnings, and as many infos
)

// Answer holds what a query gave, as Prometheus' HTTP API writes it.
type Answer struct {
	Type     string          `json:"resultType"` // vector, matrix, scalar or string
	Result   json.RawMessage `json:"result"`
	Warnings []string        `json:"-"`
	Infos    []string        `json:"-"`
}

// ErrBadQuery is in the error of a query that is wrong in itself, whatever the data are.
var ErrBadQuery = errors.New("it cannot be evaluated")

// bad is an error of whoever asks, with the words of the original.
type bad struct{ error }

func (b bad) Unwrap() []error { return []error{b.error, ErrBadQuery} }

// AnswerAt evaluates an expression at one moment, native histograms included. limit is the most series that are
// wanted; 0: all.
func (q Queries) AnswerAt(ctx context.Context, query string, at time.Time, limit int) (Answer, error) {
	expr, err := parse(query)
	if err != nil {
		return Answer{}, bad{err}
	}
	if _, err := affordable(expr, 1, 0, mostAsked); err != nil {
		return Answer{}, bad{err}
	}
	ctx, cancel := q.limited(ctx)
	defer cancel()
	asked, err := q.engine().NewInstantQuery(ctx, q.source, nil, query, at)
	if err != nil {
		return Answer{}, bad{err}
	}
	return q.answer(ctx, asked, limit)
}

// AnswerOver evaluates an expression at start, start+step, ... up to end, native histograms included. limit is the most
// series that are wanted; 0: all.
func (q Queries) AnswerOver(ctx context.Context, query string, start, end time.Time, step time.Duration, limit int) (
	Answer, error,
) {
	expr, err := parse(query)
	if err != nil {
		return Answer{}, bad{err}
	}
	if err := checkSteps(start, end, step); err != nil {
		return Answer{}, bad{err}
	}
	if _, err := affordable(expr, int(end.Sub(start)/step)+1, end.Sub(start), mostAsked); err != nil {
		return Answer{}, bad{err}
	}
	ctx, cancel := q.limited(ctx)
	defer cancel()
	asked, err := q.engine().NewRangeQuery(ctx, q.source, nil, query, start, end, step)
	if err != nil {
		return Answer{}, bad{err}
	}
	return q.answer(ctx, asked, limit)
}

func (q Queries) answer(ctx context.Context, asked promql.Query, limit int) (Answer, error) {
	defer asked.Close()
	res := asked.Exec(ctx)
	if res.Err != nil && ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	if res.Err != nil {
		return Answer{}, fmt.Errorf("query: %w", res.Err)
	}
	out := Answer{Type: string(res.Value.Type())}
	out.Warnings, out.Infos = notes(res.Warnings, asked.String())
	if first, left := firstOf(res.Value, limit); left {
		res.Value = first
		out.Warnings = append(out.Warnings, fmt.Sprintf("only the first %d series are shown", limit))
	}
	var err error
	if out.Result, err = encode(res, q.points); err != nil {
		return Answer{}, err
	}
	return out, nil
}

// firstOf is a result with at most limit series, and whether it had more.
func firstOf(v parser.Value, limit int) (parser.Value, bool) {
	switch all := v.(type) {
	case promql.Matrix:
		if limit > 0 && len(all) > limit {
			return all[:limit], true
		}
	case promql.Vector:
		if limit > 0 && len(all) > limit {
			return all[:limit], true
		}
	}
	return v, false
}

func notes(a annotations.Annotations, query string) (warnings, infos []string) {
	warnings, infos = a.AsStrings(query, mostNotes, mostNotes)
	slices.Sort(warnings) // they come in no order
	slices.Sort(infos)
	return warnings, infos
}

// encode writes a result. Prometheus' own encoder is part of its server, which is not in this program; the forms of
// single values are its own.
func encode(res *promql.Result, most int) (json.RawMessage, error) {
	lines, points := 0, 0
	switch v := res.Value.(type) {
	case promql.Matrix:
		lines = len(v)
		for _, s := range v {
			points += len(s.Floats) + 50*len(s.Histograms) // whose buckets are pages
		}
	case promql.Vector:
		lines = len(v)
		for _, s := range v {
			if points++; s.H != nil {
				points += 50
			}
		}
	}
	if lines > mostAnswerSeries || points > most {
		const say = "query: the answer has %d series and %d points, more than %d and %d: " +
			"ask for fewer series (sum, topk, conditions on labels) or in longer steps"
		return nil, fmt.Errorf(say, lines, points, mostAnswerSeries, most)
	}
	switch v := res.Value.(type) {
	case promql.Matrix:
		return encodeEach(len(v), func(b []byte, i int) ([]byte, error) { return encodeSeries(b, v[i]) })
	case promql.Vector:
		return encodeEach(len(v), func(b []byte, i int) ([]byte, error) {
			one, err := json.Marshal(v[i])
			return append(b, one...), err
		})
	}
	return json.Marshal(res.Value)
}

func encodeEach(n int, one func([]byte, int) ([]byte, error)) (json.RawMessage, error) {
	out := []byte{'['}
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = one(out, i); err != nil {
			return nil, fmt.Errorf("query: answer: %w", err)
		}
	}
	return append(out, ']'), nil
}

// encodeSeries writes the points of numbers without reflection: there are up to a million.
func encodeSeries(b []byte, s promql.Series) ([]byte, error) {
	metric, err := json.Marshal(s.Metric)
	if err != nil {
		return nil, err
	}
	b = append(append(b, `{"metric":`...), metric...)
	if len(s.Floats) > 0 {
		b = append(b, `,"values":[`...)
		for i, p := range s.Floats {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strconv.AppendFloat(append(b, '['), float64(p.T)/1000, 'f', -1, 64), ',', '"')
			b = append(strconv.AppendFloat(b, p.F, 'f', -1, 64), '"', ']')
		}
		b = append(b, ']')
	}
	if len(s.Histograms) > 0 {
		all, err := json.Marshal(s.Histograms)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"histograms":`...), all...)
	}
	return append(b, '}'), nil
}

// ParseTime reads a time as Prometheus' API takes it: seconds since 1970, with or without decimals, or RFC 3339.
func ParseTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.UTC(), nil
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || math.Abs(s) > mostSeconds {
		return time.Time{}, fmt.Errorf("%q is no time: give seconds since 1970, or a time like 2026-11-22T10:00:00Z", text)
	}
	return time.UnixMilli(int64(math.Round(s * 1000))).UTC(), nil
}

// mostSeconds is as far as a time.Duration and an answer's milliseconds reach.
const mostSeconds = math.MaxInt64 / 1e9

// ParseDuration reads a duration as Prometheus' API takes it: seconds, with or without decimals, or like 1h30m.
func ParseDuration(text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(s) && math.Abs(s) < mostSeconds {
		return time.Duration(s * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: give seconds, or a duration like 30s or 1h30m", text)
	}
	return time.Duration(d), nil
}

// milliseconds is a time as databases have it. The zero time is the beginning or the end of all times.
func milliseconds(from, to time.Time) (low, high int64) {
	low, high = math.MinInt64, math.MaxInt64
	if !from.IsZero() {
		low = from.UnixMilli()
	}
	if !to.IsZero() {
		high = to.UnixMilli()
	}
	return low, high
}
