package sim

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// Func acts as a command. It runs on a goroutine of the clock and must wait with Call.Sleep only.
type Func func(*Call) target.Exit

// Call is one running command, as its function sees it.
type Call struct {
	Argv  []string
	Env   []string
	Label string
	Clock clock.Clock

	ctx context.Context
	p   *process
}

// Sleep waits for d and reports whether the command still runs.
func (c *Call) Sleep(d time.Duration) bool { return c.Clock.Sleep(c.ctx, d) == nil }

// Context ends when the command is killed.
func (c *Call) Context() context.Context { return c.ctx }

// VM is the name of the machine that the command runs in.
func (c *Call) VM() string { return c.p.m.Name }

// Print appends to the command's standard output.
func (c *Call) Print(text string) {
	c.p.w.mu.Lock()
	defer c.p.w.mu.Unlock()
	if c.p.out != "" && !c.p.ended {
		c.p.m.files[c.p.out] = append(c.p.m.files[c.p.out], text...)
		c.p.printed()
	}
}

// File is the content of a file in the machine's working folder, nil when there is none.
func (c *Call) File(name string) []byte {
	c.p.w.mu.Lock()
	defer c.p.w.mu.Unlock()
	return append([]byte(nil), c.p.m.files[name]...)
}

// Use adds to what the command has cost.
func (c *Call) Use(u target.Usage) {
	c.p.w.mu.Lock()
	defer c.p.w.mu.Unlock()
	c.p.usage.User += u.User
	c.p.usage.System += u.System
	c.p.usage.MaxRSSBytes = max(c.p.usage.MaxRSSBytes, u.MaxRSSBytes)
}

// Fork gives the command n children; they end with it.
func (c *Call) Fork(n int) {
	c.p.w.mu.Lock()
	defer c.p.w.mu.Unlock()
	if !c.p.ended {
		c.p.children += n
	}
}

// Disk reads the text that a disk holds, and replaces it unless with is nil. Path is as Host.Disks gives it.
func (c *Call) Disk(path string, with *string) (string, bool) {
	c.p.w.mu.Lock()
	defer c.p.w.mu.Unlock()
	for i, d := range c.p.m.disks {
		if d.Path == path {
			if with != nil {
				c.p.m.texts[i] = *with
			}
			return c.p.m.texts[i], true
		}
	}
	return "", false
}

// function finds what a command does. The world's lock must be held.
func (w *World) function(name string) (Func, error) {
	if f := w.commands[name]; f != nil {
		return f, nil
	}
	if strings.HasPrefix(name, "no-such-") {
		return nil, fmt.Errorf("command %q: %w", name, exec.ErrNotFound)
	}
	return func(c *Call) target.Exit {
		if c.p.service {
			c.Sleep(forever)
		}
		c.Sleep(w.o.Runtime)
		return target.Exit{}
	}, nil
}

// builtin are the commands that every world has: print TEXT, exit CODE, sleep DURATION, slow DURATION PART..., spawn
// WORD (a command with a child, for an hour), orphan WORD (leaves a child behind), diskwrite PATH TEXT, diskread PATH,
// burn DURATION.
func builtin() map[string]Func {
	arg := func(c *Call, i int) string {
		if i < len(c.Argv) {
			return c.Argv[i]
		}
		return ""
	}
	duration := func(c *Call) time.Duration {
		d, err := time.ParseDuration(arg(c, 1))
		if err != nil {
			c.Print(err.Error())
		}
		return d
	}
	return map[string]Func{
		"print": func(c *Call) target.Exit { c.Print(arg(c, 1)); return target.Exit{} },
		"exit": func(c *Call) target.Exit {
			code, err := strconv.Atoi(arg(c, 1))
			if err != nil {
				return target.Exit{Code: 2}
			}
			return target.Exit{Code: code}
		},
		"slow": func(c *Call) target.Exit { // slow DURATION PART...
			for _, part := range c.Argv[min(2, len(c.Argv)):] {
				c.Print(part)
				if !c.Sleep(duration(c)) {
					break
				}
			}
			return target.Exit{}
		},
		"sleep":  func(c *Call) target.Exit { c.Sleep(duration(c)); return target.Exit{} },
		"spawn":  func(c *Call) target.Exit { c.Fork(1); c.Sleep(time.Hour); return target.Exit{} },
		"orphan": func(c *Call) target.Exit { c.Fork(1); return target.Exit{} },
		"diskwrite": func(c *Call) target.Exit {
			text := arg(c, 2)
			if _, ok := c.Disk(arg(c, 1), &text); !ok {
				return target.Exit{Code: 1}
			}
			return target.Exit{}
		},
		"diskread": func(c *Call) target.Exit {
			text, ok := c.Disk(arg(c, 1), nil)
			if !ok {
				return target.Exit{Code: 1}
			}
			c.Print(text)
			return target.Exit{}
		},
		"burn": func(c *Call) target.Exit { c.Use(target.Usage{User: duration(c)}); return target.Exit{} },
	}
}
