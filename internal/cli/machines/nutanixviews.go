package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/exporters/nutanix"
	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
)

// viewColumn is one column of a live table.
type viewColumn struct {
	head    string  // as the table shows it, and as --sort takes it
	key     string  // in JSON: base units
	counter string  // of prism.Counters
	scale   float64 // of what is shown to the base unit
	digits  int
}

// view is one live table.
type view struct {
	name, short, long string
	kind              prism.Kind // where --of may choose none
	sort              string
	width             int // of the name
	columns           []viewColumn
}

const mega = 1e6

var nutanixViews = []view{
	{
		name: "iostat", short: "Show what storage containers, or other parts of a cluster, do, like iostat",
		kind: prism.Container,
		long: `Iostat shows reads and writes a second, the data they move (MB is 10^6 bytes) and their mean latency, for every
storage container, or for clusters, hosts, VMs or virtual disks with --of.`,
		sort: "iops", width: 24,
		columns: []viewColumn{
			{"iops", "iops", "controller_num_iops", 1, 0},
			{"r/s", "reads_per_second", "controller_num_read_iops", 1, 0},
			{"w/s", "writes_per_second", "controller_num_write_iops", 1, 0},
			{"rMB/s", "read_bytes_per_second", "controller_read_io_bandwidth_kBps", mega, 1},
			{"wMB/s", "write_bytes_per_second", "controller_write_io_bandwidth_kBps", mega, 1},
			{"r_ms", "read_latency_seconds", "controller_avg_read_io_latency_usecs", 1e-3, 2},
			{"w_ms", "write_latency_seconds", "controller_avg_write_io_latency_usecs", 1e-3, 2},
		},
	},
	{
		name: "vmtop", short: "Show the VMs of a cluster that do most, like top", kind: prism.VM,
		long: `Vmtop shows VMs with their host, the share of their processors that they use (cpu%) and wait for (rdy%), the share of
their memory, and what they ask of storage.`,
		sort: "cpu%", width: 20,
		columns: []viewColumn{
			{"cpu%", "cpu_usage_ratio", "hypervisor_cpu_usage_ppm", 1e-2, 1},
			{"rdy%", "cpu_ready_ratio", "hypervisor_cpu_ready_time_ppm", 1e-2, 1},
			{"mem%", "memory_usage_ratio", "hypervisor_memory_usage_ppm", 1e-2, 1},
			{"iops", "iops", "controller_num_iops", 1, 0},
			{"MB/s", "bytes_per_second", "controller_io_bandwidth_kBps", mega, 1},
			{"ms", "latency_seconds", "controller_avg_io_latency_usecs", 1e-3, 2},
		},
	},
}

// viewFlags say what of a table is shown, and how often.
type viewFlags struct {
	nutanixFlags
	of, sort, filter string
	rows, count      int
	reverse          bool
}

func nutanixViewCommands(con *console.Console) []*cobra.Command {
	var out []*cobra.Command
	for _, v := range nutanixViews {
		f := viewFlags{of: v.kind.String()}
		c := &cobra.Command{
			Use: v.name, Short: v.short, Args: console.Args(0, 0, "argument"),
			Long: v.long + `

The table is made anew at each poll; the API's own values last some 20 seconds. Mean latencies of few operations say
nothing and are left out (--iops-floor). --json prints one poll in base units and ends.`,
			Example: "  plimsoll nutanix " + v.name +
				" --url https://prism.example:9440 --user viewer --password env:PRISM_PASSWORD --sort iops",
			RunE: func(cmd *cobra.Command, _ []string) error { return watchNutanix(con, console.Phase(cmd), v, f) },
		}
		f.register(c)
		flags := c.Flags()
		if v.kind != prism.VM {
			flags.StringVar(&f.of, "of", f.of, "`kind` to show: cluster, host, container, vm or disk")
		}
		var names []string
		for _, column := range v.columns {
			names = append(names, column.head)
		}
		flags.StringVar(&f.sort, "sort", v.sort, "`column` to order by: name, "+strings.Join(names, ", "))
		flags.BoolVar(&f.reverse, "reverse", false, "the smallest first, or names from the last")
		flags.StringVar(&f.filter, "filter", "", "only what has a name, host or VM that matches this regular `expression`")
		flags.IntVar(&f.rows, "rows", 20, "`number` of rows at most; 0 for all")
		flags.IntVar(&f.count, "count", 0, "`number` of tables; 0 goes on until interrupted (one with --json)")
		out = append(out, c)
	}
	return append(out, nutanixSimulateCommand(con))
}

// check returns what is wrong with the flags, all at once, and the expression of the filter.
func (f *viewFlags) check(v view) (*regexp.Regexp, error) {
	var bad []error
	known := f.sort == "name" || slices.ContainsFunc(v.columns, func(c viewColumn) bool { return c.head == f.sort })
	if !known {
		bad = append(bad, fmt.Errorf("--sort: no column is called %q", f.sort))
	}
	if f.rows < 0 || f.count < 0 {
		bad = append(bad, errors.New("--rows and --count: want 0 or more"))
	}
	match, err := regexp.Compile(f.filter)
	if err != nil {
		bad = append(bad, fmt.Errorf("--filter: %w", err))
	}
	f.kinds = []string{f.of}
	return match, errors.Join(bad...)
}

