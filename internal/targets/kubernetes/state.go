package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/targets/fleet"
)

const (
	stateFile = "kubernetes.json"
	runPrefix = "plimsoll-"
)

// state holds what a fresh process needs to remove a run. It holds no secret: the kubeconfig is named.
type state struct {
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	Exec       bool   `json:"exec,omitempty"`
	Namespace  string `json:"namespace"`
	Run        string `json:"run"` // the label of all that is its
	Made       string `json:"made"`
	Machines   int    `json:"machines"` // that were ever made
	// Power is how nodes are switched, and Off are those that the run has switched off.
	Power powers         `json:"power,omitempty"`
	Off   []string       `json:"off,omitempty"`
	VMs   map[string]*vm `json:"vms"`
}

// vm is a machine, or what one is made of.
type vm struct {
	Name        string   `json:"name"`
	Short       string   `json:"short"`
	Group       string   `json:"group"`
	Node        int      `json:"node"`
	Template    bool     `json:"template,omitempty"`
	Image       string   `json:"image"`
	On          bool     `json:"on,omitempty"`
	Wanted      bool     `json:"wanted,omitempty"` // it was on, and nobody of the run has switched it off
	Exempt      bool     `json:"exempt,omitempty"` // from restarts on other nodes
	Lost        bool     `json:"lost,omitempty"`   // the node of its pod went off: what the API has of it is not so
	CPUs        int      `json:"cpus,omitempty"`
	MemoryBytes int64    `json:"memory_bytes,omitempty"`
	DiskBytes   []int64  `json:"disk_bytes"`
	Tags        []string `json:"tags,omitempty"`     // of its snapshots
	Restored    int      `json:"restored,omitempty"` // how often its disks were
	Plain       bool     `json:"-"`                  // no machine of the run, but a place beside one
}

// save writes the state down as it is; c.saving is held.
func (c *cluster) save() error {
	c.mu.Lock()
	now := c.changes
	data, err := json.Marshal(c.state)
	c.mu.Unlock()
	if err == nil {
		err = fleet.Save(c.dir, stateFile, json.RawMessage(data))
	}
	if err == nil {
		c.saved = now
	}
	return err
}

// Destroy implements target.Target.
func (p *place) Destroy(ctx context.Context, stateDir string) (remains []string, err error) {
	s, made, err := fleet.Load(stateDir, stateFile, func(s state) error {
		if !isRun(s.Run) || !label.MatchString(s.Namespace) {
			return fmt.Errorf("run %q in namespace %q: not of a run", s.Run, s.Namespace)
		}
		return nil
	})
	if err != nil || !made {
		return nil, err
	}
	a, err := (&fleetFile{Kubeconfig: s.Kubeconfig, Context: s.Context, Exec: s.Exec, Namespace: s.Namespace}).connect()
	if err != nil {
		return nil, fmt.Errorf("destroy: %w", err)
	}
	a.patience, a.gone = callLimit, p.goneLimit
	return a.clear(ctx, s.Run, switches{s.Power, p.kinds}, s.Off...)
}

// Bounds of waits for objects to be gone.
const (
	goneLimit = 2 * time.Minute
	goneEach  = 200 * time.Millisecond
)

