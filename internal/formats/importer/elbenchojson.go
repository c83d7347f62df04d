package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"plimsoll/hist"
	"plimsoll/internal/kit/untyped"
)

// elbenchoDone is a part of a phase in JSON.
type elbenchoDone struct {
	elbenchoCounts
	Milliseconds flexible `json:"elapsed_time_ms"`
	CPU          flexible `json:"cpu%"`
	Read         struct {
		elbenchoCounts
	} `json:"rwmix_read"`
	Latency struct {
		IO      elbenchoTimes `json:"IO"`
		Entries elbenchoTimes `json:"entries"`
	} `json:"latency"`
	Errors flexible `json:"errors_total"`
}

type elbenchoCounts struct {
	IOPS    flexible `json:"iops"`
	IOs     flexible `json:"ios"`
	Bytes   flexible `json:"bytes"`
	Entries flexible `json:"entries"`
	PerSec  flexible `json:"entries/s"`
}

type elbenchoTimes struct {
	elbenchoSpan
	Histogram struct {
		elbenchoBuckets
		Read elbenchoBuckets `json:"rwmix_read"`
	} `json:"histogram"`
	Read elbenchoSpan `json:"rwmix_read"`
}

type elbenchoSpan struct {
	Min flexible `json:"min_us"`
	Avg flexible `json:"avg_us"`
	Max flexible `json:"max_us"`
}

type elbenchoBuckets struct {
	Buckets []struct {
		Range string   `json:"range"`
		Count flexible `json:"count"`
	} `json:"buckets"`
}

// flexible is a number that may stand in quotes; what is none, or not there, is NaN.
type flexible struct {
	v     float64
	there bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *flexible) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if text == "" || text == "null" {
		return nil
	}
	v, err := quantity(text)
	if err != nil {
		return err
	}
	f.v, f.there = v, true
	return nil
}

func (f flexible) value() float64 {
	if !f.there {
		return math.NaN()
	}
	return f.v
}

func (c elbenchoCounts) side(ms float64, first elbenchoCounts) elbenchoSide {
	s := elbenchoSide{ios: c.IOs.value(), bytes: c.Bytes.value(), entries: c.Entries.value(),
		firstRate: first.IOPS.value(), entryRate: c.PerSec.value()}
	if !positive(s.ios) {
		s.ios = c.IOPS.value() * ms / 1e3
	}
	if !positive(s.ios) && !positive(s.firstRate) {
		s.firstRate = first.PerSec.value()
	}
	return s
}

func (s elbenchoSpan) latency(b elbenchoBuckets) (elbenchoLatency, error) {
	l := elbenchoLatency{min: s.Min.value(), avg: s.Avg.value(), max: s.Max.value()}
	for _, x := range b.Buckets {
		m := elbenchoRange.FindStringSubmatch(x.Range)
		if m == nil || !x.Count.there {
			return l, fmt.Errorf("a bucket %.40q of a histogram cannot be read", x.Range)
		}
		high := number(m[1])
		if m[2] != "" {
			high = number(m[2])
		}
		if l.hist == nil {
			l.hist = &hist.Histogram{}
		}
		if x.Count.v >= 1 {
			l.hist.Add(uint64(max(high*1e3, 1)), whole(x.Count.v))
		}
	}
	return l, nil
}

// readElbenchoJSON reads a value per phase.
func readElbenchoJSON(_ format, r io.Reader) (*book, error) {
	b := &elbenchoBook{}
	err := jsonValues(r, func(line int, v json.RawMessage) error {
		var doc struct {
			Phase  string       `json:"phase_type"`
			Label  string       `json:"label"`
			Start  string       `json:"iso_start_date"`
			First  elbenchoDone `json:"first_done"`
			Last   elbenchoDone `json:"last_done"`
			Config struct {
				Hosts   flexible `json:"hosts"`
				Threads flexible `json:"threads"`
				Depth   flexible `json:"io_depth"`
				Version string   `json:"version"`
			} `json:"config"`
		}
		if err := json.Unmarshal(v, &doc); err != nil {
			b.book.skip(line, "%v", err)
			return nil
		}
		if doc.Phase == "" {
			b.book.skip(line, "no phase is named")
			return nil
		}
		var told struct {
			Config untyped.Object `json:"config"`
		}
		_ = json.Unmarshal(v, &told) // it is JSON, as was just seen
		p := newElbenchoPhase()
		p.name, p.label = doc.Phase, doc.Label
		for _, name := range elbenchoAsked {
			for key, value := range told.Config {
				if strings.EqualFold(key, strings.ReplaceAll(name, " ", "_")) {
					p.facts = append(p.facts, asked(name, fmt.Sprint(value)))
				}
			}
		}
		ms := doc.Last.Milliseconds.value()
		p.length, p.first = milliseconds(ms), milliseconds(doc.First.Milliseconds.value())
		p.cpu, p.errors = doc.Last.CPU.value(), orZero(doc.Last.Errors.value())
		p.main = doc.Last.side(ms, doc.First.elbenchoCounts)
		p.read = doc.Last.Read.side(ms, doc.First.Read.elbenchoCounts)
		var errs [4]error
		t := doc.Last.Latency
		p.main.io, errs[0] = t.IO.latency(t.IO.Histogram.elbenchoBuckets)
		p.main.entry, errs[1] = t.Entries.latency(t.Entries.Histogram.elbenchoBuckets)
		p.read.io, errs[2] = t.IO.Read.latency(t.IO.Histogram.Read)
		p.read.entry, errs[3] = t.Entries.Read.latency(t.Entries.Histogram.Read)
		if err := errors.Join(errs[:]...); err != nil {
			b.book.skip(line, "%v", err)
		}
		if positive(doc.Config.Threads.value()) {
			p.concurrency = max(1, orZero(doc.Config.Hosts.value())) * doc.Config.Threads.v *
				max(1, orZero(doc.Config.Depth.value()))
		}
		if v := doc.Config.Version; v != "" && b.book.tool == "" {
			b.book.tool = "elbencho " + oneLine(v)
		}
		if at, zoned, _ := isoDate(doc.Start); !at.IsZero() {
			if p.start = at; !zoned {
				b.book.note(elbenchoLocal)
			}
		}
		return b.add(p)
	})
	return b.done(err)
}
