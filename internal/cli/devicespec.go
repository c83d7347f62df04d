package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/workloads/probe"
	"plimsoll/unit"
)

func (rn *runner) specCommand() *cobra.Command {
	var f probeFlags
	var sheet string
	c := &cobra.Command{
		Use:   "spec PATH --sheet FILE",
		Short: "Measure a device line by line of its data sheet",
		Args:  console.Args(1, 1, "path"),
		Long: `Spec measures every line of a vendor's data sheet by itself, with the block size and queue depth of that line, and
prints what was measured beside it: the ratio with its interval over the repeats, whether the line is met, and if it is
not, what may be the reason: queue depth, link, requests that are split, a load generator that did not keep up, a drive
that is not preconditioned, the file system, a virtual disk.

PATH is a folder: a file is made on its file system, filled, worked on, and removed. Or it is a block device; without
its --consent it is only read, and lines that write are not measured. A sheet is YAML:

  device: Example SSD 960 GB
  interface: sata               # sata, sas or nvme; sata queues 32
  sequential-read: 540 MB/s     # blocks of 128 KiB, 32 in flight
  sequential-write: 520 MB/s
  random-read: 98000            # 4 KiB, 32 in flight (nvme: 4 processes of 64)
  random-write: {rated: 90000, bs: 4k, iodepth: 32, numjobs: 1}
  random-read-latency: 90us     # mean, 1 in flight

A line may hold a list of such ratings. The same files go with --data-sheet of run and analyze.`,
		Example: `  plimsoll device spec /mnt/under-test --sheet sheet.yaml
  plimsoll device spec /mnt/under-test --sheet sheet.yaml --size 16GiB --duration 2m --repeats 5
  plimsoll device spec /mnt/under-test --sheet sheet.yaml --dry-run`,
		RunE: func(_ *cobra.Command, given []string) error { return rn.deviceSpec(given, sheet, f) },
	}
	f.register(c, "30s")
	c.Flags().StringVar(&f.size, "size", "4GiB", "`size` of the file that is worked on")
	c.Flags().StringVar(&sheet, "sheet", "", "the data sheet, a YAML `FILE`")
	return c
}

func (rn *runner) deviceSpec(paths []string, file string, f probeFlags) error {
	if file == "" {
		return exit.Usagef("plimsoll device spec --help shows one", "device spec: no data sheet given: --sheet FILE")
	}
	data, err := rn.ReadGiven(file, runs.LargestDataSheet)
	if err != nil {
		return exit.Usagef("", "device spec: --sheet: %w", err)
	}
	sheet, err1 := probe.ParseSheet(file, data)
	size, err2 := unit.ParseBytes(f.size)
	duration, warmUp, err3 := f.times()
	if err := errors.Join(err1, err2, err3); err != nil {
		return exit.Usagef("", "device spec: %w", err)
	}
	request, err := probe.Spec{Sheet: sheet, Sweep: probe.Sweep{Size: size, Duration: duration, WarmUp: warmUp,
		Repeats: f.repeats, ReadOnly: f.reads(paths)}}.Request()
	if err != nil {
		return exit.Usagef("", "device spec: %w", err)
	}
	request.Beside = map[string][]byte{judge.SheetFile: data}
	return rn.probe("device spec", paths, request, f, needsDirectIO)
}
