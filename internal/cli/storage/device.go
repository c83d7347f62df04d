// Package storage is the commands that look at and write devices and files: device inspect and check, trace, convert,
// content, integrity, vioperf.
package storage

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/storage/device"
	"plimsoll/internal/storage/device/guard"
	"plimsoll/unit"
)

// Devices are those of a machine, as its system shows them.
type Devices struct {
	*console.Console
	RunsDir *string // --dir, which no device may hold that is overwritten
	System  fs.FS   // for tests; nil is this machine
}

// ConsentHelp says what a consent is.
const ConsentHelp = "consent `phrase` of a block device that is to be overwritten, as plimsoll device check prints it"

func (dv *Devices) DeviceInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect PATH", Short: "Say what a block device is and how it is connected", Args: console.Args(1, 1,
			"path"),
		Long: `Inspect prints what the kernel tells of a block device: who made it, its sizes, queues and caches, partitions and
whether they are aligned, what is made of it, where it is mounted, the marks that software has left on it, and the path
of its bytes to the processor: every link with what was agreed on, what both ends could do, and its theoretical ceiling.
The narrowest is named. What is not known is printed with the reason.

PATH is a device (/dev/sdb, a link in /dev/disk/by-id, a partition), or a file or folder: then it is the device below.
Nothing is written, and only the places of known marks are read. As an ordinary user the content cannot be read.`,
		Example: `  plimsoll device inspect /dev/nvme0n1
  plimsoll device inspect /var/lib/postgresql --json`,
		RunE: func(cmd *cobra.Command, given []string) error { return dv.inspectDevice(cmd.Context(), given[0]) },
	}
}

func (dv *Devices) DeviceCheckCommand() *cobra.Command {
	var consent string
	c := &cobra.Command{
		Use: "check PATH", Short: "Say whether a block device may be overwritten, and all that stands against it",
		Args: console.Args(1, 1, "path"),
		Long: `Check is the guard before which every write of plimsoll's to a block device comes. It objects to a device that is
mounted in any namespace, held by LVM, RAID, encryption or multipath, swap, partitioned, marked by a file system or a
volume manager (its partitions and its disk too), behind another loop device, open for writing, held exclusively,
read-only, the system's or the run folder's, or not to be told from others. All objections are printed at once, each
with what to do about it. Nothing overrides them.

Whoever wants to overwrite a device gives its consent phrase with --consent: the model and serial number that this
command and inspect print. With --consent, check also says whether it is the consent for this device.

Exit code 0: nothing stands against it; 4: refused.`,
		Example: `  plimsoll device check /dev/nvme1n1
  plimsoll device check /dev/nvme1n1 --consent "INTEL SSDPE21D280GA PHM27513004A280AGN"`,
		RunE: func(cmd *cobra.Command, given []string) error {
			return dv.checkDevice(cmd.Context(), given[0], consent, cmd.Flags().Changed("consent"))
		},
	}
	c.Flags().StringVar(&consent, "consent", "", ConsentHelp)
	return c
}

// machine is where devices are looked for: this machine, unless a test has another.
func (dv *Devices) machine() fs.FS {
	if dv.System != nil {
		return dv.System
	}
	return os.DirFS("/")
}

func (dv *Devices) inspectDevice(ctx context.Context, given string) error {
	system := dv.machine()
	path, err := filepath.Abs(given)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "device inspect: %w", err)
	}
	place, err := device.Find(system, path)
	var d device.Device
	if err == nil {
		d, err = device.Read(system, place.Device)
	}
	if err != nil {
		return exit.Errorf(exit.Failed, "give a block device, or a file or folder that lies on one",
			"device inspect: %w", err)
	}
	place.Path = given
	if d.Signatures, err = guard.Signatures(ctx, system, d); err != nil {
		d.Unknown["signatures"] = err.Error()
	}
	if dv.System == nil {
		entitle(ctx, &d)
	}
	if dv.JSON {
		return dv.PrintJSON(struct {
			device.Place
			Found device.Device `json:"device"`
		}{place, d})
	}
	if place.Mount != nil {
		visible.Fprintf(dv.Out, "%s lies on %s, mounted on %s (%s %s)\n\n", given, d.Node, place.Mount.Point,
			place.Mount.FSType, strings.Join(place.Mount.Options, ","))
	}
	return printDevice(dv.Console, d, "")
}

