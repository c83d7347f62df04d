package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/targets/fleet"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/result"
	"plimsoll/unit"
)

// deletedLimit bounds the wait for disks that are being deleted when a run ends.
const deletedLimit = 15 * time.Second

type cluster struct {
	place  *place
	fleet  *fleetFile
	api    *api
	nodes  []target.Node
	access remote.Access
	login  login // into virtual machines
	dir    string
	log    func(string, ...any)
	fault  func(node int, state, text, ends string)
	booted func(result.Boot)

	turn sync.Mutex // one change of what there is at a time
	// saving is held while the state is written down, up to the change of the number saved.
	saving sync.Mutex
	saved  int
	mu     sync.Mutex
	state  state
	// changes is how often the state was changed.
	changes int
	hosts   fleet.Machines
	beats   map[int]string // of nodes that were switched off: what they said last
	// silent is in how many looks one after the other a node was not ready.
	silent map[int]int
	pods   *seen
	claims *seen
	meter  meter

	stop  context.CancelFunc
	group clock.Group
}

var (
	_ target.Cluster      = (*cluster)(nil)
	_ target.VMMaker      = (*cluster)(nil)
	_ target.VMPower      = (*cluster)(nil)
	_ target.VMMover      = (*cluster)(nil)
	_ target.Migrator     = (*cluster)(nil)
	_ target.ScrapeSource = (*cluster)(nil)
	_ fleet.Owner         = (*cluster)(nil)
)

// Provision implements target.Target.
func (p *place) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	f, a, nodes, err := p.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	a.patience = silence
	c := &cluster{place: p, fleet: f, api: a, nodes: nodes, dir: r.StateDir, log: r.Log, fault: r.Fault,
		booted: r.Booted,
		beats:  map[int]string{}, silent: map[int]int{}, group: p.clock.Group(),
		access: remote.Access{Agents: p.agents, Patience: silence, Lease: time.Hour, Clock: p.clock},
		state: state{Kubeconfig: f.Kubeconfig, Context: a.context, Exec: f.Exec, Namespace: f.Namespace,
			Run:  runName(r.RunID),
			Made: p.clock.Now().UTC().Format(time.RFC3339), VMs: map[string]*vm{}, Power: f.power}}
	if c.log == nil {
		c.log = func(string, ...any) {}
	}
	if err := errors.Join(os.MkdirAll(c.dir, 0o700), c.change(func() {})); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	if f.virtual() {
		if c.login, err = newLogin(c.dir); err != nil {
			return nil, fmt.Errorf("provision: %w", err)
		}
	}
	if err := c.hold(ctx); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.meter = meter{operated: r.Operated, clock: p.clock, begun: map[string]begun{}}
	c.pods, c.claims = newSeen(f.machines(), c.podTold), newSeen(claims, c.claimTold)
	own := metav1.ListOptions{LabelSelector: runLabel + "=" + c.state.Run}
	c.group.Go(func() { c.watch(watched) })
	if p.restarts {
		c.group.Go(func() { c.restart(watched) })
	}
	for s, which := range map[*seen]metav1.ListOptions{c.pods: own, c.claims: own,
		newSeen(events, c.eventTold): {FieldSelector: "involvedObject.kind=Pod,source=kubelet"}} {
		c.group.Go(func() {
			for again := error(nil); again == nil; again = p.clock.Sleep(watched, time.Second) {
				_ = s.follow(watched, a, which) // it is tried again
			}
		})
	}
	return c, nil
}

// runName is a run's identity as a label may be.
func runName(id string) string {
	text := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(id))
	if len(text) > 40 { // its end, where runs of one scenario differ
		text = text[len(text)-30:]
	}
	if text = strings.Trim(text, "-"); text != id { // and what stands for the whole
		text += "-" + short(id, "")[1:9]
	}
	return runPrefix + strings.TrimPrefix(text, "-")
}

// Close implements target.Cluster. Pods go on. Disks that are being deleted are waited for, or the longest deletions
// would be missing among those that were measured.
func (c *cluster) Close() error {
	end, left := time.Now().Add(deletedLimit), c.meter.open(result.Deleted)
	for ; left > 0 && time.Now().Before(end); left = c.meter.open(result.Deleted) {
		time.Sleep(50 * time.Millisecond)
	}
	if left > 0 {
		c.log("%s had not ended %v after the run: how long they take is not known", unit.Plural(left, "deletion"),
			deletedLimit)
	}
	c.stop()
	c.group.Wait()
	return errors.Join(c.login.forget(), c.hosts.Close())
}

