package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/untyped"
	"plimsoll/result"
	"plimsoll/unit"
)

// open reads the fleet's file, connects and lists the nodes.
func (p *place) open(ctx context.Context) (*fleetFile, *api, []target.Node, error) {
	f, a, err := p.connect()
	if err != nil {
		return nil, nil, nil, err
	}
	list, err := a.nodeList(ctx, f)
	if err != nil {
		return nil, nil, nil, err
	}
	if p.nodes > len(list) {
		return nil, nil, nil, fmt.Errorf("target kubernetes: nodes %d: the fleet has %d: --nodes %[2]d", p.nodes,
			len(list))
	}
	if p.nodes > 0 {
		list = list[:p.nodes]
	}
	return f, a, list, nil
}

// connect reads the fleet's file and its kubeconfig.
func (p *place) connect() (*fleetFile, *api, error) {
	f, err := readFleet(p.file, p.kinds)
	if err != nil {
		return nil, nil, err
	}
	a, err := f.connect()
	return f, a, err
}

// nodeList are the nodes to use: those of the file in its order, else all that pods may go to, by name.
func (a *api) nodeList(ctx context.Context, f *fleetFile) (list []target.Node, err error) {
	all, err := a.list(ctx, nodes, "")
	if err != nil {
		return nil, fmt.Errorf("target kubernetes: nodes: %w", err)
	}
	named := f.Nodes
	if len(named) == 0 {
		for _, o := range all {
			if closed, _, _ := unstructured.NestedBool(o.Object, "spec", "unschedulable"); !closed {
				named = append(named, o.GetName())
			}
		}
		slices.Sort(named)
	}
	var missing []error
	for _, name := range named {
		i := slices.IndexFunc(all, func(o unstructured.Unstructured) bool { return o.GetName() == name })
		if i < 0 {
			missing = append(missing, fmt.Errorf("target kubernetes: node %q: the cluster has none of that name: kubectl get "+
				"nodes lists its nodes", name))
			continue
		}
		n := target.Node{Index: len(list), Name: name, Power: f.power[name].Kind}
		capacity, _, _ := unstructured.NestedStringMap(all[i].Object, "status", "capacity")
		n.Cores, n.MemoryBytes = int(amount(capacity["cpu"])), amount(capacity["memory"])
		for _, address := range untyped.Object(all[i].Object).Object("status").Objects("addresses") {
			if address["type"] == "InternalIP" {
				n.Address = address.Text("address")
			}
		}
		list = append(list, n)
	}
	if len(list) == 0 && len(missing) == 0 {
		missing = append(missing, errors.New("target kubernetes: there is no node that pods may be scheduled on: kubectl "+
			"uncordon one"))
	}
	return list, errors.Join(missing...)
}

// amount is a quantity of Kubernetes in its base unit.
func amount(text string) int64 {
	units := map[string]float64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "k": 1e3,
		"M": 1e6,
		"G": 1e9, "T": 1e12, "m": 1e-3}
	for suffix, factor := range units {
		if rest, is := strings.CutSuffix(text, suffix); is {
			var v float64
			if _, err := fmt.Sscanf(rest, "%g", &v); err == nil {
				return int64(v * factor)
			}
		}
	}
	var v float64
	if _, err := fmt.Sscanf(text, "%g", &v); err != nil {
		return 0
	}
	return int64(v)
}

// right is a permission that a run needs.
type right struct {
	verbs                  []string
	group, resource, under string
	cluster                bool // in no namespace
	power                  bool // only where nodes are switched off
	shots                  bool // only where there are snapshots
	virtual                bool // only where machines are those of KubeVirt
	more                   bool // what it shows is of use, and nothing needs it
}

