package scenario

import "slices"

// ArgType is the type of a field or an argument in an option table.
type ArgType string

// Types of fields. Seconds and Number accept whole and fractional numbers, so 1800.0 is a good number of seconds.
// Where the language accepts numbers in quotes the type says so.
const (
	Text        ArgType = "text" // a number or boolean is taken as written, with a remark
	TextOnly    ArgType = "text only"
	Bool        ArgType = "bool"
	Int         ArgType = "int"            // 4 and 4.0, not "4"
	IntText     ArgType = "int or text"    // 4 and "4"
	Number      ArgType = "number"         // 4 and 4.5
	NumberText  ArgType = "number or text" // 4, 4.5 and "4.5"
	Seconds     ArgType = "seconds"        // a Number that is a duration
	Nodes       ArgType = "nodes"          // node selector
	GroupName   ArgType = "vm group"       // name of a declared VM group
	WorkloadRef ArgType = "workload"       // name of a declared workload
	File        ArgType = "file"           // path inside the scenario's directory
	TextList    ArgType = "list of text"
	IntList     ArgType = "list of int"
	Mapping     ArgType = "mapping"
	Secret      ArgType = "secret" // text that is never printed
	Any         ArgType = "any"
)

// ArgSpec is one row of an option table: everything decode, bounds, help, schema and reference page need to know.
type ArgSpec struct {
	Name     string
	Type     ArgType
	Required bool
	Default  any      // nil: absent when not given
	Min, Max *float64 // inclusive; of numbers
	Above    *float64 // exclusive lower bound; of numbers
	Enum     []string // allowed values, case ignored; of texts
	Former   []string // what the values of Enum were called, in their order; still read
	Doc      string
	// Extension marks a field of ours, which published engines do not know.
	Extension bool
}

// StepSpec describes one step of the language.
type StepSpec struct {
	Name      string // namespace.Name
	Doc       string
	Args      []ArgSpec
	Meta      bool     // replaced by other steps when the plan is made
	Needs     []string // what the target must offer, in the words below
	Extension bool     // a step of ours, which published engines do not know
	OnlyThere string   // platform the step is bound to, "" when it makes sense everywhere
}

// What steps may need of a target. The plan maps these words to its own capabilities.
const (
	NeedsVMs        = "vms"
	NeedsWorkloads  = "workloads"
	NeedsNodePower  = "node power" // out-of-band power management
	NeedsShutdown   = "node shutdown"
	NeedsMigrate    = "live migration"
	NeedsSnapshots  = "snapshots"
	NeedsStorage    = "storage migration"
	NeedsExec       = "commands in guests"
	NeedsAnsible    = "ansible"
	NeedsHostShell  = "host commands"
	NeedsController = "storage controllers"
)

// Steps returns the option tables of every step, in the order of the reference page. The slice is the caller's.
func Steps() []StepSpec { return slices.Clone(steps) }

// Tables returns the option tables of everything that a file can hold, by what has them.
func Tables() map[string][]ArgSpec {
	tables := map[string][]ArgSpec{
		"the file": fileFields, "a variable": varFields, "a vm group": groupFields, "data_disks": diskFields,
		"a workload":   workloadFields,
		"iogen_params": iogenFields, "a result": resultFields, "a value band": bandFields, "an assert": assertFields,
		"experiment": experimentFields,
	}
	for _, s := range steps {
		tables[s.Name] = s.Args
	}
	return tables
}

// LookupStep returns the option table of one step.
func LookupStep(name string) (StepSpec, bool) {
	i, ok := stepIndex[name]
	if !ok {
		return StepSpec{}, false
	}
	return steps[i], true
}

var stepIndex = func() map[string]int {
	m := make(map[string]int, len(steps))
	for i, s := range steps {
		m[s.Name] = i
	}
	return m
}()

func bound(v float64) *float64 { return &v }
