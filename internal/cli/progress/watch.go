// Package progress shows a run to the person who started it: on a terminal one block that is drawn again in place,
// elsewhere plain lines now and then. From the run
// phase on a line carries the time since that began, +m:ss, as the report's charts and findings have it.
//
// It stands beside the run, which tells it what happens (run.Observer), and before the command's standard error. It
// asks what the workloads do only when that is about to be shown. Words of others are made visible; the control
// sequences that it writes to a terminal are its own.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
	"plimsoll/unit"
)

// Watcher shows a run to the person who started it. It implements run.Observer.
type Watcher struct {
	mu     sync.Mutex
	screen *screen
	plan   *plan.Plan
	last   moment
	meta   string // phase and name of the meta step whose parts are being executed
}

var _ run.Observer = (*Watcher)(nil)

// New makes a watcher on w. It shows times as shown tells them and is as quick as now is.
func New(w io.Writer, now, shown func() time.Time, p *plan.Plan) *Watcher {
	return &Watcher{screen: newScreen(w, now, shown), plan: p, last: moment{steps: len(p.Steps), takes: p.Estimated(),
		unknown: p.EstimateUnknown}}
}

// Begin says what is about to happen.
func (w *Watcher) Begin(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.screen.say("run %s: %s, %s", id, unit.Plural(len(w.plan.Steps), "step"),
		Lasts(w.plan.Least(), w.plan.EstimateUnknown))
}

// Lasts says how long runs take, or with unknown what of it can be said.
func Lasts(d time.Duration, unknown bool) string {
	about := "about "
	if unknown {
		about = "at least "
	}
	return about + unit.Duration(d.Round(time.Second)).String()
}

// runPhase is the phase from whose beginning charts and findings count their time.
const runPhase = "run"

// Event implements run.Observer.
func (w *Watcher) Event(e result.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Phase == runPhase && w.screen.origin.IsZero() {
		w.screen.origin = e.Time
	}
	switch e.Kind {
	case result.KindStepStart:
		w.last.step, w.last.phase, w.last.text = e.Step, e.Phase, e.Text
		w.last.rows = nil
		if text, ok := w.headline(e); ok {
			w.screen.say("%s, step %d/%d: %s", e.Phase, e.Step, w.last.steps, text)
		}
	case result.KindStepEnd:
		if _, why, ok := strings.Cut(e.Error, fmt.Sprintf("step %d (%s): ", e.Step, e.Name)); ok {
			w.screen.say("step %d failed: %s", e.Step, why)
		} else if e.Error != "" {
			w.screen.say("step %d failed: %s", e.Step, e.Error)
		}
	case result.KindWarning:
		text := e.Text
		if e.Error != "" {
			text += ": " + e.Error
		}
		w.screen.say("warning: %s", text)
	case result.KindFault, result.KindAnnotation:
		w.screen.say("%s: %s", e.Kind, e.Text)
	}
}

// headline returns what to say of a step that begins. The parts of a meta step (cluster.CleanUp.nodes.PowerOn: "clean
// up: power on node 0") share one line.
func (w *Watcher) headline(e result.Event) (string, bool) {
	parts := strings.SplitN(e.Name, ".", 3)
	if len(parts) < 3 {
		w.meta = ""
		return e.Text, true
	}
	meta := e.Phase + parts[0] + parts[1]
	again := w.meta == meta
	w.meta = meta
	text, _, _ := strings.Cut(e.Text, ": ")
	return text, !again
}

// Progress implements run.Observer.
func (w *Watcher) Progress(p run.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last.step, w.last.steps, w.last.phase, w.last.text = p.Step.Number, p.Steps, string(p.Phase), p.Step.Text
	w.last.elapsed, w.last.takes = p.Elapsed, p.Elapsed+p.Left
	w.last.unknown, w.last.late = p.Unknown, p.Late
	if w.screen.due() {
		w.last.rows = p.Rows()
		w.screen.show(w.last)
	}
}

// Stopping tells that the first Ctrl-C has been heard.
func (w *Watcher) Stopping() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last.stopping = true
	w.screen.say("stopping: workloads end, teardown runs, data is kept; Ctrl-C again leaves at once")
}

// End takes the live block away.
func (w *Watcher) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.screen.clear()
}
