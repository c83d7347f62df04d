package cli

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/golden"
)

// TestDeviceInspect holds what is printed of the devices of machines of text.
func TestDeviceInspect(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		machine, look := devicetest.Machine(t, name)
		for _, json := range []bool{false, true} {
			a, out, errs := quiet(t)
			a.devices.System = machine
			args, file := []string{"device", "inspect", look}, "testdata/device/"+name+".txt"
			if json {
				args, file = append(args, "--json"), "testdata/json/device-inspect-"+name+".json"
			}
			if code := a.main(args); code != exit.Done {
				t.Errorf("%s: exit code %d\n%s", name, code, errs)
			}
			if json && !slices.Contains([]string{"dm-on-partition", "loop", "sata-misaligned"}, name) {
				continue // these have every member; package device holds the others
			}
			golden.Compare(t, file, out.Bytes())
		}
	}
}

// TestDeviceCheck: objections are on standard error, or in the JSON, and the exit code says that there are some.
func TestDeviceCheck(t *testing.T) {
	for name, c := range map[string]struct {
		machine string
		args    []string
		code    int
		errs    string
	}{
		"refused": {"dm-on-partition", []string{"/dev/nvme0n1p3"}, exit.Refused,
			"dm-0 (LVM volume vg0-data) is made of it"},
		"other consent": {"usb", []string{"/dev/sde", "--consent", "SanDisk"}, exit.Refused, `the consent is for "SanDisk"`},
		"no consent":    {"usb", []string{"/dev/sde", "--consent", ""}, exit.Refused, "nobody has consented"},
		"file":          {"sata-misaligned", []string{"/srv/data/file"}, exit.Refused, "is a file or folder on sda1"},
		"nothing":       {"usb", nil, exit.Usage, "no path given"},
	} {
		machine, _ := devicetest.Machine(t, c.machine)
		a, out, errs := quiet(t)
		a.devices.System = machine
		if code := a.main(append([]string{"device", "check"}, c.args...)); code != c.code ||
			!strings.Contains(errs.String(), c.errs) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, want %d\n%s%s", name, code, c.code, out, errs)
		}
	}
	machine, _ := devicetest.Machine(t, "dm-on-partition")
	a, out, errs := quiet(t)
	a.devices.System = machine
	if code := a.main([]string{"device", "check", "/dev/nvme0n1", "--json", "--consent",
		"Samsung SSD 980 PRO 1TB S5GXNX0R123456"}); code != exit.Refused || errs.Len() > 0 {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	text := regexp.MustCompile(`root may not either[^"]*|run it as root`).ReplaceAll(out.Bytes(), []byte("PRIVILEGE"))
	golden.Compare(t, "testdata/json/device-check.json", text)
}

// TestDeviceNotThere: what is no device, or lies on none, is said with what to do.
func TestDeviceNotThere(t *testing.T) {
	machine, _ := devicetest.Machine(t, "sas-behind-hba")
	devicetest.Put(machine, "srv/share/file", "x")
	devicetest.Put(machine, "dev/null", "char 1:3")
	devicetest.Put(machine, "run/pipe", "x")
	machine["run/pipe"].Mode = fs.ModeNamedPipe
	machine["proc/self/mountinfo"].Data = []byte("22 1 0:44 / /srv/share rw - nfs4 server:/share rw\n")
	for path, want := range map[string]string{
		"/dev/sdz":        "device inspect: /dev/sdz: file does not exist",
		"/dev/null":       "device inspect: /dev/null: is a character device, not a block device: give the block device",
		"/run/pipe":       "device inspect: /run/pipe: is neither a block device nor a file nor a folder",
		"/srv/share/file": "device inspect: /srv/share/file: lies on server:/share (nfs4), which names no block device of this machine: give the device itself",
	} {
		a, out, errs := quiet(t)
		a.devices.System = machine
		if code := a.main([]string{"device", "inspect", path}); code != exit.Failed || out.Len() > 0 ||
			!strings.HasPrefix(errs.String(), "plimsoll: "+want+"\n") {
			t.Errorf("%s: exit code %d\n%s%s", filepath.Base(path), code, out, errs)
		}
	}
}
