package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/fleet"
	"plimsoll/result"
	"plimsoll/unit"
)

var _ fleet.Minder = (*cluster)(nil)

// seen are the objects of a kind of a run as one watch of the API has them, so that nobody has to ask for one again and
// again.
type seen struct {
	kind schema.GroupVersionResource
	told func(o *unstructured.Unstructured, gone bool) // of each change, one after the other

	mu      sync.Mutex
	of      map[string]*unstructured.Unstructured // nil until they were listed
	why     map[string]string                     // of pods that the platform ends, in its words
	changed chan struct{}                         // closed by the next change
}

func newSeen(kind schema.GroupVersionResource, told func(*unstructured.Unstructured, bool)) *seen {
	return &seen{kind: kind, told: told, why: map[string]string{}, changed: make(chan struct{})}
}

// get is an object, nil where there is none or it was not told of yet, and what is closed when there is news.
func (s *seen) get(name string) (*unstructured.Unstructured, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[name], s.changed
}

// all are the objects by name, nil until they were listed, and the platform's words of the pods that it ends.
func (s *seen) all() (of map[string]*unstructured.Unstructured, why map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.of), maps.Clone(s.why)
}

// put takes what was told of an object in.
func (s *seen) put(o *unstructured.Unstructured, gone bool) {
	name := o.GetName()
	s.mu.Lock()
	before := s.of[name]
	if before != nil && before.GetUID() != o.GetUID() {
		delete(s.why, name)
	} else if before != nil && !gone && before.GetResourceVersion() == o.GetResourceVersion() { // listed again
		s.mu.Unlock()
		return
	}
	if m := conditionOf(o, "DisruptionTarget"); m["status"] == "True" { // evicted, preempted, its node lost
		s.why[name] = strings.TrimSuffix(m.Text("reason")+": "+m.Text("message"), ": ")
	}
	o.SetManagedFields(nil) // who set which field is a third of what would be held of thousands
	if s.of[name] = o; gone {
		delete(s.of, name)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.told(o, gone)
}

// list takes in all there are.
func (s *seen) list(all []unstructured.Unstructured) {
	s.mu.Lock()
	if s.of == nil {
		s.of = map[string]*unstructured.Unstructured{}
	}
	before := maps.Clone(s.of)
	s.mu.Unlock()
	for i := range all {
		delete(before, all[i].GetName())
		s.put(&all[i], false)
	}
	for _, o := range before {
		s.put(o, true)
	}
}

// follow lists objects and watches them until the watch ends, as it does every few minutes and where the user may not
// watch.
func (s *seen) follow(ctx context.Context, a *api, which metav1.ListOptions) error {
	short, cancel := limited(ctx)
	page, err := a.of(s.kind).List(short, which)
	cancel()
	if err != nil {
		return err
	}
	s.list(page.Items)
	seconds := int64(240)
	which.ResourceVersion, which.TimeoutSeconds, which.AllowWatchBookmarks = page.GetResourceVersion(), &seconds, true
	w, err := a.of(s.kind).Watch(ctx, which)
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		o, is := e.Object.(*unstructured.Unstructured)
		switch {
		case !is || e.Type == watch.Error:
			return fmt.Errorf("watch: %v", e.Object)
		case e.Type != watch.Bookmark:
			s.put(o, e.Type == watch.Deleted)
		}
	}
	return ctx.Err()
}

