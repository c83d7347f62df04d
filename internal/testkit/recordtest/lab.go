// Package recordtest is a run in scripted time for tests: a folder, a metrics database, a recorder and an engine whose
// raw output is one report per line, so that what is recorded and what is collected from it can be held against each
// other. Tests only.
package recordtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

// lines is an engine whose raw output is one workload.Report as JSON per line.
type lines struct{ workload.Engine }

func (lines) Parse(_ workload.Declared, r io.Reader, sink workload.Sink) (workload.Outcome, error) {
	var out workload.Outcome
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var rep workload.Report
		if err := json.Unmarshal(sc.Bytes(), &rep); err != nil {
			sink.Warn("a line that is no report")
			continue
		}
		sink.Report(rep)
		out.Reports++
	}
	if out.Reports == 0 {
		return out, errors.New("no reports")
	}
	return out, sc.Err()
}

var Engines = map[string]workload.Engine{"lines": lines{}}

// Lab is a run in scripted time: a folder, a store and a recorder.
type Lab struct {
	T        testing.TB
	Now      time.Time
	Folder   *result.Folder
	Store    *series.Store
	Recorder *record.Recorder
	jobs     []*Job
}

// Job is a start of a workload that does so many operations per second.
type Job struct {
	lab       *Lab
	Desc      result.RawJob
	Sink      *record.Job
	Raw       io.WriteCloser
	Next      workload.Report
	began     time.Time
	Skew      time.Duration // of the tool's clock
	Clockless bool          // its reports say no time of their own
}

var Epoch = time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)

func New(t testing.TB) *Lab {
	t.Helper()
	return With(t, series.Options{})
}

// With is New with metrics stored as told.
func With(t testing.TB, o series.Options) *Lab {
	t.Helper()
	l := &Lab{T: t, Now: Epoch}
	m := result.Manifest{
		RunID: result.NewRunID(Epoch, "lab", 0x7f3a), Created: Epoch, Target: "fake", ClusterName: "c", TimeScale: 1,
		SizeScale: 1,
		Scenario:  result.ScenarioInfo{ID: 42, Name: "lab", DisplayName: "Lab"},
	}
	var err error
	if l.Folder, err = result.Create(t.TempDir(), m); err != nil {
		t.Fatal(err)
	}
	if l.Store, err = series.Open(l.Folder.MetricsDir(), o); err != nil {
		t.Fatal(err)
	}
	l.Recorder = record.NewRecorder(record.RecorderOptions{
		Store: l.Store, Now: func() time.Time { return l.Now }, Base: Epoch,
		Scope: record.Scope{ScenarioID: 42, ScenarioName: "lab", ScenarioDisplayName: "Lab", ClusterName: "c"},
	})
	t.Cleanup(l.Close)
	return l
}

func (l *Lab) Must(err error) {
	l.T.Helper()
	if err != nil {
		l.T.Fatal(err)
	}
}

// Close releases what a test left open, as a kill would.
func (l *Lab) Close() {
	if l.Store != nil {
		l.Must(l.Store.Close())
		l.Store = nil
	}
	l.Must(l.Folder.Close())
}

func (l *Lab) Event(kind, phase, text string) {
	l.Must(l.Folder.AppendEvent(result.Event{Time: l.Now, Kind: kind, Phase: phase, Text: text}))
}

// Start begins a workload on a VM, one that tells its streams apart when there are any.
func (l *Lab) Start(vm, group, load string, attempt int, streams ...result.Stream) *Job {
	j := &Job{lab: l, began: l.Now, Desc: result.RawJob{
		VM: vm, Group: group, Workload: load, Attempt: attempt, Engine: "lines", Phase: "run", Latency: "service time",
		Start:   l.Now,
		Streams: streams, Apart: len(streams) > 0, Operations: result.BlockOperations(),
	}}
	l.Must(l.Folder.WriteRawJob(j.Desc))
	raw, err := l.Folder.RawWriter(j.Desc)
	l.Must(err)
	j.Raw, j.Sink = raw, l.Recorder.Job(j.Desc)
	j.Next.Ops = make(workload.Counts, len(result.BlockOperations()))
	j.Next.Ops[0].Hist, j.Next.Ops[1].Hist, j.Next.Ops[2].Hist = &hist.Histogram{}, &hist.Histogram{}, &hist.Histogram{}
	for range streams {
		j.Next.Sections = append(j.Next.Sections, slices.Clone(j.Next.Ops))
	}
	l.jobs = append(l.jobs, j)
	return j
}

