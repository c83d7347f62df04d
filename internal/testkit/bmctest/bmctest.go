//go:build linux

// Package bmctest starts BMCs for tests: ipmi_sim of OpenIPMI, on a loopback port of its own, whose node is a file.
//
// It sits beside the packages of power controllers and is imported by tests only. Beside the suites that they join
// (target/powertest) it is the peer that nobody here wrote.
package bmctest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/thread"
	"plimsoll/internal/testkit/needs"
)

// BMC is one of them. User is "admin".
type BMC struct {
	Port int
	file string // of the node's state
	log  string // of what the BMC was asked to do
}

// Password is the user's.
const Password = "sixteen.of.bytes"

// script switches the node. One that is stuck leaves it as it is.
const script = `#!/bin/sh
# %[1]s ID set|get|check NAME [VALUE]
cd %[1]q || exit 1
shift
echo "$*" >> log
case "$1 $2" in
"set power") [ -e stuck ] || echo "$3" > power ;;
"set shutdown") [ -e stuck ] || echo 0 > power ;;
"get power") printf 'power:%%s\n' "$(cat power)" ;;
"get shutdown") echo shutdown:0 ;;
esac
`

// New starts a BMC whose node is on. It is stopped with the test.
func New(t testing.TB) *BMC { t.Helper(); return NewIn(t, "") }

// NewIn is New in a network namespace; "" is this one.
func NewIn(t testing.TB, space string) *BMC {
	t.Helper()
	dir := t.TempDir()
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &BMC{Port: free.LocalAddr().(*net.UDPAddr).Port, file: filepath.Join(dir, "power"),
		log: filepath.Join(dir, "log")}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"power": "1\n", "switch": fmt.Sprintf(script, dir),
		"node.conf": fmt.Sprintf("name \"node\"\nset_working_mc 0x20\n startlan 1\n  addr 127.0.0.1 %d\n"+
			"  priv_limit admin\n  allowed_auths_callback none md2 md5 straight\n"+
			"  allowed_auths_user none md2 md5 straight\n  allowed_auths_operator none md2 md5 straight\n"+
			"  allowed_auths_admin none md2 md5 straight\n  guid a123456789abcdefa123456789abcdef\n"+
			" endlan\n chassis_control \"%s/switch 1\"\n"+
			" user 2 true \"admin\" \"%s\" admin 10 none md2 md5 straight\n", b.Port, dir, Password),
		"node.emu": "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n" +
			"sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	said := &bytes.Buffer{}
	words := []string{needs.IPMISim(t), "-n", "-p", "-c", dir + "/node.conf", "-f", dir + "/node.emu",
		"-s", dir + "/state"}
	if space != "" {
		words = append([]string{"ip", "netns", "exec", space}, words...)
	}
	sim := exec.Command(words[0], words[1:]...)
	sim.Stdout, sim.Stderr = said, said
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sim.Process.Kill() // it may have ended
		_ = sim.Wait()
		if t.Failed() {
			t.Logf("ipmi_sim said:\n%s", said)
		}
	})
	b.wait(t, space)
	return b
}

// wait returns when the BMC answers a ping of RMCP.
func (b *BMC) wait(t testing.TB, space string) {
	t.Helper()
	var conn net.Conn
	dial := func() (err error) {
		conn, err = net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", b.Port))
		return err
	}
	err := error(nil)
	if space != "" {
		err = thread.InNetwork("/run/netns/"+space, dial)
	} else {
		err = dial()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 100 {
		_, _ = conn.Write([]byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 0, 0, 0}) // refused until it listens
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, _ := conn.Read(make([]byte, 100)); n > 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("ipmi_sim does not answer")
}

// State is how the node really is.
func (b *BMC) State() (target.PowerState, error) {
	data, err := os.ReadFile(b.file)
	switch text := strings.TrimSpace(string(data)); {
	case err != nil:
		return target.Unknown, err
	case text == "1":
		return target.On, nil
	case text == "0":
		return target.Off, nil
	}
	return target.Unknown, nil // it is being written
}

// Stick has the node stay as it is, whatever the BMC is told.
func (b *BMC) Stick(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(b.file), "stuck"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Asked returns what the BMC was asked to do, a line each.
func (b *BMC) Asked(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(b.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Options are those that reach the BMC, with the password in a variable of the environment.
func (b *BMC) Options(t testing.TB) target.Options {
	t.Helper()
	if os.Getenv("BMCTEST_PASSWORD") == "" {
		if err := os.Setenv("BMCTEST_PASSWORD", Password); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Unsetenv("BMCTEST_PASSWORD") })
	}
	return target.Options{"address": "127.0.0.1", "port": fmt.Sprint(b.Port), "user": "admin",
		"password": "env:BMCTEST_PASSWORD"}
}