// entitle gives PCI functions the names of lspci, where that is installed.
func entitle(ctx context.Context, d *device.Device) {
	lspci, err := exec.LookPath("lspci")
	if err != nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	for i, h := range d.Path {
		if h.Address == "" {
			continue
		}
		out, err := exec.CommandContext(ctx, lspci, "-D", "-s", h.Address).Output()
		if err != nil {
			continue
		}
		line, _, _ := strings.Cut(string(out), "\n")
		_, d.Path[i].Title, _ = strings.Cut(line, " ")
	}
	if d.Disk != nil {
		entitle(ctx, d.Disk)
	}
	for i := range d.Members {
		entitle(ctx, &d.Members[i])
	}
}

// printDevice prints a device and what it is made of, for people.
func printDevice(con *console.Console, d device.Device, relation string) error {
	media := d.Media
	if media == "" {
		media = string(d.Kind)
	}
	visible.Fprintf(con.Out, "%s: %s%s\n", d.Node, relation, media)
	t := &terminal.Table{Head: []string{"WHAT", "VALUE"}}
	add := func(what, value string) {
		if value != "" {
			t.Add(what, value)
		}
	}
	add("model", strings.TrimSpace(d.Vendor+" "+d.Model))
	add("firmware", d.Firmware)
	add("serial number", d.Serial)
	add("WWN", d.WWN)
	add("name", d.Label)
	add("UUID", d.UUID)
	add("file", d.Backing)
	add("by-id", strings.Join(d.ByID, ", "))
	add("size", fmt.Sprintf("%v (%s bytes)", unit.Bytes(d.SizeBytes), unit.Thousands(d.SizeBytes)))
	if d.Kind == device.Partition {
		add("begins at", fmt.Sprintf("byte %s", unit.Thousands(d.StartBytes)))
		for _, m := range d.Alignment {
			add("not aligned", misalignment(m))
		}
	} else {
		queueRows(add, d)
	}
	if d.ReadOnly {
		add("read-only", "yes")
	}
	add("made of it", strings.Join(d.Holders, ", "))
	for _, m := range d.Mounts {
		add("mounted on", fmt.Sprintf("%s (%s)", m.Point, m.FSType))
	}
	if d.Swap {
		add("swap", "in use")
	}
	for _, s := range d.Signatures {
		add("mark", s.String())
	}
	if d.Identity.Phrase != "" {
		add("consent phrase", fmt.Sprintf("%s  (pinned by %s)", d.Identity.Phrase, d.Identity.By))
	}
	for _, member := range slices.Sorted(maps.Keys(d.Unknown)) {
		add(strings.ReplaceAll(strings.TrimPrefix(member, "queue."), "_", " "), "unknown: "+d.Unknown[member])
	}
	if err := t.Write(con.Out); err != nil {
		return err
	}
	if err := printParts(con, d); err != nil {
		return err
	}
	if err := printPath(con, d); err != nil {
		return err
	}
	if d.Disk != nil {
		visible.Fprintf(con.Out, "\n")
		return printDevice(con, *d.Disk, "the disk of "+d.Name+", ")
	}
	for _, m := range d.Members {
		visible.Fprintf(con.Out, "\n")
		if err := printDevice(con, m, d.Name+" is made of it, "); err != nil {
			return err
		}
	}
	return nil
}

func misalignment(m device.Misaligned) string {
	return fmt.Sprintf("with %s of %v, off by %v: %s", m.Against, unit.Bytes(m.Bytes), unit.Bytes(m.Off), m.Why)
}

