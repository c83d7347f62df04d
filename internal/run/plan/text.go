package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run/step"
	"plimsoll/unit"
)

// width is the number of columns that Text keeps to.
const width = 100

// alike is how many repetitions in a row are printed as the first, a count and the last.
const alike = 5

// Text prints the plan for people.
func (p *Plan) Text(w io.Writer) error {
	var b strings.Builder
	p.head(&b)
	p.phases(&b)
	p.groups(&b)
	p.timeline(&b)
	bullets(&b, "About target "+p.Target, p.TargetNotes)
	bullets(&b, "Worth knowing", p.Warnings)
	bullets(&b, "This scenario cannot run here", p.Objections)
	_, err := visible.Fprintf(w, "%s", visible.Lines(b.String()))
	return err
}

func (p *Plan) head(b *strings.Builder) {
	visible.Fprintf(b, "%s (%s)\n", cmp.Or(p.DisplayName, p.Scenario), p.Scenario)
	line := fmt.Sprintf("On target %s with %s", p.Target, unit.Plural(p.Nodes, "node"))
	if p.ClusterName != "" && p.ClusterName != p.Target {
		line += fmt.Sprintf(", cluster %q", p.ClusterName)
	}
	if p.TimeScale != 1 || p.SizeScale != 1 {
		line += fmt.Sprintf("; time x %g, sizes x %g", p.TimeScale, p.SizeScale)
	}
	visible.Fprintf(b, "%s\n", line+".")
	author := unit.Duration(seconds(p.AuthorSeconds).Round(time.Second))
	least := unit.Duration(p.Least().Round(time.Second))
	switch {
	case !p.EstimateUnknown && p.AuthorSeconds > 0:
		line = fmt.Sprintf("About %s (the author says %s)", least, author)
	case !p.EstimateUnknown:
		line = fmt.Sprintf("About %s", least)
	case p.AuthorSeconds > 0:
		line = fmt.Sprintf("At least %s, how long cannot be said (the author says %s)", least, author)
	default:
		line = fmt.Sprintf("At least %s, how long cannot be said", least)
	}
	line += fmt.Sprintf(" for %s; at most %s, %s of data disks, %s of memory.", unit.Plural(len(p.Steps), "step"),
		unit.Plural(p.PeakVMs, "VM"), unit.Bytes(p.PeakDiskBytes), unit.Bytes(p.PeakMemoryBytes))
	if p.PeakLoads > 0 {
		line += fmt.Sprintf(" At once, up to %s", unit.Plural(p.PeakLoads, "workload"))
		if p.PeakDepth > 0 {
			line += fmt.Sprintf(" with up to %s outstanding", unit.Plural(p.PeakDepth, "operation"))
		}
		line += ", counted on every VM."
	}
	wrapped(b, "", "", line)
}

// phases prints how long each phase takes.
func (p *Plan) phases(b *strings.Builder) {
	var order []string
	took, unknown := map[string]float64{}, map[string]bool{}
	for _, s := range p.Steps {
		phase := string(s.Phase)
		if _, known := took[phase]; !known {
			order = append(order, phase)
		}
		took[phase] += s.EstimateSeconds
		unknown[phase] = unknown[phase] || s.EstimateUnknown
	}
	var parts []string
	for _, phase := range order {
		if took[phase] > 0 || unknown[phase] {
			takes := takes(took[phase], unknown[phase] && p.AuthorSeconds > 0)
			if unknown[phase] && p.AuthorSeconds <= 0 {
				takes = "at most " + takes
			}
			parts = append(parts, phaseTitle[phase]+" "+takes)
		}
	}
	text := strings.Join(parts, ", ") + "."
	if p.EstimateUnknown {
		if p.AuthorSeconds > 0 {
			text += " Nothing here can say what is marked with ?: the sums take for it what the author's estimate " +
				"leaves, at most the limits of its steps."
		} else {
			text += " What is marked with ? takes as long as the storage needs."
		}
	}
	if len(parts) > 1 || p.EstimateUnknown {
		wrapped(b, "", "", text)
	}
}

// groups prints a line per group: groups of the same shape, as a loop makes them, share one.
func (p *Plan) groups(b *strings.Builder) {
	type shape struct {
		vms, added, cpus int
		memory           int64
		disks            string
		nodes            string
	}
	names := map[shape][]string{}
	var shapes []shape
	var order []string
	members := map[string][]step.PlannedVM{}
	for _, vm := range p.VMs {
		if members[vm.Group] == nil {
			order = append(order, vm.Group)
		}
		members[vm.Group] = append(members[vm.Group], vm)
	}
	for _, group := range order {
		vms := distinct(members[group])
		added := len(vms) - len(slices.DeleteFunc(slices.Clone(vms), func(vm step.PlannedVM) bool { return vm.Grown }))
		s := shape{len(vms), added, vms[0].CPUs, vms[0].MemoryBytes, disks(vms[0].DiskBytes), nodesOf(vms)}
		if names[s] == nil {
			shapes = append(shapes, s)
		}
		names[s] = append(names[s], group)
	}
	if len(shapes) == 0 {
		return
	}
	visible.Fprintf(b, "\nVM groups\n")
	for _, s := range shapes {
		text := fmt.Sprintf("%s: %s, on %s, each %s, %s", list(names[s]), unit.Plural(s.vms, "VM"), s.nodes,
			unit.Plural(s.cpus, "CPU"), unit.Bytes(s.memory))
		if n := len(names[s]); n > 1 {
			text = fmt.Sprintf("%d groups (%s), each: %s, on %s, each %s, %s",
				n, list(names[s]), unit.Plural(s.vms, "VM"), s.nodes, unit.Plural(s.cpus, "CPU"), unit.Bytes(s.memory))
		}
		if s.disks != "" {
			text += ", " + s.disks
		}
		if s.added > 0 {
			text += fmt.Sprintf("; %d to begin with, then grown", s.vms-s.added)
		}
		wrapped(b, "  ", "    ", text)
	}
}