// change alters what there is and writes it down, together with what others alter meanwhile: of thousands of machines
// the record is long.
func (c *cluster) change(do func()) error {
	c.mu.Lock()
	do()
	c.changes++
	own := c.changes
	c.mu.Unlock()
	c.saving.Lock()
	defer c.saving.Unlock()
	if c.saved >= own {
		return nil
	}
	return c.save()
}

// create makes an object of this run. One that is there already, as after a call whose answer was lost, is fine, and is
// not fresh.
func (c *cluster) create(ctx context.Context, kind schema.GroupVersionResource,
	o object) (made *unstructured.Unstructured, fresh bool, err error) {
	wanted, err := o.encoded()
	if err != nil {
		return nil, false, err
	}
	made, err = c.api.create(ctx, kind, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = c.api.owned(ctx, kind, wanted.GetName(), c.state.Run)
		if err == nil && made == nil {
			err = fmt.Errorf("%s %q was there and is gone: try again", kind.Resource, wanted.GetName())
		}
		return made, false, err
	}
	return made, true, c.api.said(err)
}

// make is create, whatever was there.
func (c *cluster) make(ctx context.Context, kind schema.GroupVersionResource, o object) error {
	_, _, err := c.create(ctx, kind, o)
	return err
}

func (c *cluster) get(name string) (*vm, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.state.VMs[name]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("vm %q: %w", name, target.ErrNoSuchVM)
}

func (c *cluster) node(i int) error {
	if i < 0 || i >= len(c.nodes) {
		return fmt.Errorf("node %d: %w", i, target.ErrNoSuchNode)
	}
	return nil
}