func queueRows(add func(what, value string), d device.Device) {
	q := d.Queue
	size := func(n int64) string {
		if n == 0 {
			return ""
		}
		return unit.Bytes(n).String()
	}
	count := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	add("logical block", size(q.LogicalBlockBytes))
	add("physical block", size(q.PhysicalBlockBytes))
	add("optimal request", size(q.OptimalIOBytes))
	if d.Unknown["queue.rotational"] == "" {
		add("rotational", map[bool]string{true: "yes", false: "no"}[q.Rotational])
	}
	add("scheduler", q.Scheduler)
	add("requests queued", count(q.Requests))
	add("device depth", count(q.Depth))
	add("hardware queues", count(q.HardwareQueues))
	add("largest transfer", size(q.MaxTransferBytes))
	add("device's largest", size(q.MaxHardwareBytes))
	add("read ahead", size(q.ReadAheadBytes))
	add("write cache", q.WriteCache)
	switch {
	case q.DiscardMaxBytes > 0:
		add("discard", "in units of "+size(q.DiscardBytes))
	case d.Unknown["queue.discard_max_bytes"] == "":
		add("discard", "no")
	}
	if q.Zoned != "none" {
		add("zoned", q.Zoned)
	}
}

func printParts(con *console.Console, d device.Device) error {
	if len(d.Partitions) == 0 {
		return nil
	}
	visible.Fprintf(con.Out, "\n")
	t := &terminal.Table{Head: []string{"PARTITION", "BEGINS AT BYTE", "SIZE", "ALIGNED"},
		Right: []bool{false, true, true}}
	for _, p := range d.Partitions {
		aligned := "yes"
		for i, m := range p.Misaligned {
			if i == 0 {
				aligned = "no: " + misalignment(m)
			}
		}
		t.Add(p.Name, unit.Thousands(p.StartBytes), unit.Bytes(p.SizeBytes).String(), aligned)
	}
	return t.Write(con.Out)
}

func printPath(con *console.Console, d device.Device) error {
	if len(d.Path) == 0 {
		return nil
	}
	visible.Fprintf(con.Out, "\n")
	t := &terminal.Table{Head: []string{"PATH", "WHERE", "LINK", "CEILING", "NOTE"},
		Right: []bool{false, false, false, true}}
	for _, h := range d.Path {
		where := h.Address
		if h.IDs != "" {
			where += " [" + h.IDs + "]"
		}
		if h.Title != "" {
			where = strings.TrimSpace(where + " " + h.Title)
		}
		ceiling := ""
		if h.Ceiling > 0 {
			ceiling = fmt.Sprintf("%.0f MB/s", h.Ceiling/1e6)
		}
		t.Add(h.What, where, h.Link, ceiling, h.Note)
	}
	if err := t.Write(con.Out); err != nil {
		return err
	}
	if d.Narrowest != "" {
		visible.Fprintf(con.Out, "narrowest: %s\n", d.Narrowest)
	}
	return nil
}

// Verdicts of device check.
const (
	freeDevice    = "free"
	refusedDevice = "refused"
)

func (dv *Devices) checkDevice(ctx context.Context, given, consent string, asked bool) error {
	var keep []string
	if dir, err := filepath.Abs(*dv.RunsDir); err == nil {
		keep = append(keep, dir)
	}
	d, list, err := guard.Check(ctx, dv.machine(), given, keep...)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "device check: %w", err)
	}
	if asked {
		if no := guard.Consent(d, consent); no != nil {
			list = append(list, *no)
		}
	}
	verdict := freeDevice
	if len(list) > 0 {
		verdict = refusedDevice
	}
	if dv.JSON {
		if err := dv.PrintJSON(struct {
			Path       string            `json:"path"`
			Verdict    string            `json:"verdict"`
			Node       string            `json:"node,omitempty"`
			Number     string            `json:"number,omitempty"`
			SizeBytes  int64             `json:"size_bytes,omitempty"`
			Identity   device.Identity   `json:"identity"`
			Consented  bool              `json:"consented"` // the phrase was given, and is that of this device
			Objections []guard.Objection `json:"objections"`
		}{given, verdict, d.Node, d.Number, d.SizeBytes, d.Identity,
			asked && d.Identity.Phrase != "" && guard.Consent(d, consent) == nil,
			append([]guard.Objection{}, list...)}); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return &exit.Error{Code: exit.Refused, Err: &guard.Refusal{Path: given, Objections: list}, Said: dv.JSON}
	}
	if !dv.JSON {
		visible.Fprintf(dv.Out, "%s: free: nothing stands against overwriting it\n", d.Node)
		visible.Fprintf(dv.Out, "consent phrase: %s\n", d.Identity.Phrase)
	}
	return nil
}
