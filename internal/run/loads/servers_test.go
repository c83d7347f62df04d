package loads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// printed is a host whose only file is what a server has printed.
type printed struct {
	target.Host
	text io.Reader
	err  error
}

func (p printed) Name() string { return "db-0" }

func (p printed) Get(context.Context, string, int64) (io.ReadCloser, error) {
	return io.NopCloser(p.text), p.err
}

type place struct {
	bytes.Buffer
	err error
}

func (p *place) Close() error { return p.err }

// What a server has printed is kept up to a bound, and what became of it is said.
func TestKeepWhatAServerPrinted(t *testing.T) {
	t.Parallel()
	const head = "what the server of workload W on db-0 printed"
	full := strings.Repeat("x", mostServerOutput)
	gone := fmt.Errorf("vm: %w", target.ErrNotAccessible)
	broken := errors.New("disk full\nreally")
	for name, c := range map[string]struct {
		host  printed
		close error
		kept  string
		want  result.Event
	}{
		"some": {printed{text: strings.NewReader("ready\n")}, nil, "ready\n",
			result.Event{Text: head + " is in there (6 B)"}},
		"nothing": {printed{text: strings.NewReader("")}, nil, "", result.Event{Text: head + ": nothing"}},
		"just enough": {printed{text: strings.NewReader(full)}, nil, full,
			result.Event{Text: head + " is in there (16 MiB)"}},
		"too much": {printed{text: strings.NewReader(full + "y")}, nil, full,
			result.Event{Text: head + " is in there, the first 16 MiB of it"}},
		"gone": {printed{err: gone}, nil, "", result.Event{Text: head + " could not be kept", Error: gone.Error()}},
		"unreadable": {printed{err: broken}, nil, "",
			result.Event{Kind: result.KindWarning, Text: head + " could not be kept", Error: "disk full"}},
		"unwritten": {printed{text: strings.NewReader("ready\n")}, broken, "ready\n",
			result.Event{Kind: result.KindWarning, Text: head + " could not be kept", Error: "disk full"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := place{err: c.close}
			var got []result.Event
			l := New(t.Context(), Config{Clock: clock.Real{},
				Keep: func(vm, workload string, start int) (io.WriteCloser, string, error) {
					if vm != "db-0" || workload != "W" || start != 2 {
						t.Errorf("kept for start %d of %s on %s", start, workload, vm)
					}
					return &kept, "there", nil
				},
				Record: func(e result.Event) { got = append(got, e) }})
			s := &server{host: c.host, load: "W", start: 2}
			s.Service.Command.Stdout = "output"
			l.keepOutput(s)
			want := c.want
			if want.Kind == "" {
				want.Kind = result.KindNote
			}
			want.Data = result.EventData{Workload: "W", VM: "db-0", Start: 2}
			if diff := cmp.Diff([]result.Event{want}, got); diff != "" {
				t.Error(diff)
			}
			if kept.String() != c.kept {
				t.Errorf("%d bytes kept, want %d", kept.Len(), len(c.kept))
			}
		})
	}
}

// Machines whose loads go to one place take turns there, whether it is named or one of the run's own.
func TestTurns(t *testing.T) {
	two := make([]workload.Peer, 2)
	for name, c := range map[string]struct {
		peers peers
		want  []int
	}{"a named server": {peers{}, []int{0, 1, 2, 3}}, "two servers": {peers{list: two}, []int{0, 0, 1, 1}},
		"one for each": {peers{list: make([]workload.Peer, 4), own: true}, []int{0, 0, 0, 0}}} {
		for i, want := range c.want {
			var spec workload.Spec
			if c.peers.of(&spec, i); spec.Turn != want {
				t.Errorf("%s: machine %d has turn %d, want %d", name, i, spec.Turn, want)
			}
		}
	}
}

// silent is a host that does not answer.
type silent struct {
	target.Host
	patience time.Duration
}

func (silent) Accessible(context.Context) error { return target.ErrNotAccessible }
func (s silent) Patience() time.Duration        { return s.patience }

// TestSilentIsNotLost waits for a load whose machine does not answer: how long that may be its place knows, and says
// it at the end of the process.
func TestSilentIsNotLost(t *testing.T) {
	l := New(t.Context(), Config{Clock: clock.Real{}})
	j := &job{host: silent{patience: time.Minute}, launched: true}
	w := waiting{l: l, s: &Start{jobs: []*job{j}}, pending: []*job{j}, ends: -1}
	w.look(t.Context())
	if j.lost || len(w.pending) != 1 {
		t.Errorf("lost: %v, %d pending", j.lost, len(w.pending))
	}
}
