package judge

import (
	"math"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/usl"
)

// The JSON form of a fit.
type (
	uslParameter struct {
		Value    float64           `json:"value"`
		StdError float64           `json:"std_error"`
		AtBound  bool              `json:"at_bound"`
		T        resample.Interval `json:"t_interval"`
		Boot     resample.Interval `json:"bootstrap_interval"`
	}
	uslPeak struct {
		Exists              bool              `json:"exists"`
		InRange             bool              `json:"in_range"`
		Sentence            string            `json:"sentence"`
		Concurrency         *float64          `json:"concurrency,omitempty"`
		Throughput          *float64          `json:"throughput,omitempty"`
		ConcurrencyInterval resample.Interval `json:"concurrency_interval"`
		ThroughputInterval  resample.Interval `json:"throughput_interval"`
		NoPeakShare         float64           `json:"no_peak_share"`
	}
	uslLaw struct {
		Law   usl.Law `json:"law"`
		P     float64 `json:"p"` // chance that the universal law is so much closer if this one holds
		Gamma float64 `json:"gamma"`
		Alpha float64 `json:"alpha"`
		Beta  float64 `json:"beta"`
	}
	uslPrediction struct {
		Concurrency  float64           `json:"concurrency"`
		Throughput   float64           `json:"throughput"`
		Mean         resample.Interval `json:"curve_interval"`
		Measurement  resample.Interval `json:"measurement_interval"`
		Extrapolated bool              `json:"extrapolated"`
	}
	uslPoint struct {
		Concurrency float64 `json:"concurrency"`
		Throughput  float64 `json:"throughput"`
		Weight      float64 `json:"weight,omitempty"`
		Residual    float64 `json:"residual"`
		Efficiency  float64 `json:"efficiency"`
		Ideal       float64 `json:"overhead_ideal"` // shares of the time of one
		Contention  float64 `json:"overhead_contention"`
		Coherency   float64 `json:"overhead_coherency"`
		Strays      bool    `json:"strays,omitempty"`
	}
	uslCap struct {
		Limit       float64  `json:"limit"`
		Concurrency float64  `json:"reached_at"`
		Gamma       float64  `json:"gamma"`
		Sharpness   *float64 `json:"sharpness"` // null for a corner
		Closer      bool     `json:"closer_than_the_law"`
		Sentence    string   `json:"sentence"`
	}
	uslFall struct {
		Last     float64 `json:"last"` // concurrencies
		First    float64 `json:"first"`
		From     float64 `json:"from"` // throughputs
		Level    float64 `json:"level"`
		Sentence string  `json:"sentence"`
	}
	uslDocument struct {
		Source           string          `json:"source"`
		N                int             `json:"n"`
		DegreesOfFreedom int             `json:"degrees_of_freedom"`
		Gamma            uslParameter    `json:"gamma"`
		Alpha            uslParameter    `json:"alpha"`
		Beta             uslParameter    `json:"beta"`
		Errors           usl.Errors      `json:"errors"`         // which error model the fit is weighted by
		ErrorsAllowed    []usl.Errors    `json:"errors_allowed"` // that the data do not exclude
		ResidualStdError float64         `json:"residual_std_error"`
		RSquared         *float64        `json:"r_squared"`
		Peak             uslPeak         `json:"peak"`
		Laws             []uslLaw        `json:"laws"`
		Cap              *uslCap         `json:"cap,omitempty"`
		Fall             *uslFall        `json:"fall,omitempty"`
		Predictions      []uslPrediction `json:"predictions,omitempty"`
		Points           []uslPoint      `json:"points"`
		Warnings         []string        `json:"warnings"`
	}
)

func (d scalability) json() uslDocument {
	m := d.Model
	parameter := func(p usl.Parameter) uslParameter { return uslParameter(p) }
	doc := uslDocument{
		Source: d.Source, N: m.N, DegreesOfFreedom: m.DegreesOfFreedom, Gamma: parameter(m.GammaParameter),
		Alpha: parameter(m.AlphaParameter),
		Beta:  parameter(m.BetaParameter), Errors: m.Errors, ErrorsAllowed: m.ErrorsAllowed,
		ResidualStdError: m.ResidualStdError, RSquared: number(m.RSquared), Warnings: append([]string{}, m.Warnings...),
		Peak: uslPeak{
			Exists:              m.Peak.Exists,
			InRange:             m.Peak.InRange,
			Sentence:            m.Peak.String(),
			ConcurrencyInterval: m.Peak.ConcurrencyInterval,
			ThroughputInterval:  m.Peak.ThroughputInterval,
			NoPeakShare:         m.Peak.NoPeakShare,
		},
	}
	if m.Peak.Exists {
		doc.Peak.Concurrency, doc.Peak.Throughput = number(m.Peak.Concurrency), number(m.Peak.Throughput)
	}
	if c := m.Cap; c.Allowed {
		doc.Cap = &uslCap{Limit: c.Limit(), Concurrency: c.Concurrency, Gamma: c.Gamma, Sharpness: number(c.Sharpness),
			Closer: c.Closer, Sentence: c.Words()}
	}
	if f := m.Fall; f.Closer {
		doc.Fall = &uslFall{Last: f.Last, First: f.First, From: f.From, Level: f.Level, Sentence: f.Words()}
	}
	for _, l := range m.Alternatives {
		doc.Laws = append(doc.Laws, uslLaw{l.Law, l.P, l.Gamma, l.Alpha, l.Beta})
	}
	for _, p := range d.Predictions {
		doc.Predictions = append(doc.Predictions, uslPrediction(p))
	}
	for i, p := range d.Points {
		o := m.OverheadAt(p.Concurrency)
		doc.Points = append(doc.Points, uslPoint{Concurrency: p.Concurrency, Throughput: p.Throughput, Weight: p.Weight,
			Residual: m.Residuals[i], Efficiency: m.Efficiency(p.Concurrency, p.Throughput), Ideal: o.Ideal,
			Contention: o.Contention, Coherency: o.Coherency, Strays: m.Outlier != nil && m.Outlier.Index == i})
	}
	return doc
}

// number is a value for JSON, which knows no infinity: absent when it is not finite.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
