package ssh

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/power/ipmi"
	"plimsoll/internal/testkit/bmctest"
	"plimsoll/internal/testkit/powertest"
	"plimsoll/internal/testkit/sshtest"
)

// powered gives each host of a lab the options of a power controller.
func powered(t *testing.T, l *sshtest.Lab, options map[string]target.Options) target.Target {
	t.Helper()
	var text strings.Builder
	for row := range strings.Lines(l.Text) {
		name, _, _ := strings.Cut(strings.TrimSpace(row), ":")
		if o := options[name]; o != nil {
			list := "power: {kind: ipmi, timeout: 1s"
			for k, v := range o {
				list += fmt.Sprintf(", %s: %s", k, v)
			}
			row = strings.Replace(row, "{address", "{"+list+"}, address", 1)
		}
		text.WriteString(row)
	}
	sshtest.Write(t, l.Inventory, text.String())
	p, err := Provider{}.New(target.Config{Options: hasty(l), PowerKinds: []target.PowerKind{ipmi.Kind{}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func hasty(l *sshtest.Lab) target.Options { o := options(l); o["patience"] = "2s"; return o }

// A host is switched by its BMC, and is ready again when it answers; another one does not notice.
func TestPower(t *testing.T) {
	t.Parallel()
	l := sshtest.New(t, "db1", "db2")
	bmcs := []*bmctest.BMC{bmctest.New(t), bmctest.New(t)}
	p := powered(t, l, map[string]target.Options{"db1": bmcs[0].Options(t), "db2": bmcs[1].Options(t)})
	facts, err := p.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !facts.Can(target.NodePowerControl) || !facts.Can(target.NodeShutdown) || facts.Nodes[1].Power != "ipmi" {
		t.Errorf("%v, %+v", facts.Capabilities, facts.Nodes)
	}
	state := t.TempDir()
	c, err := p.Provision(t.Context(), target.Request{RunID: "power", StateDir: state, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if remains, err := p.Destroy(t.Context(), state); err != nil || len(remains) > 0 {
			t.Errorf("left %v: %v", remains, err)
		}
	}()
	defer c.Close()
	power := c.(target.NodePower)
	answers := true // the host's sshd runs as long as its BMC has it on
	node := func() (target.PowerState, error) {
		is, err := bmcs[0].State()
		if err == nil && answers != (is == target.On) {
			if answers = is == target.On; answers {
				l.Hosts[0].Start(t)
			} else {
				l.Hosts[0].Kill(t)
			}
		}
		state, ready, stateErr := c.NodeState(t.Context(), 0)
		if ready != (state == target.On) {
			state = target.Unknown
		}
		return state, errors.Join(err, stateErr)
	}
	powertest.Run(t, powertest.Place{Graceful: true, Node: node,
		Open: func(t testing.TB) target.PowerController {
			p, err := power.PowerController(0)
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Wait: func(done func() bool) {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if done() {
					return
				}
			}
			t.Fatal("it never was")
		}})
	if state, ready, err := c.NodeState(t.Context(), 1); state != target.On || !ready || err != nil {
		t.Errorf("the other host is %s, %v, %v", state, ready, err)
	}
	if _, err := power.PowerController(2); !errors.Is(err, target.ErrNoSuchNode) {
		t.Error(err)
	}
}

// A check says of all power controllers at once what is wrong with them, and that some hosts have none.
func TestPowerChecks(t *testing.T) {
	l := sshtest.New(t, "fine", "silent", "barred", "other", "none")
	bmcs := []*bmctest.BMC{bmctest.New(t), bmctest.New(t), bmctest.New(t)}
	t.Setenv("WRONG_PASSWORD", "wrong")
	all := map[string]target.Options{"fine": bmcs[0].Options(t), "silent": bmcs[0].Options(t),
		"barred": bmcs[1].Options(t), "other": bmcs[2].Options(t)}
	all["silent"]["port"], all["barred"]["password"] = "1", "env:WRONG_PASSWORD"
	off, err := target.PowerSetting{Kind: "ipmi", Options: all["other"]}.Open("it", []target.PowerKind{ipmi.Kind{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := off.PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	facts, err := powered(t, l, all).Check(t.Context())
	fails(
		t,
		err,
		`machine "silent": power controller ipmi: BMC 127.0.0.1:1: not accessible`,
		`machine "barred": power controller ipmi`,
		`the password of user "admin" is not the one from env:WRONG_PASSWORD`,
		`machine "other": power controller ipmi says that it is off, while it answers`,
	)
	if strings.Contains(err.Error(), `"fine"`) || facts.Can(target.NodePowerControl) {
		t.Errorf("%v, %v", err, facts.Capabilities)
	}
	if why := facts.Missing[target.NodePowerControl]; !strings.Contains(why, "no power: for none") {
		t.Errorf("missing because %q", why)
	}
	all["silent"] = all["fine"]
	all["barred"]["password"] = "wrong"
	all["other"] = target.Options{"adress": "x"}
	_, err = powered(t, l, all).Check(t.Context())
	fails(t, err, "line 4", `host "silent": its power controller is that of host "fine"`, `host "barred"`,
		`a secret is not given as itself`, `host "other"`, `did you mean "address"?`)
}
