package judge

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/run/experiment"
	"plimsoll/internal/workloads/probe"
)

// sheetFile is the data sheet in the scenario of an experiment that measures one.
const SheetFile = "sheet.yaml"

// unitOf are the units in which results have what lines of a sheet rate.
var unitOf = map[probe.Measure]string{probe.Bandwidth: "bytes/s", probe.Rate: "ops/s", probe.Latency: "s"}

// rate holds the result of an experiment against the data sheet that it was made to measure, if there is one.
func rate(x *compare.Experiment, d compare.Design, folder *experiment.Folder) error {
	data, err := regular.Read(filepath.Join(folder.ScenarioDir(), SheetFile), regular.NoLinks, runs.LargestDataSheet)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data sheet: %w", err)
	}
	sheet, err := probe.ParseSheet(SheetFile, data)
	if err != nil {
		return fmt.Errorf("data sheet: %w", err)
	}
	var lines []compare.RatedLine
	for _, l := range sheet.Lines {
		lines = append(lines, compare.RatedLine{Name: l.Name, Workload: l.Workload, Rated: l.Rated,
			Unit:  unitOf[l.Measure],
			Block: int64(l.Block), Depth: l.Depth * l.Processes, QueueMost: sheet.QueueMost(), Writes: l.Writes()})
	}
	x.Rate(lines, d)
	return nil
}
