package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// Fact is one fact whose values are not the same on all sides.
type Fact struct {
	Name    string   `json:"name"`
	Values  []string `json:"values"`  // of each side; several of one side are joined by " | "
	Refuses bool     `json:"refuses"` // a comparison across it says nothing about what was meant to be tested
	Varied  bool     `json:"varied"`  // declared as what is being tested, or follows from that
	of      string   // the workload or group in its name; "" for none
}

// mostNamed is how many workloads or groups of which one thing is told are named.
const mostNamed = 5

// Told are facts as people read them: what differs alike in several workloads or groups is one fact of all of them,
// and sizes are in units that fit.
func Told(facts []Fact) []Fact {
	var out []Fact
	of := map[string][]string{} // by what is told
	like := func(f Fact) string {
		return fmt.Sprintf("%q %v %v", append(f.Values, strings.Replace(f.Name, f.of, "", 1)), f.Refuses, f.Varied)
	}
	for _, f := range facts {
		if of[like(f)] = append(of[like(f)], f.of); f.of == "" || len(of[like(f)]) == 1 {
			out = append(out, f)
		}
	}
	for i, f := range out {
		out[i].Values = slices.Clone(f.Values)
		for j, v := range f.Values {
			out[i].Values[j] = unit.Sizes(v)
		}
		if f.of != "" {
			out[i].Name = strings.Replace(f.Name, f.of, unit.List(of[like(f)], mostNamed), 1)
		}
	}
	return out
}

// missing is the value of a fact that a run does not record.
const missing = "not recorded"

// targetOption begins the names of facts that are options of the target.
const targetOption = "target option "

// Refusal is the error of sides that differ in what should be equal.
type Refusal struct {
	Sides []Shown
	Facts []Fact
}

// Error names every fact with its value on each side, one to a line; what differs alike in several is one.
func (r *Refusal) Error() string {
	told := Told(r.Facts)
	lines := make([]string, len(told))
	for i, f := range told {
		values := make([]string, len(f.Values))
		for j, v := range f.Values {
			values[j] = fmt.Sprintf("%s has %q", r.Sides[j].Name, shorten(v))
		}
		lines[i] = fmt.Sprintf("compare: %s: %s", f.Name, strings.Join(values, ", "))
	}
	return strings.Join(lines, "\n")
}

func (r *Refusal) names() string {
	told := Told(r.Facts)
	names := make([]string, len(told))
	for i, f := range told {
		names[i] = f.Name
	}
	return strings.Join(names, "; ")
}

func shorten(v string) string {
	const most = 160
	if r := []rune(v); len(r) > most {
		return string(r[:most]) + "…"
	}
	return v
}

func refuse(facts []Fact, sides []Shown) *Refusal {
	var list []Fact
	for _, f := range facts {
		if f.Refuses {
			list = append(list, f)
		}
	}
	if list == nil {
		return nil
	}
	return &Refusal{Sides: sides, Facts: list}
}

// entry is a fact of one run.
type entry struct {
	name, value string
	of          string // the workload or group in the name; "" for none
	refuses     bool
	follows     bool // from the scenario's variables
}

// facts of a run: what must agree first, then the rest of its environment.
func facts(r Run) []entry {
	m := r.Manifest
	list := []entry{
		{name: "scenario", value: m.Scenario.Name, refuses: true},
		{name: "target", value: m.Target, refuses: true},
		{name: "nodes", value: strconv.Itoa(len(m.Nodes)), refuses: true},
		{name: "time scale", value: scale(m.TimeScale), refuses: true},
		{name: "size scale", value: scale(m.SizeScale), refuses: true},
	}
	for _, v := range m.Scenario.Vars {
		list = append(list, entry{name: "variable " + v.Name, value: v.Value, refuses: true})
	}
	list = append(list, loadFacts(r)...)
	for _, name := range slices.Sorted(maps.Keys(m.Options)) { // often what is compared, or a path
		list = append(list, entry{name: targetOption + name, value: m.Options[name]})
	}
	for _, f := range m.Environment {
		if f.Across == result.Volatile {
			continue
		}
		value := f.Value
		if value == "" {
			value = missing
		}
		// What a load and its server are made of follows from the variables of a scenario that varies them.
		list = append(list, entry{name: f.Group + " " + f.Name, value: value, refuses: f.Across == result.MustAgree,
			follows: absent(f.Group+" ") != ""})
	}
	return list
}

// absent returns what it means that a run which states others of a kind does not state a fact: settings of a server
// that are as the program has them, and options that were not given, are not told. It is "" for facts that are told of
// every run.
func absent(name string) string {
	switch {
	case strings.HasPrefix(name, result.ServerGroup):
		return "default"
	case strings.HasPrefix(name, result.LoadGroup):
		return "not given"
	}
	return ""
}

