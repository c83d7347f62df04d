package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/answer"
)

// A run keeps a Lease of its name for as long as its process lives: it is made first and removed last. Its times are
// the
// API server's, for the clocks of those who start runs and of those who clean up may be hours apart.
const (
	leaseTime  = 5 * time.Minute
	renewEach  = time.Minute
	leaseTimed = "2006-01-02T15:04:05.000000Z07:00"
)

var _ target.RunFinder = (*place)(nil)

// owner is who runs this, and where.
func owner() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return strings.Trim(name+"@"+host, "@")
}

// hold makes the run's lease.
func (c *cluster) hold(ctx context.Context) error {
	return c.make(ctx, leases, object{"coordination.k8s.io/v1", "Lease", c.meta(c.state.Run, &vm{}), c.leaseNow()})
}

type leaseSpec struct {
	Holder  string `json:"holderIdentity"`
	Seconds int64  `json:"leaseDurationSeconds"`
	Renewed string `json:"renewTime"`
}

func (c *cluster) leaseNow() leaseSpec {
	return leaseSpec{owner(), int64(leaseTime / time.Second), c.place.clock.Now().UTC().Format(leaseTimed)}
}

// renew keeps the lease for longer.
func (c *cluster) renew(ctx context.Context) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	return c.patchLease(ctx, map[string]leaseSpec{"spec": c.leaseNow()})
}

func (c *cluster) patchLease(ctx context.Context, change any) error {
	data, err := json.Marshal(change)
	if err == nil {
		_, err = c.api.of(leases).Patch(ctx, c.state.Run, types.MergePatchType, data, metav1.PatchOptions{})
	}
	return err
}

// noteOff notes at the lease which nodes are switched off now, for who cleans up without the folder.
func (c *cluster) noteOff(ctx context.Context) error {
	c.mu.Lock()
	off := strings.Join(c.state.Off, ",")
	c.mu.Unlock()
	return c.api.said(c.api.again(ctx, func(ctx context.Context) error {
		return c.patchLease(ctx, map[string]metadata{"metadata": {Annotations: map[string]string{offNote: off}}})
	}))
}

// changed is when the API server saw an object made or changed last, by its own clock.
func changed(o *unstructured.Unstructured) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// FindRuns implements target.RunFinder.
func (p *place) FindRuns(ctx context.Context) ([]target.FoundRun, error) {
	_, a, err := p.connect()
	if err != nil {
		return nil, err
	}
	_, now, err := a.version(ctx)
	if err != nil {
		return nil, fmt.Errorf("target kubernetes: %w", err)
	}
	found := map[string]*target.FoundRun{}
	for _, kind := range ofRuns {
		list, err := a.list(ctx, kind, runLabel)
		if optional(kind) && err != nil {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("target kubernetes: %s: %w", kind.Resource, err)
		}
		for _, o := range list {
			run := o.GetLabels()[runLabel]
			if !isRun(run) {
				continue
			}
			f := found[run]
			if f == nil {
				f = &target.FoundRun{Run: run, Objects: map[string]int{}}
				found[run] = f
			}
			f.Owner = cmp.Or(f.Owner, o.GetAnnotations()[ownerNote])
			f.Made = max(f.Made, now.Sub(o.GetCreationTimestamp().Time))
			f.Objects[kind.Resource]++
			switch kind {
			case claims:
				size, _, _ := unstructured.NestedString(o.Object, "spec", "resources", "requests", "storage")
				f.Bytes += amount(size)
			case leases:
				long, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaseDurationSeconds")
				f.Lease = changed(&o).Add(time.Duration(long) * time.Second).Sub(now)
			}
		}
	}
	all := []target.FoundRun{}
	for _, run := range sorted(found) {
		all = append(all, *found[run])
	}
	slices.SortStableFunc(all, func(a, b target.FoundRun) int { return cmp.Compare(b.Made, a.Made) })
	return all, nil
}

// RemoveRun implements target.RunFinder.
func (p *place) RemoveRun(ctx context.Context, run string) ([]string, error) {
	if !isRun(run) {
		return nil, fmt.Errorf("target kubernetes: %q is no tag of a run", run)
	}
	f, a, err := p.connect()
	if err != nil {
		return nil, err
	}
	a.patience, a.gone = callLimit, p.goneLimit
	return a.clear(ctx, run, switches{f.power, p.kinds})
}

func isRun(text string) bool { return strings.HasPrefix(text, runPrefix) && label.MatchString(text) }

// ofRuns are the kinds of objects that runs make, in the order in which they are removed: pods hold claims, and a
// snapshot that is taken yet does.
var ofRuns = []schema.GroupVersionResource{moves, instances, pods, shots, claims, leases}

// optional says whether a cluster may have no such kind of objects.
func optional(kind schema.GroupVersionResource) bool {
	return kind == shots || kind == moves || kind == instances
}

// plain asks for what is no object.
func (a *api) plain(ctx context.Context, path string) (got *http.Response, data []byte, err error) {
	base, _, err := rest.DefaultServerURL(a.config.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return nil, nil, err
	}
	err = a.again(ctx, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
		if err != nil {
			return err
		}
		if got, err = a.client.Do(r); err != nil {
			return err
		}
		defer got.Body.Close() // only read
		data, err = answer.Read(got.Body, a.host, 1<<20)
		if err == nil && got.StatusCode >= http.StatusBadRequest {
			err = apierrors.NewGenericServerResponse(got.StatusCode, "get", schema.GroupResource{}, path,
				string(data), 0, false)
		}
		return err
	})
	return got, data, err
}

// version is the API server's, and its clock.
func (a *api) version(ctx context.Context) (version string, now time.Time, err error) {
	got, data, err := a.plain(ctx, "version")
	if err != nil {
		return "", now, a.said(err)
	}
	var v struct{ GitVersion string }
	err = json.Unmarshal(data, &v)
	if err == nil && v.GitVersion == "" {
		err = fmt.Errorf("it answered %s to the question for its version", got.Status)
	}
	if err == nil {
		if now, err = http.ParseTime(got.Header.Get("Date")); err != nil {
			err = errors.Join(errors.New("it does not say what time it has"), err)
		}
	}
	return v.GitVersion, now, err
}