// distinct drops machines that are made again after a clean-up.
func distinct(vms []step.PlannedVM) []step.PlannedVM {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(vms), func(vm step.PlannedVM) bool {
		again := seen[vm.Name]
		seen[vm.Name] = true
		return again
	})
}

func disks(sizes []int64) string {
	if len(sizes) == 0 {
		return ""
	}
	same := !slices.ContainsFunc(sizes, func(b int64) bool { return b != sizes[0] })
	if same {
		return fmt.Sprintf("%s of %s", unit.Plural(len(sizes), "disk"), unit.Bytes(sizes[0]))
	}
	words := make([]string, len(sizes))
	for i, b := range sizes {
		words[i] = unit.Bytes(b).String()
	}
	return "disks of " + strings.Join(words, ", ")
}

func nodesOf(vms []step.PlannedVM) string {
	var nodes []int
	for _, vm := range vms {
		nodes = append(nodes, vm.Node)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	return strings.Replace(ranges(nodes), "step", "node", 1)
}

var phaseTitle = map[string]string{"pre_setup": "Checks", "setup": "Set-up", "run": "Run (measured)",
	"teardown": "Teardown"}

func (p *Plan) timeline(b *strings.Builder) {
	phase := ""
	for i := 0; i < len(p.Steps); {
		s := p.Steps[i]
		if string(s.Phase) != phase {
			phase = string(s.Phase)
			visible.Fprintf(b, "\n%s\n%5s  %8s  %10s  %s\n", phaseTitle[phase], "step", "at", "takes", "what")
		}
		period, times := p.repetition(i)
		if times < alike {
			p.row(b, i)
			i++
			continue
		}
		end := i + period*times
		for k := range period {
			p.row(b, i+k)
		}
		took := p.Steps[end-period].StartSeconds - p.Steps[i+period].StartSeconds
		unknown := slices.ContainsFunc(p.Steps[i+period:end-period], func(s Step) bool { return s.EstimateUnknown })
		visible.Fprintf(b, "%5s  %8s  %10s  … %s more like that …\n", "", "", takes(took, unknown),
			unit.Plural(end-i-2*period, "step"))
		for k := range period {
			p.row(b, end-period+k)
		}
		i = end
	}
}

// repetition finds how a loop of the author's shows from step i on: so many steps, whose kinds come so many times in a
// row.
func (p *Plan) repetition(i int) (period, times int) {
	const longest = 4
	for period = 1; period <= longest; period++ {
		end := i + period
		for end < len(p.Steps) && p.Steps[end].Name == p.Steps[end-period].Name &&
			p.Steps[end].Phase == p.Steps[i].Phase {
			end++
		}
		if times = (end - i) / period; times >= alike {
			return period, times
		}
	}
	return 1, 1
}

// row prints a step. When one begins behind others of which neither anything nor the author says how long they take is
// not known.
func (p *Plan) row(b *strings.Builder, i int) {
	s := p.Steps[i]
	took, at := takes(s.EstimateSeconds, false), clockTime(s.StartSeconds)
	if s.EstimateUnknown {
		took = "?"
	}
	if p.AuthorSeconds <= 0 && slices.ContainsFunc(p.Steps[:i], func(s Step) bool { return s.EstimateUnknown }) {
		at = "?"
	}
	lead := fmt.Sprintf("%5d  %8s  %10s  ", s.Number, at, took)
	wrapped(b, lead, strings.Repeat(" ", len(lead)), s.Text)
}

// takes prints how long something takes; what is only taken for it, as nothing can say, is marked.
func takes(s float64, unknown bool) string {
	text := "-"
	switch d := seconds(s).Round(100 * time.Millisecond); {
	case d > 0:
		text = unit.Duration(d).String()
	case s > 0:
		text = "< 0.1 s"
	}
	if unknown {
		return text + " ?"
	}
	return text
}

func clockTime(s float64) string {
	t := int64(s + 0.5)
	return fmt.Sprintf("%d:%02d:%02d", t/3600, t/60%60, t%60)
}

func bullets(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	visible.Fprintf(b, "\n%s\n", title)
	for _, item := range items {
		for i, line := range strings.Split(item, "\n") {
			lead := "  - "
			if i > 0 {
				lead = "    "
			}
			wrapped(b, lead, "    ", line)
		}
	}
}

// wrapped prints text with a lead on its first line and another on the rest, within width where its words allow.
func wrapped(b *strings.Builder, lead, rest, text string) {
	line := lead
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > width {
			visible.Fprintf(b, "%s\n", line)
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	visible.Fprintf(b, "%s\n", strings.TrimRight(line, " "))
}
