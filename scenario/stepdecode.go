package scenario

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// steps reads the phases in their order.
func (d *document) steps() {
	if n, ok := d.fields.Args["pre_setup"].(*yaml.Node); ok && len(n.Content) > 0 {
		d.say("reserved-phase", d.fields.where("pre_setup"), "pre_setup belongs to the engine",
			"move its steps to setup")
	}
	for _, phase := range []Phase{Setup, Run, Teardown} {
		n, ok := d.fields.Args[string(phase)].(*yaml.Node)
		if !ok {
			continue
		}
		if phase == Teardown {
			d.sc.HasTeardown = true
		} else if len(n.Content) == 0 {
			d.say("missing-key", d.fields.where(string(phase)), fmt.Sprintf("the scenario: %s has no steps", phase),
				"add a step, if only test.Wait")
		}
		for _, item := range n.Content {
			s, known := d.step(item, phase)
			if !known {
				d.unknownSteps = true
				continue
			}
			d.stepInfos = append(d.stepInfos, s)
			if !s.refused {
				list := map[Phase]*[]Step{Setup: &d.sc.Setup, Run: &d.sc.Run, Teardown: &d.sc.Teardown}[phase]
				*list = append(*list, s.Step)
			}
		}
	}
}

// step reads one step. One that is refused for its arguments is still followed by the checks of order and use, so that
// they do not object to its absence.
func (d *document) step(item *yaml.Node, phase Phase) (s stepInfo, known bool) {
	e, ok := d.oneKey(item, string(phase))
	if !ok {
		return s, false
	}
	at := d.nodePos(e.key)
	spec, ok := LookupStep(e.name)
	if !ok {
		d.say("unknown-step", at, fmt.Sprintf("%s: unknown step %q", phase, e.name), unknownStepHint(e.name))
		return s, false
	}
	if spec.Extension {
		d.say("extension", at, fmt.Sprintf("%s is an extension of Plimsoll", e.name),
			"leave it out of files meant for other engines")
	}
	f, good := d.decode(e.value, at, e.name, spec.Args, "unknown-argument")
	for _, name := range []string{"runtime_secs", "timeout_secs"} {
		if f.Has(name) && f.Float(name) == 0 {
			delete(f.Args, name) // 0 means none
		}
	}
	s = stepInfo{Step: Step{Name: e.name, Phase: phase, Args: f.Args, Pos: at}, spec: spec, args: f}
	s.refused = !good || !d.checkArguments(s)
	return s, true
}

// unknownStepHint offers the nearest step, first in the same namespace and first by the part after the point.
func unknownStepHint(name string) string {
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = s.Name
	}
	if n := closest(name, all); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	_, verb, _ := strings.Cut(name, ".")
	for _, known := range all {
		if _, knownVerb, _ := strings.Cut(known, "."); verb != "" && strings.EqualFold(verb, knownVerb) {
			return fmt.Sprintf("did you mean %q?", known)
		}
	}
	return "a step is written namespace.Name"
}

// checkArguments checks what the option table cannot say: references, counts that exclude each other, paths.
func (d *document) checkArguments(s stepInfo) bool {
	before := len(d.diags)
	for _, row := range s.spec.Args {
		if !s.args.Has(row.Name) {
			continue
		}
		at := s.args.where(row.Name)
		switch row.Type {
		case GroupName:
			d.knownGroup(at, s.Name, s.Args.String(row.Name))
		case WorkloadRef:
			d.knownWorkload(at, s.Name, s.Args.String(row.Name))
		case Nodes:
			if d.opts.Nodes > 0 {
				d.selected(at, s.Name, s.Args.Selector(row.Name))
			}
		}
	}
	switch s.Name {
	case "vm_group.Grow":
		if s.Args.Has("count_per_node") == s.Args.Has("count_per_cluster") {
			d.say("both-counts", s.Pos, s.Name+" takes either count_per_node or count_per_cluster", "give exactly one")
		}
	case "vm_group.MigrateGroup":
		d.nodeIndex(s, "from_node")
		d.nodeIndex(s, "to_node")
	case "workload.Start":
		if s.Args.Bool("async") && s.Args.Has("timeout_secs") {
			d.say("async-timeout", s.args.where("timeout_secs"),
				s.Name+": timeout_secs has no meaning with async: True", "give the limit to workload.Wait")
		}
	case "meta.RollingUpgrade":
		if n := s.Args.Int("node_count"); d.opts.Nodes > 0 && n > d.opts.Nodes {
			d.say("selector-range", s.args.where("node_count"), fmt.Sprintf("%s: node_count %d on a cluster of %d",
				s.Name, n, d.opts.Nodes), "use a larger cluster")
		}
	case "playbook.Run":
		d.playbook(s)
	case "experimental.Shell":
		d.say("shell", s.Pos, s.Name+" runs a command on the machine that runs the scenario",
			"it is off unless host commands are allowed")
	}
	if strings.HasPrefix(s.Name, "check.") {
		d.nodeIndex(s, "node_index")
	}
	return !hasError(d.diags[before:])
}

