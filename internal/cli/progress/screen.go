package progress

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
	"plimsoll/unit"
)

// moment tells what a run is doing now.
type moment struct {
	step, steps int           // number of the step, of how many
	phase, text string        // of the step
	elapsed     time.Duration // of the run
	takes       time.Duration // expected
	late        time.Duration // for how long the step has gone on beyond what was expected
	unknown     bool          // nothing can say how long it takes
	rows        []record.LiveRow
	stopping    bool
}

// screen shows the progress of a run: on a terminal one block that is drawn again in place, elsewhere plain lines.
type screen struct {
	w        io.Writer
	size     func() (width, height int, ok bool) // of the terminal; not ok: not a terminal
	drawn    []int                               // length of every line of the block on the terminal
	lastLine time.Time                           // of the last plain live line
	lastDraw time.Time                           // of the block
	now      func() time.Time                    // of the person who looks
	shown    func() time.Time                    // of the run, which may be simulated
	origin   time.Time                           // when the run phase began, from which reports count; zero before
}

// calm is how often plain output tells what is going on within a step.
const calm = 15 * time.Second

// frame is how often the block is drawn at most: a simulated run has many moments a second.
const frame = 50 * time.Millisecond

// late is by how much a step may miss its estimate before that is said.
const late = 5 * time.Second

// newScreen looks at what w is. A terminal that calls itself dumb gets plain lines.
func newScreen(w io.Writer, now, shown func() time.Time) *screen {
	s := &screen{w: w, now: now, shown: shown, lastLine: now(), size: func() (int, int, bool) { return 0, 0, false }}
	behind := w
	if wall, ok := w.(*visible.Writer); ok {
		behind = wall.Unwrap()
	}
	f, ok := behind.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return s
	}
	s.w = f // the block is drawn with control sequences of our own; its words are made visible one by one
	s.size = func() (int, int, bool) {
		ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || ws.Col == 0 {
			return 0, 0, false
		}
		return int(ws.Col), int(ws.Row), true
	}
	return s
}

// say prints a line that stays: an event of the run.
func (s *screen) say(format string, args ...any) {
	line := visible.Line(visible.Cut(result.PlainNames(fmt.Sprintf(format, args...)), visible.Longest))
	_, _, terminal := s.size()
	if !terminal {
		fmt.Fprintf(s.w, "%s%s %s\n", s.shown().Format("15:04:05"), s.since(), line)
		s.lastLine = s.now()
		return
	}
	fmt.Fprintf(s.w, "%s%s%s\n", s.erase(), strings.TrimPrefix(s.since()+" ", " "), line)
	s.lastDraw = time.Time{} // the block was taken away: the next moment is drawn at once
}

// since is the time since the run phase began, as charts and findings have it, behind a blank; empty before it.
func (s *screen) since() string {
	if s.origin.IsZero() {
		return ""
	}
	t := int64(s.shown().Sub(s.origin).Round(time.Second) / time.Second)
	if t < 3600 {
		return fmt.Sprintf(" +%d:%02d", t/60, t%60)
	}
	return fmt.Sprintf(" +%d:%02d:%02d", t/3600, t/60%60, t%60)
}

// due tells whether show would draw a moment now.
func (s *screen) due() bool {
	if _, _, terminal := s.size(); terminal {
		return s.now().Sub(s.lastDraw) >= frame
	}
	return s.now().Sub(s.lastLine) >= calm
}

// show draws the moment when it is due, on a terminal in place of the last one.
func (s *screen) show(m moment) {
	if !s.due() {
		return
	}
	width, height, terminal := s.size()
	if !terminal {
		if len(m.rows) > 0 || m.step > 0 {
			s.say("%s", m.line())
		}
		return
	}
	s.lastDraw = s.now()
	lines := m.block(width)
	if room := max(height-1, 1); len(lines) > room {
		lines = lines[:room]
	}
	var b strings.Builder
	b.WriteString(s.erase())
	for _, l := range lines {
		b.WriteString(l + "\n")
		s.drawn = append(s.drawn, utf8.RuneCountInString(l))
	}
	_, _ = io.WriteString(s.w, b.String()) // one write, so that nothing flickers
}

// erase moves to the top of the block and clears it. A line was cut to the width the terminal had; when it has become
// narrower since, a line takes several rows.
func (s *screen) erase() string {
	if len(s.drawn) == 0 {
		return ""
	}
	width, _, _ := s.size()
	rows := 0
	for _, n := range s.drawn {
		rows += max(1, (n+width-1)/max(width, 1))
	}
	s.drawn = s.drawn[:0]
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", rows)
}

// clear takes the block away.
func (s *screen) clear() { _, _ = io.WriteString(s.w, s.erase()) }

