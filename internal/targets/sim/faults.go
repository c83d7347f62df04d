package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
	"plimsoll/unit"
)

// FaultKind tells what goes wrong.
type FaultKind string

// The kinds of fault.
const (
	NodeCrash    FaultKind = "node_crash"      // a node stops with everything on it; after For it reboots by itself
	PowerLoss    FaultKind = "power_loss"      // a node has no power; after For it has, and boots
	HungIO       FaultKind = "hung_io"         // a node's storage completes nothing
	SlowDisk     FaultKind = "slow_disk"       // a node's storage needs Factor times as long
	Neighbour    FaultKind = "noisy_neighbour" // somebody else takes the share Factor of a node's storage
	APIError     FaultKind = "api_error"       // calls of the cluster's management fail
	APITimeout   FaultKind = "api_timeout"     // calls hang for Delay, then fail without having had an effect
	LostResponse FaultKind = "lost_response"   // calls take effect, but their answer is lost
	AgentLost    FaultKind = "agent_lost"      // VMs do not answer; what runs in them goes on
	ClockSkew    FaultKind = "clock_skew"      // clocks of a node and of its VMs are ahead by Skew
)

// kinds lists them with what they need.
var kinds = []struct {
	kind    FaultKind
	onNodes bool
	calls   bool
}{
	{NodeCrash, true, false}, {PowerLoss, true, false}, {HungIO, true, false}, {SlowDisk, true, false},
	{Neighbour, true, false}, {APIError, false, true},
	{APITimeout, false, true}, {LostResponse, false, true}, {AgentLost, false, false}, {ClockSkew, true, false},
}

// Fault is something that goes wrong in a run, declared beforehand.
type Fault struct {
	Kind   FaultKind
	Nodes  []int    // that it hits
	Groups []string // AgentLost: whose VMs it hits, besides those on Nodes
	// Step is the step after whose beginning At counts: its number in the plan, its name, or its name and which of its
	// occurrences it is ("workload.Start#2"). "" counts from the opening of the cluster.
	Step string
	At   time.Duration
	For  time.Duration // until it is over; 0: it stays
	// Factor is how many times as long SlowDisk makes an operation take, or the share of the storage that Neighbour
	// takes.
	Factor float64
	// Skew is how far ClockSkew moves clocks ahead; negative is back.
	Skew time.Duration
	// NoController has PowerLoss take the node's power controller, too.
	NoController bool
	// Methods are the calls that fail, as the target contract names them; none: all calls of the cluster's management.
	Methods []string
	// Probability is that of a call to fail; 0 is always.
	Probability float64
	// Delay is how long APITimeout has a call hang; 0: one minute.
	Delay time.Duration
}

// management are the calls that an API fault can hit.
var management = []string{"VMs", "CreateTemplate", "Clone", "PowerOn", "PowerOff", "Delete", "Move", "NodeState",
	"PowerOffNode", "PowerOnNode",
	"ShutdownNode", "Snapshot", "Restore", "Migrate", "SetHA", "SetBalancing", "MoveStorage", "Addresses",
	"ClusterMetrics", "WriteLogBytes", "PlatformCheck"}

// Check returns all objections to a fault on a cluster of so many nodes.
func (f Fault) Check(nodes int) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	i := slices.IndexFunc(kinds, func(k struct {
		kind    FaultKind
		onNodes bool
		calls   bool
	}) bool {
		return k.kind == f.Kind
	})
	if i < 0 {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = string(k.kind)
		}
		return fmt.Errorf("kind %q: there is no such fault; %s", f.Kind, suggest(string(f.Kind), names))
	}
	k := kinds[i]
	for _, n := range f.Nodes {
		if n < 0 || n >= nodes {
			bad("nodes: %d: the cluster has %d nodes, counted from 0", n, nodes)
		}
	}
	if k.onNodes && len(f.Nodes) == 0 {
		bad("nodes: none given; name those that a %s hits", f.Kind)
	}
	if k.calls && len(f.Nodes) > 0 {
		bad("nodes: a fault of calls hits none; name methods")
	}
	if f.Kind == AgentLost && len(f.Nodes)+len(f.Groups) == 0 {
		bad("nodes, groups: none given; name the VMs' nodes or groups")
	}
	errs = append(errs, f.checkValues(k.calls)...)
	return errors.Join(errs...)
}