func (d *document) nodeIndex(s stepInfo, name string) {
	i, n := s.Args.Int(name), d.opts.Nodes
	if s.args.Has(name) && n > 0 && (i < -n || i >= n) {
		d.say("selector-range", s.args.where(name), fmt.Sprintf("%s: %s %d is out of bounds on %d nodes (0 to %d)",
			s.Name, name, i, n, n-1), "use a larger cluster or another node")
	}
}

func (d *document) playbook(s stepInfo) {
	at := s.args.where("inventory")
	for _, name := range s.Args.Strings("inventory") {
		if name != "nodes" && name != "cvms" {
			d.knownGroup(at, s.Name+": inventory", name)
		}
	}
	if len(s.Args.Strings("inventory")) == 0 {
		d.say("missing-key", at, s.Name+": the inventory is empty", "name a VM group, nodes or cvms")
	}
	d.say("password", s.args.where("remote_pass"), s.Name+": a password in clear",
		"give it in the target's configuration")
	name, at := s.Args.String("filename"), s.args.where("filename")
	clean, ok := d.pathFrom(path.Dir(d.file), name)
	if !ok {
		d.say("outside", at, fmt.Sprintf("%s: filename %q leaves the scenario's directory", s.Name, name),
			"put the file beside the scenario")
		return
	}
	d.referenced[clean] = true
	data, err := readFile(d.fsys, clean, 1<<20)
	if err != nil {
		d.sayMissing("missing-file", at, s.Name+": filename", name, clean, err)
		return
	}
	for _, f := range playbookFiles(data) {
		d.playbookFile(clean, f)
	}
}

// playbookFile checks one file that a playbook copies; Ansible looks beside the playbook and in two folders there.
func (d *document) playbookFile(playbook string, f playbookSource) {
	at := Pos{File: playbook, Line: f.line, Col: f.col}
	for _, folder := range []string{"", "files", "templates"} {
		clean, ok := d.pathFrom(path.Join(path.Dir(playbook), folder), f.path)
		if !ok {
			d.say("missing-playbook-file", at, fmt.Sprintf("playbook: %s: %q leaves the scenario's directory", f.task,
				f.path), "put the file beside the playbook")
			return
		}
		if info, err := fs.Stat(d.fsys, clean); err == nil {
			d.referenced[clean] = true
			if info.IsDir() {
				for _, p := range d.files {
					d.referenced[p] = d.referenced[p] || strings.HasPrefix(p, clean+"/")
				}
			}
			return
		}
	}
	d.say("missing-playbook-file", at, fmt.Sprintf("playbook: %s: %q is not there", f.task, f.path),
		"put the file beside the playbook before running it")
}

// playbookSource is a file that a task of a playbook needs on this side.
type playbookSource struct {
	task, path string
	line, col  int
}

var shortSource = regexp.MustCompile(`(?:^|\s)src=(\S+)`)

// playbookFiles finds the local files of script, copy, template and unarchive tasks. What Ansible would compute
// ({{ }}) or fetch (remote_src, URLs) is left out, and a playbook that is not YAML is Ansible's affair.
func playbookFiles(data []byte) []playbookSource {
	root, objection := parseYAML(string(data))
	if objection != nil || root == nil {
		return nil
	}
	var found []playbookSource
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if s, ok := taskSource(n.Content[i].Value, n.Content[i+1]); ok {
				found = append(found, s)
			}
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(root)
	return found
}

func taskSource(key string, body *yaml.Node) (playbookSource, bool) {
	module := key[strings.LastIndexByte(key, '.')+1:]
	if !slices.Contains([]string{"script", "copy", "template", "unarchive"}, module) {
		return playbookSource{}, false
	}
	s := playbookSource{task: module, line: body.Line, col: body.Column}
	switch body.Kind {
	case yaml.ScalarNode:
		if module == "script" {
			if words := strings.Fields(body.Value); len(words) > 0 {
				s.path = words[0]
			}
		} else if m := shortSource.FindStringSubmatch(body.Value); m != nil &&
			!strings.Contains(body.Value, "remote_src=yes") {
			s.path = m[1]
		}
	case yaml.MappingNode:
		options := map[string]*yaml.Node{}
		for i := 0; i+1 < len(body.Content); i += 2 {
			options[body.Content[i].Value] = body.Content[i+1]
		}
		if remote := options["remote_src"]; remote != nil {
			if v, _ := scalar(remote); v == true {
				return s, false
			}
		}
		if n := options["src"]; n != nil && n.Kind == yaml.ScalarNode {
			s.path, s.line, s.col = n.Value, n.Line, n.Column
		}
	}
	computed := strings.Contains(s.path, "{{") || strings.Contains(s.path, "://") || path.IsAbs(s.path) ||
		strings.HasPrefix(s.path, "~")
	return s, s.path != "" && !computed
}