// states reports whether a side's runs state anything of a kind.
func (s Side) states(kind string) bool {
	return slices.ContainsFunc(s.Runs, func(r Run) bool {
		return slices.ContainsFunc(r.Manifest.Environment, func(f result.Fact) bool {
			return strings.HasPrefix(f.Group+" ", kind) && f.Across == result.MustAgree
		})
	})
}

func scale(v float64) string {
	if v == 0 {
		v = 1
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// loadFacts are what the workloads were: tool, job, and of block I/O content, prefill, and the working set over memory.
func loadFacts(r Run) []entry {
	var list []entry
	prefilled := map[string]string{} // by group
	var groups []string
	for _, w := range merged(r.Data, true) {
		if w.Rounds {
			continue // they say nothing of what is on the disks
		}
		if w.Prefill {
			prefilled[w.Group] = prefilled[w.Group] + extents(w.Streams) + " "
			continue
		}
		list = append(list,
			entry{name: "tool of " + w.Name, of: w.Name, value: strings.TrimSpace(w.Tool), refuses: true},
			entry{name: "jobs of " + w.Name, of: w.Name, value: jobs(w), refuses: true, follows: true})
		if w.Server != "" { // it may be what is compared
			list = append(list, entry{name: "server of " + w.Name, of: w.Name, value: strings.TrimSpace(w.Server)})
		}
		list = append(list, seen(r, w)...)
		if !w.MovesBlocks() {
			continue
		}
		if !slices.Contains(groups, w.Group) {
			groups = append(groups, w.Group)
		}
		list = append(list, entry{name: "content of " + w.Name, of: w.Name, value: content(w.Streams), refuses: true,
			follows: true})
		if ratio := workingSet(w, r.Data.VMs); ratio > 0 {
			// To one digit of a power of two, so that rounding of sizes is not a difference.
			list = append(list, entry{name: "working set to memory of " + w.Name, of: w.Name,
				value: fmt.Sprintf("%.3g", math.Exp2(math.Round(4*math.Log2(ratio))/4)), refuses: true, follows: true})
		}
	}
	for _, g := range groups {
		value := strings.TrimSpace(prefilled[g])
		if value == "" {
			value = "none"
		}
		list = append(list, entry{name: "prefill of " + g, of: g, value: value, refuses: true, follows: true})
	}
	return list
}

// merged are a run's workloads over all their VMs. A workload that was collected of one VM only stands for itself.
func merged(d *result.Data, prefill bool) []result.Workload {
	var out []result.Workload
	for _, w := range d.Workloads {
		if w.Prefill && !prefill || !w.Prefill && w.Phase != "run" {
			continue
		}
		alone := !w.Merged() && !slices.ContainsFunc(d.Workloads, func(o result.Workload) bool {
			return o.Name == w.Name && o.VM != w.VM
		})
		if w.Merged() || alone {
			out = append(out, judged(w))
		}
	}
	return out
}

func extents(streams []result.Stream) string {
	var sum int64
	for _, l := range streams {
		sum += l.Bytes
	}
	return fmt.Sprintf("%d bytes", sum)
}

func jobs(w result.Workload) string {
	var parts []string
	blocks := w.MovesBlocks()
	for _, l := range w.Streams {
		var mode []string
		for word, is := range map[string]bool{"reads": blocks && l.Reads, "writes": blocks && l.Writes,
			"buffered":      blocks && !l.Direct,
			"on a schedule": l.OpenLoop} {
			if is {
				mode = append(mode, word)
			}
		}
		slices.Sort(mode)
		rate := ""
		if l.Rate > 0 {
			unit := map[bool]string{true: " IOPS", false: "/s"}[blocks]
			rate = " at " + strconv.FormatFloat(l.Rate, 'f', -1, 64) + unit
		}
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("depth %d%s %s", l.Depth, rate, strings.Join(mode, " "))))
	}
	return strings.Join(parts, "; ")
}

func content(streams []result.Stream) string {
	zero := 0
	for _, l := range streams {
		if l.ZeroData {
			zero++
		}
	}
	switch {
	case zero == 0:
		return "data"
	case zero == len(streams):
		return "zeros"
	}
	return fmt.Sprintf("zeros in %d of %d jobs", zero, len(streams))
}

// workingSet returns what the jobs of a VM reach over that VM's memory; 0 when either is not known.
func workingSet(w result.Workload, vms []result.VM) float64 {
	var reach int64
	for _, l := range w.Streams {
		reach += l.Bytes
	}
	for _, vm := range vms {
		if vm.Group == w.Group && vm.MemoryBytes > 0 {
			return float64(reach) / float64(vm.MemoryBytes)
		}
	}
	return 0
}

