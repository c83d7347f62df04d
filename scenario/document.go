package scenario

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/scenario/jinja"

	"go.yaml.in/yaml/v3"
)

// document is the second half of Load: the sections of a rendered file, then the checks across them.
type document struct {
	*loader
	fields                    fields
	groupIndex, workloadIndex map[string]int
	// sanitised names, cut at each "_" and whole, with the group that has them
	nameStarts, nameWholes map[string]string
	unknownSteps           bool // a step could not be read, so what looks unused may be used
	stepInfos              []stepInfo
	unsureDisks            map[string]bool // groups whose disks were refused
	referenced             map[string]bool // files that something refers to
	missing                map[string]error
	configs                map[string][]byte
	fits                   map[fit]bool
	plain                  map[string]Config // configs as their files have them, by generator and file
	read                   map[string]Config // configs by workload
}

// stepInfo is a step with the places of its arguments.
type stepInfo struct {
	Step
	spec    StepSpec
	args    fields
	refused bool
}

// named returns the entries of a section that is a list of one-key mappings. A repeated name replaces the earlier body
// and keeps its place.
func (d *document) named(key string) []entry {
	n, _ := d.fields.Args[key].(*yaml.Node)
	if n == nil {
		return nil
	}
	var list []entry
	index := map[string]int{}
	for _, item := range n.Content {
		e, ok := d.oneKey(item, key)
		if !ok {
			continue
		}
		if i, repeated := index[e.name]; repeated {
			d.say("duplicate-key", d.nodePos(e.key), fmt.Sprintf("%s: %q is given twice; the last one counts", key,
				e.name), "rename one")
			list[i].value = e.value
			continue
		}
		index[e.name] = len(list)
		list = append(list, e)
	}
	return list
}

// oneKey reads an entry that must be a mapping with exactly one key.
func (d *document) oneKey(item *yaml.Node, of string) (entry, bool) {
	at := d.nodePos(item)
	if item.Kind == yaml.ScalarNode && item.Value != "" {
		d.say("wrong-type", at, fmt.Sprintf("%s: the entry %q must be a mapping", of, jinja.Shorten(item.Value, 60)),
			"end it with a colon and indent its fields below it")
		return entry{}, false
	}
	if item.Kind != yaml.MappingNode {
		d.say("wrong-type", at, fmt.Sprintf("%s: an entry must be a mapping, not %s", of, kindName(item)),
			"write - NAME: and indent its fields below it")
		return entry{}, false
	}
	list := d.entries(item, of)
	if len(list) != 1 {
		var keys []string
		for _, e := range list {
			keys = append(keys, strconv.Quote(jinja.Shorten(e.name, 40)))
		}
		d.say("many-keys", at, fmt.Sprintf("%s: an entry has %d keys instead of one: %s", of, len(list),
			strings.Join(keys[:min(len(keys), 6)], ", ")),
			"a dash is missing, or the fields are not indented more than the name")
		return entry{}, false
	}
	return list[0], true
}

func (d *document) groups() {
	d.unsureDisks, d.groupIndex = map[string]bool{}, map[string]int{}
	d.nameStarts, d.nameWholes = map[string]string{}, map[string]string{}
	for _, e := range d.named("vms") {
		at := d.nodePos(e.key)
		of := fmt.Sprintf("vm group %q", e.name)
		f, _ := d.decode(e.value, at, of, groupFields, "unknown-field")
		before := len(d.diags)
		disks := d.disks(e.value, f, of)
		if list, _ := f.Args["disk_mib"].([]int64); len(list) > 0 {
			if disks != nil {
				d.say("disks", at, of+": data_disks and disk_mib both say what disks there are", "write one of them")
			}
			disks = nil
			for _, mib := range list {
				disks = append(disks, mib<<20)
			}
		}
		d.unsureDisks[e.name] = hasError(d.diags[before:])
		g := Group{
			Name: e.name, Template: f.String("template"), OVF: f.String("template_type") == "OVF",
			CPUs: f.Int("vcpus"), MemoryBytes: int64(f.Int("ram_mb")) << 20, DiskBytes: disks,
			Nodes: f.Selector("nodes"), CountPerNode: f.Int("count_per_node"),
			CountPerCluster: f.Int("count_per_cluster"), Pos: at,
		}
		ports, _ := f.Args["exporter_ports"].([]int64)
		for _, p := range ports {
			g.ExporterPorts = append(g.ExporterPorts, int(p))
		}
		d.checkGroup(g, f, of)
		d.groupIndex[g.Name] = len(d.sc.Groups)
		d.sc.Groups = append(d.sc.Groups, g)
	}
}