// rights are those of a run, the least that will do.
var rights = []right{
	{verbs: []string{"get", "list", "watch", "create", "delete"}, resource: "pods"},
	{verbs: []string{"get", "create"}, resource: "pods", under: "exec"},
	{verbs: []string{"get", "list", "watch", "create", "delete"}, resource: "persistentvolumeclaims"},
	{verbs: []string{"list", "watch"}, resource: "events"},
	{verbs: []string{"get", "list", "create", "patch", "delete"}, group: "coordination.k8s.io", resource: "leases"},
	{verbs: []string{"get", "list", "create", "delete"}, group: "snapshot.storage.k8s.io", resource: "volumesnapshots",
		shots: true},
	{verbs: []string{"list"}, group: "snapshot.storage.k8s.io", resource: "volumesnapshotclasses", cluster: true,
		shots: true},
	{verbs: []string{"get", "list"}, resource: "nodes", cluster: true},
	{verbs: []string{"get"}, resource: "persistentvolumes", cluster: true},
	{verbs: []string{"get", "list"}, group: "storage.k8s.io", resource: "storageclasses", cluster: true},
	{verbs: []string{"list"}, group: "storage.k8s.io", resource: "csidrivers", cluster: true,
		more: true},
	{verbs: []string{"list"}, group: "storage.k8s.io", resource: "csistoragecapacities", cluster: true, more: true},
	{verbs: []string{"list"}, resource: "pods", cluster: true, power: true},
	{verbs: []string{"get", "list", "watch", "create", "delete"}, group: "kubevirt.io", resource: instances.Resource,
		virtual: true},
	{verbs: []string{"get", "list", "create", "delete"}, group: "kubevirt.io", resource: moves.Resource, virtual: true},
	{verbs: []string{"get"}, group: "subresources.kubevirt.io", resource: instances.Resource, under: "portforward",
		virtual: true},
}

// denied are the permissions that the user has not.
func (a *api) denied(ctx context.Context, power, shots, virtual bool) (missing []string, err error) {
	for _, r := range rights {
		if r.more || r.power && !power || r.shots && !shots || r.virtual && !virtual {
			continue
		}
		for _, verb := range r.verbs {
			asked := map[string]string{"verb": verb, "group": r.group, "resource": r.resource, "subresource": r.under}
			if !r.cluster {
				asked["namespace"] = a.namespace
			}
			question, err := object{Version: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview",
				Spec: map[string]map[string]string{"resourceAttributes": asked}}.encoded()
			if err != nil {
				return missing, err
			}
			o, err := a.create(ctx, reviews, question, metav1.CreateOptions{})
			if err != nil {
				return missing, a.said(err)
			}
			if allowed, _, _ := unstructured.NestedBool(o.Object, "status", "allowed"); !allowed {
				name := r.resource
				if r.under != "" {
					name += "/" + r.under
				}
				if r.power {
					name += " of all namespaces"
				}
				missing = append(missing, verb+" "+name)
			}
		}
	}
	return missing, nil
}