func (f Fault) checkValues(calls bool) (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.At < 0 || f.For < 0 || f.Delay < 0 {
		bad("at %s, for %s, delay %s: must not be negative", f.At, f.For, f.Delay)
	}
	if f.Kind == SlowDisk && !(f.Factor > 1 && f.Factor <= 1e6) {
		bad("factor: %v: must be above 1, and at most a million", f.Factor)
	}
	if f.Kind == Neighbour && !(f.Factor > 0 && f.Factor < 1) {
		bad("factor: %v: must be a share, above 0 and below 1", f.Factor)
	}
	if f.Kind != SlowDisk && f.Kind != Neighbour && f.Factor != 0 {
		bad("factor: belongs to %s and %s only", SlowDisk, Neighbour)
	}
	if (f.Kind == ClockSkew) != (f.Skew != 0) {
		bad("skew: %s: belongs to %s, which needs one", f.Skew, ClockSkew)
	}
	if f.NoController && f.Kind != PowerLoss {
		bad("controller: belongs to %s only", PowerLoss)
	}
	if !(f.Probability >= 0 && f.Probability <= 1) {
		bad("probability: %v: must be from 0 to 1", f.Probability)
	}
	if !calls && (f.Probability != 0 || len(f.Methods) > 0 || f.Delay != 0) {
		bad("probability, methods, delay: belong to faults of calls only")
	}
	if len(f.Groups) > 0 && f.Kind != AgentLost {
		bad("groups: belong to %s only", AgentLost)
	}
	for _, m := range f.Methods {
		if !slices.Contains(management, m) {
			bad("methods: %q is no call of the cluster's management; %s", m, suggest(m, management))
		}
	}
	return errs
}

