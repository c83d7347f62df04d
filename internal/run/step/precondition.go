package step

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/loads"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func preconditionSteps() Registry { return Registry{"workload.Precondition": single(precondition)} }

// preconditioning is the arguments of the step.
type preconditioning struct {
	load      scenario.Workload
	purge     bool
	passes    int
	block     int64 // bytes
	width     int
	round     time.Duration
	maxRounds int
	limit     time.Duration
	annotate  bool
}

func precondition(a scenario.Args, v View) (*action, error) {
	load, err := v.Workload(a.String("workload_name"))
	if err != nil {
		return nil, err
	}
	p := preconditioning{
		load: load, purge: a.Bool("purge"), passes: a.Int("passes"), block: int64(a.Int("block_kb")) << 10,
		width: a.Int("max_concurrent"), round: v.Scaled(a.Seconds("round_secs")), maxRounds: a.Int("max_rounds"),
		limit: a.Seconds("timeout_secs"), annotate: a.Bool("annotate"),
	}
	if p.maxRounds > 0 && p.maxRounds < result.SteadyWindow {
		return nil, fmt.Errorf("workload %q: max_rounds %d: whether rounds are steady takes %d of them; give as many or "+
			"more, or 0 for none", load.Name, p.maxRounds, result.SteadyWindow)
	}
	if !p.purge && p.passes == 0 && p.maxRounds == 0 {
		return nil, fmt.Errorf("workload %q: without purge, passes and max_rounds there is nothing to do", load.Name)
	}
	one := &action{text: p.words(v), estimate: p.estimate, do: p.do}
	if p.purge {
		one.requires = []target.Capability{target.DiskPurge}
	}
	if p.passes > 0 {
		one.uses.Jobs = append(one.uses.Jobs, p.pass(1))
	}
	if p.maxRounds > 0 {
		one.uses.Jobs = append(one.uses.Jobs, JobUse{Workload: load.Name, Runtime: p.round})
	}
	return one, nil
}

// words say what will be done, with how much is written.
func (p preconditioning) words(v View) string {
	text := fmt.Sprintf("precondition the disks of workload %q on %s", p.load.Name, groupWords(v, p.load))
	if p.purge {
		text += ", purge them"
	}
	if p.passes > 0 {
		times := strconv.Itoa(p.passes) + " times"
		if p.passes <= 2 {
			times = [...]string{"once", "twice"}[p.passes-1]
		}
		text += fmt.Sprintf(", write all of them %s (%s in all)", times, unit.Bytes(int64(p.passes)*p.diskBytes(v)))
	}
	if p.maxRounds > 0 {
		text += fmt.Sprintf(", then rounds of %s until they are steady, at most %d", unit.Duration(p.round),
			p.maxRounds)
	}
	return text
}

// diskBytes is the size of all data disks of the group together. Devices given for them are written as a whole.
func (p preconditioning) diskBytes(v View) (total int64) {
	decl, err := v.Groups.Get(p.load.Group)
	if err != nil {
		return 0
	}
	members, _ := v.Groups.Members(p.load.Group)
	given := v.Facts.DataDisks
	for range members {
		for _, b := range v.Disks(decl) {
			if len(given) > 0 {
				b, given = given[0].Bytes, given[1:]
			}
			total += b
		}
	}
	return total
}

// pass is how the workload's disks are written, with so many writes of 1 MiB in flight at a time, or as much in smaller
// ones.
func (p preconditioning) pass(depth int) JobUse {
	const mostDepth = 64
	depth = min(mostDepth, max(depth, int(int64(depth)<<20/p.block)))
	return JobUse{Workload: p.load.Name, Prefill: true, Whole: true, Block: p.block, Depth: depth}
}

