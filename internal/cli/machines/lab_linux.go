package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	lab "plimsoll/internal/targets/lab/cluster"
)

func LabCommands(con *console.Console) []*cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "lab", Short: "A miniature cluster on this machine: nodes with addresses, power buttons, replicated storage",
		Long: `Lab makes a cluster of nodes on this machine: each with an address of its own (a network namespace), storage of
which every node holds a copy (GlusterFS), and a power controller that ipmitool and Redfish clients drive. Nothing of
this machine's own network is touched. It needs root.

The lab is in the folder of --dir, with all that it has made; "lab down" removes that, also after a crash.`,
		Args: console.NeedVerb, RunE: console.Help,
	}
	c.PersistentFlags().StringVar(&dir, "dir", lab.Folder(),
		"`folder` of the lab (environment: PLIMSOLL_LAB)")
	c.AddCommand(labUp(con, &dir), labStatusCommand(con, &dir), labPower(con, &dir), labExec(con, &dir), labDown(con,
		&dir),
		labImageCommand(con),
		&cobra.Command{Use: "part WORD DIR", Hidden: true, DisableFlagParsing: true, Short: "Be a part of a lab",
			RunE: func(cmd *cobra.Command, given []string) error {
				return lab.Part(cmd.Context(), given, con.Out, con.Err)
			}})
	return []*cobra.Command{c}
}

func labUp(con *console.Console, dir *string) *cobra.Command {
	o := lab.Options{}
	c := &cobra.Command{
		Use: "up", Short: "Make a lab and wait until its nodes are ready", Args: console.Args(0, 0, "argument"),
		Example: "  plimsoll lab up --nodes 3\n  plimsoll lab up --nodes 3 --storage shared --dir /var/tmp/lab",
		RunE: func(*cobra.Command, []string) (err error) {
			if o.Program, err = os.Executable(); err != nil {
				return exit.Errorf(exit.Failed, "", "lab: %w", err)
			}
			o.Dir = *dir
			ctx, stop := con.Interruptible()
			defer stop()
			l, err := lab.Up(ctx, o)
			if err != nil {
				return exit.Errorf(exit.Failed, "", "%w", err)
			}
			return labStatusOf(ctx, con, l)
		},
	}
	c.Flags().IntVar(&o.Nodes, "nodes", 3, "`number` of nodes, 1 to 9")
	c.Flags().StringVar(&o.Storage, "storage", lab.Gluster,
		"`kind`: gluster, with up to three copies, or shared, one folder without copies, for quick tests")
	return c
}

// LabPlaces are where labs write.
func LabPlaces() []string { return lab.Places() }

// openLab finds the lab and starts controllers of it again that are dead.
func openLab(ctx context.Context, con *console.Console, dir string) (*lab.Lab, error) {
	l, err := lab.Open(dir)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%w", err)
	}
	mended, err := l.Mend(ctx)
	if len(mended) > 0 {
		visible.Fprintf(con.Err, "plimsoll: lab: controllers did not answer and were started again: %s\n",
			strings.Join(mended, ", "))
	}
	if err != nil { // nodes can be looked at and switched without
		visible.Fprintf(con.Err, "plimsoll: %v\n", err)
	}
	return l, nil
}

// labStatus holds what lab status --json prints.
type labStatus struct {
	ID      string    `json:"id"`
	Dir     string    `json:"dir"`
	Storage string    `json:"storage"`
	Nodes   []labNode `json:"nodes"`
	// Of replicated storage, nil without: entries to heal, -1 while that cannot be told.
	Replication *lab.Replication `json:"replication,omitempty"`
	Error       string           `json:"error,omitempty"` // why something is not known
}

type labNode struct {
	Name    string            `json:"name"`
	Address netip.Addr        `json:"address"`
	Power   target.PowerState `json:"power"`
	Ready   bool              `json:"ready"`
	NetNS   string            `json:"netns"`
	Mount   string            `json:"mount"`
	BMC     lab.BMC           `json:"bmc"`
	Answers bool              `json:"bmc_answers"`
}