func (d *document) checkGroup(g Group, f fields, of string) {
	length := len([]rune(g.Name))
	switch {
	case strings.TrimSpace(g.Name) == "":
		d.say("group-name", g.Pos, "a vm group without a name", "")
	case length > MaxGroupName:
		d.say("group-name", g.Pos, fmt.Sprintf("%s: the name has %d characters; at most %d", of, length, MaxGroupName),
			"shorten it")
	}
	d.checkNames(g, of)
	switch {
	case g.CountPerNode != 0 && g.CountPerCluster != 0:
		d.say("both-counts", f.where("count_per_cluster"), of+": count_per_node and count_per_cluster exclude "+
			"each other", "remove one")
		return
	case f.refused("count_per_node") || f.refused("count_per_cluster"):
	case g.CountPerNode == 0 && g.CountPerCluster == 0:
		d.say("no-count", g.Pos, of+" has no count: one VM per selected node",
			"write count_per_node: 1 if that is meant")
	}
	if d.opts.Nodes < 1 || f.refused("nodes") {
		return
	}
	if selected, ok := d.selected(f.where("nodes"), of, g.selector()); ok && selected > 0 {
		if _, err := g.Place(d.opts.Nodes); err != nil {
			d.say("group-size", g.Pos, err.Error(), "lower its count")
		}
	}
}

// checkNames finds a group before this one whose VM names equal this one's after sanitising, or one of which goes on
// with "_" where the other ends, so that a search by name finds the VMs of both.
func (d *document) checkNames(g Group, of string) {
	whole := Sanitise(g.Name)
	if other, equal := d.nameWholes[whole]; equal {
		d.say("group-collision", g.Pos, fmt.Sprintf("%s and %q: their VM names are equal", of, other), "rename one")
	}
	other, alike := d.nameStarts[whole]
	for i := range len(whole) {
		if whole[i] == '_' {
			if owner, taken := d.nameWholes[whole[:i]]; taken && !alike {
				other, alike = owner, true
			}
			d.nameStarts[whole[:i]] = g.Name
		}
	}
	if alike {
		d.say("group-prefix", g.Pos, fmt.Sprintf("%s and %q: their VM names begin alike", of, other),
			"rename one, if other tools look for VMs by name")
	}
	d.nameWholes[whole] = g.Name
}

// selected resolves a selector on the known cluster and reports what is wrong with it.
func (d *document) selected(at Pos, of string, s Selector) (int, bool) {
	nodes, err := s.Resolve(d.opts.Nodes)
	switch {
	case errors.Is(err, ErrOutOfBounds):
		d.say("selector-range", at, of+": "+err.Error(), "use a larger cluster or another selector")
	case err != nil:
		d.say("selector-range", at, of+": "+err.Error(), "")
	case len(nodes) == 0:
		d.say("selector-empty", at, fmt.Sprintf("%s: nodes %q selects no node on a cluster of %d", of, s.Text,
			d.opts.Nodes), "use a larger cluster or another selector")
	}
	return len(nodes), err == nil
}

