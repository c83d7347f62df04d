package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/scenario"
	"plimsoll/scenarios"
	"plimsoll/unit"
)

func (pl *planner) scenariosCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the scenarios that come with the program", Args: console.Args(0, 0, "argument"),
		Example: "  plimsoll scenarios list --json",
		RunE:    func(*cobra.Command, []string) error { return pl.listScenarios() },
	}
	show := &cobra.Command{
		Use: "show SCENARIO", Short: "Show what a scenario tests, its variables, machines and workloads",
		Args:              console.Args(1, 1, "scenario"),
		Example:           "  plimsoll scenarios show db-colocation",
		ValidArgsFunction: completeScenario,
		RunE:              func(_ *cobra.Command, given []string) error { return pl.showScenario(given[0]) },
	}
	var from string
	var made ownFlags
	create := &cobra.Command{
		Use: "new DIRECTORY", Short: "Begin a scenario of your own with one from the library, or with a job file", Args: console.Args(1, 1, "directory"),
		Example: "  plimsoll scenarios new ./my-test --from four-corners\n  plimsoll scenarios new ./my-test --from my.fio --sweep iodepth=1,8,64",
		RunE:    func(_ *cobra.Command, given []string) error { return pl.newScenario(given[0], from, made) },
	}
	create.Flags().StringVar(&from, "from", "four-corners", "`scenario` of the library to copy, or job file to make one of")
	made.register(create)
	return console.Group("scenarios", "List, show and begin scenarios", list, show, create)
}

// completeScenario completes names of the library beside files.
func completeScenario(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return scenarios.Names(), cobra.ShellCompDirectiveDefault
}

// shipped is one line of scenarios list.
type shipped struct {
	Name    string   `json:"name"`
	Display string   `json:"display_name"`
	Summary string   `json:"summary"`
	Seconds float64  `json:"estimated_seconds"`
	Tags    []string `json:"tags"`
}

func (pl *planner) listScenarios() error {
	var rows []shipped
	for _, name := range scenarios.Names() {
		l, err := pl.load(name, scenarioFlags{}, 0, pl.Now())
		if err != nil {
			return err
		}
		if err := pl.refuse("scenarios", l); err != nil {
			return err
		}
		sc := l.scenario
		rows = append(rows, shipped{name, sc.DisplayName, sc.Summary, sc.EstimatedRuntime.Seconds(), sc.Tags})
	}
	if pl.JSON {
		return pl.PrintJSON(rows)
	}
	t := terminal.Table{Head: []string{"SCENARIO", "TAKES", "QUESTION"}}
	for _, r := range rows {
		t.Add(r.Name, unit.Duration(r.Seconds*1e9).String(), r.Summary)
	}
	return t.Write(pl.Out)
}

// described holds what scenarios show --json prints.
type described struct {
	shipped
	Description string         `json:"description"`
	Variables   []describedVar `json:"variables"`
	Groups      []describedVMs `json:"vm_groups"`
	Workloads   []string       `json:"workloads"`
	Results     []string       `json:"results"`
}

type describedVar struct {
	Name        string `json:"name"`
	Default     any    `json:"default"`
	Min         any    `json:"min,omitempty"`
	Max         any    `json:"max,omitempty"`
	Options     []any  `json:"options,omitempty"`
	Description string `json:"description,omitempty"`
}

type describedVMs struct {
	Name        string     `json:"name"`
	CPUs        int        `json:"cpus"`
	MemoryBytes unit.Bytes `json:"memory_bytes"`
	Disks       int        `json:"disks"`
	DiskBytes   unit.Bytes `json:"disk_bytes"`
	Nodes       string     `json:"nodes"`
}