// unlike are the facts that are not the same on all sides, those that refuse first.
func unlike(sides []Side, vary []string) []Fact {
	vary = slices.Concat(vary, declared(sides))
	variablesVary := slices.ContainsFunc(vary, func(v string) bool { return strings.HasPrefix(v, "variable ") })
	var order []entry
	values := map[string][][]string{} // by name: values of each side
	for _, cell := range allCells(sides) {
		for i, s := range sides {
			for _, r := range s.in(cell) {
				for _, e := range facts(r) {
					if e.name = inCell(cell, e); values[e.name] == nil {
						values[e.name] = make([][]string, len(sides))
						order = append(order, e)
					}
					if v := values[e.name]; !slices.Contains(v[i], e.value) {
						v[i] = append(v[i], e.value)
					}
				}
			}
		}
	}
	var out []Fact
	alone := oneSided(sides)
	for _, e := range order {
		if slices.ContainsFunc(alone, func(w string) bool { return e.of == w || strings.HasPrefix(e.name, w+" ") }) {
			continue // nothing of it is compared
		}
		f := Fact{Name: e.name, Refuses: e.refuses, of: e.of}
		known := true
		for i, v := range values[e.name] {
			joined := strings.Join(v, " | ")
			switch word := absent(e.name); {
			case joined != "":
			case word == "default" && sides[i].states(result.ServerGroup),
				word == "not given" && sides[i].states(result.LoadGroup):
				joined = word
			case strings.HasPrefix(e.name, targetOption):
				joined = "not given"
			default:
				joined = missing
			}
			known = known && joined != missing
			f.Values = append(f.Values, joined)
		}
		if len(slices.Compact(slices.Clone(f.Values))) == 1 && !strings.Contains(f.Values[0], " | ") {
			continue
		}
		f.Varied = slices.ContainsFunc(vary, func(v string) bool {
			return matches(v, f.Name)
		}) || e.follows && variablesVary
		f.Refuses = f.Refuses && !f.Varied && known
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Fact) int {
		rank := func(f Fact) int { return map[bool]int{true: 0, false: 1}[f.Refuses] }
		return rank(a) - rank(b)
	})
	return out
}

// oneSided are the workloads that no run of some side has, where others are compared.
func oneSided(sides []Side) (alone []string) {
	has := make([]map[string]bool, len(sides))
	var names []string
	for i, s := range sides {
		has[i] = map[string]bool{}
		for _, r := range s.Runs {
			for _, w := range merged(r.Data, true) {
				has[i][w.Name] = true
				names = view.AppendNew(names, w.Name)
			}
		}
	}
	for _, name := range names {
		if slices.ContainsFunc(has, func(h map[string]bool) bool { return !h[name] }) {
			alone = append(alone, name)
		}
	}
	if len(alone) == len(names) {
		return nil // nothing is compared
	}
	return alone
}

// inCell names a fact that belongs to a cell of an experiment.
func inCell(cell string, e entry) string {
	if cell == "" || !e.follows && !strings.HasPrefix(e.name, "variable ") {
		return e.name
	}
	return e.name + " (" + cell + ")"
}

func allCells(sides []Side) []string {
	var out []string
	for _, s := range sides {
		for _, r := range s.Runs {
			if !slices.Contains(out, r.Cell) {
				out = append(out, r.Cell)
			}
		}
	}
	return out
}

// declared are the variables that experiments vary between the cells that were picked as sides.
func declared(sides []Side) []string {
	var out []string
	for _, s := range sides {
		for _, r := range s.Runs {
			for _, f := range r.Factors {
				if !slices.Contains(out, "variable "+f) {
					out = append(out, "variable "+f)
				}
			}
		}
	}
	return out
}

// matches reports whether a name given by a user means a fact: "kernel" means "host kernel".
func matches(given, name string) bool {
	name, _, _ = strings.Cut(name, " (")
	is := func(given string) bool {
		return strings.EqualFold(given, name) || strings.HasSuffix(strings.ToLower(name), " "+strings.ToLower(given))
	}
	return is(given) || is(strings.Replace(given, ".", " ", 1)) // server.shared_buffers
}

func unknownVary(sides []Side, vary []string) []string {
	var known []string
	for _, s := range sides {
		for _, r := range s.Runs {
			for _, e := range facts(r) {
				known = append(known, inCell(r.Cell, e))
			}
		}
	}
	var out []string
	for _, v := range vary {
		if !slices.ContainsFunc(known, func(name string) bool { return matches(v, name) }) {
			out = append(out, strconv.Quote(v))
		}
	}
	return out
}
