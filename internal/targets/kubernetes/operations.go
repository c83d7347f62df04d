package kubernetes

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// meter measures what the platform does for machines: from when it was asked, or had done what comes before, until the
// watch tells that it is done, by our clock.
type meter struct {
	operated func(result.PlatformOperation)
	clock    clock.Clock

	mu    sync.Mutex
	begun map[string]begun // by operation and object
}

type begun struct {
	at        time.Time
	vm, group string
	node      int
}

func (m *meter) begin(operation, object string, v *vm) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun[operation+" "+object] = begun{m.clock.Now(), v.Name, v.Group, v.Node}
}

// disk begins the making of a disk, by copying another where clone says so.
func (m *meter) disk(v *vm, claim string, clone bool) {
	m.begin(map[bool]string{true: result.Cloned, false: result.Bound}[clone], claim, v)
}

// from begins anew what waited for something that is ours to do: a disk that is made for its first pod.
func (m *meter) from(claim string) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{result.Cloned, result.Bound} {
		if b, is := m.begun[name+" "+claim]; is {
			b.at = now
			m.begun[name+" "+claim] = b
		}
	}
}

// done ends an operation, if it was begun, and begins those that come after it.
func (m *meter) done(operation, object string, next ...string) {
	m.mu.Lock()
	b, is := m.begun[operation+" "+object]
	delete(m.begun, operation+" "+object)
	now := m.clock.Now()
	if is {
		for _, name := range next {
			m.begun[name+" "+object] = begun{now, b.vm, b.group, b.node}
		}
	}
	m.mu.Unlock()
	if is && m.operated != nil {
		m.operated(result.PlatformOperation{Name: operation, VM: b.vm, Group: b.group, Node: b.node,
			Object: object, Began: b.at, Seconds: now.Sub(b.at).Seconds()})
	}
}

// open is how many operations of a name were begun and have not ended.
func (m *meter) open(operation string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.begun {
		if strings.HasPrefix(key, operation+" ") {
			n++
		}
	}
	return n
}

// drop forgets what was begun.
func (m *meter) drop(operation, object string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.begun, operation+" "+object)
}

// asked begins what becomes of a pod.
func (c *cluster) asked(v *vm) {
	c.meter.begin(result.Scheduled, v.Short, v)
	for _, name := range v.claims() {
		c.meter.from(name)
	}
}

// podTold measures how a pod comes on. To start is all from its place on a node until it runs, with what of it is told
// by itself, too: many a kubelet tells of disks only when the pod runs already, and of those it is not known how long
// they took.
func (c *cluster) podTold(o *unstructured.Unstructured, gone bool) {
	name := o.GetName()
	if gone {
		for _, operation := range []string{result.Scheduled, result.Attached, result.Pulled, result.Started,
			result.Addressed} {
			c.meter.drop(operation, name)
		}
		return
	}
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	ip := addressOf(o)
	node, _, _ := unstructured.NestedString(o.Object, "status", "nodeName") // of a virtual machine
	if condition(o, "PodScheduled") == "True" || node != "" {
		c.meter.done(result.Scheduled, name, result.Attached, result.Started, result.Addressed)
	}
	if ip != "" {
		c.meter.done(result.Addressed, name)
	}
	if condition(o, "PodReadyToStartContainers") == "True" {
		if phase == "Running" {
			c.meter.drop(result.Attached, name)
		}
		c.meter.done(result.Attached, name)
	}
	if phase == "Running" {
		c.meter.done(result.Started, name)
	}
}

// claimTold measures how disks are made and removed.
func (c *cluster) claimTold(o *unstructured.Unstructured, gone bool) {
	if gone {
		c.meter.done(result.Deleted, o.GetName())
		return
	}
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Bound" {
		c.meter.done(result.Cloned, o.GetName())
		c.meter.done(result.Bound, o.GetName())
	}
}

// eventTold measures how long images take to be fetched, which is in no object's status.
func (c *cluster) eventTold(o *unstructured.Unstructured, gone bool) {
	pod, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
	reason, _, _ := unstructured.NestedString(o.Object, "reason")
	message, _, _ := unstructured.NestedString(o.Object, "message")
	switch {
	case gone:
	case reason == "Pulling":
		if v := c.byShort(pod); v != nil {
			c.meter.begin(result.Pulled, pod, v)
		}
	case reason == "Pulled" && strings.HasPrefix(message, "Successfully pulled"):
		c.meter.done(result.Pulled, pod)
	}
}

// byShort is the machine that is on as a pod; nil where none is of that name.
func (c *cluster) byShort(name string) *vm {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.VMs {
		if v.Short == name {
			return v
		}
	}
	return nil
}