func suggest(word string, names []string) string {
	if near := nearest.Of(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are: " + strings.Join(names, ", ")
}

// String is the fault in words, as it stands in the notes of a run.
func (f Fault) String() string {
	text := f.words()
	if f.For > 0 {
		text += " for " + unit.Duration(f.For).String()
	}
	switch {
	case f.Step == "" && f.At == 0:
		return text + ", from the beginning on"
	case f.Step == "":
		return text + ", " + unit.Duration(f.At).String() + " after the beginning"
	case f.At == 0:
		return text + ", when step " + f.Step + " begins"
	}
	return text + ", " + unit.Duration(f.At).String() + " after step " + f.Step + " begins"
}

// where names the machines that a fault is about.
func (f Fault) where() string { return strings.Join(append(nodeWords(f.Nodes), f.Groups...), ", ") }

// calls names the calls that a fault is about.
func (f Fault) calls() string {
	calls := "all calls"
	if len(f.Methods) > 0 {
		calls = "calls of " + strings.Join(f.Methods, ", ")
	}
	if f.Probability > 0 && f.Probability < 1 {
		calls = unit.Percent(f.Probability).String() + " of " + calls
	}
	return calls + " to the cluster"
}

// words say what begins.
func (f Fault) words() string {
	where, calls := f.where(), f.calls()
	nodes := func(one, several string) string {
		if len(f.Nodes) == 1 {
			return where + " " + one
		}
		return where + " " + several
	}
	switch f.Kind {
	case NodeCrash:
		return nodes("crashes", "crash")
	case PowerLoss:
		if f.NoController {
			return nodes("loses power, its power controller too", "lose power, their power controllers too")
		}
		return nodes("loses power", "lose power")
	case HungIO:
		return "storage of " + where + " hangs"
	case SlowDisk:
		return fmt.Sprintf("storage of %s takes %g times as long", where, f.Factor)
	case Neighbour:
		return fmt.Sprintf("somebody else takes %s of the storage of %s", unit.Percent(f.Factor), where)
	case APIError:
		return calls + " fail"
	case APITimeout:
		return calls + " hang for " + unit.Duration(f.hang()).String() + " and fail"
	case LostResponse:
		return "answers to " + calls + " are lost"
	case AgentLost:
		return "VMs of " + where + " do not answer"
	}
	if f.Skew < 0 {
		return fmt.Sprintf("clocks of %s go back by %s", where, unit.Duration(-f.Skew))
	}
	return fmt.Sprintf("clocks of %s go ahead by %s", where, unit.Duration(f.Skew))
}

// overWords say what is so from its end on.
func (f Fault) overWords() string {
	where, one := f.where(), len(f.Nodes) == 1
	switch f.Kind {
	case NodeCrash:
		if one {
			return where + " is back"
		}
		return where + " are back"
	case PowerLoss:
		if one {
			return where + " has power again"
		}
		return where + " have power again"
	case HungIO:
		return "storage of " + where + " goes on"
	case SlowDisk:
		return "storage of " + where + " is as fast as before"
	case Neighbour:
		return "nobody else takes the storage of " + where + " any more"
	case APIError, APITimeout, LostResponse:
		return f.calls() + " are answered again"
	case AgentLost:
		return "VMs of " + where + " answer again"
	}
	return "clocks of " + where + " are set right"
}

func nodeWords(nodes []int) (words []string) {
	if len(nodes) > 8 {
		return []string{fmt.Sprintf("%d nodes", len(nodes))}
	}
	for _, n := range nodes {
		words = append(words, nodeName(n))
	}
	return words
}

func (f Fault) hang() time.Duration {
	if f.Delay > 0 {
		return f.Delay
	}
	return time.Minute
}

// injector brings the declared faults about in one run.
type injector struct {
	c      *cluster
	tell   func(node int, state, text string)
	ctx    context.Context
	cancel context.CancelFunc
	group  clock.Group

	mu   sync.Mutex
	seen map[string]int // steps by name
}

func newInjector(c *cluster, r target.Request) *injector {
	in := &injector{c: c, tell: r.Fault, group: c.w.clock.Group(), seen: map[string]int{}}
	if in.tell == nil {
		in.tell = func(int, string, string) {}
	}
	in.ctx, in.cancel = context.WithCancel(context.Background())
	return in
}

// open sets going the faults that count from the beginning.
func (in *injector) open() {
	for _, f := range in.c.w.o.Faults {
		if f.Step == "" {
			in.set(f)
		}
	}
}

// set has a fault happen: now, when that is its moment, so that nothing comes before it.
func (in *injector) set(f Fault) {
	if f.At > 0 {
		in.group.Go(func() {
			if in.c.w.clock.Sleep(in.ctx, f.At) == nil {
				in.happen(f)()
			}
		})
		return
	}
	if end := in.happen(f); f.For > 0 {
		in.group.Go(end)
	}
}

// StepBegins implements target.StepWatcher.
func (in *injector) StepBegins(number int, name string) {
	in.mu.Lock()
	in.seen[name]++
	occurrence := in.seen[name]
	in.mu.Unlock()
	for _, f := range in.c.w.o.Faults {
		if f.Step == "" {
			continue
		}
		want, which, _ := strings.Cut(f.Step, "#")
		if f.Step == strconv.Itoa(number) || want == name && (which == strconv.Itoa(occurrence) || which == "" &&
			occurrence == 1) {
			in.set(f)
		}
	}
}

// stop calls off what has not happened yet. Faults that have begun stay.
func (in *injector) stop() {
	in.cancel()
	in.group.Wait()
}

// happen brings a fault about. The function it returns waits for its end, when it has one, and ends it.
func (in *injector) happen(f Fault) (end func()) {
	w := in.c.w
	w.mu.Lock()
	undo := in.begin(f)
	w.mu.Unlock()
	in.say(f, result.FaultBegins, f.words())
	return func() {
		if f.For <= 0 || w.clock.Sleep(in.ctx, f.For) != nil {
			return
		}
		w.mu.Lock()
		undo()
		w.mu.Unlock()
		in.say(f, result.FaultOver, f.overWords())
	}
}

func (in *injector) say(f Fault, state, text string) {
	node := -1
	if len(f.Nodes) == 1 {
		node = f.Nodes[0]
	}
	in.tell(node, state, text)
}

// begin brings a fault about and returns its end. The world's lock must be held.
func (in *injector) begin(f Fault) (undo func()) {
	w := in.c.w
	now := w.clock.Now()
	switch f.Kind {
	case NodeCrash, PowerLoss:
		return in.fail(f)
	case HungIO, SlowDisk, Neighbour:
		until := time.Time{}
		if f.For > 0 {
			until = now.Add(f.For)
		}
		kind := map[FaultKind]perf.Kind{HungIO: perf.HungIO, SlowDisk: perf.SlowDisk,
			Neighbour: perf.NoisyNeighbour}[f.Kind]
		for _, n := range f.Nodes {
			w.storage.Fault(now, perf.Fault{Kind: kind, Node: n, Factor: f.Factor, Until: until})
		}
		w.models.changed()
		return w.models.changed
	case AgentLost:
		return in.silence(f)
	case ClockSkew:
		return in.move(f)
	}
	return in.spoil(f)
}

// fail takes nodes down.
func (in *injector) fail(f Fault) (undo func()) {
	w := in.c.w
	for _, n := range f.Nodes {
		w.nodeOff(n)
		w.nodes[n].dark = w.nodes[n].dark || f.NoController
	}
	return func() {
		for _, n := range f.Nodes {
			w.nodes[n].dark = w.nodes[n].dark && !f.NoController
			w.nodeOn(n)
		}
	}
}

// silence has VMs not answer.
func (in *injector) silence(f Fault) (undo func()) {
	var hit []*machine
	for _, m := range in.c.order {
		if m.Power == target.On && (slices.Contains(f.Nodes, m.Node) || slices.Contains(f.Groups, m.Group)) {
			m.lost = true
			hit = append(hit, m)
		}
	}
	return func() {
		for _, m := range hit {
			m.lost = false
		}
	}
}

// move puts clocks ahead.
func (in *injector) move(f Fault) (undo func()) {
	w := in.c.w
	by := func(skew time.Duration) {
		for _, n := range f.Nodes {
			w.nodes[n].skew += skew
		}
		for _, j := range w.models.jobs {
			if slices.Contains(f.Nodes, j.m.Node) {
				j.skew.Add(int64(skew))
			}
		}
	}
	by(f.Skew)
	return func() { by(-f.Skew) }
}

var errAPI = errors.New("the cluster's management reports an internal error")

// spoil makes calls fail.
func (in *injector) spoil(f Fault) (undo func()) {
	w := in.c.w
	rule := Rule{Probability: f.Probability, Err: errAPI}
	switch f.Kind {
	case APITimeout:
		rule.Delay, rule.Err = f.hang(), errors.New("no answer in time")
	case LostResponse:
		rule.After, rule.Err = true, errLost
	}
	methods := f.Methods
	if len(methods) == 0 {
		methods = []string{""}
	}
	var rules []*Rule
	for _, m := range methods {
		r := rule
		r.Method = m
		rules = append(rules, &r)
	}
	w.rules = append(w.rules, rules...)
	return func() {
		w.rules = slices.DeleteFunc(w.rules, func(r *Rule) bool { return slices.Contains(rules, r) })
	}
}
