package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/untyped"
	"plimsoll/unit"
)

var _ target.NodePower = (*cluster)(nil)

// controller is a node's power controller, which switches nothing off that is not ours to switch off.
type controller struct {
	target.PowerController
	cluster *cluster
	node    int
}

// PowerController implements target.NodePower.
func (c *cluster) PowerController(node int) (target.PowerController, error) {
	if err := c.node(node); err != nil {
		return nil, err
	}
	name := c.nodes[node].Name
	s, is := c.fleet.power[name]
	if !is {
		return nil, fmt.Errorf("node %q: %w: the fleet's file gives no power for it", name, target.ErrNoController)
	}
	open, err := s.Open(fmt.Sprintf("node %q", name), c.place.kinds)
	if err != nil {
		return nil, err
	}
	return &controller{open, c, node}, nil
}

// powers are how nodes are switched, by their names.
type powers map[string]target.PowerSetting

// switches are powers that can be opened.
type switches struct {
	powers powers
	kinds  []target.PowerKind
}

// isOff reports whether a node's controller says that it is off.
func (s switches) isOff(ctx context.Context, name string) bool {
	p, is := s.powers[name]
	if !is {
		return false
	}
	c, err := p.Open(fmt.Sprintf("node %q", name), s.kinds)
	if err != nil {
		return false
	}
	state, err := c.State(ctx)
	return err == nil && state == target.Off
}

// grace is the time that the processes of a pod have to end: none where its node is off, for nothing runs there and
// nobody is left to say so.
func (s switches) grace(ctx context.Context, pod *unstructured.Unstructured) *int64 {
	seconds := int64(1)
	if name, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); name != "" && s.isOff(ctx, name) {
		seconds = 0
	}
	return &seconds
}

const backLimit = 10 * time.Minute // until a node that was switched on is ready

// bringBack switches a node on that is off, and waits until it is ready.
func (a *api) bringBack(ctx context.Context, name string, power switches) error {
	s, is := power.powers[name]
	if !is {
		return errors.New("the run has switched it off, and the fleet's file gives no power for it: power it on")
	}
	c, err := s.Open(fmt.Sprintf("node %q", name), power.kinds)
	if err != nil {
		return err
	}
	state, err := c.State(ctx)
	if err != nil || state == target.On {
		return err
	}
	before, err := a.get(ctx, nodes, name)
	if err != nil || before == nil {
		return cmp.Or(err, errors.New("the cluster has none of that name"))
	}
	if err := c.PowerOn(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, backLimit)
	defer cancel()
	for {
		now, err := a.get(ctx, nodes, name)
		if err == nil && now != nil && nodeReady(now) && beat(now) != beat(before) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it is not ready %v after it was switched on: %w", backLimit, cmp.Or(err, ctx.Err()))
		case <-time.After(goneEach):
		}
	}
}

// PowerOff implements target.PowerController.
func (p *controller) PowerOff(ctx context.Context) error {
	return p.end(ctx, p.PowerController.PowerOff)
}

// Shutdown implements target.PowerController.
func (p *controller) Shutdown(ctx context.Context) error {
	return p.end(ctx, p.PowerController.Shutdown)
}

// end switches a node off if nothing of others hangs on it. What is on there is off from then on.
func (p *controller) end(ctx context.Context, how func(context.Context) error) error {
	c := p.cluster
	if state, err := p.State(ctx); err == nil && state == target.Off {
		return how(ctx) // repeating is fine, and nothing runs there
	}
	if err := c.api.mayEnd(ctx, c.fleet, c.nodes[p.node], c.state.Run); err != nil {
		return err
	}
	name := c.nodes[p.node].Name
	if err := c.change(func() { c.state.Off = append(without(c.state.Off, name), name) }); err != nil {
		return err
	}
	if err := c.noteOff(ctx); err != nil {
		return err
	}
	if err := how(ctx); err != nil {
		return err
	}
	return c.lost(ctx, p.node)
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(list, func(n string) bool { return n == name })
}