// VMs implements target.Cluster.
func (c *cluster) VMs(ctx context.Context) (list []target.VM, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.VMs {
		power := target.Off
		if v.On {
			power = target.On
		}
		list = append(list, target.VM{Name: v.Name, Group: v.Group, Node: v.Node, Power: power, Template: v.Template})
	}
	slices.SortFunc(list, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Host implements target.Cluster.
func (c *cluster) Host(name string) (target.Host, error) { return c.handle(name) }

func (c *cluster) handle(name string) (*fleet.Machine, error) {
	if _, err := c.get(name); err != nil {
		return nil, err
	}
	return c.hosts.Get(c, name), nil
}

// Node implements fleet.Owner.
func (c *cluster) Node(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.state.VMs[name]; v != nil {
		return v.Node
	}
	return 0
}

// Disks implements fleet.Owner.
func (c *cluster) Disks(name string) []target.Disk {
	v, err := c.get(name)
	if err != nil {
		return nil
	}
	disks := fleet.Disks(v.Name, v.DiskBytes)
	for i := range disks {
		if c.fleet.files() {
			disks[i].Path, disks[i].File = diskFolder(i)+"/disk", true
		}
	}
	return disks
}

// Runs implements fleet.Owner.
func (c *cluster) Runs(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.state.VMs[name]
	return v != nil && v.On
}

// Address implements fleet.Owner: the pod's own, which other pods reach.
func (c *cluster) Address(ctx context.Context, name string) (string, error) {
	v, err := c.get(name)
	if err != nil {
		return "", err
	}
	o, err := c.podOf(ctx, v)
	if err != nil || o == nil {
		return "", fmt.Errorf("vm %q: address: %w", name, errors.Join(err, target.ErrNotAccessible))
	}
	ip := addressOf(o)
	if ip == "" {
		return "", fmt.Errorf("vm %q: its pod has no address: %w", name, target.ErrNotAccessible)
	}
	return ip, nil
}

// addressOf tells where others reach a machine; "" where it has no address yet.
func addressOf(o *unstructured.Unstructured) string {
	status := untyped.Object(o.Object).Object("status")
	for _, i := range status.Objects("interfaces") { // of a virtual machine
		if ip := i.Text("ipAddress"); ip != "" {
			return ip
		}
	}
	return status.Text("podIP")
}

func nodeReady(o *unstructured.Unstructured) bool { return condition(o, "Ready") == "True" }

// condition is the state of one of an object's conditions.
func condition(o *unstructured.Unstructured, name string) string {
	return conditionOf(o, name).Text("status")
}

// conditionOf is one of an object's conditions; nil where it has none of that name.
func conditionOf(o *unstructured.Unstructured, name string) untyped.Object {
	for _, m := range untyped.Object(o.Object).Object("status").Objects("conditions") {
		if m["type"] == name {
			return m
		}
	}
	return nil
}

// Endpoints implements target.ScrapeSource.
func (c *cluster) Endpoints(ctx context.Context) ([]target.Endpoint, error) {
	return c.hosts.Endpoints(), ctx.Err()
}

// checkName refuses names that no machine may have.
func checkName(name string) error {
	if name == "" || len(name) > 253 || strings.ContainsAny(name, "/\x00\n") {
		return fmt.Errorf("name %q: want 1 to 253 bytes, no slash, line feed or null byte", name)
	}
	return nil
}

// CreateTemplate implements target.VMMaker. A template is never on and takes no space: who is cloned from it has disks
// of its sizes.
func (c *cluster) CreateTemplate(ctx context.Context, t target.Template) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if _, err := c.get(t.Name); err == nil {
		return nil
	}
	image, err := c.fleet.image(t.Image)
	err = errors.Join(checkName(t.Name), c.nodeOn(ctx, t.Node), err, fleet.CheckDisks(t.DiskBytes))
	if t.Folder {
		err = errors.Join(err, errors.New("an OVF folder is no container image"))
	}
	if err != nil {
		return fmt.Errorf("vm %q: %w", t.Name, err)
	}
	return c.change(func() {
		c.state.VMs[t.Name] = &vm{Name: t.Name, Short: short(c.state.Run, t.Name), Group: t.Group, Node: t.Node,
			Template: true,
			Image:    image, CPUs: t.CPUs, MemoryBytes: t.MemoryBytes, DiskBytes: t.DiskBytes}
	})
}

// Clone implements target.VMMaker. Of a template disks are made, of a machine they are copied by the storage.
func (c *cluster) Clone(ctx context.Context, k target.Clone) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	of, err := c.get(k.Source)
	if err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	off := map[int]error{} // by the nodes of the members
	for _, p := range k.Members {
		if _, asked := off[p.Node]; !asked {
			off[p.Node] = c.nodeOn(ctx, p.Node)
		}
	}
	if of.On { // what its page cache holds is not in the volume yet
		if err := c.flush(ctx, of); err != nil {
			return fmt.Errorf("clone: vm %q: %w", k.Source, err)
		}
	}
	from := func(i int) *source { return &source{Kind: "PersistentVolumeClaim", Name: of.disk(i)} }
	switch {
	case of.Template:
		from = func(int) *source { return nil }
	case c.fleet.Clones == "snapshots": // they go with the machine that they are of
		tag := fmt.Sprint("clones ", c.state.Machines)
		if err := c.shoot(ctx, tag, []*vm{of}); err != nil {
			return fmt.Errorf("clone: %w", err)
		}
		from = func(i int) *source { return shotSource(of, tag, i) }
	}
	var errs []error
	var added []*vm
	err = c.change(func() { // all are written down before any is made
		for _, p := range k.Members {
			err := errors.Join(checkName(p.Name), off[p.Node])
			if c.state.VMs[p.Name] != nil {
				err = errors.Join(err, errors.New("it exists already"))
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("clone: vm %q: %w", p.Name, err))
				continue
			}
			// No machine had its short name before: the volumes of one that was deleted go in their own time.
			c.state.Machines++
			v := &vm{Name: p.Name, Short: short(c.state.Run, fmt.Sprintf("%s\x00%d", p.Name, c.state.Machines)),
				Group: k.Group, Node: p.Node, Image: of.Image,
				CPUs: of.CPUs, MemoryBytes: of.MemoryBytes, DiskBytes: slices.Clone(of.DiskBytes)}
			c.state.VMs[p.Name] = v
			added = append(added, v)
		}
	})
	if err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	for i, v := range added {
		if err := ctx.Err(); err != nil { // of the others nothing is made
			return errors.Join(append(errs, fmt.Errorf("clone: vm %q: %w", v.Name, err), c.change(func() {
				for _, v := range added[i:] {
					delete(c.state.VMs, v.Name)
				}
			}))...)
		}
		if err := c.add(ctx, v, from); err != nil {
			errs = append(errs, fmt.Errorf("clone: vm %q: %w", v.Name, err))
		}
	}
	return errors.Join(errs...)
}

// add makes the volumes of a machine that is written down, its data disks of what they are copies of. One that could
// not be made is none.
func (c *cluster) add(ctx context.Context, v *vm, copied func(disk int) *source) error {
	c.meter.disk(v, workClaim(v.Short), false)
	err := c.make(ctx, claims, c.claim(workClaim(v.Short), v, c.fleet.workSize, c.fleet.virtual(), nil))
	for i, bytes := range v.DiskBytes {
		if from := copied(i); err == nil {
			c.meter.disk(v, v.disk(i), from != nil)
			err = c.make(ctx, claims, c.claim(v.disk(i), v, bytes, true, from))
		}
	}
	if err == nil {
		return nil
	}
	gone := c.removeClaims(context.WithoutCancel(ctx), v, nil)
	if gone == nil {
		gone = c.change(func() { delete(c.state.VMs, v.Name) })
	}
	return errors.Join(err, gone)
}

