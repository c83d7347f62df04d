package step

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func experimentalSteps() Registry {
	return Registry{
		"experimental.Shell":          single(shell),
		"experimental.WaitOplogEmpty": single(waitWriteLog),
	}
}

func shell(a scenario.Args, _ View) (*action, error) {
	command := a.String("cmd")
	return &action{
		text:     fmt.Sprintf("run a command on this machine: %s", short(command)),
		requires: []target.Capability{target.ControllerCommands},
		check: func(v View) error {
			if !v.HostCommands {
				return errors.New("commands of a scenario on this machine are off; allow them with " +
					"--allow-host-commands if you trust the scenario")
			}
			return nil
		},
		do: func(ctx context.Context, e *Env) error {
			e.annotate(a.Bool("annotate"), "Running on this machine: %s", short(command))
			return hostCommand(ctx, e, command)
		},
	}, nil
}

// hostCommand runs a shell command in the run folder. It and its children die together when ctx ends. The end of what
// it printed is kept for the error.
func hostCommand(ctx context.Context, e *Env, command string) error {
	const kept = 2000
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = e.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out := &tail{most: kept}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("command %s: %w%s", short(command), err,
			after("; it printed: ", strings.TrimSpace(out.String())))
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	bytes.Buffer
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.Buffer.Write(p)
	if over := t.Len() - t.most; over > 0 {
		t.Next(over)
	}
	return len(p), nil
}

// waitWriteLog waits until every storage controller has drained its write log. A cluster without any is drained
// already.
func waitWriteLog(a scenario.Args, _ View) (*action, error) {
	limit := a.Seconds("timeout")
	return &action{
		text:     fmt.Sprintf("wait until the storage's write log is empty, at most %s", unit.Duration(limit)),
		estimate: func(f *Forecast) time.Duration { return f.drain(limit) },
		do: func(ctx context.Context, e *Env) error {
			source, ok := e.Cluster.(target.WriteLog)
			if !ok || !e.Facts.Can(target.WriteLogDrain) {
				e.Warn("experimental.WaitOplogEmpty: this target has no storage controllers to ask; taken as empty")
				return nil
			}
			return e.until(ctx, "write log", e.pollEvery(writeLogPoll), limit,
				func(ctx context.Context) (bool, string, error) {
					logs, err := source.WriteLogBytes(ctx)
					if err != nil {
						return false, err.Error(), nil
					}
					if len(logs) == 0 {
						e.Warn("experimental.WaitOplogEmpty: this target has no storage controllers to ask; taken " +
							"as empty")
						return true, "", nil
					}
					var left int64
					for _, b := range logs {
						left += b
					}
					return left == 0, unit.Bytes(left).String() + " in it", nil
				})
		},
	}, nil
}

const writeLogPoll = 5 * time.Second

// drain is how long it takes until the write logs are empty, where they can be looked at.
func (f *Forecast) drain(limit time.Duration) time.Duration {
	if !f.Facts.Can(target.WriteLogDrain) {
		return 0
	}
	source, ok := f.Rehearsal.(target.WriteLog)
	if !ok {
		f.Unknown = true
		return limit
	}
	for d := time.Duration(0); d < limit; d += writeLogPoll {
		f.until(f.Now+d, func() bool { return false })
		logs, err := source.WriteLogBytes(context.Background())
		if left := slices.Max(append(slices.Collect(maps.Values(logs)), 0)); err != nil || left == 0 {
			return d
		}
	}
	f.warn("the write log is not expected to be empty within %s", unit.Duration(limit))
	return limit
}
