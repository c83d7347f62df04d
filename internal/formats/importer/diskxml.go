package importer

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
)

const diskspdXML = "diskspd-xml"

// diskspdSpan is one time span of DISKSPD's results in XML: totals, and with -L latency, and with -D the course.
type diskspdSpan struct {
	Seconds float64  `xml:"TestTimeSeconds"`
	CPU     *float64 `xml:"CpuUtilization>Average>UsagePercent"`
	Targets []struct {
		Path       string
		ReadBytes  float64
		ReadCount  float64
		WriteBytes float64
		WriteCount float64
		ReadMean   float64 `xml:"AverageReadLatencyMilliseconds"`
		WriteMean  float64 `xml:"AverageWriteLatencyMilliseconds"`
	} `xml:"Thread>Target"`
	Latency struct {
		Read    float64 `xml:"AverageReadMilliseconds"`
		Write   float64 `xml:"AverageWriteMilliseconds"`
		Buckets []struct {
			Percentile float64
			Read       *float64 `xml:"ReadMilliseconds"`
			Write      *float64 `xml:"WriteMilliseconds"`
		} `xml:"Bucket"`
	}
	Course []struct {
		Milliseconds float64 `xml:"SampleMillisecond,attr"` // the end of the sample
		Read         float64 `xml:"Read,attr"`              // I/Os per second
		Write        float64 `xml:"Write,attr"`
		ReadMean     float64 `xml:"ReadAvgLatencyMilliseconds,attr"`
		WriteMean    float64 `xml:"WriteAvgLatencyMilliseconds,attr"`
	} `xml:"Iops>Bucket"`
}

// diskspdProfile holds what was asked for of a time span.
type diskspdProfile struct {
	WarmUp  float64 `xml:"Warmup"`
	Threads float64 `xml:"ThreadCount"`  // 0 where they are for each target
	Each    float64 `xml:"RequestCount"` // of each of those, 0 where each target says it
	Targets []struct {
		Path           string
		BlockSize      string
		WriteRatio     float64
		RandomAccess   string
		Random         string
		DisableOSCache string
		RequestCount   float64
		ThreadsPerFile float64
	} `xml:"Targets>Target"`
}

// tell adds what was asked to a stretch, and tells its targets apart where they were asked unlike block sizes.
func (p diskspdProfile) tell(s stretch, span diskspdSpan) []stretch {
	a := diskspdAsk{total: p.Threads}
	for _, t := range p.Targets {
		a.targets = append(a.targets, diskspdTarget{path: t.Path})
		a.target("block size", t.BlockSize+" bytes")
		a.target("mix", fmt.Sprintf("%g %% writes", t.WriteRatio))
		a.target("places", "random I/O: "+cmp.Or(cmp.Or(t.Random, t.RandomAccess), "false"))
		a.target("outstanding", fmt.Sprintf("%g", t.RequestCount))
		a.target("threads", fmt.Sprintf("%g", max(t.ThreadsPerFile, p.Threads)))
		if a.each += t.RequestCount; p.Threads == 0 {
			a.flight += t.RequestCount * t.ThreadsPerFile
		}
	}
	a.each = cmp.Or(p.Each, a.each)
	for _, t := range span.Targets {
		a.did(t.Path, 0, workload.Counters{Ops: whole(t.ReadCount), Bytes: whole(t.ReadBytes),
			Seconds: max(0, t.ReadMean) / 1e3 * t.ReadCount})
		a.did(t.Path, 1, workload.Counters{Ops: whole(t.WriteCount), Bytes: whole(t.WriteBytes),
			Seconds: max(0, t.WriteMean) / 1e3 * t.WriteCount})
	}
	s.facts, s.concurrency = a.facts, a.atOnce()
	return a.apart(s)
}

// mostXML bounds what is read of such a file.
const mostXML = 256 << 20

// diskspdBegins is where the results of a call begin.
var diskspdBegins = lazyregexp.New(`(?:<\?xml[^>]*>\s*)?<Results>`)

// readDiskspdXML reads a stretch per time span of each call. What is cut gives those that are whole.
func readDiskspdXML(_ format, r io.Reader) (*book, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostXML))
	if err != nil {
		return nil, err
	}
	b := &book{}
	begins := diskspdBegins.FindAllIndex(data, -1)
	for i, at := range begins {
		end, n := len(data), len(b.stretches)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		if bad := b.diskspdCall(data[at[0]:end]); bad != nil && len(begins) > 1 {
			b.broke(n, oneLine(bad.Error()))
		} else {
			err = bad
		}
	}
	return b, err
}