func describe(name string, sc *scenario.Scenario) described {
	d := described{
		shipped:     shipped{name, sc.DisplayName, sc.Summary, sc.EstimatedRuntime.Seconds(), sc.Tags},
		Description: terminal.PlainText(sc.Description), Variables: []describedVar{}, Groups: []describedVMs{},
		Workloads: []string{}, Results: []string{},
	}
	for _, v := range sc.Vars {
		text := v.Description
		if text == "" {
			text = v.DisplayName
		}
		d.Variables = append(d.Variables, describedVar{v.Name, v.Default, v.Min, v.Max, v.Options, text})
	}
	for _, g := range sc.Groups {
		vms := describedVMs{Name: g.Name, CPUs: g.CPUs, MemoryBytes: unit.Bytes(g.MemoryBytes), Disks: len(g.DiskBytes),
			Nodes: g.Nodes.Text}
		if len(g.DiskBytes) > 0 {
			vms.DiskBytes = unit.Bytes(g.DiskBytes[0])
		}
		d.Groups = append(d.Groups, vms)
	}
	for _, w := range sc.Workloads {
		d.Workloads = append(d.Workloads, w.Name)
	}
	for _, r := range sc.Results {
		d.Results = append(d.Results, r.Title)
	}
	return d
}

func (pl *planner) showScenario(given string) error {
	l, err := pl.load(given, scenarioFlags{}, 0, pl.Now())
	if err != nil {
		return err
	}
	defer l.close()
	if err := pl.refuse("scenarios show", l); err != nil {
		return err
	}
	d := describe(given, l.scenario)
	if pl.JSON {
		return pl.PrintJSON(d)
	}
	visible.Fprintf(pl.Out, "%s: %s\n\n%s\n\n%s\n\ntakes about %s unscaled\n", given, d.Display, d.Summary,
		visible.Lines(d.Description), unit.Duration(d.Seconds*1e9))
	if len(d.Variables) > 0 {
		t := terminal.Table{Head: []string{"VARIABLE", "DEFAULT", "MIN", "MAX", "MEANING"}}
		for _, v := range d.Variables {
			t.Add(v.Name, show(v.Default), show(v.Min), show(v.Max), v.Description)
		}
		visible.Fprintf(pl.Out, "\n")
		if err := t.Write(pl.Out); err != nil {
			return err
		}
	}
	t := terminal.Table{Head: []string{"VM GROUP", "NODES", "CPUS", "MEMORY", "DISKS"}}
	for _, g := range d.Groups {
		t.Add(g.Name, g.Nodes, fmt.Sprint(g.CPUs), g.MemoryBytes.String(), fmt.Sprintf("%d x %s", g.Disks, g.DiskBytes))
	}
	visible.Fprintf(pl.Out, "\n")
	if err := t.Write(pl.Out); err != nil {
		return err
	}
	visible.Fprintf(pl.Out, "\nworkloads: %s\n", strings.Join(d.Workloads, ", "))
	visible.Fprintf(pl.Out, "results:   %s\n", strings.Join(d.Results, ", "))
	return nil
}

// show prints a value of a variable, nothing for none.
func show(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// newScenario copies a library scenario, or one made of a job file, into a directory that does not exist yet.
func (pl *planner) newScenario(dir, from string, made ownFlags) error {
	if err := pl.scenarioOfJobs(from, &scenarioFlags{own: made}); err != nil {
		return err
	}
	fsys, ok := scenarios.Open(from)
	if src, own := pl.openMade(from); own {
		fsys, ok = src.fsys, true
	}
	if !ok {
		hint := `run "plimsoll scenarios list"`
		if near := nearest.Of(from, scenarios.Names()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return exit.Usagef(hint, "scenarios new: no scenario called %q in the library", from)
	}
	err := outfile.Folder(dir, func(part string) error { return os.CopyFS(part, fsys) })
	switch {
	case errors.Is(err, fs.ErrExist):
		return exit.Errorf(exit.Failed, "name a directory that does not exist yet", "scenarios new: %q exists", dir)
	case err != nil:
		return exit.Errorf(exit.Failed, "", "scenarios new: %w", err)
	}
	if pl.JSON {
		return pl.PrintJSON(map[string]string{"directory": dir, "from": from})
	}
	visible.Fprintf(pl.Out, "%s\nedit it, then: plimsoll check --strict %s\n", filepath.Join(dir, "test.yml"), dir)
	return nil
}
