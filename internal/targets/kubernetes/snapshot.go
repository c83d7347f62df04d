package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

var _ target.Snapshotter = (*cluster)(nil)

const shotLimit = 5 * time.Minute // until the storage has all snapshots of a tag

// shotName is that of the snapshot of a machine's disk.
func shotName(v *vm, tag string, i int) string {
	return fmt.Sprintf("%s-%s-d%d", v.Short, short(tag, "")[1:9], i+1)
}

// shotClass is the class of snapshots of the data disks' storage class; "" and why there is none.
func (a *api) shotClass(ctx context.Context, f *fleetFile) (name, why string, err error) {
	all, err := a.list(ctx, classes, "")
	if err != nil {
		return "", "", err
	}
	i := f.classOf(all, f.StorageClass)
	if i < 0 {
		return "", "the storage class is not there", nil
	}
	driver, _, _ := unstructured.NestedString(all[i].Object, "provisioner")
	list, err := a.list(ctx, shotSets, "")
	if err != nil {
		return "", "classes of snapshots: " + err.Error(), nil
	}
	for _, o := range list {
		of, _, _ := unstructured.NestedString(o.Object, "driver")
		if of != driver || f.SnapshotClass != "" && o.GetName() != f.SnapshotClass {
			continue
		}
		if name == "" || o.GetAnnotations()["snapshot.storage.kubernetes.io/is-default-class"] == "true" {
			name = o.GetName()
		}
	}
	if name == "" {
		why = strings.TrimSpace("the cluster has no class of snapshots "+f.SnapshotClass) + " of " + driver
	}
	return name, why, nil
}

// Snapshot implements target.Snapshotter. The storage takes each disk's by itself, one after the other: it is no one
// moment. What the page caches of the nodes hold is flushed first.
func (c *cluster) Snapshot(ctx context.Context, tag string, names []string) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	err := cmp.Or(ctx.Err(), checkName(tag))
	var all []*vm
	for _, name := range names {
		v, e := c.get(name)
		if e == nil && slices.Contains(v.Tags, tag) {
			e = fmt.Errorf("vm %q: a snapshot %q exists already", name, tag)
		}
		if e == nil && v.Template {
			e = fmt.Errorf("vm %q: a template has no disks", name)
		}
		all, err = append(all, v), errors.Join(err, e)
	}
	if err == nil {
		err = c.shoot(ctx, tag, all)
	}
	if err != nil {
		return fmt.Errorf("snapshot %q: %w", tag, err)
	}
	return nil
}

// shoot takes snapshots of machines' disks, all of them or none.
func (c *cluster) shoot(ctx context.Context, tag string, all []*vm) error {
	class, why, err := c.api.shotClass(ctx, c.fleet)
	if err == nil && class == "" {
		err = errors.New(why)
	}
	if err == nil {
		err = c.change(func() {
			for _, v := range all {
				v.Tags = append(v.Tags, tag)
			}
		})
	}
	if err == nil {
		err = c.takeAll(ctx, tag, class, all)
	}
	if err == nil {
		return nil
	}
	for _, v := range all {
		if e := c.removeShots(context.WithoutCancel(ctx), v, tag); e != nil {
			err = errors.Join(err, e)
			continue
		}
		err = errors.Join(err, c.change(func() {
			v.Tags = slices.DeleteFunc(v.Tags, func(t string) bool { return t == tag })
		}))
	}
	return err
}

// shotSource says that a volume is a copy of a snapshot of a machine's disk.
func shotSource(v *vm, tag string, i int) *source {
	return &source{"snapshot.storage.k8s.io", "VolumeSnapshot", shotName(v, tag, i)}
}

type shotSpec struct {
	Class  string `json:"volumeSnapshotClassName"`
	Source struct {
		Claim string `json:"persistentVolumeClaimName"`
	} `json:"source"`
}

func (c *cluster) takeAll(ctx context.Context, tag, class string, all []*vm) error {
	ctx, cancel := clock.WithTimeout(ctx, c.place.clock, shotLimit)
	defer cancel()
	for _, v := range all {
		if v.On {
			if err := c.flush(ctx, v); err != nil {
				return fmt.Errorf("vm %q: %w", v.Name, err)
			}
		}
	}
	for _, v := range all {
		for i := range v.DiskBytes {
			spec := shotSpec{Class: class}
			spec.Source.Claim = v.disk(i)
			o := object{"snapshot.storage.k8s.io/v1", "VolumeSnapshot", c.meta(shotName(v, tag, i), v), spec}
			c.meter.begin(result.Snapshotted, shotName(v, tag, i), v)
			if err := c.make(ctx, shots, o); err != nil {
				return fmt.Errorf("vm %q: %w", v.Name, err)
			}
		}
	}
	return c.waitShots(ctx, tag, all)
}

// waitShots waits until the storage has all snapshots of a tag.
func (c *cluster) waitShots(ctx context.Context, tag string, all []*vm) error {
	pending := map[string]string{} // and why they are
	of := map[string]string{}
	for _, v := range all {
		for i := range v.DiskBytes {
			name := shotName(v, tag, i)
			pending[name], of[name] = "the storage says nothing of it", v.Name
		}
	}
	for {
		there, err := c.ours(ctx, shots)
		for _, name := range sorted(pending) {
			o := there[name]
			switch {
			case err != nil: // it is asked again
			case o == nil:
				return fmt.Errorf("vm %q: snapshot %s was removed by somebody else", of[name], name)
			default:
				if ready, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse"); ready {
					c.meter.done(result.Snapshotted, name)
					delete(pending, name)
					continue
				}
				said, _, _ := unstructured.NestedString(o.Object, "status", "error", "message")
				pending[name] = cmp.Or(said, pending[name])
			}
		}
		if len(pending) == 0 {
			return nil
		}
		if c.place.clock.Sleep(ctx, lookEach) != nil {
			name := sorted(pending)[0]
			return fmt.Errorf("vm %q: snapshot %s is not there after %v: %s: %w", of[name], name, shotLimit,
				pending[name], cmp.Or(err, context.Cause(ctx)))
		}
	}
}

// Restore implements target.Snapshotter: new claims of the snapshots take the place of the old ones.
func (c *cluster) Restore(ctx context.Context, tag, name string) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	v, err := c.get(name)
	switch {
	case err != nil:
	case v.On:
		err = fmt.Errorf("vm %q is on: power it off first", name)
	case !slices.Contains(v.Tags, tag):
		err = fmt.Errorf("vm %q has no such snapshot", name)
	}
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return fmt.Errorf("restore %q: %w", tag, err)
	}
	next := *v
	next.Restored++
	for i, bytes := range v.DiskBytes {
		if err == nil {
			c.meter.disk(v, next.disk(i), true)
			err = c.make(ctx, claims, c.claim(next.disk(i), v, bytes, true, shotSource(v, tag, i)))
		}
	}
	old := *v
	if err == nil {
		err = c.change(func() { v.Restored = next.Restored })
	} else {
		old = next
	}
	for i := range old.DiskBytes {
		err = errors.Join(err, c.api.remove(ctx, claims, old.disk(i), c.state.Run, nil))
	}
	if err != nil {
		return fmt.Errorf("restore %q: vm %q: %w", tag, name, err)
	}
	return nil
}

// removeShots removes a machine's snapshots of some tags.
func (c *cluster) removeShots(ctx context.Context, v *vm, tags ...string) (err error) {
	for _, tag := range tags {
		for i := range v.DiskBytes {
			err = errors.Join(err, c.api.remove(ctx, shots, shotName(v, tag, i), c.state.Run, nil))
		}
	}
	return err
}