// lost says that what is on a node runs no more, and remembers the last that the node said: what it says of itself
// stands in the API until it is ready again.
func (c *cluster) lost(ctx context.Context, node int) error {
	said := ""
	if o, err := c.api.get(ctx, nodes, c.nodes[node].Name); err == nil && o != nil {
		said = beat(o)
	}
	c.mu.Lock()
	c.beats[node] = said
	c.mu.Unlock()
	c.turn.Lock()
	defer c.turn.Unlock()
	list, err := c.VMs(ctx)
	for _, v := range list {
		if v.Node != node || v.Power != target.On {
			continue
		}
		vm, e := c.get(v.Name)
		if e == nil {
			e = c.change(func() { vm.On, vm.Lost = false, true })
		}
		if h, he := c.handle(v.Name); he == nil {
			h.Forget()
		}
		err = errors.Join(err, e)
	}
	return err
}

// beat is when a node's kubelet said last that it is ready.
func beat(o *unstructured.Unstructured) string {
	at, _ := conditionOf(o, "Ready")["lastHeartbeatTime"].(string)
	return at
}

// controlPlane are labels of nodes and of pods that the API itself runs on.
var controlPlane = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/etcd"}

// mayEnd refuses a node that the API or this program runs on, and one where pods of others run, unless the fleet's file
// names it in consent. Pods of a daemon set are the node's own.
func (a *api) mayEnd(ctx context.Context, f *fleetFile, n target.Node, run string) error {
	o, err := a.get(ctx, nodes, n.Name)
	if err == nil && o == nil {
		err = errors.New("the cluster has none of that name")
	}
	if err != nil {
		return fmt.Errorf("node %q: who is on it is not known: %w", n.Name, err)
	}
	for _, name := range controlPlane {
		if _, is := o.GetLabels()[name]; is {
			return fmt.Errorf("node %q: its label %s says that the cluster's API runs on it: it is not switched off",
				n.Name, name)
		}
	}
	mine := ownAddresses()
	for _, one := range untyped.Object(o.Object).Object("status").Objects("addresses") {
		address := one.Text("address")
		if u, err := url.Parse(a.host); err == nil && u.Hostname() == address {
			return fmt.Errorf("node %q: the API server is %s on it: it is not switched off", n.Name, a.host)
		}
		if slices.Contains(mine, address) {
			return fmt.Errorf("node %q: plimsoll itself runs on it (%s): it is not switched off", n.Name, address)
		}
	}
	there, err := a.podsOn(ctx, n.Name)
	if err != nil {
		return fmt.Errorf("node %q: who is on it is not known: %w", n.Name, err)
	}
	var others []string
	for _, o := range there {
		ip, _, _ := unstructured.NestedString(o.Object, "status", "podIP")
		network, _, _ := unstructured.NestedBool(o.Object, "spec", "hostNetwork")
		_, static := o.GetAnnotations()["kubernetes.io/config.mirror"]
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		daemon := slices.ContainsFunc(o.GetOwnerReferences(),
			func(r metav1.OwnerReference) bool { return r.Kind == "DaemonSet" })
		name := o.GetNamespace() + "/" + o.GetName()
		switch {
		case static && (strings.Contains(o.GetName(), "apiserver") || strings.HasPrefix(o.GetName(), "etcd-")):
			return fmt.Errorf("node %q: pod %s of the cluster's API runs on it: it is not switched off", n.Name, name)
		case !network && ip != "" && slices.Contains(mine, ip):
			return fmt.Errorf("node %q: plimsoll itself runs on it, in pod %s: it is not switched off", n.Name, name)
		case static, daemon, phase == "Succeeded", phase == "Failed":
		case o.GetNamespace() == a.namespace && o.GetLabels()[runLabel] == run && run != "":
		default:
			others = append(others, name)
		}
	}
	if len(others) == 0 || slices.Contains(f.Consent, n.Name) {
		return nil
	}
	return fmt.Errorf("node %q: pods of others run on it: %s: it is not switched off: consent: [%s] in the fleet's file allows it",
		n.Name, unit.List(others, 5), n.Name)
}

func ownAddresses() (list []string) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, is := a.(*net.IPNet); is && !n.IP.IsLoopback() {
			list = append(list, n.IP.String())
		}
	}
	return list
}

// podsOn are all pods of a node, in all namespaces.
func (a *api) podsOn(ctx context.Context, node string) ([]unstructured.Unstructured, error) {
	var page *unstructured.UnstructuredList
	err := a.again(ctx, func(ctx context.Context) (err error) {
		page, err = a.dynamic.Resource(pods).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		return err
	})
	if err != nil {
		return nil, a.said(err)
	}
	return page.Items, nil
}

