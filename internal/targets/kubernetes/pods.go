package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/installed"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/result"
)

// Bounds of waits for a machine.
const (
	silence  = 2 * time.Minute // of the API server or a kubelet, after which commands are taken for lost
	offLimit = 2 * time.Minute
	lookEach = 300 * time.Millisecond
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
	started := c.place.clock.Now()
	err = h.Wake(ctx, func(ctx context.Context) (*remote.Host, error) { return c.begin(ctx, v) })
	if err == nil && c.booted != nil {
		c.booted(result.Boot{VM: v.Name, Group: v.Group, Node: v.Node, Asked: asked, Started: started,
			Answered: c.place.clock.Now()})
	}
	return err
}

// begin makes a machine's pod, waits until it runs, and lets the agent work there.
func (c *cluster) begin(ctx context.Context, v *vm) (*remote.Host, error) {
	ctx, cancel := clock.WithTimeout(ctx, c.place.clock, c.place.onLimit)
	defer cancel()
	if err := c.nodeOn(ctx, v.Node); err != nil {
		return nil, err
	}
	if err := c.makePod(ctx, v); err != nil {
		return nil, err
	}
	if err := c.waitOn(ctx, v); err != nil {
		return nil, err
	}
	if err := c.putAgent(ctx, v); err != nil {
		return nil, err
	}
	m := remote.Machine{Name: v.Name, Folder: workFolder + "/run", Agent: agentFile, Own: c.Disks(v.Name),
		Way: c.api.way(v.Short)}
	if m.Own == nil {
		m.Own = []target.Disk{}
	}
	h := c.access.NewHost(m, v.Node)
	if err := h.Settle(ctx, c.state.Run); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, c.change(func() { v.On = true })
}

// makePod makes a machine's pod anew: one of its life before, which the platform or its node ended, is in the way.
func (c *cluster) makePod(ctx context.Context, v *vm) error {
	for {
		o, err := c.api.owned(ctx, pods, v.Short, c.state.Run)
		if err != nil {
			return err
		}
		if o == nil {
			return errors.Join(c.change(func() { v.Lost = false }), c.create(ctx, pods, c.pod(v)))
		}
		phase, _ := phaseOf(o)
		if !v.Lost && o.GetDeletionTimestamp() == nil && phase != "Failed" && phase != "Succeeded" {
			return nil
		}
		if err := c.api.removeThis(ctx, pods, o, c.power().grace(ctx, o)); err != nil {
			return err
		}
		if c.place.clock.Sleep(ctx, lookEach) != nil {
			return fmt.Errorf("its pod of before does not go: %w", target.ErrNotAccessible)
		}
	}
}

// waitOn waits until a pod runs. What keeps it from that is told in the cluster's words.
func (c *cluster) waitOn(ctx context.Context, v *vm) error {
	why := ""
	for {
		o, err := c.api.get(ctx, pods, v.Short)
		if err == nil && o == nil {
			return errors.New("its pod was removed by somebody else")
		}
		if err == nil {
			phase, text := phaseOf(o)
			if phase == "Running" && condition(o, "Ready") == "True" {
				return nil
			}
			if phase == "Failed" || phase == "Succeeded" {
				return fmt.Errorf("its pod ended: %s", cmp.Or(text, phase))
			}
			why = cmp.Or(text, phase)
		}
		if c.place.clock.Sleep(ctx, lookEach) != nil {
			return fmt.Errorf("its pod does not run after %v: %s: %w", c.place.onLimit,
				c.whyNot(context.WithoutCancel(ctx), v, why), errors.Join(err, target.ErrNotAccessible))
		}
	}
}

// whyNot is why a machine's pod does not run: what its claims wait for, else its own last warning, else its status.
func (c *cluster) whyNot(ctx context.Context, v *vm, why string) string {
	for i := range len(v.DiskBytes) + 1 {
		name := workClaim(v.Short)
		if i > 0 {
			name = v.disk(i - 1)
		}
		o, err := c.api.get(ctx, claims, name)
		switch phase := ""; {
		case err != nil:
		case o == nil:
			return fmt.Sprintf("its claim %s was removed by somebody else", name)
		default:
			if phase, _, _ = unstructured.NestedString(o.Object, "status", "phase"); phase != "Bound" {
				class, _, _ := unstructured.NestedString(o.Object, "spec", "storageClassName")
				said := cmp.Or(c.api.why(ctx, name), "nobody says why: does its provisioner run?")
				return fmt.Sprintf("its claim %s of class %q is %s: %s", name, class, phase, said)
			}
		}
	}
	if strings.Contains(why, ": ") { // the container's own state, with a reason
		return why
	}
	return cmp.Or(c.api.why(ctx, v.Short), why)
}

