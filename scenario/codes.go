package scenario

import (
	"cmp"
	"slices"
)

// Code describes one kind of objection and how much it weighs. Tolerant mode accepts whatever can run; strict mode is
// for authors. A severity of 0 means that the mode does not mention it.
type Code struct {
	Name     string
	Tolerant Severity
	Strict   Severity
	Doc      string
}

// Codes returns every kind of objection, sorted by name.
func Codes() []Code {
	list := slices.Clone(codes)
	slices.SortFunc(list, func(a, b Code) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

var codeRows = func() map[string]Code {
	m := make(map[string]Code, len(codes))
	for _, c := range codes {
		m[c.Name] = c
	}
	return m
}()

var codes = []Code{
	// The file as such.
	{"no-scenario", Error, Error, "no scenario file, several of them, or one that cannot be read"},
	{"template", Error, Error, "the template cannot be rendered: undefined name, unsupported construct, arithmetic"},
	{"yaml", Error, Error, "the text is not YAML, or more than one document"},
	{"yaml-boolean", Warning, Warning, "yes, no, on or off, which YAML 1.1 reads as a boolean"},
	{"yaml-octal", Warning, Warning, "a number with a leading zero, which YAML 1.1 reads as octal"},
	{"yaml-sexagesimal", Warning, Warning, "a number with colons, which YAML 1.1 reads in base sixty"},
	{"yaml-number", Warning, Error, "a number that does not fit 64 bits, taken as text"},
	{"yaml-tag", Warning, Error, "a YAML tag, which is ignored"},
	{"duplicate-key", Warning, Error, "a key or an entry given twice; the last one counts"},

	// Variables.
	{"vars-last", Warning, Error, "a vars section at the end of the file, which the language ignores"},
	{"vars-cut", Warning, Error, "a comment in column 0 inside vars, which ends the section"},
	{"missing-default", Error, Error, "a variable without default"},
	{"unknown-preset", Error, Error, "the preset asked for is not in the file"},
	{"unknown-variable", Warning, Error, "a preset sets a variable that the file does not declare"},
	{"unknown-set", Error, Error, "the caller sets a variable that the file does not declare"},
	{"unused-variable", 0, Warning, "a variable that the template never reads"},

	// Structure.
	{"wrong-type", Error, Error, "a value of the wrong type"},
	{"not-text", Warning, Error, "a number or boolean where a text is expected, taken as written"},
	{"bounds", Error, Error, "a value outside its bounds or its list of allowed values"},
	{"missing-key", Error, Error, "a required key is absent"},
	{"unknown-key", Warning, Error, "a key that the language does not know, which is ignored"},
	{"extension", 0, Warning, "a key of Plimsoll's own: published engines refuse it or ignore it"},
	{"assert", Error, Error, "an assert that judges nothing, or something that is not there"},
	{"promql", Warning, Error, "a query that is no PromQL: it will find nothing; in an assert an error always"},
	{"experiment", Error, Error, "an experiment whose factors are no variables, have one value, or make too many runs"},
	{"unknown-field", Error, Error, "a field that VM groups, iogen_params, asserts or experiments do not have"},
	{"unknown-argument", Error, Error, "an argument that the step does not have"},
	{"unknown-step", Error, Error, "a step that does not exist"},
	{"many-keys", Error, Error, "an entry with more than one key: a missing dash or a wrong indentation"},
	{"reserved-phase", Error, Error, "steps in pre_setup, which belongs to the engine"},
	{"unknown-group", Error, Error, "a VM group that is not declared"},
	{"unknown-workload", Error, Error, "a workload that is not declared"},

	// VM groups.
	{"group-name", Error, Error, "a VM group's name that is empty or longer than 18 characters"},
	{"group-collision", Warning, Error, "two VM groups whose VM names are equal"},
	{"group-prefix", 0, Warning, "two VM groups whose VM names begin alike"},
	{"both-counts", Error, Error, "both counts of a VM group, or none or both for Grow"},
	{"no-count", 0, Warning, "neither count of a VM group: one VM per selected node"},
	{"disks", Error, Error, "data disks of unequal or no size"},
	{"selector-range", Error, Error, "a node selector with a node the cluster does not have"},
	{"selector-empty", Error, Error, "a node selector that selects no node of the cluster"},
	{"selector-unquoted", 0, Warning, "a node selector with a colon and without quotes"},
	{"selector-digits", Warning, Warning, "a node selector with a digit beside n"},
	{"group-size", Error, Error, "more than 10,000 VMs in a group"},
	{"unused-group", 0, Warning, "a VM group that no step uses"},

	// Workloads and their files.
	{"generator", Error, Error, "a load generator that there is not"},
	{"outside", Error, Error, "a path that leaves the scenario's directory"},
	{"missing-file", Error, Error, "a file that is not there or cannot be read"},
	{"missing-playbook-file", Warning, Error, "a file that a playbook copies to the hosts is not there"},
	{"unused-workload", 0, Warning, "a workload that no step uses"},
	{"unused-file", 0, Warning, "a file in the directory that nothing refers to"},

	// Results.
	{"result-kind", Error, Error, "a result that is neither of a VM group nor a workload nor the cluster"},
	{"result-type", Error, Error, "a result type that this kind of result does not have"},
	{"aggregate", Error, Error, "an aggregate that does not exist"},
	{"aggregate-fails", Warning, Error, "an aggregate that this result cannot compute"},
	{"no-query", Warning, Error, "a generic result without a query"},
	{"query-unfiltered", 0, Warning, "a generic query without any filter: it sees other runs as well"},
	{"metric", Error, Error, "a cluster metric that does not exist"},
	{"metric-experimental", 0, Warning, "a cluster metric that published engines do not show unless told to"},
	{"report-metric", Error, Error, "a report metric that does not exist"},
	{"band-order", Warning, Error, "a value band whose lower end is above its upper"},
	{"expected-zero", 0, Warning, "an expected value of 0, which the language treats as absent"},
	{"ignored-field", 0, Warning, "a field that this kind of result does not use"},
	{"long-run", 0, Warning, "a run longer than a query at this step can cover"},

	// Steps.
	{"async-timeout", Error, Error, "timeout_secs together with async"},
	{"started-twice", Note, Error, "a workload started a second time: a second run here, a no-op elsewhere"},
	{"not-started", Error, Error, "a Wait for a workload that no step before has started"},
	{"stop-not-started", Warning, Error, "a Stop of a workload that no step before has started"},
	{"group-not-ready", Warning, Error, "a workload used before its VM group is cloned and powered on"},
	{"grow", Error, Error, "a Grow that does not make the group larger"},
	{"no-timeout", 0, Warning, "a synchronous start without runtime and timeout: 300 seconds at most"},
	{"stagger-zero", 0, Warning, "more VMs than seconds to stagger: elsewhere they all start at once"},
	{"left-running", Note, Warning, "an asynchronous workload that nothing waits for or stops"},
	{"no-teardown", Warning, Warning, "nothing is torn down: the VMs stay"},
	{"estimate", 0, Warning, "an estimated_runtime shorter than what the steps wait for"},
	{"image", 0, Warning, "an image inside the description"},
	{"password", 0, Warning, "a password in clear"},
	{"shell", Warning, Warning, "a shell step: it acts on the machine that runs the scenario"},
}
