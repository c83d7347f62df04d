package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/installed"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/result"
	"plimsoll/unit"
)

// Bounds of waits for a machine.
const (
	silence  = 2 * time.Minute // of the API server or a kubelet, after which commands are taken for lost
	offLimit = 2 * time.Minute
	lookEach = 300 * time.Millisecond
	// nodesEach is how often a run's nodes and their power controllers are looked at.
	nodesEach = 5 * time.Second
)

// PowerOn implements target.VMPower.
func (c *cluster) PowerOn(ctx context.Context, names []string, most int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if most < 1 {
		return fmt.Errorf("power on: %d at a time: want 1 or more", most)
	}
	places := make(chan struct{}, most)
	errs := make([]error, len(names))
	group := c.place.clock.Group()
	asked := c.place.clock.Now()
	for i, name := range names {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := c.on(ctx, name, asked); err != nil {
				errs[i] = fmt.Errorf("power on: vm %q: %w", name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (c *cluster) on(ctx context.Context, name string, asked time.Time) error {
	v, err := c.get(name)
	if err != nil {
		return err
	}
	if v.Template {
		return errors.New("a template is never on")
	}
	h, err := c.handle(name)
	if err != nil {
		return err
	}
	started, begun := c.place.clock.Now(), false
	err = h.Wake(ctx, func(ctx context.Context) (*remote.Host, error) { begun = true; return c.begin(ctx, v) })
	if err == nil && begun && c.booted != nil { // one that was on before did not boot
		c.booted(result.Boot{VM: v.Name, Group: v.Group, Node: v.Node, Asked: asked, Started: started,
			Answered: c.place.clock.Now()})
	}
	return err
}

// begin switches a machine on.
func (c *cluster) begin(ctx context.Context, v *vm) (*remote.Host, error) {
	h, err := c.life(ctx, v, append([]target.Disk{}, c.Disks(v.Name)...))
	if err != nil {
		return nil, err
	}
	return h, c.change(func() { v.On, v.Wanted = true, true })
}

// life makes a pod for a machine, or for a place beside one, with the agent at work there.
func (c *cluster) life(ctx context.Context, v *vm, disks []target.Disk) (*remote.Host, error) {
	ctx, cancel := clock.WithTimeout(ctx, c.place.clock, c.place.onLimit)
	defer cancel()
	if err := c.nodeOn(ctx, v.Node); err != nil {
		return nil, err
	}
	made, err := c.makePod(ctx, v)
	if err != nil {
		return nil, err
	}
	if err := c.waitOn(ctx, v, made); err != nil {
		return nil, err
	}
	m := c.entered(v, disks)
	if !c.fleet.virtual() {
		if err := c.settle(ctx, v, m); err != nil {
			return nil, err
		}
		if c.fleet.files() && len(v.DiskBytes) > 0 {
			if _, err := c.say(ctx, v, makeFiles(v.DiskBytes)); err != nil {
				return nil, fmt.Errorf("files of its disks: %w", err)
			}
		}
		h := c.access.NewHost(m, v.Node)
		h.Settled()
		return h, nil
	}
	h := c.access.NewHost(m, v.Node)
	for {
		err := h.Settle(ctx, c.state.Run)
		if err == nil {
			return h, nil
		}
		// A guest that boots does not listen yet, and takes no key before cloud-init has put it there.
		if c.place.clock.Sleep(ctx, time.Second) != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
}

// makePod makes a machine's pod anew: one of its life before, which the platform or its node ended, is in the way.
func (c *cluster) makePod(ctx context.Context, v *vm) (types.UID, error) {
	for {
		o, _ := c.pods.get(v.Short)
		if o == nil {
			c.asked(v)
			one := c.pod
			if c.fleet.virtual() {
				one = c.instance
			}
			made, fresh, err := c.create(ctx, c.fleet.machines(), one(v))
			if err != nil {
				return "", err
			}
			if fresh && v.Lost {
				err = c.change(func() { v.Lost = false })
			}
			if fresh {
				return made.GetUID(), err
			}
			o = made
		}
		phase, _ := phaseOf(o)
		if !v.Lost && o.GetDeletionTimestamp() == nil && phase != "Failed" && phase != "Succeeded" {
			return o.GetUID(), nil
		}
		if err := c.api.removeThis(ctx, c.fleet.machines(), o, c.power().grace(ctx, o)); err != nil {
			return "", err
		}
		if c.place.clock.Sleep(ctx, lookEach) != nil {
			return "", fmt.Errorf("its pod of before does not go: %w", target.ErrNotAccessible)
		}
	}
}

// waitOn waits until a pod runs. What keeps it from that is told in the cluster's words, while it waits and at the end.
// What does not pass by itself is not waited for until the last: an image that is not there at once.
func (c *cluster) waitOn(ctx context.Context, v *vm, pod types.UID) error {
	why, seen, told := "", false, ""
	begun := c.place.clock.Now()
	each := c.place.sayAfter
	look, since := begun.Add(each), time.Time{} // since when there is a reason that stays
	no := func(text string) error {
		return fmt.Errorf("its pod does not run on node %q after %s: %w: %s", c.nodes[v.Node].Name,
			unit.Duration(c.place.clock.Now().Sub(begun).Round(100*time.Millisecond)), target.ErrNotAccessible, text)
	}
	for {
		o, news := c.pods.get(v.Short)
		switch {
		case o != nil && o.GetUID() == pod:
			seen = true
			phase, text := phaseOf(o)
			if phase == "Running" && condition(o, "Ready") == "True" {
				if on := c.nodeOf(o); c.fleet.virtual() && on != v.Node {
					return fmt.Errorf("node %s had no room for it: it came up on %q", c.nodes[v.Node].Name,
						untyped.Object(o.Object).Object("status").Text("nodeName"))
				}
				return nil
			}
			if phase == "Failed" || phase == "Succeeded" {
				return fmt.Errorf("its pod on node %q ended: %s", c.nodes[v.Node].Name, cmp.Or(text, phase))
			}
			if why = cmp.Or(text, phase); hasNoImage(why) {
				return no(c.whyNot(ctx, v, why))
			}
		case seen:
			return errors.New("its pod was removed by somebody else")
		}
		if now := c.place.clock.Now(); !now.Before(look) {
			each = min(2*each, c.place.stuckLimit/2)
			look = now.Add(each)
			text := c.whyNot(ctx, v, why)
			if ctx.Err() == nil && text != told {
				c.log("vm %q: its pod does not run on node %q yet: %s", v.Name, c.nodes[v.Node].Name, text)
				told = text
			}
			switch {
			case !stays(text):
				since = time.Time{}
			case since.IsZero():
				since = now
			case now.Sub(since) >= c.place.stuckLimit:
				return no(text)
			}
		}
		select {
		case <-news:
		case <-time.After(look.Sub(c.place.clock.Now())):
		case <-ctx.Done():
			return no(c.whyNot(context.WithoutCancel(ctx), v, why))
		}
	}
}

// whyNot is why a machine's pod does not run, and what to do: what its claims wait for, else its own last warning, else
// its status.
func (c *cluster) whyNot(ctx context.Context, v *vm, why string) string {
	on := c.nodes[v.Node].Name
	for _, name := range v.claims() {
		o, err := c.claimOf(ctx, name)
		switch phase := ""; {
		case err != nil:
		case o == nil:
			return fmt.Sprintf("its claim %s was removed by somebody else", name)
		default:
			if phase, _, _ = unstructured.NestedString(o.Object, "status", "phase"); phase != "Bound" {
				spec := untyped.Object(o.Object).Object("spec")
				said := strings.TrimSuffix(cmp.Or(c.api.why(ctx, name), "nobody says why"), ".")
				if of := spec.Object("dataSource").Text("name"); of != "" && strings.Contains(said, "InvalidArgument") {
					said = fmt.Sprintf("no copy of %s is made: %s", of, said)
				}
				return fmt.Sprintf("its claim %s of class %q is %s: %s%s", name, spec.Text("storageClassName"), phase,
					said, c.api.remedy(said, on, "see that the class's provisioner runs, and makes volumes of mode "+
						spec.Text("volumeMode")+orFiles[spec.Text("volumeMode")]))
			}
		}
	}
	if !strings.Contains(why, ": ") { // else the container's own state, with a reason
		why = cmp.Or(c.api.why(ctx, v.Short), why)
	}
	why = backOff.ReplaceAllString(why, "$1")
	if strings.Contains(why, " nodes are available") {
		if o, err := c.api.get(ctx, nodes, on); err == nil && o != nil {
			why = ofNode(why, o)
		}
	}
	why = strings.TrimSuffix(why, ".")
	return why + c.api.remedy(why, on, "see kubectl describe pod "+v.Short+" --namespace NAMESPACE")
}

// orFiles says what else to do about volumes that do not come, by their mode.
var orFiles = map[string]string{"Block": ", or give volume_mode: Filesystem"}

// otherNodes are what the scheduler says of nodes that a pod is not for, and at the end what it would have to remove.
var (
	otherNodes = regexp.MustCompile(`\d+ node\(s\) (were unschedulable|had untolerated taint(?:\(s\)| \{[^}]*\})|` +
		`didn't match Pod's node affinity/selector)(, )?`)
	// backOff stands before what the last try said, which is the same before and after the next one.
	backOff    = regexp.MustCompile(`^ImagePullBackOff: Back-off pulling image "[^"]*": (ErrImage)`)
	preemption = regexp.MustCompile(`[.,] (no new claims to deallocate, )?preemption: .*`)
)

// ofNode leaves of what the scheduler says of all nodes what is so of the one that a pod is for.
func ofNode(said string, o *unstructured.Unstructured) string {
	spec := untyped.Object(o.Object).Object("spec")
	closed, taints := spec["unschedulable"] == true, len(spec.Objects("taints")) > 0
	head, parts, _ := strings.Cut(preemption.ReplaceAllString(said, ""), " nodes are available: ")
	own := otherNodes.ReplaceAllStringFunc(parts, func(part string) string {
		if closed && strings.Contains(part, "unschedulable") || taints && strings.Contains(part, "taint") {
			return part
		}
		return ""
	})
	if own = strings.TrimSuffix(strings.TrimRight(own, ". "), ","); own == "" {
		return said
	}
	return head + " nodes are available: " + own
}

// claimOf is a claim as it was seen last; who has not seen it asks.
func (c *cluster) claimOf(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	if o, _ := c.claims.get(name); o != nil {
		return o, nil
	}
	return c.api.get(ctx, claims, name)
}

// phaseOf returns what a pod does, and what its status says of why it does no more.
func phaseOf(o *unstructured.Unstructured) (phase, why string) {
	phase, _, _ = unstructured.NestedString(o.Object, "status", "phase")
	why, _, _ = unstructured.NestedString(o.Object, "status", "message")
	if reason, _, _ := unstructured.NestedString(o.Object, "status", "reason"); reason != "" { // of the pod as a whole
		return phase, strings.TrimSuffix(reason+": "+why, ": ")
	}
	status := untyped.Object(o.Object).Object("status")
	for _, m := range status.Objects("containerStatuses") {
		for _, kind := range []string{"waiting", "terminated"} {
			state := m.Object("state").Object(kind)
			if reason := state.Text("reason"); reason != "" {
				if code, is := state["exitCode"].(int64); is {
					reason += fmt.Sprintf(" (exit code %d)", code)
				}
				why = strings.TrimSuffix(reason+": "+state.Text("message"), ": ")
			}
		}
	}
	for _, m := range status.Objects("conditions") {
		if m["status"] == "False" && why == "" {
			why = m.Text("message")
		}
	}
	return phase, why
}

// imageOf is the digest of the image that a pod runs; "" while the node does not say it.
func imageOf(o *unstructured.Unstructured) string {
	for _, m := range untyped.Object(o.Object).Object("status").Objects("containerStatuses") {
		return m.Text("imageID")
	}
	return ""
}

// agentPath is the agent's program for an architecture, or an error that says how to get it.
func (p *place) agentPath(arch string) (path string, err error) {
	name := "plimsoll-agent-linux-" + arch
	if path = installed.In(p.agents, name); p.agents == "" {
		if path, err = installed.Path(name); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the agent: %w: make agents builds it, --target-opt agents=FOLDER says where it is", err)
	}
	return path, nil
}

// imageAgent is where images of ours have the agent.
const imageAgent = "/usr/bin/plimsoll-agent"

// agentSum is the sum of a program of this machine.
func (p *place) agentSum(path string) (string, error) {
	if sum, is := p.sums.Load(path); is {
		return sum.(string), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	p.sums.Store(path, sum)
	return sum, nil
}

// settle makes the run's folder on a pod, with the agent, by one command where the image has that already: to run
// commands in many pods that start takes longer than they take to start. Else the agent is sent to the pod's own
// volume, where it is again after a power cycle.
func (c *cluster) settle(ctx context.Context, v *vm, m remote.Machine) error {
	w, err := c.api.way(v.Short)(ctx)
	if err != nil {
		return err
	}
	defer w.Close() // it has ended
	sums := ""
	for _, arch := range remote.Arches {
		if path, err := c.place.agentPath(arch); err == nil {
			if sum, err := c.place.agentSum(path); err == nil {
				sums += "|" + sum
			}
		}
	}
	settling, image := m.Settling(c.state.Run), ""
	if o, _ := c.pods.get(v.Short); o != nil {
		image = imageOf(o)
	}
	summing := "$(sha256sum " + imageAgent + " 2>/dev/null)"
	if sum, known := c.place.images.Load(image); known { // another pod of that image was asked
		summing = sum.(string)
	}
	kind, err := w.Command(ctx, time.Minute, nil, fmt.Sprintf(`sum=; [ -f %[1]s ] && [ ! -L %[1]s ] && sum=sent
[ "$sum" ] || sum=%[6]s
case ${sum%%%% *} in sent%[3]s) [ "$sum" = sent ] || { mkdir -p %[4]s/bin && ln -sf %[2]s %[1]s; } && %[5]s && echo "there $sum";;
*) uname -sm;; esac`, agentFile, imageAgent, sums, workFolder, settling, summing))
	if err != nil {
		return err
	}
	if said := strings.Fields(kind); len(said) > 1 && said[0] == "there" {
		if image != "" && slices.Contains(strings.Split(sums, "|"), said[1]) {
			c.place.images.Store(image, said[1])
		}
		return nil
	}
	arch := remote.Arches[strings.TrimSpace(kind)]
	if arch == "" {
		return fmt.Errorf("its node is %q: there are agents for Linux on x86_64 and aarch64", strings.TrimSpace(kind))
	}
	path, err := c.place.agentPath(arch)
	if err != nil {
		return err
	}
	program, err := os.Open(path)
	if err != nil {
		return err
	}
	defer program.Close() // only read
	_, err = w.Command(ctx, 5*time.Minute, program, fmt.Sprintf("umask 077 && mkdir -p %[1]s/bin && "+
		"cat >%[2]s.part && chmod 700 %[2]s.part && mv %[2]s.part %[2]s && %[3]s", workFolder, agentFile, settling))
	return err
}

// PowerOff implements target.VMPower. A machine is off when its node says that the pod is gone.
func (c *cluster) PowerOff(ctx context.Context, names []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var errs []error
	second := int64(1)
	type gone struct {
		v   *vm
		pod types.UID
	}
	var off []gone
	type was struct{ on, wanted bool }
	before := map[string]was{}
	if err := c.change(func() { // first, or the platform is said to have ended it
		for _, name := range names {
			if v := c.state.VMs[name]; v != nil && (v.On || v.Wanted) {
				before[name] = was{v.On, v.Wanted}
				v.On, v.Wanted = false, false
			}
		}
	}); err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	for _, name := range names {
		v, err := c.get(name)
		if err == nil && !v.Template {
			var o *unstructured.Unstructured
			if o, err = c.podOf(ctx, v); o != nil && err == nil {
				err = c.api.removeThis(ctx, c.fleet.machines(), o, &second)
			}
			if err != nil { // it is as it was
				err = errors.Join(err, c.change(func() { v.On, v.Wanted = before[name].on, before[name].wanted }))
			} else if h, e := c.handle(name); e == nil {
				_ = h.Begin(nil) // nobody is there to part from
			}
			if o != nil && err == nil {
				off = append(off, gone{v, o.GetUID()})
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("power off: vm %q: %w", name, err))
		}
	}
	ctx, cancel := clock.WithTimeout(ctx, c.place.clock, offLimit)
	defer cancel()
	for _, x := range off {
		if err := c.waitOff(ctx, x.v, x.pod); err != nil {
			errs = append(errs, fmt.Errorf(
				"power off: vm %q: its node %q does not say after %v that the pod has ended: %w",
				x.v.Name, c.nodes[x.v.Node].Name, offLimit, err))
		}
	}
	return errors.Join(errs...)
}

// podOf is a machine's pod as it was seen last; who has not seen it asks, unless none was made.
func (c *cluster) podOf(ctx context.Context, v *vm) (*unstructured.Unstructured, error) {
	if o, _ := c.pods.get(v.Short); o != nil {
		return o, nil
	}
	return c.api.owned(ctx, c.fleet.machines(), v.Short, c.state.Run)
}

// waitOff waits until a pod is gone. Where its node is off nothing runs there, and nobody is left to say so.
func (c *cluster) waitOff(ctx context.Context, v *vm, pod types.UID) (err error) {
	for {
		o, news := c.pods.get(v.Short)
		if o == nil || o.GetUID() != pod {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return errors.Join(err, target.ErrNotAccessible)
		case <-time.After(nodesEach):
			if c.isOff(ctx, v.Node) {
				err = c.api.removeThis(ctx, c.fleet.machines(), o, new(int64))
			}
		}
	}
}

// sorted are the names of a map.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