// Check implements target.Target.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	facts := target.Facts{Target: "kubernetes", ClusterName: "kubernetes", FreeBytes: -1, FreeMemory: -1,
		EmptyTemplates: true,
		Pace:           target.Pace{Clone: 2 * time.Second / rate}, // its two claims, one of them a data disk
		Missing:        map[target.Capability]string{},
		Capabilities: map[target.Capability]string{
			target.VMCreation:     "claims of volumes",
			target.VMPowerControl: "pods made and deleted",
			target.VMMoves:        "another node's selector, where the volumes are reached from there",
			target.GuestCommands:  "the agent in each pod, over pods/exec",
			target.Services:       "the agent in each pod, over pods/exec",
			target.PeerNetwork:    "the cluster's own",
			target.DiskTrim:       "by the volumes, where their storage takes discards",
		}}
	f, a, list, err := p.open(ctx)
	if err != nil {
		return target.Facts{}, err
	}
	all, err := a.list(ctx, nodes, "")
	if err != nil {
		return target.Facts{}, fmt.Errorf("target kubernetes: nodes: %w", err)
	}
	facts.Nodes, facts.ClusterName = list, cmp.Or(a.context, a.host)
	var objections []error
	object := func(format string, args ...any) {
		objections = append(objections, fmt.Errorf("target kubernetes: "+format, args...))
	}
	version, now, err := a.version(ctx)
	if err != nil {
		return target.Facts{}, fmt.Errorf("target kubernetes: %w", err)
	}
	fact := func(name, value string, of result.Across) {
		facts.Environment = append(facts.Environment, result.Fact{Group: "kubernetes", Name: name, Value: value,
			Across: of})
	}
	fact("version", version, "")
	if apart := p.clock.Now().Sub(now); apart.Abs() > 2*time.Second { // the server tells whole seconds
		facts.Notes = append(facts.Notes, fmt.Sprintf(
			"The API server's clock is %s %s this machine's: leases go by its clock.",
			unit.Duration(apart.Abs().Round(time.Second)),
			map[bool]string{true: "behind", false: "ahead of"}[apart > 0]))
	}
	if a.config.Insecure {
		facts.Notes = append(facts.Notes, "The kubeconfig has insecure-skip-tls-verify: whoever answers as "+a.host+
			" is taken for the API server.")
	}
	fact("namespace", f.Namespace, "")
	shot, why, err := a.shotClass(ctx, f)
	if err != nil {
		why = err.Error()
	}
	missing, err := a.denied(ctx, len(f.power) > 0, shot != "", f.virtual())
	if err != nil {
		object("permissions: %w", err)
	}
	if len(missing) > 0 {
		object("namespace %q: this user may not %s: give it the Role that plimsoll targets role kubernetes prints",
			f.Namespace,
			strings.Join(missing, ", "))
	}
	p.checkClasses(ctx, a, f, &facts, object)
	if f.files() {
		f.claimFiles(&facts)
	}
	plain, err := p.rehearse(ctx, a, f, list[0])
	switch {
	case f.virtual():
		plain = errors.New("beside a virtual machine there is no place")
	case f.files():
		plain = errors.New("data disks are files: there is no device to use beside a machine")
	}
	if err != nil && len(missing) == 0 {
		object("namespace %q: %w", f.Namespace, err)
	}
	if plain == nil {
		facts.Capabilities[target.PlainJobs] = plainHow
	} else {
		facts.Missing[target.PlainJobs] = fmt.Sprintf("namespace %q: %v", f.Namespace, plain)
	}
	if _, err := p.agentPath("amd64"); err != nil {
		facts.Notes = append(facts.Notes, fmt.Sprintf("Nodes on x86_64 need the agent: %v.", err))
	}
	checkNodes(list, all, object)
	if shot != "" {
		facts.Capabilities[target.Snapshots] = "the storage's, of data disks, after a flush: one after the other, at no " +
			"one moment"
		fact("snapshot class", shot, result.MustAgree)
	} else {
		facts.Missing[target.Snapshots] = why
	}
	a.claimClones(ctx, f, shot, why, &facts)
	p.claimPower(ctx, a, f, &facts, object)
	a.claimVirtual(ctx, f, &facts, object)
	facts.Missing[target.PlaybookHosts] = "pods have no SSH: the agent works over pods/exec"
	facts.Missing[target.ControllerCommands] = "they are no part of a fleet"
	facts.Lacking("Kubernetes has no such thing, or this target does not use it yet")
	facts.Notes = append(facts.Notes,
		map[bool]string{true: "Machines are KubeVirt's: held against its published API, never run on one.",
			false: "Machines are pods: they share their node's kernel and page cache with all else there."}[f.virtual()])
	return facts, errors.Join(objections...)
}