func labStatusCommand(con *console.Console, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what the nodes and the copies of the storage are like", Args: console.Args(0, 0,
			"argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := openLab(cmd.Context(), con, *dir)
			if err != nil {
				return err
			}
			return labStatusOf(cmd.Context(), con, l)
		},
	}
}

func labStatusOf(ctx context.Context, con *console.Console, l *lab.Lab) error {
	s := labStatus{ID: l.ID(), Dir: l.Dir(), Storage: l.Storage()}
	var unknown []string
	for _, n := range l.Nodes() {
		power, ready, err := n.State(ctx)
		if err != nil {
			unknown = append(unknown, err.Error())
		}
		s.Nodes = append(s.Nodes, labNode{n.Name(), n.Address(), power, ready, n.NetNS(), n.Mount(), n.BMC(),
			n.BMCAnswers(ctx) == nil})
	}
	if l.Storage() == lab.Gluster {
		r, err := l.Replication(ctx)
		if s.Replication = &r; err != nil {
			s.Replication, unknown = nil, append(unknown, err.Error())
		}
	}
	s.Error = strings.Join(unknown, "; ")
	if con.JSON {
		return con.PrintJSON(s)
	}
	return printLab(con, s)
}

func printLab(con *console.Console, s labStatus) error {
	t := terminal.Table{Head: []string{"NODE", "ADDRESS", "POWER", "READY", "BRICK", "CONTROLLER"}}
	for i, n := range s.Nodes {
		ready, brick := "no", "-"
		if n.Ready {
			ready = "yes"
		}
		if s.Replication != nil && i < len(s.Replication.Bricks) {
			if brick = "offline"; s.Replication.Bricks[i] {
				brick = "online"
			}
		}
		bmc := n.BMC.Address.String()
		if !n.Answers {
			bmc += " (no answer)"
		}
		t.Add(n.Name, n.Address.String(), string(n.Power), ready, brick, bmc)
	}
	visible.Fprintf(con.Out, "lab %s in %s\n", s.ID, s.Dir)
	if err := t.Write(con.Out); err != nil {
		return err
	}
	switch {
	case s.Storage == lab.Shared:
		visible.Fprintf(con.Out, "storage: one folder for all nodes, no copies\n")
	case s.Replication == nil:
		visible.Fprintf(con.Out, "storage: its copies are not known\n")
	case s.Replication.Heals < 0:
		visible.Fprintf(con.Out, "storage: a brick is down: what it misses is healed when it is back\n")
	default:
		visible.Fprintf(con.Out, "storage: %d entries to heal\n", s.Replication.Heals)
	}
	if s.Error != "" {
		visible.Fprintf(con.Out, "not known: %s\n", s.Error)
	}
	return nil
}

func labPower(con *console.Console, dir *string) *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use: "power NODE on|off|cycle|shutdown|status", Short: "Press a node's power button",
		Args: console.Args(2, 2, "node and action"),
		Long: `Power switches a node, past the protocols of its controller. Off kills whatever runs on the node; shutdown
presses the power buttons of its guests first and returns when that has begun. With --wait it returns when the node
is off, or on with its storage there and healed.`,
		Example: "  plimsoll lab power 2 off\n  plimsoll lab power 2 on --wait 2m",
		RunE: func(cmd *cobra.Command, given []string) error {
			if wait < 0 {
				return exit.Usagef("", "lab power: --wait %v: must not be negative", wait)
			}
			l, err := openLab(cmd.Context(), con, *dir)
			if err != nil {
				return err
			}
			number, err := strconv.Atoi(given[0])
			if err != nil {
				return exit.Usagef("", "lab power: node %q: must be a number, as 1", given[0])
			}
			n, err := l.Node(number)
			if err != nil {
				return exit.Errorf(exit.Usage, "", "%w", err)
			}
			ctx, stop := con.Interruptible()
			defer stop()
			if err := pressPower(ctx, con, l, n, given[1], wait); err != nil {
				return exit.Errorf(cmp.Or(exit.Code(err), exit.Failed), "", "%w", err)
			}
			return nil
		},
	}
	c.Flags().DurationVar(&wait, "wait", 0, "`time` to wait at most for what was asked (0: not at all)")
	return c
}