// diskspdCall takes the results of one call.
func (b *book) diskspdCall(data []byte) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8 by now
	began, depth := time.Time{}, 0
	var profile []diskspdProfile
	first, spans := 0, 0 // stretch of these results, time spans of them
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("its XML ends early: %w", err)
		}
		if _, ok := token.(xml.EndElement); ok {
			depth--
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		depth++
		line, _ := d.InputPos()
		switch {
		case depth == 2 && start.Name.Local == "System":
			var system struct {
				Version string `xml:"Tool>Version"`
				Began   string `xml:"RunTime"`
			}
			if err := d.DecodeElement(&system, &start); err != nil {
				return fmt.Errorf("what it says of the system: %w", err)
			}
			depth--
			b.tool = oneLine("DISKSPD " + system.Version)
			began, _ = time.Parse("2006/01/02 15:04:05 MST", system.Began) // without one the file's time counts
			first, spans, profile = len(b.stretches), 0, nil
		case depth == 2 && start.Name.Local == "Profile":
			var all struct {
				Spans []diskspdProfile `xml:"TimeSpans>TimeSpan"`
			}
			if err := d.DecodeElement(&all, &start); err != nil {
				return fmt.Errorf("what it says of what was asked: %w", err)
			}
			depth--
			profile = all.Spans
		case depth == 2 && start.Name.Local == "TimeSpan":
			var span diskspdSpan
			if err := d.DecodeElement(&span, &start); err != nil {
				return fmt.Errorf("time span %d: %w", len(b.stretches)+1, err)
			}
			depth--
			s, err := span.stretch()
			if spans++; err != nil {
				b.skip(line, "%v", err)
				continue
			}
			if len(b.stretches) == first && !began.IsZero() {
				s.start = began
				if len(profile) > 0 {
					s.start = began.Add(time.Duration(min(max(profile[0].WarmUp, 0), 1e6)) * time.Second)
				}
				b.dated = "DISKSPD's own start time, after its warm-up"
			}
			all := []stretch{s}
			if spans <= len(profile) {
				all = profile[spans-1].tell(s, span)
			}
			b.stretches = append(b.stretches, all...)
		}
	}
}

// stretch returns what a time span measured.
func (span diskspdSpan) stretch() (stretch, error) {
	if !(span.Seconds > 0 && span.Seconds < 1e8) {
		return stretch{}, errors.New("a time span does not say its TestTimeSeconds")
	}
	s := stretch{workload: "diskspd", unfailing: true, length: time.Duration(span.Seconds * float64(time.Second)),
		unseen: []string{diskspdRanks,
			"the device underneath: its counters are in no such file"}}
	s.operations = diskspdOperations()
	total := workload.Counts{{}, {}}
	for _, t := range span.Targets {
		total[0].Ops, total[0].Bytes = total[0].Ops+whole(t.ReadCount), total[0].Bytes+whole(t.ReadBytes)
		total[1].Ops, total[1].Bytes = total[1].Ops+whole(t.WriteCount), total[1].Bytes+whole(t.WriteBytes)
	}
	if total.Total() == 0 {
		return stretch{}, errors.New("a time span did no I/O")
	}
	for i, mean := range []float64{span.Latency.Read, span.Latency.Write} {
		total[i].Seconds = max(0, mean) / 1e3 * float64(total[i].Ops)
	}
	values := []float64{}
	for _, p := range span.Latency.Buckets {
		for i, v := range []*float64{p.Read, p.Write} {
			switch p.Percentile {
			case 50, 90, 95, 99, 99.9, 99.99, 100:
				if v != nil && total[i].Ops > 0 {
					name := fmt.Sprintf("%s_p%v", s.operations[i].Name, p.Percentile)
					if p.Percentile == 100 {
						name = s.operations[i].Name + "_max"
					}
					s.measures, values = append(s.measures, single(name, "ms")), append(values, *v)
				}
			}
		}
	}
	if span.CPU != nil {
		s.measures, values = append(s.measures, level("cpu", "%")), append(values, *span.CPU)
	}
	s.reports = span.course(total, len(values))
	s.reports = append(s.reports, workload.Report{Elapsed: s.length, Ops: total, Values: values, Final: true})
	return s, nil
}

// course are the reports before the last one: DISKSPD rounds the rates of its samples, so they lead near the totals.
func (span diskspdSpan) course(total workload.Counts, measures int) (reports []workload.Report) {
	now, last := workload.Counts{{}, {}}, 0.0
	for _, c := range span.Course {
		if !(c.Milliseconds > last && c.Milliseconds < span.Seconds*1e3) || len(reports) >= mostRows {
			break
		}
		for i, of := range []struct{ rate, mean float64 }{{c.Read, c.ReadMean}, {c.Write, c.WriteMean}} {
			n := min(whole(of.rate*(c.Milliseconds-last)/1e3), total[i].Ops-now[i].Ops)
			now[i].Ops += n
			now[i].Seconds = min(now[i].Seconds+max(0, of.mean)/1e3*float64(n), total[i].Seconds)
			if total[i].Ops > 0 {
				now[i].Bytes = uint64(float64(total[i].Bytes) / float64(total[i].Ops) * float64(now[i].Ops))
			}
		}
		last = c.Milliseconds
		r := workload.Report{Elapsed: time.Duration(last * float64(time.Millisecond)),
			Ops: append(workload.Counts{}, now...)}
		for range measures {
			r.Values = append(r.Values, math.NaN())
		}
		reports = append(reports, r)
	}
	return reports
}
