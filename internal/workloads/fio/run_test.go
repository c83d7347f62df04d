package fio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/workloadtest"
)

// rough is a host that at times does not answer, and gives back the space of what was read.
type rough struct {
	*workloadtest.Host
	reads     int
	discarded []int64
}

func (r *rough) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if r.reads++; r.reads%2 == 1 && strings.HasSuffix(name, ".out") && r.reads < 4 {
		return nil, fmt.Errorf("busy: %w", target.ErrNotAccessible)
	}
	return r.Host.Get(ctx, name, offset)
}

func (r *rough) Discard(_ context.Context, _ string, upto int64) error {
	r.discarded = append(r.discarded, upto)
	return nil
}

var _ target.Discarder = (*rough)(nil)

// A host that does not answer at times costs nothing, and everything read may be discarded.
func TestRunOnARoughHost(t *testing.T) {
	t.Parallel()
	host := &rough{Host: workloadtest.NewHost(t, mib)}
	stream := steadyStream(120, 400)
	if err := target.WriteFile(t.Context(), host, "prepared", []byte(stream)); err != nil {
		t.Fatal(err)
	}
	job := workload.Job{Output: "fio.out", Command: target.Command{Label: "w", Argv: []string{"/bin/sh", "-c",
		"head -c 700000 prepared > fio.out; sleep 1; tail -c +700001 prepared >> fio.out"}}}
	var sink, replay workloadtest.Recorder
	var raw bytes.Buffer
	outcome, err := Engine{}.Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &raw, Sink: &sink},
		job)
	if err != nil {
		t.Fatal(err)
	}
	if raw.String() != stream {
		t.Errorf("%d of %d bytes in the raw output", raw.Len(), len(stream))
	}
	if _, err := (Engine{}).Parse(workload.Declared{}, &raw, &replay); err != nil || outcome.Reports != 121 ||
		brief(replay.Reports) != brief(sink.Reports) {
		t.Errorf("%d reports, replay %d, %v", outcome.Reports, len(replay.Reports), err)
	}
	if n := len(host.discarded); n == 0 || host.discarded[n-1] > int64(len(stream)) {
		t.Errorf("discarded %v of %d bytes", host.discarded, len(stream))
	}
}

// fails makes one call of a host fail.
type fails struct {
	*workloadtest.Host
	start, wait, write, remove error
}

func (f *fails) Remove(ctx context.Context, name string) error {
	return errors.Join(f.remove, f.Host.Remove(ctx, name))
}

func (f *fails) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	return errors.Join(f.write, f.Host.Put(ctx, name, mode, content))
}

func (f *fails) Start(ctx context.Context, c target.Command) (target.Process, error) {
	if f.start != nil {
		return nil, f.start
	}
	p, err := f.Host.Start(ctx, c)
	return &failingProcess{p, f.wait}, err
}

type failingProcess struct {
	target.Process
	wait error
}

func (p *failingProcess) Wait(ctx context.Context) (target.Exit, error) {
	if p.wait != nil {
		return target.Exit{}, p.wait
	}
	return p.Process.Wait(ctx)
}

func TestRunTellsWhatTheHostCannotDo(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for name, host := range map[string]*fails{
		"remove": {remove: broken}, "write": {write: broken}, "start": {start: broken}, "wait": {wait: broken},
	} {
		host.Host = workloadtest.NewHost(t, mib)
		job := workload.Job{Output: "fio.out", Files: map[string][]byte{"job.fio": nil},
			Command: target.Command{Label: "OLTP", Argv: []string{"/bin/sh", "-c", "sleep 60"}}}
		_, err := Engine{}.Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &bytes.Buffer{},
			Sink: &workloadtest.Recorder{}}, job)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "workload OLTP on testhost") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error that ended a job is its failure though fio ends with success; errors that were counted are not.
func TestErrorInOutput(t *testing.T) {
	t.Parallel()
	for counted, want := range map[int]string{
		0: "fio ended with success but reports an error: job ",
		7: "",
	} {
		host := workloadtest.NewHost(t, mib)
		stream := steadyStream(5, 400)
		at := strings.LastIndex(stream, `"error" : 0`)
		stream = stream[:at] + `"error" : 5` + stream[at+len(`"error" : 0`):]
		stream = strings.ReplaceAll(stream, `"total_err" : 0`, fmt.Sprintf(`"total_err" : %d`, counted))
		if err := target.WriteFile(t.Context(), host, "prepared", []byte(stream)); err != nil {
			t.Fatal(err)
		}
		job := workload.Job{Output: "fio.out", Command: target.Command{Label: "w", Argv: []string{"/bin/sh", "-c",
			"cat prepared > fio.out"}}}
		var sink workloadtest.Recorder
		_, err := Engine{}.Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: io.Discard, Sink: &sink},
			job)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d counted: %v, want %q", counted, err, want)
		}
	}
}