// Do counts operations of one size and service time.
func (j *Job) Do(c *workload.Counters, ops, bytes uint64, service time.Duration) {
	h := c.Hist.Clone()
	h.Add(uint64(service), ops)
	c.Ops, c.Bytes, c.Seconds, c.Hist = c.Ops+ops, c.Bytes+bytes, c.Seconds+float64(ops)*service.Seconds(), h
}

// Report sends the state of the job.
func (j *Job) Report() { j.ReportAt(j.lab.Now.Sub(j.began)) }

// ReportAt sends the state of the job when it was that old.
func (j *Job) ReportAt(age time.Duration) {
	j.Next.Time, j.Next.Elapsed = j.lab.Now.Add(j.Skew), age
	if j.Clockless {
		j.Next.Time = time.Time{}
	}
	b, err := json.Marshal(j.Next)
	j.lab.Must(err)
	_, err = j.Raw.Write(append(b, '\n'))
	j.lab.Must(err)
	sent := j.Next // which must not change afterwards
	sent.Ops, sent.Sections = slices.Clone(sent.Ops), slices.Clone(sent.Sections)
	for i := range sent.Sections {
		sent.Sections[i] = slices.Clone(sent.Sections[i])
	}
	j.Sink.Report(sent)
}

func (j *Job) End(ended result.Ending) {
	j.lab.Must(j.Raw.Close())
	j.Sink.End()
	j.Desc.End, j.Desc.Ended = j.lab.Now, ended
	j.Desc.ClockSeconds, j.Desc.ClockEndSeconds = j.Sink.ClockSeconds()
	j.Desc.ClockSet = j.Sink.ClockSet()
	j.lab.Must(j.lab.Folder.WriteRawJob(j.Desc))
}

// Second lets a second pass: work is done, reports are sent, a tick is written.
func (l *Lab) Second(work func()) {
	l.Now = l.Now.Add(time.Second)
	work()
	l.Must(l.Recorder.Tick())
}

func VMName(i int) string { return fmt.Sprintf("vm-%04d", i) }

// Read evaluates a query once per second from the epoch on and prints the only series shortly.
func (l *Lab) Read(query string, seconds int) string {
	l.T.Helper()
	got, err := l.Store.Range(l.T.Context(), query, Epoch, Epoch.Add(time.Duration(seconds)*time.Second), time.Second)
	l.Must(err)
	if len(got) != 1 {
		return fmt.Sprintf("%d series", len(got))
	}
	values := make([]*float64, seconds+1)
	for _, pt := range got[0].Points {
		i := int(pt.Time.Sub(Epoch).Round(time.Second) / time.Second)
		if v, err := strconv.ParseFloat(fmt.Sprintf("%.9g", pt.Value), 64); err == nil && i >= 0 && i < len(values) &&
			!math.IsNaN(v) && !math.IsInf(v, 0) {
			values[i] = &v
		}
	}
	s := Line(result.Series{Values: values})
	return s[strings.Index(s, ": ")+2:]
}

// ResidentPeak is the process's largest resident size so far, in bytes; 0 where it cannot be read.
func ResidentPeak() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil || runtime.GOOS != "linux" {
		return 0
	}
	var kb float64
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %g kB", &kb); n == 1 {
			return kb * 1024
		}
	}
	return 0
}

// CPU is the processor time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Line prints a series shortly: equal values in a row are counted.
func Line(s result.Series) string {
	var out []string
	last, n := "", 0
	flush := func() {
		if n > 1 {
			last = fmt.Sprintf("%s*%d", last, n)
		}
		if n > 0 {
			out = append(out, last)
		}
	}
	for _, v := range s.Values {
		text := "-"
		if v != nil {
			text = fmt.Sprintf("%.9g", *v)
		}
		if text != last {
			flush()
			last, n = text, 0
		}
		n++
	}
	flush()
	return fmt.Sprintf("%s @%s +%gs: %s", s.Name, s.Start.Format(time.TimeOnly), s.Step, strings.Join(out, " "))
}
