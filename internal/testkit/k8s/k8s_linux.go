package k8s

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// Start gives the cluster of this process of tests: the first that asks starts it, and it is taken down when the
// process ends, however that is. A test on a machine that can have none is skipped with the reason.
func Start(t testing.TB) *Cluster {
	t.Helper()
	needs.Time(t)
	needs.Super(t)
	started.Do(func() { started.cluster, _, started.err = start(t) })
	needs.That(t, !errors.Is(started.err, errCannot), "kubernetes", fmt.Sprint(started.err))
	if started.err != nil {
		t.Fatal(started.err)
	}
	return started.cluster
}

var started struct {
	sync.Once
	cluster *Cluster
	err     error
}

// Another gives a test a cluster of its own, for what no other test may see. stop takes it down, as the end of the
// process does, and gives what the command that holds it ended with.
func Another(t testing.TB) (c *Cluster, stop func() error) {
	t.Helper()
	needs.Time(t)
	needs.Super(t)
	c, stop, err := start(t)
	needs.That(t, !errors.Is(err, errCannot), "kubernetes", fmt.Sprint(err))
	if err != nil {
		t.Fatal(err)
	}
	return c, stop
}

// start starts the command of ./up, which takes the cluster down when its input ends: with this process, if not
// before.
func start(t testing.TB) (*Cluster, func() error, error) {
	t.Helper()
	if err := able(); err != nil {
		return nil, nil, err
	}
	up := exec.Command(needs.Program(t, "./internal/testkit/k8s/up"), "-test", "-source",
		filepath.Join(needs.Root(), "internal", "testkit", "k8s"))
	up.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal to the tests is none to it
	hold, err := up.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	said, err := up.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	// A file and no pipe, which the command would hold open when the tests have ended.
	log, err := os.CreateTemp("", "plimsoll-k8s-up-*.log")
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	if err := os.Remove(log.Name()); err != nil {
		return nil, nil, err
	}
	up.Stderr = log
	if err := up.Start(); err != nil {
		return nil, nil, err
	}
	line, readErr := bufio.NewReader(said).ReadBytes('\n')
	words := func() string {
		text, _ := io.ReadAll(io.NewSectionReader(log, 0, 1<<20)) // it is there
		return strings.TrimSpace(string(text))
	}
	if readErr != nil {
		err := up.Wait()
		if up.ProcessState.ExitCode() == ExitCannot {
			err = errCannot
		}
		return nil, nil, fmt.Errorf("%w: %s", err, words())
	}
	t.Log(words())
	c := new(Cluster)
	if err := json.Unmarshal(line, c); err != nil {
		return nil, nil, err
	}
	held = append(held, hold) // or the collector closes it
	return c, func() error {
		if err := hold.Close(); err != nil {
			return err
		}
		return up.Wait()
	}, nil
}

var held []io.Closer

// Load imports archives of images, as docker save and podman save write them, on every node.
func (c *Cluster) Load(t testing.TB, archives ...string) {
	t.Helper()
	for _, archive := range archives {
		for _, n := range c.Nodes {
			if err := c.load(n.Name, archive); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Power says whether a node is on, whatever the API server says.
func (c *Cluster) Power(node string) (on bool, err error) {
	state, err := at(c.Dir).state(node)
	return state == "on", err
}

// SetPower cuts a node's power, or gives it back. Nothing of the node runs when the power is off.
func (c *Cluster) SetPower(node string, on bool) error {
	return at(c.Dir).power(node, map[bool]string{true: "on", false: "off"}[on])
}

// SetPart ends a part of the cluster that is on no node, such as "kube-apiserver", or starts it again. A part that
// ends by itself is started again after a second, as are a node's: On(node, "pkill", "-KILL", "-f", "kcp kubelet").
func (c *Cluster) SetPart(name string, on bool) error {
	_, err := at(c.Dir).ask(http.MethodPost, "part/"+name, map[bool]string{true: "on", false: "off"}[on])
	return err
}

// WaitReady waits until a node says that it is ready, or as want has it, that it is not.
func (c *Cluster) WaitReady(node string, want bool, limit time.Duration) error {
	return until(limit, func() error {
		err := c.nodeReady(node)
		if !want && err == nil {
			return fmt.Errorf("%s is ready still", node)
		}
		if !want {
			return nil
		}
		return err
	})
}

// Ctr is the beginning of a command to a node's runtime: see On.
func Ctr() []string { return []string{"ctr", "-a", "/run/containerd/containerd.sock", "-n", "k8s.io"} }

// Holdings are what runs and lies on this machine for the cluster's users: it is the same before and after those who
// leave nothing.
type Holdings struct {
	Volumes []string // files of volumes and snapshots
	Loops   []string // loop devices
	Shims   []string // of pods, as NODE ID
}

// Holds counts them, by this machine and not by the API.
func (c *Cluster) Holds() (h Holdings, err error) {
	h.Loops = loops(filepath.Base(c.Dir) + "/")
	for _, kind := range []string{"vol-", "snap-"} {
		names, err := filepath.Glob(filepath.Join(c.Dir, "volumes", kind+"*[0-9a-f]"))
		if err != nil {
			return h, err
		}
		h.Volumes = append(h.Volumes, names...)
	}
	for _, n := range c.Nodes {
		on, err := c.Power(n.Name)
		if err != nil {
			return h, err
		}
		if !on {
			continue
		}
		tasks, err := c.On(n.Name, append(Ctr(), "tasks", "list", "-q")...)
		if err != nil {
			return h, err
		}
		for id := range strings.FieldsSeq(tasks) {
			h.Shims = append(h.Shims, n.Name+" "+id)
		}
	}
	return h, nil
}