// clear removes all that has a run's label: pods first, which hold claims; the lease last, when all else is gone. Nodes
// that the run has switched off come back before that: others need them, and so do volumes that only they reach.
func (a *api) clear(ctx context.Context, run string, power switches, off ...string) (remains []string, err error) {
	if o, e := a.owned(ctx, leases, run, run); e == nil && o != nil {
		off = append(off, strings.FieldsFunc(o.GetAnnotations()[offNote], func(r rune) bool { return r == ',' })...)
	}
	slices.Sort(off)
	for _, name := range slices.Compact(off) {
		if e := a.bringBack(ctx, name, power); e != nil {
			remains = append(remains, "node "+name+" is not back")
			err = errors.Join(err, fmt.Errorf("destroy: node %q: %w", name, e))
		}
	}
	for _, kind := range ofRuns {
		if kind == leases && len(remains) > 0 {
			return append(remains, kind.Resource+" "+run), err
		}
		if kind == shots {
			err = errors.Join(err, a.endRestores(ctx, run, func(string) bool { return true }))
		}
		list, e := a.list(ctx, kind, runLabel+"="+run)
		if optional(kind) && e != nil {
			continue
		}
		if apierrors.IsForbidden(e) {
			e = fmt.Errorf("%w; or see whether namespace %q is there: where it was removed, nothing of the run is left", e,
				a.namespace)
		}
		if e != nil {
			return append(remains, kind.Resource+" of "+run), errors.Join(err, fmt.Errorf("destroy: %w", e))
		}
		for _, o := range list {
			if o.GetLabels()[runLabel] != run { // the server's word is not enough to delete by
				continue
			}
			if e := a.removeThis(ctx, kind, &o, power.grace(ctx, &o)); e != nil {
				err = errors.Join(err, fmt.Errorf("destroy: %s %q: %w", kind.Resource, o.GetName(), e))
			}
		}
		left, e := a.waitGone(ctx, kind, run)
		for _, name := range left {
			remains = append(remains, kind.Resource+" "+name)
		}
		err = errors.Join(err, e)
	}
	return remains, err
}

// endRestores removes claims that are being made of snapshots: who removes such a snapshot looks for claims once, and
// where there is one, again only when its controller lists all, a quarter of an hour later.
func (a *api) endRestores(ctx context.Context, run string, of func(claim string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, a.gone)
	defer cancel()
	for {
		list, err := a.list(ctx, claims, runLabel+"="+run)
		ends := true
		for _, o := range list {
			one := untyped.Object(o.Object)
			if !of(o.GetName()) || o.GetLabels()[runLabel] != run || one.Object("status").Text("phase") == "Bound" ||
				one.Object("spec").Object("dataSource").Text("kind") != "VolumeSnapshot" {
				continue
			}
			if ends = false; o.GetDeletionTimestamp() == nil {
				err = errors.Join(err, a.removeThis(ctx, claims, &o, nil))
			}
		}
		if ends || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // who waits for all claims says what holds it
		case <-time.After(goneEach):
		}
	}
}

// waitGone waits until no object of a run is there, for as long as they become fewer: the cluster's own controllers let
// go of some ten claims in a second. It names those that stay with what holds them.
func (a *api) waitGone(ctx context.Context, kind schema.GroupVersionResource, run string) (left []string, err error) {
	fewest, until := -1, time.Now().Add(a.gone)
	var there []unstructured.Unstructured
	for {
		asked := time.Now()
		list, e := a.list(ctx, kind, runLabel+"="+run)
		if e == nil && len(list) == 0 {
			return nil, nil
		}
		if e == nil {
			there = list
		}
		if now := time.Now(); e == nil && (fewest < 0 || len(list) < fewest) {
			fewest, until = len(list), now.Add(a.gone)
		}
		// Of thousands a list is long: what is asked for takes a tenth of the time.
		wait := max(goneEach, 9*time.Since(asked))
		if time.Now().Add(wait).Before(until) {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
				continue
			}
		}
		for _, o := range there {
			text := o.GetName()
			if f := o.GetFinalizers(); len(f) > 0 {
				text += " (held by " + strings.Join(f, ", ") + ")"
			}
			left = append(left, text)
		}
		if err := ctx.Err(); err != nil {
			return left, fmt.Errorf("destroy: %d %s are still there: %w", len(there), kind.Resource, err)
		}
		return left, fmt.Errorf("destroy: %d %s are still there, none fewer in %v: %w", len(there), kind.Resource,
			a.gone, cmp.Or(e, context.DeadlineExceeded))
	}
}
