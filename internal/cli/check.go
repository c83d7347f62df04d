package cli

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func (pl *planner) checkCommand() *cobra.Command {
	var f scenarioFlags
	c := &cobra.Command{
		Use:   "check SCENARIO",
		Short: "Read a scenario and say everything that is wrong with it",
		Long: `Check reads a scenario and prints every objection at once, one per line:

    file:line:column: severity: what is wrong: what to do about it

It touches nothing but the scenario's files. By default it accepts what published scenarios get away
with; --strict objects to that too. The exit code is 3 when there is an error, 0 otherwise.
"plimsoll help scenario" prints the language, with the commonest mistakes and every kind of objection.`,
		Example: `  plimsoll check ./my-scenario
  plimsoll check --strict --nodes 4 db-colocation
  plimsoll check ./my-scenario/test.yml --set runtime_secs=60 --json`,
		Args:              console.Args(1, 1, "scenario"),
		ValidArgsFunction: completeScenario,
		RunE:              func(_ *cobra.Command, given []string) error { return pl.check(given[0], f) },
	}
	f.register(pl, c)
	return c
}

// checked holds what check --json prints.
type checked struct {
	Scenario    string              `json:"scenario"`
	Name        string              `json:"name,omitempty"`
	Errors      int                 `json:"errors"`
	Warnings    int                 `json:"warnings"`
	Diagnostics []checkedDiagnostic `json:"diagnostics"`
	Groups      int                 `json:"vm_groups"`
	Workloads   int                 `json:"workloads"`
	Results     int                 `json:"results"`
	Steps       int                 `json:"steps"`
}

type checkedDiagnostic struct {
	File     string            `json:"file,omitempty"`
	Line     int               `json:"line,omitempty"`
	Column   int               `json:"column,omitempty"`
	Severity scenario.Severity `json:"severity"`
	Code     string            `json:"code"`
	What     string            `json:"what"`
	Hint     string            `json:"hint,omitempty"`
}

func (pl *planner) check(given string, f scenarioFlags) error {
	l, err := pl.load(given, f, f.nodes, pl.Now())
	if err != nil {
		return err
	}
	defer l.close()
	pl.checkAsserts(l)
	report := checked{
		Scenario: given, Errors: l.count(scenario.Error), Warnings: l.count(scenario.Warning),
		Diagnostics: []checkedDiagnostic{},
	}
	if sc := l.scenario; sc != nil {
		report.Name, report.Groups, report.Workloads, report.Results = sc.Name, len(sc.Groups), len(sc.Workloads),
			len(sc.Results)
		report.Steps = len(sc.Setup) + len(sc.Run) + len(sc.Teardown)
	}
	for _, d := range l.diagnostics {
		report.Diagnostics = append(report.Diagnostics, checkedDiagnostic{
			File: d.File, Line: d.Line, Column: d.Col, Severity: d.Severity, Code: d.Code, What: d.What, Hint: d.Hint,
		})
	}
	if pl.JSON {
		if err := pl.PrintJSON(report); err != nil {
			return err
		}
	} else {
		for _, d := range l.diagnostics {
			visible.Fprintf(pl.Out, "%s\n", d)
		}
		visible.Fprintf(pl.Out, "%s\n", report.sentence())
	}
	if report.Errors > 0 {
		return &exit.Error{Code: exit.Scenario,
			Err: fmt.Errorf("check: %s: %s", given, unit.Plural(report.Errors, "error")), Said: true}
	}
	return nil
}

// checkAsserts adds the conditions of the author on what the generators do not count.
func (pl *planner) checkAsserts(l *loaded) {
	if l.scenario == nil {
		return
	}
	for _, u := range plan.CheckAsserts(l.scenario, pl.Drivers.ByName()) {
		pos := u.Assert.Pos
		if pos.File != "" && fs.ValidPath(pos.File) {
			pos.File = l.path(pos.File)
		}
		l.diagnostics = append(l.diagnostics, scenario.Diagnostic{
			Pos: pos, Severity: scenario.Error, Code: "assert", What: u.What, Hint: u.Hint,
		})
	}
}

func (c checked) sentence() string {
	var said []string
	if c.Errors > 0 {
		said = append(said, unit.Plural(c.Errors, "error"))
	} else {
		said = append(said, fmt.Sprintf("%s, %s, %s, %s", unit.Plural(c.Groups, "VM group"),
			unit.Plural(c.Workloads, "workload"), unit.Plural(c.Results, "result"), unit.Plural(c.Steps, "step")))
	}
	if c.Warnings > 0 {
		said = append(said, unit.Plural(c.Warnings, "warning"))
	}
	verdict := "good"
	if c.Errors > 0 {
		verdict = "refused"
	}
	return fmt.Sprintf("%s: %s (%s)", c.Scenario, verdict, strings.Join(said, ", "))
}