// block is the moment for a terminal of this width.
func (m moment) block(width int) []string {
	lines := []string{
		fmt.Sprintf("step %d/%d  %s  %s", m.step, m.steps, m.phase, m.text),
		fmt.Sprintf("%s %s", bar(m.elapsed, m.takes, min(40, max(width-40, 8))), m.times()),
	}
	if m.stopping {
		lines = append(lines, "stopping: teardown runs, data is kept; Ctrl-C again leaves at once")
	}
	t := terminal.Table{Head: []string{"workload", "VMs", "rate", "MiB/s", "mean", "p50", "p99", "errors"},
		Right: []bool{false, true, true, true, true, true, true, true}}
	for _, r := range m.rows {
		t.Add(name(r), fmt.Sprint(r.VMs), rates(r), moved(r), lasting(r.Mean), lasting(r.P50), lasting(r.P99),
			fmt.Sprint(r.Errors))
	}
	if t.Len() > 0 {
		var b strings.Builder
		_ = t.Write(&b) // a Builder does not fail
		lines = append(lines, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
	}
	for i, l := range lines {
		lines[i] = visible.Cut(visible.Line(l), max(width-1, 1))
	}
	return lines
}

// line is the moment on one line.
func (m moment) line() string {
	text := fmt.Sprintf("step %d/%d, %s", m.step, m.steps, m.times())
	for _, r := range m.rows {
		text += fmt.Sprintf("; %s: %s, mean %s", name(r), rates(r), lasting(r.Mean))
		if r.P99 > 0 {
			text += fmt.Sprintf(", p50 %s, p99 %s", lasting(r.P50), lasting(r.P99))
		}
		if r.Errors > 0 {
			text += fmt.Sprintf(", %d errors", r.Errors)
		}
	}
	return text
}

func (m moment) times() string {
	text := unit.Duration(m.elapsed.Round(time.Second)).String() + " gone"
	switch left := m.takes - m.elapsed; {
	case m.unknown:
		text += ", how long it takes cannot be said"
	case m.late >= late:
		text += fmt.Sprintf(", at least %s left: step %d takes %s longer than expected",
			unit.Duration(max(0, left).Round(time.Second)), m.step, unit.Duration(m.late.Round(time.Second)))
	case left > 0:
		text += ", about " + unit.Duration(left.Round(time.Second)).String() + " left"
	}
	return text
}

func name(r record.LiveRow) string {
	text := r.Workload
	if r.Prefill {
		text = strings.TrimSuffix(text, "_prefill") + " (prefill)"
	}
	if r.Silent > 0 {
		text += fmt.Sprintf(" [%d silent]", r.Silent)
	}
	return text
}

// mostRates are the operations of a workload that progress tells apart.
const mostRates = 2

// rates are what a workload does now: its operations, all of them together when there are many, or its first measure.
func rates(r record.LiveRow) string {
	var parts []string
	total := 0.0
	for _, o := range r.Rates {
		if total += o.PerSecond; o.PerSecond > 0 {
			parts = append(parts, rate(o))
		}
	}
	switch {
	case r.Ops == 0 && r.Errors == 0 && len(r.Values) == 0: // nothing reported yet
		return "-"
	case len(parts) > mostRates:
		return perSecond(total) + " operations/s"
	case len(parts) > 0:
		return strings.ReplaceAll(strings.Join(parts, ", "), " IOPS, ", ", ") // the unit stands once
	case len(r.Rates) == 0 && len(r.Values) > 0:
		return whole(r.Values[0].Value) + " " + r.Values[0].Measure.Unit
	case r.Ops > 0: // operations may take minutes each
		return "0 operations/s, " + unit.Thousands(int64(min(r.Ops, math.MaxInt64))) + " so far"
	}
	return "0 operations/s"
}

// rate is that of one operation, in the unit that reports print it in.
func rate(o record.LiveRate) string {
	if o.Operation.RateUnit() == result.OperationsUnit {
		return o.Operation.Name + " " + perSecond(o.PerSecond) + " IOPS"
	}
	return perSecond(o.PerSecond) + " " + o.Operation.Noun + "/s"
}

// moved returns what goes through now, in MiB/s.
func moved(r record.LiveRow) string {
	bytes, counted := 0.0, false
	for _, o := range r.Rates {
		bytes, counted = bytes+o.BytesPerSecond, counted || o.Operation.Bytes
	}
	if !counted || r.Ops == 0 && r.Errors == 0 {
		return "-"
	}
	return whole(bytes / (1 << 20))
}

// perSecond is a rate: a small one is no 0.
func perSecond(v float64) string {
	if v < 9.5 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return whole(v)
}

func whole(v float64) string { return unit.Thousands(int64(v + 0.5)) }

// lasting prints a service time, nothing when no operation has ended.
func lasting(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return unit.Duration(d).String()
}

// bar draws done of all as [####....].
func bar(done, all time.Duration, width int) string {
	filled := 0
	if all > 0 {
		filled = int(min(float64(width), float64(width)*float64(done)/float64(all)))
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "]"
}