// estimate rehearses the passes. How many rounds it takes nobody knows before: they are taken to be all.
func (p preconditioning) estimate(f *Forecast) (d time.Duration) {
	began := f.Now
	defer func() { f.Now = began }()
	if decl, err := f.Groups.Get(p.load.Group); err == nil && p.purge && f.Rehearsal != nil {
		for _, m := range f.group(p.load.Group).members {
			for i := range decl.DiskBytes {
				f.Rehearsal.Purge(f.Now, m.Name, DiskDevice(i))
			}
		}
	}
	name, unknown := loads.PassName(p.load.Name), f.Unknown
	for range p.passes {
		delete(f.loads, name) // another pass is no second run of a workload
		f.Now += f.prepare(name, p.load.Group, p.pass(prefillDepthOf(f.View, p.load, p.width)), p.width, p.limit, false)
	}
	if f.Unknown && !unknown { // of a pass nothing is known, so of the step not either
		return p.limit
	}
	if p.maxRounds > 0 {
		all := time.Duration(p.maxRounds) * p.round
		name := loads.RoundsName(p.load.Name)
		delete(f.loads, name)
		f.Now += f.prepare(name, p.load.Group, JobUse{Workload: p.load.Name, Runtime: all}, 0, all+DefaultWait, false)
		f.Unknown = true
	}
	return min(f.Now-began, p.limit)
}

// DiskDevice is the name of data disk i in a guest, /dev/sdb onward.
func DiskDevice(i int) string {
	name := ""
	for n := i + 2; n > 0; n = (n - 1) / 26 { // bijective base 26: a, b, … z, aa, …
		name = string(rune('a'+(n-1)%26)) + name
	}
	return "/dev/sd" + name
}

// conditioning is a preconditioning under way. What it has done so far is in the journal after every part of it.
type conditioning struct {
	preconditioning
	e        *Env
	deadline time.Time
	done     result.Preconditioning
}

func (p preconditioning) do(ctx context.Context, e *Env) error {
	now := e.Clock.Now()
	c := &conditioning{preconditioning: p, e: e, deadline: now.Add(p.limit), done: result.Preconditioning{
		Workload: p.load.Name, Group: p.load.Group, Began: now, DiskBytes: p.diskBytes(e.View), BlockBytes: p.block,
		WantPasses: p.passes, MaxRounds: p.maxRounds, State: result.PreconditionGoesOn,
	}}
	e.annotate(p.annotate, "Preconditioning for workload %s", p.load.Name)
	err := c.run(ctx)
	switch {
	case ctx.Err() != nil:
		c.end(result.PreconditionInterrupted, "it was stopped")
		return ctx.Err()
	case err != nil:
		c.end(result.PreconditionFailed, err.Error())
		return err
	}
	e.annotate(p.annotate, "Preconditioned for workload %s: %s", p.load.Name, c.done.Sentence())
	return nil
}

// tell enters how far it is into the journal.
func (c *conditioning) tell() {
	c.done.Seconds = c.e.Clock.Now().Sub(c.done.Began).Seconds()
	done := c.done
	c.e.Record(result.Event{Kind: result.KindPrecondition, Name: c.load.Name, Text: done.Sentence(),
		Data: result.EventData{Preconditioning: &done}})
}

func (c *conditioning) end(state, reason string) {
	c.done.State, c.done.Reason = state, reason
	c.tell()
}

// run does the parts in their order. An error leaves what was done before it in done.
func (c *conditioning) run(ctx context.Context) error {
	vms, err := someMembers(ctx, c.e, c.load.Group)
	if err != nil {
		return fmt.Errorf("workload %q: %w", c.load.Name, err)
	}
	c.done.VMs = len(vms)
	if c.purge {
		if err := c.purgeAll(ctx, vms); err != nil {
			return err
		}
		c.tell()
	}
	for i := range c.passes {
		last := i == c.passes-1
		if err := c.write(ctx, i+1, last); err != nil {
			return err
		}
		if !last || c.maxRounds > 0 {
			c.tell()
		}
	}
	if c.maxRounds == 0 {
		c.end(result.PreconditionWritten, "")
		return nil
	}
	return c.rounds(ctx)
}