// watchNutanix polls and prints until it has printed enough.
func watchNutanix(con *console.Console, phase string, v view, f viewFlags) error {
	match, err := f.check(v)
	config, e := nutanixConfig(con, f.nutanixFlags)
	config.Kinds = f.kinds
	if e == nil {
		e = config.Check()
	}
	if err = errors.Join(err, e); err == nil && len(config.Clusters) != 1 {
		err = fmt.Errorf("%s shows one cluster: give --url, or a file of one", v.name)
	}
	if err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	x, err := nutanix.New(console.BuildVersion().Program, config, con.Logger())
	if err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	for _, k := range prism.Kinds() {
		if k.String() == f.of {
			v.kind = k
		}
	}
	ctx, stop := con.Interruptible()
	defer stop()
	if con.JSON && f.count == 0 {
		f.count = 1
	}
	for n := 1; ; n++ {
		began := time.Now()
		one, cancel := context.WithTimeout(ctx, max(config.Poll, time.Minute))
		x.PollOnce(one)
		cancel()
		if ctx.Err() != nil {
			return nil // whoever watches ends it so
		}
		if err := showNutanix(con, v, f, x, match, config.Clusters[0].Name); err != nil {
			return err
		}
		if n == f.count {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(config.Poll - time.Since(began)):
		}
	}
	if reason := x.Failure(); reason != "" {
		return exit.Errorf(exit.Failed, "the line above says more", "%spoll failed: %s", phase, reason)
	}
	return nil
}

// showNutanix prints what is known now.
func showNutanix(con *console.Console, v view, f viewFlags, x *nutanix.Exporter, match *regexp.Regexp,
	cluster string) error {
	all, at := x.Entities(v.kind)
	rows := v.chosen(all, f, match)
	if con.JSON {
		return con.PrintJSON(v.json(rows, cluster, at))
	}
	terminal.Clear(con.Out)
	head := fmt.Sprintf("%s: %ss: %d", cluster, v.kind, len(all))
	if len(rows) < len(all) {
		head += fmt.Sprintf(", %d shown", len(rows))
	}
	if !at.IsZero() {
		head += ", as of " + at.Format("15:04:05")
	}
	if reason := x.Failure(); reason != "" {
		head += ": the last poll failed (" + string(reason) + ")"
	}
	visible.Fprintf(con.Out, "%s\n", head)
	t := v.table(rows)
	return t.Write(con.Out)
}

// chosen are the entities to show, in order.
func (v view) chosen(all []prism.Entity, f viewFlags, match *regexp.Regexp) []*prism.Entity {
	var out []*prism.Entity
	for i := range all {
		e := &all[i]
		if match.MatchString(v.label(e)) || match.MatchString(e.Host) || match.MatchString(e.VM) {
			out = append(out, e)
		}
	}
	counter := ""
	for _, c := range v.columns {
		if c.head == f.sort {
			counter = c.counter
		}
	}
	of := func(e *prism.Entity) float64 {
		if x, ok := e.Get(counter); ok {
			return x
		}
		return math.Inf(-1) // what has no value comes last
	}
	slices.SortStableFunc(out, func(x, y *prism.Entity) int {
		way := 0
		if counter != "" {
			way = cmp.Compare(of(y), of(x))
		}
		if way == 0 {
			way = cmp.Compare(v.label(x), v.label(y))
		}
		if f.reverse {
			way = -way
		}
		return way
	})
	if f.rows > 0 && len(out) > f.rows {
		out = out[:f.rows]
	}
	return out
}

// label returns what an entity is called in the table.
func (v view) label(e *prism.Entity) string {
	if v.kind == prism.Disk {
		return strings.Trim(e.VM+" "+e.Address, " ")
	}
	return cmp.Or(e.Name, e.ID)
}

// table fits 80 columns.
func (v view) table(rows []*prism.Entity) terminal.Table {
	t := terminal.Table{Head: []string{strings.ToUpper(v.kind.String())}, Right: []bool{false}}
	hosts := v.name == "vmtop"
	if hosts {
		t.Head, t.Right = append(t.Head, "HOST"), append(t.Right, false)
	}
	for _, c := range v.columns {
		t.Head, t.Right = append(t.Head, c.head), append(t.Right, true)
	}
	for _, e := range rows {
		cells := []string{visible.Cut(visible.Line(v.label(e)), v.width)}
		if hosts {
			cells = append(cells, visible.Cut(visible.Line(e.Host), 14))
		}
		for _, c := range v.columns {
			cell := "-"
			if x, ok := e.Get(c.counter); ok {
				cell = strconv.FormatFloat(x/c.scale, 'f', c.digits, 64)
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	return t
}

// viewJSON is a table as JSON, in base units; what is not known is not there.
type viewJSON struct {
	Cluster  string           `json:"cluster"`
	Kind     string           `json:"kind"`
	At       string           `json:"at,omitempty"`
	Entities []untyped.Object `json:"entities"`
}

func (v view) json(rows []*prism.Entity, cluster string, at time.Time) viewJSON {
	out := viewJSON{Cluster: cluster, Kind: v.kind.String(), Entities: []untyped.Object{}}
	if !at.IsZero() {
		out.At = at.UTC().Format(time.RFC3339)
	}
	for _, e := range rows {
		one := untyped.Object{"uuid": e.ID, "name": e.Name}
		for key, text := range map[string]string{"host": e.Host, "vm": e.VM, "address": e.Address, "state": e.State} {
			if text != "" {
				one[key] = text
			}
		}
		for _, c := range v.columns {
			if x, ok := e.Get(c.counter); ok {
				one[c.key] = x
			}
		}
		out.Entities = append(out.Entities, one)
	}
	return out
}