// claimClones claims clones where the storage may make them: whether a driver does the API does not tell, but what is
// no driver of the Container Storage Interface copies nothing.
func (a *api) claimClones(ctx context.Context, f *fleetFile, shot, why string, facts *target.Facts) {
	all, err := a.list(ctx, classes, "")
	i := f.classOf(all, f.StorageClass)
	if err != nil || i < 0 { // it is said
		facts.Missing[target.VMClones] = "the storage class is not there"
		return
	}
	driver, _, _ := unstructured.NestedString(all[i].Object, "provisioner")
	known, err := a.list(ctx, drivers, "")
	switch {
	case f.Clones == "snapshots" && shot == "":
		facts.Missing[target.VMClones] = "clones: snapshots: " + why
	case f.Clones == "snapshots":
		facts.Capabilities[target.VMClones] = "volumes made of the storage's snapshots, after a flush"
	case err == nil && !slices.ContainsFunc(known,
		func(o unstructured.Unstructured) bool { return o.GetName() == driver }):
		facts.Missing[target.VMClones] = fmt.Sprintf("storage class %q: its provisioner %s is no CSI driver of this cluster, "+
			"and others copy no volumes: kubectl get csidrivers lists them", all[i].GetName(), driver)
	default:
		facts.Capabilities[target.VMClones] = "the storage's copies of volumes, after a flush, if its driver makes any"
	}
}

// claimFiles says what is different where data disks are files.
func (f *fleetFile) claimFiles(facts *target.Facts) {
	delete(facts.Capabilities, target.DiskTrim)
	facts.Missing[target.DiskTrim] = "data disks are files (volume_mode: Filesystem), and load generators trim block " +
		"devices only"
	facts.Environment = append(facts.Environment, result.Fact{Group: "kubernetes", Name: "data disks",
		Value: "files, each in a volume with a file system", Across: result.MustAgree})
	facts.Notes = append(facts.Notes, "Data disks are files, each in a volume with a file system of its own "+
		"(volume_mode: Filesystem): what is measured is that file system's, too.")
}

// checkNodes objects to nodes on which pods would not run, each reason once.
func checkNodes(list []target.Node, all []unstructured.Unstructured, object func(string, ...any)) {
	why := map[string][]string{}
	for _, n := range list {
		i := slices.IndexFunc(all, func(o unstructured.Unstructured) bool { return o.GetName() == n.Name })
		if i < 0 {
			why["gone"] = append(why["gone"], strconv.Quote(n.Name))
			continue
		}
		if !nodeReady(&all[i]) {
			why["not ready"] = append(why["not ready"], strconv.Quote(n.Name))
		}
		if closed, _, _ := unstructured.NestedBool(all[i].Object, "spec", "unschedulable"); closed {
			why["cordoned"] = append(why["cordoned"], strconv.Quote(n.Name))
		}
		for _, pressure := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
			if condition(&all[i], pressure) == "True" {
				why["under "+pressure] = append(why["under "+pressure], strconv.Quote(n.Name))
			}
		}
	}
	for _, reason := range sorted(why) {
		if names := why[reason]; len(names) == 1 {
			object("node %s: it is %s: name others in nodes: of the fleet's file", names[0], reason)
		} else {
			object("nodes %s: they are %s: name others in nodes: of the fleet's file", unit.List(names, mostNodes), reason)
		}
	}
}

// mostNodes are named of those with one objection.
const mostNodes = 6

// classOf finds a storage class, by its name or as the default.
func (f *fleetFile) classOf(all []unstructured.Unstructured, name string) int {
	return slices.IndexFunc(all, func(o unstructured.Unstructured) bool {
		return o.GetName() == name ||
			name == "" && o.GetAnnotations()["storageclass.kubernetes.io/is-default-class"] == "true"
	})
}