// NodeState implements target.Cluster. Without a controller a node that is not ready may be off or cut from the
// network,
// which the cluster does not tell.
func (c *cluster) NodeState(ctx context.Context, node int) (target.PowerState, bool, error) {
	if err := cmp.Or(ctx.Err(), c.node(node)); err != nil {
		return target.Unknown, false, err
	}
	state := target.Unknown
	if p, err := c.PowerController(node); err == nil {
		if state, err = p.State(ctx); err != nil {
			state = target.Unknown
		}
	}
	o, err := c.api.get(ctx, nodes, c.nodes[node].Name)
	if err != nil {
		return state, false, fmt.Errorf("node %q: %w", c.nodes[node].Name, err)
	}
	if o == nil {
		return state, false, nil
	}
	c.mu.Lock()
	said, was := c.beats[node]
	ready := nodeReady(o) && !(was && said == beat(o))
	switch {
	case state == target.Off:
		c.beats[node] = beat(o)
	case ready:
		delete(c.beats, node)
	}
	name := c.nodes[node].Name
	back := state != target.Off && ready && slices.Contains(c.state.Off, name)
	c.mu.Unlock()
	switch {
	case state == target.Off || !ready:
		return state, false, nil
	case back:
		err = cmp.Or(c.change(func() { c.state.Off = without(c.state.Off, name) }), c.noteOff(ctx))
	}
	return target.On, true, err
}

// isOff reports whether a node's controller says that it is off.
func (c *cluster) isOff(ctx context.Context, node int) bool {
	return c.power().isOff(ctx, c.nodes[node].Name)
}

func (c *cluster) power() switches { return switches{c.fleet.power, c.place.kinds} }

// nodeOn refuses what needs a node that is off.
func (c *cluster) nodeOn(ctx context.Context, node int) error {
	if err := c.node(node); err != nil || !c.isOff(ctx, node) {
		return err
	}
	return fmt.Errorf("node %d (%s) is off: %w", node, c.nodes[node].Name, target.ErrNotAccessible)
}

// claimPower claims power control where every node has a controller and may be switched off, and says else why not.
func (p *place) claimPower(ctx context.Context, a *api, f *fleetFile, facts *target.Facts, object func(string,
	...any)) {
	var without, refused []string
	for _, n := range facts.Nodes {
		s, is := f.power[n.Name]
		if !is {
			without = append(without, n.Name)
			continue
		}
		c, err := s.Open(fmt.Sprintf("node %q", n.Name), p.kinds)
		if err != nil {
			object("%w", err)
			continue
		}
		state, err := c.State(ctx)
		if err != nil {
			object("node %q: power controller %s: %w", n.Name, s.Kind, err)
		} else if state == target.Off {
			object("node %q: power controller %s says that it is off: power it on", n.Name, s.Kind)
		}
		if err := a.mayEnd(ctx, f, n, ""); err != nil {
			refused = append(refused, err.Error())
		}
	}
	for _, name := range sorted(f.power) {
		if !slices.ContainsFunc(facts.Nodes, func(n target.Node) bool { return n.Name == name }) {
			facts.Notes = append(facts.Notes, fmt.Sprintf("power: %s: no node of the fleet that is used has that name.",
				name))
		}
	}
	if len(without) == 0 && len(facts.Nodes) > 1 && p.restarts {
		facts.Capabilities[target.NodeFailover] = "restarts by plimsoll on the next node that is ready and " +
			"reaches the volumes, when a power controller says that its node is off, while the run lives"
		facts.Capabilities[target.AvailabilityRules] = "exemptions from these restarts; nothing is balanced"
	}
	for _, c := range []target.Capability{target.NodePowerControl, target.NodeShutdown, target.NodeFailover,
		target.AvailabilityRules} {
		switch {
		case len(without) > 0:
			facts.Missing[c] = "the fleet's file gives no power for " + unit.List(without, 5)
		case c == target.NodeFailover, c == target.AvailabilityRules:
		case len(refused) > 0:
			facts.Missing[c] = strings.Join(refused, "; ")
		default:
			facts.Capabilities[c] = "the nodes' power controllers"
		}
	}
}