// purgeAll empties all data disks.
func (c *conditioning) purgeAll(ctx context.Context, vms []target.VM) error {
	var errs []error
	for _, vm := range vms {
		host, err := c.e.Cluster.Host(vm.Name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		purger, ok := host.(target.DiskPurger)
		if !ok {
			return fmt.Errorf("vm %q: this place cannot purge its disks; leave purge out", vm.Name)
		}
		c.e.Looked.forget(func(of, _ string) bool { return of == vm.Name })
		for _, d := range host.Disks() {
			how, err := purger.PurgeDisk(ctx, d.Device)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			c.done.Purged = how
		}
	}
	if err := errors.Join(errs...); err != nil {
		c.done.Purged = "" // not all of them
		return err
	}
	return nil
}

// write writes all of every disk once, and after the last time looks at them.
func (c *conditioning) write(ctx context.Context, number int, last bool) error {
	left := c.deadline.Sub(c.e.Clock.Now())
	if left <= 0 {
		return c.overdue(number)
	}
	use := c.pass(prefillDepthOf(c.e.View, c.load, c.width))
	s, err := begin(ctx, c.e, c.load, loads.Options{Prefill: true, Whole: true, Block: use.Block, Depth: use.Depth,
		Seed: loads.PassName(c.load.Name) + strconv.Itoa(number)})
	if err != nil {
		return err
	}
	var want int64
	for _, p := range s.Places() {
		for _, d := range p.Host.Disks() {
			want += d.Bytes
		}
	}
	c.done.DiskBytes = want
	began := c.e.Clock.Now()
	within, cancel := clock.WithTimeout(ctx, c.e.Clock, left)
	err = c.e.Loads.Prefill(within, s, c.width, left)
	cancel()
	d := c.e.Loads.Done(s)
	c.done.Passes = append(c.done.Passes, result.Pass{Bytes: int64(min(d.Bytes, math.MaxInt64)), Errors: d.Errors,
		Seconds: c.e.Clock.Now().Sub(began).Seconds()})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !c.e.Clock.Now().Before(c.deadline):
		return c.overdue(number)
	case err != nil:
		return err
	case d.Errors > 0 || int64(d.Bytes) < want:
		return fmt.Errorf("workload %q: pass %d wrote %s of %s, %s failed: is a disk full, read-only or gone? the raw "+
			"output of %s has the tool's words", c.load.Name, number, unit.Bytes(d.Bytes), unit.Bytes(want),
			unit.Plural(int(d.Errors), "write"), s.Name())
	}
	if last {
		return lookAt(ctx, c.e, c.load, s, result.WrittenByPrecondition)
	}
	return nil
}

func (c *conditioning) overdue(number int) error {
	return fmt.Errorf("workload %q: timeout_secs of %s were over in pass %d of %d; give the step more", c.load.Name,
		unit.Duration(c.limit), number, c.passes)
}

// rounds does the workload's own operations until they are steady. That they are not when the last round is done, or
// when there is no time for another, is what there is to report, and no failure.
func (c *conditioning) rounds(ctx context.Context) error {
	for n := 1; n <= c.maxRounds; n++ {
		if c.e.Clock.Now().Add(c.round).After(c.deadline) {
			c.end(result.PreconditionNotReached, fmt.Sprintf("timeout_secs of %s leave no time for another round",
				unit.Duration(c.limit)))
			return nil
		}
		if err := c.roundOf(ctx, n); err != nil {
			return err
		}
		spread, slope, steady := result.SteadyRounds(c.done.Rounds)
		if !math.IsNaN(spread) {
			c.done.Spread, c.done.Slope = &spread, &slope
		}
		if steady {
			c.end(result.Preconditioned, "")
			return nil
		}
		if n < c.maxRounds {
			c.tell()
		}
	}
	c.end(result.PreconditionNotReached, fmt.Sprintf("max_rounds is %d", c.maxRounds))
	return nil
}

// roundOf does one round. Each has a sequence of its own, so that it does not go where the one before has gone.
func (c *conditioning) roundOf(ctx context.Context, number int) error {
	name := loads.RoundsName(c.load.Name)
	s, err := begin(ctx, c.e, c.load, loads.Options{Rounds: true, Runtime: c.round, Seed: name + strconv.Itoa(number)})
	if err != nil {
		return err
	}
	began := c.e.Clock.Now()
	if err := c.e.Loads.StartAll(ctx, s, 0); err != nil {
		return err
	}
	if err := c.e.Loads.Wait(ctx, s, DefaultWait); err != nil {
		return err
	}
	d := c.e.Loads.Done(s)
	if d.Finished < d.VMs {
		return fmt.Errorf("workload %q: round %d: %s went away", c.load.Name, number,
			unit.Plural(d.VMs-d.Finished, "VM"))
	}
	if d.Ops == 0 {
		return fmt.Errorf("workload %q: round %d completed no operation, %s failed", c.load.Name, number,
			unit.Plural(int(d.Errors), "operation"))
	}
	c.done.Rounds = append(c.done.Rounds, result.Round{Began: began, Seconds: d.Longest.Seconds(),
		OpsPerSecond: d.OpsPerSecond, BytesPerSecond: d.BytesPerSecond, Errors: d.Errors})
	return nil
}