// phaseOf is what a pod does, and what its status says of why it does no more.
func phaseOf(o *unstructured.Unstructured) (phase, why string) {
	phase, _, _ = unstructured.NestedString(o.Object, "status", "phase")
	why, _, _ = unstructured.NestedString(o.Object, "status", "message")
	if reason, _, _ := unstructured.NestedString(o.Object, "status", "reason"); reason != "" { // of the pod as a whole
		return phase, strings.TrimSuffix(reason+": "+why, ": ")
	}
	states, _, _ := unstructured.NestedSlice(o.Object, "status", "containerStatuses")
	for _, s := range states {
		m, _ := s.(map[string]any)
		for _, kind := range []string{"waiting", "terminated"} {
			reason, _, _ := unstructured.NestedString(m, "state", kind, "reason")
			message, _, _ := unstructured.NestedString(m, "state", kind, "message")
			if reason != "" {
				if code, is, _ := unstructured.NestedInt64(m, "state", kind, "exitCode"); is {
					reason += fmt.Sprintf(" (exit code %d)", code)
				}
				why = strings.TrimSuffix(reason+": "+message, ": ")
			}
		}
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, s := range conditions {
		if m, is := s.(map[string]any); is && m["status"] == "False" && why == "" {
			message, _ := m["message"].(string)
			why = message
		}
	}
	return phase, why
}

// putAgent puts the agent's program on a machine's own volume, where it is again after a power cycle.
func (c *cluster) putAgent(ctx context.Context, v *vm) error {
	w, err := c.api.way(v.Short)(ctx)
	if err != nil {
		return err
	}
	defer w.Close() // it has ended
	kind, err := w.Command(ctx, time.Minute, nil, "uname -sm; [ -x "+agentFile+" ] && echo there || true")
	if err != nil || strings.Contains(kind, "there") {
		return err
	}
	arch := map[string]string{"Linux x86_64": "amd64", "Linux aarch64": "arm64"}[strings.TrimSpace(kind)]
	if arch == "" {
		return fmt.Errorf("its node is %q: there are agents for Linux on x86_64 and aarch64", strings.TrimSpace(kind))
	}
	path := installed.In(c.access.Agents, "plimsoll-agent-linux-"+arch)
	if c.access.Agents == "" {
		if path, err = installed.Path("plimsoll-agent-linux-" + arch); err != nil {
			return err
		}
	}
	program, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the agent: %w: make agents builds it, --target-opt agents=FOLDER says where it is", err)
	}
	defer program.Close() // only read
	_, err = w.Command(ctx, 5*time.Minute, io.Reader(program),
		"umask 077 && mkdir -p "+workFolder+"/bin && cat >"+agentFile+".part && chmod 700 "+
			agentFile+".part && mv "+agentFile+".part "+agentFile)
	return err
}

// PowerOff implements target.VMPower. A machine is off when its node says that the pod is gone.
func (c *cluster) PowerOff(ctx context.Context, names []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var errs []error
	second := int64(1)
	var off []*vm
	for _, name := range names {
		v, err := c.get(name)
		if err == nil {
			err = c.change(func() { v.On = false })
		}
		if err == nil && !v.Template {
			if h, e := c.handle(name); e == nil {
				_ = h.Begin(nil) // nobody is there to part from
			}
			err = c.api.remove(ctx, pods, v.Short, c.state.Run, &second)
			off = append(off, v)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("power off: vm %q: %w", name, err))
		}
	}
	ctx, cancel := clock.WithTimeout(ctx, c.place.clock, offLimit)
	defer cancel()
	for _, v := range off {
		for looked := 0; ; looked++ {
			o, err := c.api.get(ctx, pods, v.Short)
			if err == nil && o == nil {
				break
			}
			// nothing runs there, and nobody is left to say so
			if err == nil && looked%10 == 9 && c.isOff(ctx, v.Node) {
				err = c.api.remove(ctx, pods, v.Short, c.state.Run, new(int64))
			}
			if c.place.clock.Sleep(ctx, lookEach) != nil {
				errs = append(errs,
					fmt.Errorf("power off: vm %q: its node %q does not say after %v that the pod has ended: %w", v.Name,
						c.nodes[v.Node].Name, offLimit, errors.Join(err, target.ErrNotAccessible)))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// watch sees pods that the platform ended: each is a fault, in the platform's words.
func (c *cluster) watch(ctx context.Context) {
	renewed, looked := c.place.clock.Now(), 0
	for c.place.clock.Sleep(ctx, time.Second) == nil {
		if now := c.place.clock.Now(); now.Sub(renewed) >= renewEach {
			if err := c.renew(ctx); err == nil { // else it is asked again
				renewed = now
			}
		}
		c.mu.Lock()
		var on []*vm
		for _, v := range c.state.VMs {
			if v.On {
				on = append(on, v)
			}
		}
		c.mu.Unlock()
		if len(on) == 0 {
			continue
		}
		if looked++; looked%5 == 0 {
			c.lookAtNodes(ctx, on)
		}
		list, err := c.api.list(ctx, pods, runLabel+"="+c.state.Run)
		if err != nil {
			continue // it is asked again
		}
		there := map[string]*unstructured.Unstructured{}
		for i := range list {
			there[list[i].GetName()] = &list[i]
		}
		for _, v := range on {
			o, text := there[v.Short], "its pod was removed"
			if o != nil {
				phase, why := phaseOf(o)
				if phase != "Failed" && phase != "Succeeded" {
					continue
				}
				text = cmp.Or(why, phase)
			}
			ended := false
			if c.change(func() { ended, v.On = v.On, false }) != nil || !ended { // we switched it off
				continue
			}
			if h, err := c.handle(v.Name); err == nil {
				h.Forget()
			}
			if c.fault != nil {
				c.fault(v.Node, result.FaultBegins, fmt.Sprintf("the platform ended %s: %s", v.Name, text))
			}
		}
	}
}

// lookAtNodes sees nodes with machines that are on, and that lost their power by somebody else.
func (c *cluster) lookAtNodes(ctx context.Context, on []*vm) {
	seen := map[int]bool{}
	for _, v := range on {
		if seen[v.Node] {
			continue
		}
		seen[v.Node] = true
		name := c.nodes[v.Node].Name
		o, err := c.api.get(ctx, nodes, name)
		if err != nil || o != nil && nodeReady(o) || !c.isOff(ctx, v.Node) {
			continue
		}
		if c.fault != nil { // first: what was lost with it is told after its cause
			c.fault(v.Node, result.FaultBegins, fmt.Sprintf("node %s is off, by its power controller, and all machines on it",
				name))
		}
		if err := c.lost(ctx, v.Node); err != nil {
			c.log("node %s: %v", name, err)
		}
	}
}

// sorted are the names of a map.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