// watch sees pods that the platform ended and nodes that are gone: each is a fault, in the platform's words.
func (c *cluster) watch(ctx context.Context) {
	renewed, looked := c.place.clock.Now(), c.place.clock.Now()
	for c.place.clock.Sleep(ctx, lookEach) == nil {
		now := c.place.clock.Now()
		if now.Sub(renewed) >= renewEach {
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
		if len(on) > 0 && now.Sub(looked) >= nodesEach {
			c.lookAtNodes(ctx, on)
			looked = c.place.clock.Now()
		}
		there, ending := c.pods.all()
		if there == nil {
			continue
		}
		for _, v := range on {
			o, text := there[v.Short], cmp.Or(ending[v.Short], "its pod was removed")
			if o != nil {
				phase, why := phaseOf(o)
				if phase != "Failed" && phase != "Succeeded" {
					if n := c.nodeOf(o); n >= 0 && n != v.Node { // its node was drained, say: KubeVirt moved it
						_ = c.change(func() { v.Node = n }) // the next look writes it
					}
					continue
				}
				text = cmp.Or(ending[v.Short], why, phase)
			}
			ended := false
			if c.change(func() { ended, v.On = v.On, false }) != nil || !ended { // we switched it off
				continue
			}
			if h, err := c.handle(v.Name); err == nil {
				h.Forget()
			}
			c.tell(v.Node, result.FaultBegins, "the platform ended %s: %s", v.Name, text)
		}
	}
}

// Ended implements fleet.Minder: a command of which the kernel killed processes for want of memory is a fault, though
// its pod runs on and the platform says nothing.
func (c *cluster) Ended(name string, e target.Exit) {
	v, err := c.get(name)
	if err != nil || e.Starved == 0 {
		return
	}
	limit := "no limit"
	if v.MemoryBytes > 0 {
		limit = "a limit of " + unit.Bytes(v.MemoryBytes).String()
	}
	c.tell(v.Node, result.FaultBegins, "the kernel killed %s of %s for want of memory (OOMKilled); its pod has %s",
		unit.Plural(e.Starved, "process"), name, limit)
}

// tell enters a fault into the run's journal.
func (c *cluster) tell(node int, state, format string, args ...any) {
	if c.fault != nil {
		c.fault(node, state, fmt.Sprintf(format, args...), "")
	}
}

// lookAtNodes sees nodes with machines that are on, and that lost their power by somebody else, or are silent. All are
// asked for at once: hundreds, one by one, would leave no calls to others.
func (c *cluster) lookAtNodes(ctx context.Context, on []*vm) {
	there, err := c.api.list(ctx, nodes, "")
	said := map[string]*unstructured.Unstructured{}
	for i := range there {
		said[there[i].GetName()] = &there[i]
	}
	if err != nil { // it is asked again
		said = nil
	}
	seen := map[int]bool{}
	group := c.place.clock.Group()
	for _, v := range on {
		if !seen[v.Node] {
			seen[v.Node] = true
			group.Go(func() { c.lookAt(ctx, v.Node, said[c.nodes[v.Node].Name]) })
		}
	}
	group.Wait()
}

// lookAt looks at one of them, of which the API server says o; nil where that is not known.
func (c *cluster) lookAt(ctx context.Context, node int, o *unstructured.Unstructured) {
	name := c.nodes[node].Name
	c.mu.Lock()
	ours := slices.Contains(c.state.Off, name)
	c.mu.Unlock()
	if ours { // the run's own step says so
		return
	}
	if c.isOff(ctx, node) {
		// First: what was lost with it is told after its cause.
		c.tell(node, result.FaultBegins, "node %s is off, by its power controller, and all machines on it", name)
		if err := c.lost(ctx, node); err != nil {
			c.log("node %s: %v", name, err)
		}
		return
	}
	if o == nil {
		return
	}
	c.mu.Lock()
	before := c.silent[node]
	c.silent[node] = 0
	if !nodeReady(o) {
		c.silent[node] = before + 1
	}
	now := c.silent[node]
	c.mu.Unlock()
	// In two looks: of a kubelet that begins anew, or after the API server was away, the first tells nothing.
	switch m := conditionOf(o, "Ready"); {
	case now == 2:
		c.tell(node, result.FaultBegins, "node %s is not ready: %v: %v", name, m["reason"], m["message"])
	case now == 0 && before >= 2:
		c.tell(node, result.FaultOver, "node %s is ready again", name)
	}
}
