package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/result"
	"plimsoll/unit"
)

// tryTarget makes a machine of one small disk on a place, switches it on, runs a command there, clones it where that is
// claimed, removes all of it, and says how long that took. What can only be seen by doing it, as whether an image is
// there, is an error; clones that were claimed and do not come are missing then. What it waits for is told meanwhile.
func tryTarget(ctx context.Context, t target.Target, facts *target.Facts, now time.Time,
	tell func(format string, args ...any)) (said string, err error) {
	for _, c := range []target.Capability{target.VMCreation, target.VMPowerControl, target.GuestCommands} {
		if !facts.Can(c) {
			return "", fmt.Errorf("try: a machine has to be made there, and it lacks %s: %s", c, facts.Missing[c])
		}
	}
	dir, err := os.MkdirTemp("", "plimsoll-try-")
	if err != nil {
		return "", err
	}
	var mu sync.Mutex
	var steps []string
	cluster, err := t.Provision(ctx, target.Request{RunID: "try-" + now.UTC().Format("20060102-150405"), StateDir: dir,
		DiskBytes: trySize, Log: tell, Operated: func(o result.PlatformOperation) {
			mu.Lock()
			defer mu.Unlock()
			steps = append(steps, fmt.Sprintf("%s %s", o.Name, seconds(o.Seconds)))
		}})
	if err == nil {
		said, err = tryMachine(ctx, cluster, facts)
		err = errors.Join(err, cluster.Close())
	}
	remains, gone := t.Destroy(context.WithoutCancel(ctx), dir)
	if len(remains) > 0 {
		gone = errors.Join(fmt.Errorf("what remains: %s", unit.List(remains, 5)), gone)
	}
	if gone == nil {
		gone = os.RemoveAll(dir)
	} else {
		gone = fmt.Errorf("%w; its record is %s", gone, dir)
	}
	mu.Lock()
	defer mu.Unlock()
	if err = errors.Join(err, gone); err != nil {
		return "", fmt.Errorf("try: %w", err)
	}
	if len(steps) > 0 {
		said += " (" + strings.Join(steps, ", ") + ")"
	}
	return "Tried: " + said + "; all of it is removed.", nil
}

const trySize = 16 << 20

func seconds(s float64) string {
	return unit.Duration(s * float64(time.Second)).String()
}

func tryMachine(ctx context.Context, cluster target.Cluster, facts *target.Facts) (string, error) {
	maker, makes := cluster.(target.VMMaker)
	power, powers := cluster.(target.VMPower)
	if !makes || !powers {
		return "", errors.New("no machine can be made and switched on there")
	}
	began := time.Now()
	err := maker.CreateTemplate(ctx, target.Template{Name: "try-template", Group: "try", Image: "try", CPUs: 1,
		MemoryBytes: 256 << 20, DiskBytes: []int64{trySize}})
	if err == nil {
		err = maker.Clone(ctx, target.Clone{Source: "try-template", Group: "try",
			Members: []target.Placement{{Name: "try"}}})
	}
	if err == nil {
		err = power.PowerOn(ctx, []string{"try"}, 1)
	}
	if err != nil {
		return "", err
	}
	said := "a machine with a disk answered after " + seconds(time.Since(began).Seconds())
	host, err := cluster.Host("try")
	if err != nil {
		return "", err
	}
	p, err := host.Start(ctx, target.Command{Argv: []string{"sh", "-c", "exit 7"}})
	if err != nil {
		return "", err
	}
	if exit, err := p.Wait(ctx); err != nil || exit.Code != 7 {
		return "", cmp.Or(err, fmt.Errorf("a command there that ends with 7 ended with %+v", exit))
	}
	if reader, is := host.(target.ClockReader); is {
		if clock, err := reader.ReadClock(ctx); err == nil {
			way := map[bool]string{true: "behind", false: "ahead"}[clock.Ahead < 0]
			said += fmt.Sprintf(", its clock is %s %s", unit.Duration(clock.Ahead.Abs()), way)
		}
	}
	if facts.Can(target.VMClones) {
		began := time.Now()
		err := maker.Clone(ctx, target.Clone{Source: "try", Group: "try",
			Members: []target.Placement{{Name: "try-clone"}}})
		if err == nil {
			err = power.PowerOn(ctx, []string{"try-clone"}, 1)
		}
		switch {
		case ctx.Err() != nil:
			return "", err
		case err == nil:
			said += ", a clone of it after " + seconds(time.Since(began).Seconds())
		default:
			said += ", a clone of it failed"
			delete(facts.Capabilities, target.VMClones)
			if facts.Missing == nil {
				facts.Missing = map[target.Capability]string{}
			}
			facts.Missing[target.VMClones] = fmt.Sprintf("tried: %v", err)
		}
	}
	return said, maker.Delete(ctx, []string{"try-clone", "try", "try-template"})
}