// checkClasses looks at the storage classes.
func (p *place) checkClasses(ctx context.Context, a *api, f *fleetFile, facts *target.Facts, object func(string,
	...any)) {
	all, err := a.list(ctx, classes, "")
	if err != nil {
		if !apierrors.IsForbidden(err) { // a missing permission is said
			object("storage classes: %w", err)
		}
		return
	}
	for _, c := range []struct{ key, name string }{{"storage_class", f.StorageClass}, {"work_class", cmp.Or(f.WorkClass,
		f.StorageClass)}} {
		i := f.classOf(all, c.name)
		switch {
		case i < 0 && c.name == "":
			object("%s: the cluster has no default storage class: name one in the fleet's file", c.key)
		case i < 0:
			var names []string
			for _, o := range all {
				names = append(names, o.GetName())
			}
			object("%s: %q: the cluster has no class of that name: there are %s", c.key, c.name, strings.Join(names,
				", "))
		default:
			provisioner, _, _ := unstructured.NestedString(all[i].Object, "provisioner")
			facts.Environment = append(facts.Environment, result.Fact{Group: "kubernetes",
				Name:  strings.ReplaceAll(c.key, "_", " "),
				Value: all[i].GetName() + " of " + provisioner, Across: result.MustAgree})
			if room := a.room(ctx, all[i].GetName()); room != "" {
				facts.Environment = append(facts.Environment, result.Fact{Group: "kubernetes",
					Name: "room in " + strings.ReplaceAll(c.key, "_", " "), Value: room})
			}
		}
	}
}

// room tells what the provisioner of a class says of how much it may make yet, and on which nodes; "" where it says
// nothing, as many do.
func (a *api) room(ctx context.Context, class string) string {
	ctx, cancel := limited(ctx)
	defer cancel()
	page, err := a.dynamic.Resource(capacities).List(ctx, metav1.ListOptions{Limit: 500}) // of all namespaces
	if err != nil {
		return ""
	}
	var all []string
	for _, o := range page.Items {
		one := untyped.Object(o.Object)
		left := one.Text("capacity")
		if one.Text("storageClassName") != class || left == "" {
			continue
		}
		text := unit.Bytes(amount(left)).String()
		if on, _, _ := unstructured.NestedStringMap(one.Object("nodeTopology"), "matchLabels"); len(on) > 0 {
			var names []string
			for _, label := range sorted(on) {
				names = append(names, on[label])
			}
			text += " on " + strings.Join(names, " ")
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return unit.List(all, mostNodes)
}

// rehearse has the API server judge a machine's objects without making them: its quota, Pod Security and all else that
// admits objects object now. plain is what it has against a place beside a machine.
func (p *place) rehearse(ctx context.Context, a *api, f *fleetFile, on target.Node) (plain, err error) {
	c := &cluster{place: p, fleet: f, api: a, nodes: []target.Node{on}, state: state{Run: runName("check"),
		Namespace: f.Namespace}}
	image, err := f.image("*")
	if err != nil {
		for _, image = range f.Images {
			break
		}
	}
	v := &vm{Name: "check", Short: short(c.state.Run, "check"), Image: image, CPUs: 1, MemoryBytes: 64 << 20,
		DiskBytes: []int64{16 << 20}}
	errs := make([]error, 4)
	type judged struct {
		kind   schema.GroupVersionResource
		what   string
		object object
	}
	machine := judged{pods, "a pod", c.pod(v)}
	if f.virtual() {
		machine = judged{instances, "a virtual machine", c.instance(v)}
	}
	for i, o := range []judged{{claims, "a disk", c.claim(v.disk(0), v, v.DiskBytes[0], true, nil)},
		{claims, "a work volume", c.claim(workClaim(v.Short), v, f.workSize, f.virtual(), nil)},
		machine,
		{pods, "a privileged pod", c.pod(&vm{Name: "plain", Short: v.Short + "-plain", Image: image, Plain: true})}} {
		asked, err := o.object.encoded()
		if err != nil {
			return err, err
		}
		_, err = a.create(ctx, o.kind, asked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch text := fmt.Sprint(err); {
		case err == nil, apierrors.IsAlreadyExists(err):
		case strings.Contains(text, "being terminated"):
			err = errors.New("it is being removed" + a.remedy(text, "", ""))
			return err, err
		case strings.Contains(text, fmt.Sprintf("namespaces %q not found", f.Namespace)):
			err = errors.New("there is none of that name" + a.remedy(text, "", ""))
			return err, err
		default:
			errs[i] = fmt.Errorf("%s is refused: %w", o.what, a.said(err))
		}
	}
	return errs[3], errors.Join(errs[:3]...)
}