// removeClaims removes a machine's volumes: those that are there, where that is known.
func (c *cluster) removeClaims(ctx context.Context, v *vm, there map[string]*unstructured.Unstructured) (err error) {
	for _, name := range v.claims() {
		switch o := there[name]; {
		case there == nil:
			err = errors.Join(err, c.api.remove(ctx, claims, name, c.state.Run, nil))
		case o != nil:
			c.meter.begin(result.Deleted, name, v)
			err = errors.Join(err, c.api.removeThis(ctx, claims, o, nil))
		}
	}
	return err
}

// flush makes safe what a machine has written: its page cache is that of its node.
func (c *cluster) flush(ctx context.Context, v *vm) error {
	if c.fleet.virtual() {
		return c.sync(ctx, c.hosts.Get(c, v.Name))
	}
	w, err := c.api.way(v.Short)(ctx)
	if err != nil {
		return err
	}
	_, err = w.Command(ctx, 5*time.Minute, nil, "sync")
	return errors.Join(err, w.Close())
}

// ours are the objects of this run of a kind, by name.
func (c *cluster) ours(ctx context.Context, kind schema.GroupVersionResource) (map[string]*unstructured.Unstructured,
	error) {
	list, err := c.api.list(ctx, kind, runLabel+"="+c.state.Run)
	of := map[string]*unstructured.Unstructured{}
	for i := range list {
		if list[i].GetLabels()[runLabel] == c.state.Run { // the server's word is not enough to delete by
			of[list[i].GetName()] = &list[i]
		}
	}
	return of, err
}

// Delete implements target.VMMaker.
func (c *cluster) Delete(ctx context.Context, names []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	known := slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, e := c.get(n); return e != nil })
	err := c.PowerOff(ctx, known)
	c.turn.Lock()
	defer c.turn.Unlock()
	there, e := c.ours(ctx, claims)
	if e != nil {
		return errors.Join(err, fmt.Errorf("delete: %w", e))
	}
	var gone []string
	for _, name := range known {
		v, unknown := c.get(name)
		if unknown != nil {
			continue
		}
		e := error(nil)
		if !v.Template {
			if v.Restored > 0 {
				e = c.api.endRestores(ctx, c.state.Run, func(n string) bool { return slices.Contains(v.claims(), n) })
			}
			e = errors.Join(e, c.removeShots(ctx, v, v.Tags...), c.removeClaims(ctx, v, there))
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("delete: vm %q: %w", name, e))
			continue
		}
		gone = append(gone, name)
	}
	return errors.Join(err, c.change(func() {
		for _, name := range gone {
			delete(c.state.VMs, name)
			c.hosts.Drop(name)
		}
	}))
}

// Move implements target.VMMover. A volume that its storage keeps to some nodes goes nowhere else.
func (c *cluster) Move(ctx context.Context, name string, node int) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	v, err := c.get(name)
	if err == nil {
		err = c.node(node)
	}
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return fmt.Errorf("move: %w", err)
	}
	if v.On {
		return fmt.Errorf("move: vm %q: it is on: power it off first", name)
	}
	if err := c.reached(ctx, v, node); err != nil {
		return fmt.Errorf("move: vm %q: %w", name, err)
	}
	return c.change(func() { v.Node = node })
}

// keptTo are the nodes to which the storage keeps a claim's volume; nil where it is on none yet, or reached from all.
func (a *api) keptTo(ctx context.Context, claim string) (hosts []string, err error) {
	o, err := a.get(ctx, claims, claim)
	if err != nil || o == nil {
		return nil, err
	}
	name, _, _ := unstructured.NestedString(o.Object, "spec", "volumeName")
	if name == "" {
		return nil, nil
	}
	v, err := a.get(ctx, volumes, name)
	if err != nil || v == nil {
		return nil, err
	}
	affinity := untyped.Object(v.Object).Object("spec").Object("nodeAffinity")
	for _, term := range affinity.Object("required").Objects("nodeSelectorTerms") {
		for _, match := range term.Objects("matchExpressions") {
			values, _, _ := unstructured.NestedStringSlice(match, "values")
			hosts = append(hosts, values...)
		}
	}
	return hosts, nil
}