// disks reads data_disks: {count, size} or a list of sizes, whole numbers of GiB and nothing else.
func (d *document) disks(body *yaml.Node, f fields, of string) []int64 {
	var n *yaml.Node
	for _, e := range d.mappingOf(body) {
		if e.name == "data_disks" {
			n = e.value
		}
	}
	if isNull(n) {
		return nil
	}
	at, of := d.nodePos(n), of+": data_disks"
	var sizes []int64
	strictInt := func(n *yaml.Node, what string) {
		if v, _ := scalar(n); n.Kind == yaml.ScalarNode {
			if _, whole := v.(float64); whole {
				d.say("wrong-type", d.nodePos(n), fmt.Sprintf("%s: %s must be a whole number, not %s", of, what,
					jinja.Text(v)),
					"use |int or // in the template")
			}
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		for _, e := range d.mappingOf(n) {
			strictInt(e.value, e.name)
		}
		size, ok := d.decode(n, at, of, diskFields, "unknown-field")
		if ok {
			sizes = slices.Repeat([]int64{int64(size.Int("size"))}, size.Int("count"))
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			strictInt(c, "a size")
		}
		v, err := d.value(n, ArgSpec{Type: IntList, Min: bound(0), Max: bound(1 << 20)})
		if err != nil {
			d.say("wrong-type", at, of+" "+err.what, err.hint)
			return nil
		}
		sizes, _ = v.([]int64)
	default:
		d.say("wrong-type", at, of+" must be {count, size} or a list of sizes, not "+kindName(n), "")
	}
	for _, s := range sizes {
		switch {
		case s == 0:
			d.say("disks", at, of+": a disk of 0 GiB", "give it a size, or write count: 0")
			return nil
		case s != sizes[0]:
			d.say("disks", at, fmt.Sprintf("%s: the sizes differ: %d and %d GiB", of, sizes[0], s), "make all equal")
			return nil
		}
	}
	for i := range sizes {
		sizes[i] <<= 30
	}
	return sizes
}

func (d *document) groupNames() []string {
	list := make([]string, len(d.sc.Groups))
	for i, g := range d.sc.Groups {
		list[i] = g.Name
	}
	return list
}

func (d *document) group(name string) (Group, bool) {
	i, ok := d.groupIndex[name]
	if !ok {
		return Group{}, false
	}
	return d.sc.Groups[i], true
}

func (d *document) workload(name string) (Workload, bool) {
	i, ok := d.workloadIndex[name]
	if !ok {
		return Workload{}, false
	}
	return d.sc.Workloads[i], true
}

// knownGroup and knownWorkload report references to what is not declared.
func (d *document) knownGroup(at Pos, of, name string) bool {
	_, ok := d.group(name)
	if !ok {
		d.say("unknown-group", at, fmt.Sprintf("%s: unknown vm group %q", of, name), didYouMean(name, d.groupNames()))
	}
	return ok
}

func (d *document) knownWorkload(at Pos, of, name string) bool {
	_, ok := d.workload(name)
	if !ok {
		list := make([]string, len(d.sc.Workloads))
		for i, w := range d.sc.Workloads {
			list[i] = w.Name
		}
		d.say("unknown-workload", at, fmt.Sprintf("%s: unknown workload %q", of, name), didYouMean(name, list))
	}
	return ok
}

func (d *document) workloads() {
	d.workloadIndex, d.referenced = map[string]int{}, map[string]bool{d.file: true}
	d.plain, d.read, d.missing, d.configs = map[string]Config{}, map[string]Config{}, map[string]error{},
		map[string][]byte{}
	for _, e := range d.named("workloads") {
		at := d.nodePos(e.key)
		of := fmt.Sprintf("workload %q", e.name)
		f, _ := d.decode(e.value, at, of, workloadFields, "unknown-key")
		w := Workload{Name: e.name, Group: f.String("vm_group"), Generator: f.String("generator"), Pos: at}
		if f.Has("vm_group") {
			d.knownGroup(f.where("vm_group"), of, w.Group)
		}
		w.ReportingInterval = d.reportingInterval(e.value, at, of)
		if f.Has("config_file") {
			w.ConfigFile, w.Config = d.configFile(f, of)
			d.readConfig(&w, f, of)
		}
		d.workloadIndex[w.Name] = len(d.sc.Workloads)
		d.sc.Workloads = append(d.sc.Workloads, w)
	}
}

func (d *document) reportingInterval(body *yaml.Node, at Pos, of string) time.Duration {
	var params *yaml.Node
	for _, e := range d.mappingOf(body) {
		if e.name == "iogen_params" && e.value.Kind == yaml.MappingNode {
			params, at = e.value, d.nodePos(e.value)
		}
	}
	f, _ := d.decode(params, at, of+": iogen_params", iogenFields, "unknown-field")
	return f.Seconds("reporting_interval")
}

// configFile reads a config file, once however many workloads use it.
func (d *document) configFile(f fields, of string) (string, []byte) {
	name, at := f.String("config_file"), f.where("config_file")
	clean, ok := d.pathFrom(path.Dir(d.file), name)
	if !ok {
		d.say("outside", at, fmt.Sprintf("%s: config_file %q leaves the scenario's directory", of, name),
			"put the file beside the scenario")
		return "", nil
	}
	d.referenced[clean] = true
	if _, known := d.missing[clean]; !known {
		data, err := readFile(d.fsys, clean, 1<<20)
		d.missing[clean], d.configs[clean] = err, data
	}
	if err := d.missing[clean]; err != nil {
		d.sayMissing("missing-file", at, of+": config_file", name, clean, err)
		return clean, nil
	}
	return clean, d.configs[clean]
}

// sayMissing reports a file that cannot be read, with the file that may have been meant.
func (d *document) sayMissing(code string, at Pos, of, name, clean string, err error) {
	hint := closest(clean, d.files)
	switch {
	case hint == clean: // it is there, but cannot be read
		hint = "make it a plain file that you may read; links out of the scenario's directory are not followed"
	case hint != "":
		hint = fmt.Sprintf("did you mean %q?", hint)
	}
	d.say(code, at, fmt.Sprintf("%s %q: %s", of, name, cause(err)), hint)
}
