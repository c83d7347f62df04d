package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// lamp is a power controller of one node, and its kind.
type lamp struct {
	mu sync.Mutex
	on target.PowerState
}

func (*lamp) Name() string                                             { return "lamp" }
func (*lamp) Summary() string                                          { return "one in this process" }
func (*lamp) Options() []target.Option                                 { return nil }
func (l *lamp) Open(target.Values) (target.PowerController, error)     { return l, nil }
func (l *lamp) PowerOn(context.Context) error                          { l.set(target.On); return nil }
func (l *lamp) PowerOff(context.Context) error                         { l.set(target.Off); return nil }
func (l *lamp) Shutdown(context.Context) error                         { l.set(target.Off); return nil }
func (l *lamp) State(context.Context) (s target.PowerState, err error) { return l.get(), nil }

func (l *lamp) set(s target.PowerState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = s
}

func (l *lamp) get() target.PowerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.on
}

// TestComesBack removes a run by its tags that had switched a node off: the node is on again before the lease goes,
// which tells of it; and stays told where the node cannot be switched.
func TestComesBack(t *testing.T) {
	for _, test := range []struct {
		name, power string
		left        []string
		on          target.PowerState
	}{
		{"a controller", "power: {n1: {kind: lamp}}\n", nil, target.On},
		{"none", "", []string{"node n1 is not back", "leases plimsoll-a"}, target.Off},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, file := faked(t, nil, test.power)
			l := &lamp{on: target.Off}
			var mu sync.Mutex
			there := true
			f.first = func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				lease := `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plimsoll-a", "uid":
					"1", "labels": {"plimsoll.dev/run": "plimsoll-a"}, "annotations": {"plimsoll.dev/off": "n1"}}}`
				answer := ""
				switch name := path.Base(r.URL.Path); {
				case name == "plimsoll-a" && r.Method == http.MethodDelete:
					there, answer = false, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`
					if l.get() != test.on {
						t.Error("the lease goes before the node is back")
					}
				case name == "plimsoll-a" && there:
					answer = lease
				case name == "leases" && there:
					answer = fmt.Sprintf(`{"kind": "List", "apiVersion": "v1", "items": [%s]}`, lease)
				case name == "n1":
					beat := time.Unix(1, 0).UTC().Format(time.RFC3339)
					if l.get() == target.On {
						beat = time.Unix(2, 0).UTC().Format(time.RFC3339)
					}
					answer = fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "status":
						{"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": %q}]}}`, beat)
				default:
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, answer)
				return true
			}
			p, err := Provider{}.New(target.Config{Options: target.Options{"file": file}, Clock: clock.Real{},
				PowerKinds: []target.PowerKind{l}})
			if err != nil {
				t.Fatal(err)
			}
			left, err := p.(target.RunFinder).RemoveRun(t.Context(), "plimsoll-a")
			if !slices.Equal(left, test.left) || (err == nil) != (test.left == nil) || l.get() != test.on {
				t.Errorf("%q remain, the node is %s: %v: want %q", left, l.get(), err, test.left)
			}
			if test.left != nil && !strings.Contains(err.Error(), `node "n1": the run has switched it off, and the fleet's `+
				"file gives no power for it: power it on") {
				t.Error(err)
			}
		})
	}
}
