package collect

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
	"plimsoll/internal/series"
	"plimsoll/internal/workload"
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

var engines = map[string]workload.Engine{"lines": lines{}}

// lab is a run in scripted time: a folder, a store and a recorder.
type lab struct {
	t      testing.TB
	now    time.Time
	folder *result.Folder
	store  *series.Store
	rec    *Recorder
	jobs   []*labJob
}

// labJob is a start of a workload that does so many operations per second.
type labJob struct {
	lab   *lab
	desc  result.RawJob
	job   *Job
	raw   io.WriteCloser
	rep   workload.Report
	began time.Time
	skew  time.Duration // of the tool's clock
}

var epoch = time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{t: t, now: epoch}
	m := result.Manifest{
		RunID: result.NewRunID(epoch, "lab", 0x7f3a), Created: epoch, Target: "fake", ClusterName: "c", TimeScale: 1,
		SizeScale: 1,
		Scenario:  result.ScenarioInfo{ID: 42, Name: "lab", DisplayName: "Lab"},
	}
	var err error
	if l.folder, err = result.Create(t.TempDir(), m); err != nil {
		t.Fatal(err)
	}
	if l.store, err = series.Open(l.folder.MetricsDir(), series.Options{}); err != nil {
		t.Fatal(err)
	}
	l.rec = NewRecorder(RecorderOptions{
		Store: l.store, Now: func() time.Time { return l.now }, Base: epoch,
		Scope: Scope{ScenarioID: 42, ScenarioName: "lab", ScenarioDisplayName: "Lab", ClusterName: "c"},
	})
	t.Cleanup(l.close)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// close releases what a test left open, as a kill would.
func (l *lab) close() {
	if l.store != nil {
		l.must(l.store.Close())
		l.store = nil
	}
	l.must(l.folder.Close())
}

func (l *lab) event(kind, phase, text string) {
	l.must(l.folder.AppendEvent(result.Event{Time: l.now, Kind: kind, Phase: phase, Text: text}))
}

// start begins a workload on a VM, one that tells its lanes apart when there are any.
func (l *lab) start(vm, group, load string, attempt int, lanes ...result.Lane) *labJob {
	j := &labJob{lab: l, began: l.now, desc: result.RawJob{
		VM: vm, Group: group, Workload: load, Attempt: attempt, Engine: "lines", Phase: "run", Latency: "service time",
		Start: l.now,
		Lanes: lanes, Apart: len(lanes) > 0, Operations: result.BlockOperations(),
	}}
	l.must(l.folder.WriteRawJob(j.desc))
	raw, err := l.folder.RawWriter(j.desc)
	l.must(err)
	j.raw, j.job = raw, l.rec.Job(j.desc)
	j.rep.Ops = make(workload.Counts, len(result.BlockOperations()))
	j.rep.Ops[0].Hist, j.rep.Ops[1].Hist, j.rep.Ops[2].Hist = &hist.Histogram{}, &hist.Histogram{}, &hist.Histogram{}
	for range lanes {
		j.rep.Sections = append(j.rep.Sections, slices.Clone(j.rep.Ops))
	}
	l.jobs = append(l.jobs, j)
	return j
}

// do counts operations of one size and service time.
func (j *labJob) do(c *workload.Counters, ops, bytes uint64, service time.Duration) {
	h := c.Hist.Clone()
	h.Add(uint64(service), ops)
	c.Ops, c.Bytes, c.Seconds, c.Hist = c.Ops+ops, c.Bytes+bytes, c.Seconds+float64(ops)*service.Seconds(), h
}

// report sends the state of the job.
func (j *labJob) report() {
	j.rep.Time, j.rep.Elapsed = j.lab.now.Add(j.skew), j.lab.now.Sub(j.began)
	b, err := json.Marshal(j.rep)
	j.lab.must(err)
	_, err = j.raw.Write(append(b, '\n'))
	j.lab.must(err)
	sent := j.rep // which must not change afterwards
	sent.Ops, sent.Sections = slices.Clone(sent.Ops), slices.Clone(sent.Sections)
	for i := range sent.Sections {
		sent.Sections[i] = slices.Clone(sent.Sections[i])
	}
	j.job.Report(sent)
}

func (j *labJob) end(ended string) {
	j.lab.must(j.raw.Close())
	j.job.End()
	j.desc.End, j.desc.Ended = j.lab.now, ended
	j.lab.must(j.lab.folder.WriteRawJob(j.desc))
}

// second lets a second pass: work is done, reports are sent, a tick is written.
func (l *lab) second(work func()) {
	l.now = l.now.Add(time.Second)
	work()
	l.must(l.rec.Tick())
}

func vmName(i int) string { return fmt.Sprintf("vm-%04d", i) }

// read evaluates a query once per second from the epoch on and prints the only series shortly.
func (l *lab) read(query string, seconds int) string {
	l.t.Helper()
	got, err := l.store.Range(l.t.Context(), query, epoch, epoch.Add(time.Duration(seconds)*time.Second), time.Second)
	l.must(err)
	if len(got) != 1 {
		return fmt.Sprintf("%d series", len(got))
	}
	values := make([]*float64, seconds+1)
	for _, pt := range got[0].Points {
		i := int(pt.Time.Sub(epoch).Round(time.Second) / time.Second)
		if v, err := strconv.ParseFloat(fmt.Sprintf("%.9g", pt.Value), 64); err == nil && i >= 0 && i < len(values) &&
			!math.IsNaN(v) && !math.IsInf(v, 0) {
			values[i] = &v
		}
	}
	s := line(result.Series{Values: values})
	return s[strings.Index(s, ": ")+2:]
}

// residentPeak is the process's largest resident size so far, in bytes; 0 where it cannot be read.
func residentPeak() float64 {
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

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// line prints a series shortly: equal values in a row are counted.
func line(s result.Series) string {
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