func pressPower(ctx context.Context, con *console.Console, l *lab.Lab, n *lab.Node, action string,
	wait time.Duration) (err error) {
	c, want := n.Power(), target.On
	switch action {
	case "status":
		state, err := c.State(ctx)
		if err == nil && con.JSON {
			return con.PrintJSON(struct {
				Node  string `json:"node"`
				Power any    `json:"power"`
			}{n.Name(), state})
		}
		visible.Fprintf(con.Out, "%s\n", state)
		return err
	case "on":
		err = c.PowerOn(ctx)
	case "off":
		want, err = target.Off, c.PowerOff(ctx)
	case "cycle":
		err = lab.Cycle(ctx, c)
	case "shutdown":
		want, err = target.Off, c.Shutdown(ctx)
	default:
		return exit.Usagef("", "lab power: %q: must be on, off, cycle, shutdown or status", action)
	}
	if err != nil || wait == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if want == target.On {
		if err := l.WaitReady(ctx, n); err != nil {
			return err
		}
		return l.WaitHealed(ctx)
	}
	return n.WaitOff(ctx)
}

func labExec(con *console.Console, dir *string) *cobra.Command {
	var node int
	c := &cobra.Command{
		Use: "exec [--node N] -- COMMAND...", Short: "Run a command in the lab's network, or as part of a node",
		Args: console.Args(1, 1000, "command"),
		Long: `Exec runs a command in the lab's network, where its nodes, guests and controllers are reached, or with --node as
a process of that node, which ends when the node's power is cut. Files are those of this machine. Its exit code is that
of the command.`,
		Example: "  plimsoll lab exec -- ping -c 1 10.77.0.11\n  plimsoll lab exec --node 1 -- ip address",
		RunE: func(cmd *cobra.Command, given []string) error {
			l, err := openLab(cmd.Context(), con, *dir)
			if err != nil {
				return err
			}
			command := exec.CommandContext(cmd.Context(), given[0], given[1:]...)
			command.Stdin, command.Stdout, command.Stderr = con.In, con.Out, con.Err
			if node == 0 {
				err = l.Enter(command.Start)
			} else {
				var n *lab.Node
				if n, err = l.Node(node); err == nil {
					err = n.Start(command)
				}
			}
			if err == nil {
				err = command.Wait()
			}
			var ended *exec.ExitError
			if errors.As(err, &ended) {
				return &exit.Error{Code: cmp.Or(max(ended.ExitCode(), 0), exit.Failed), Said: ended.Exited(),
					Err: fmt.Errorf("lab exec: %s: %w", given[0], err)}
			}
			if err != nil {
				return exit.Errorf(exit.Failed, "", "lab exec: %w", err)
			}
			return nil
		},
	}
	c.Flags().IntVar(&node, "node", 0, "`number` of the node to run it on (default: the lab's switch)")
	return c
}

func labDown(con *console.Console, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Remove a lab with all that it has made, its guests and their disks included",
		Args: console.Args(0, 0, "argument"),
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := con.Interruptible()
			defer stop()
			remains, err := lab.Down(ctx, *dir)
			if con.JSON {
				err = errors.Join(err, con.PrintJSON(struct {
					Dir     string   `json:"dir"`
					Remains []string `json:"remains"`
				}{*dir, append([]string{}, remains...)}))
			}
			if len(remains) > 0 {
				return exit.Errorf(exit.Uncleaned, "mend what is said above and call it again", "%w", err)
			}
			if err != nil {
				return exit.Errorf(exit.Failed, "", "%w", err)
			}
			if !con.JSON && !con.Quiet {
				visible.Fprintf(con.Out, "%s: removed\n", *dir)
			}
			return nil
		},
	}
}
