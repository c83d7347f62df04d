// Package powertest is the conformance suite of power controllers (target.PowerController, target.PowerKind): every
// kind joins it with a Place that holds one node, as the nodes of the places do through package targettest.
package powertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"plimsoll/internal/contract/target"
)

// Place is one node with its controller. The node is on.
type Place struct {
	// Open opens the controller, as a fresh process would.
	Open func(testing.TB) target.PowerController
	// Node is how the node really is, whatever its controller says.
	Node func() (target.PowerState, error)
	// Wait returns when done says yes; it fails the test when that takes too long.
	Wait     func(done func() bool)
	Graceful bool // it shuts nodes down, and does not only cut their power
}

// Run holds a controller to the contract. It leaves the node on.
func Run(t *testing.T, p Place) {
	reach := func(t *testing.T, want target.PowerState) {
		t.Helper()
		p.Wait(func() bool {
			said, err := p.Open(t).State(t.Context())
			if err != nil {
				t.Fatalf("state: %v", err)
			}
			is, err := p.Node()
			if err != nil {
				t.Fatalf("the node's own state: %v", err)
			}
			return said == want && is == want
		})
	}
	do := func(t *testing.T, what string, call func(context.Context) error) {
		t.Helper()
		for range 2 { // repeating a command is fine
			if err := call(t.Context()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	t.Run("off and on", func(t *testing.T) {
		reach(t, target.On)
		c := p.Open(t)
		do(t, "power off", c.PowerOff)
		reach(t, target.Off)
		do(t, "power on", p.Open(t).PowerOn) // by another handle than the one that switched it off
		reach(t, target.On)
	})
	t.Run("graceful shutdown", func(t *testing.T) {
		if !p.Graceful {
			t.Skip("the controller does not claim it")
		}
		do(t, "shut down", p.Open(t).Shutdown)
		reach(t, target.Off)
		do(t, "power on", p.Open(t).PowerOn)
		reach(t, target.On)
	})
	t.Run("a cancelled context changes nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := p.Open(t)
		state, stateErr := c.State(ctx)
		for what, err := range map[string]error{"power off": c.PowerOff(ctx), "power on": c.PowerOn(ctx),
			"shut down": c.Shutdown(ctx), "state": stateErr} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v: want the context's error", what, err)
			}
		}
		if state != target.Unknown {
			t.Errorf("a state that was not asked for is %q", state)
		}
		reach(t, target.On)
	})
	t.Run("called at once", func(t *testing.T) {
		c := p.Open(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := c.PowerOn(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := c.State(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		reach(t, target.On)
	})
}

// Bench is a kind of controllers with a node to try it on.
type Bench struct {
	Kind    target.PowerKind
	Options target.Options // that reach the node; secrets as where they are kept
	Secret  string         // the value that must show nowhere; "" when the kind has none
	Node    func() (target.PowerState, error)
	Wait    func(done func() bool)
	// Wrong are options with which the controller refuses us: a wrong password. May be nil.
	Wrong    target.Options
	Graceful bool
}

// RunKind holds a kind and its controllers to the contract. Every handle comes from a setting that was written down and
// read again, as a clean-up after a crash has it.
func RunKind(t *testing.T, b Bench) {
	kinds := []target.PowerKind{b.Kind}
	setting := target.PowerSetting{Kind: b.Kind.Name(), Options: b.Options}
	var shown []string
	reopen := func(t testing.TB) target.PowerController {
		recorded, err := json.Marshal(setting)
		if err != nil {
			t.Fatal(err)
		}
		var again target.PowerSetting
		if err := json.Unmarshal(recorded, &again); err != nil {
			t.Fatal(err)
		}
		c, err := again.Open("node 0", kinds)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(recorded), fmt.Sprintf("%v %+v %#v", c, c, c))
		return c
	}
	if b.Kind.Name() == "" || b.Kind.Summary() == "" {
		t.Errorf("kind %q, summary %q: want both", b.Kind.Name(), b.Kind.Summary())
	}
	Run(t, Place{Open: reopen, Node: b.Node, Wait: b.Wait, Graceful: b.Graceful})
	t.Run("options are checked, all at once", func(t *testing.T) {
		given := target.Options{"no-such-option": "1"}
		want := []string{"node 0", b.Kind.Name(), "no-such-option"}
		for _, o := range b.Kind.Options() {
			if o.Help == "" {
				t.Errorf("option %q has no help", o.Name)
			}
			if o.Type == target.Secret {
				given[o.Name] = "the-password-itself"
				want = append(want, o.Name)
			}
		}
		_, err := target.PowerSetting{Kind: b.Kind.Name(), Options: given}.Open("node 0", kinds)
		if err == nil {
			t.Fatal("no objection")
		}
		shown = append(shown, err.Error())
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not name %q", err, w)
			}
		}
		if strings.Contains(err.Error(), "the-password-itself") {
			t.Errorf("%q quotes what may be a secret", err)
		}
	})
	t.Run("what it refuses", func(t *testing.T) {
		if b.Wrong == nil {
			t.Skip("the kind refuses nobody")
		}
		c, err := target.PowerSetting{Kind: b.Kind.Name(), Options: b.Wrong}.Open("node 0", kinds)
		if err != nil {
			t.Fatal(err)
		}
		state, err := c.State(t.Context())
		if err == nil || state != target.Unknown || c.PowerOff(t.Context()) == nil {
			t.Errorf("with wrong credentials: %s, %v", state, err)
		}
		shown = append(shown, fmt.Sprint(err))
	})
	t.Run("secrets show nowhere", func(t *testing.T) {
		if b.Secret == "" {
			t.Skip("the kind has none")
		}
		for _, text := range shown {
			if strings.Contains(text, b.Secret) {
				t.Errorf("the secret stands in %q", text)
			}
		}
	})
}

// With are options with others in place of some: pairs of a name and a value.
func With(o target.Options, pairs ...string) target.Options {
	o = maps.Clone(o)
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i]] = pairs[i+1]
	}
	return o
}

// Open opens a controller of a kind.
func Open(t testing.TB, kind target.PowerKind, o target.Options) target.PowerController {
	t.Helper()
	c, err := target.PowerSetting{Kind: kind.Name(), Options: o}.Open("node 0", []target.PowerKind{kind})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Fails holds an error to the words that it must have.
func Fails(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v: want %q", err, w)
		}
	}
}
