package ssh

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/sshtest"
	"plimsoll/internal/testkit/targettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(l *sshtest.Lab) target.Options {
	return target.Options{"inventory": l.Inventory, "agents": l.Dir, "patience": "20s"}
}

func open(t testing.TB, o target.Options) target.Target {
	t.Helper()
	p, err := Provider{}.New(target.Config{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConformance(t *testing.T) {
	t.Parallel()
	names := []string{"db1", "db2", "web1"}
	l := sshtest.New(t, names...)
	targettest.Run(t, func(t testing.TB) targettest.Place {
		dir := t.TempDir()
		return targettest.Place{
			New:           func() target.Target { return open(t, options(l)) },
			Request:       target.Request{RunID: "one", StateDir: filepath.Join(dir, "state"), Log: t.Logf},
			OtherStateDir: filepath.Join(dir, "other"),
			Clock:         clock.Real{},
			Commands:      targettest.Shell,
			Alive:         sshtest.Alive,
			Machines:      names,
			Remains:       l.Remains,
			Shares:        true,
		}
	})
}
