// Package needs says what a test cannot do without: fio, sysbench, stress-ng, promtool and its kin, a web server, a
// browser, the corpus of published samples.
//
// A test names its need in its first line. When the thing is absent the test is skipped with a printed reason on a
// developer's machine, and fails where PLIMSOLL_CI=1 says that everything is to be there. The corpus alone may be
// absent in both, since it is not part of the repository. Print in a TestMain tells how often each need was met. Tests
// only: no shipped package imports this one.
//
// Three tiers: -short (make check) skips every test that needs a program, root, or Time; PLIMSOLL_LONG=1 (make
// test-all) runs what is Long, and everything that has a short and a long form in its long one.
package needs

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// CIVariable is the environment variable that turns skips into failures when it is "1".
const CIVariable = "PLIMSOLL_CI"

// Fio returns the path of the fio program.
func Fio(t testing.TB) string {
	t.Helper()
	return program(t, "fio", "apt-get install fio", "fio")
}

// CrashFio returns the path of a fio that verifies what was flushed before a crash. No release has that yet: it came
// into the source after 3.42, in June 2026.
func CrashFio(t testing.TB) string {
	t.Helper()
	name := cmp.Or(os.Getenv("PLIMSOLL_CRASH_FIO"), "fio")
	said, _ := exec.Command(name, "--cmdhelp=verify_policy").CombinedOutput() // fails where there is none
	there := strings.Contains(string(said), "fsynced")
	note("fio with verify_policy=fsynced", there)
	if !there {
		t.Skip("no fio with verify_policy=fsynced: build https://github.com/axboe/fio (for guests: " +
			"./configure --build-static --disable-native), name it in PLIMSOLL_CRASH_FIO")
	}
	return name
}

// Sysbench returns the path of the sysbench program.
func Sysbench(t testing.TB) string {
	t.Helper()
	return program(t, "sysbench", "apt-get install sysbench", "sysbench")
}

// StressNg returns the path of the stress-ng program.
func StressNg(t testing.TB) string {
	t.Helper()
	return program(t, "stress-ng", "apt-get install stress-ng", "stress-ng")
}

// Promtool returns the path of promtool, Prometheus' own client.
func Promtool(t testing.TB) string {
	t.Helper()
	return program(t, "promtool", "apt-get install prometheus", "promtool")
}

// Prometheus returns the path of prometheus itself.
func Prometheus(t testing.TB) string {
	t.Helper()
	return program(t, "prometheus", "apt-get install prometheus", "prometheus")
}

// Pushgateway returns the path of prometheus-pushgateway.
func Pushgateway(t testing.TB) string {
	t.Helper()
	const name = "prometheus-pushgateway"
	return program(t, name, "apt-get install "+name, name, "pushgateway")
}

// NginxCGI returns the paths of nginx and of fcgiwrap, by which it runs CGI programs.
func NginxCGI(t testing.TB) (nginx, fcgiwrap string) {
	t.Helper()
	return program(t, "nginx", "apt-get install nginx-light", "nginx", "/usr/sbin/nginx"),
		program(t, "fcgiwrap", "apt-get install fcgiwrap", "fcgiwrap", "/usr/sbin/fcgiwrap")
}

// Redis returns the path of redis-server, beside which redis-cli and redis-benchmark are.
func Redis(t testing.TB) string {
	t.Helper()
	return program(t, "redis-server", "apt-get install redis-server", "redis-server")
}

// Sshd returns the path of OpenSSH's server.
func Sshd(t testing.TB) string {
	t.Helper()
	return program(t, "sshd", "apt-get install openssh-server", "sshd", "/usr/sbin/sshd")
}

// Ansible returns the path of ansible-playbook.
func Ansible(t testing.TB) string {
	t.Helper()
	return program(t, "ansible-playbook", "apt-get install ansible-core", "ansible-playbook")
}

// IPMISim returns the path of OpenIPMI's simulated BMC.
func IPMISim(t testing.TB) string {
	t.Helper()
	return program(t, "ipmi_sim", "apt-get install openipmi", "ipmi_sim")
}

// SushyEmulator returns the path of OpenStack's simulated Redfish service, as PATH, SUSHY_EMULATOR or setup/install
// have it.
func SushyEmulator(t testing.TB) string {
	t.Helper()
	return program(t, "sushy-emulator", "setup/install test", "sushy-emulator", os.Getenv("SUSHY_EMULATOR"),
		filepath.Join(kept(), "sushy", "bin", "sushy-emulator"))
}

// kept is the folder in which setup/install puts what is not of a package.
func kept() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "plimsoll-tests")
}

// MariaDB returns the paths of mariadbd and of mariadb-install-db, which makes the folder of a server's data.
func MariaDB(t testing.TB) (server, install string) {
	t.Helper()
	const how = "apt-get install mariadb-server"
	server = program(t, "mariadb", how, "mariadbd", "/usr/sbin/mariadbd")
	return server, program(t, "mariadb", how, "mariadb-install-db")
}

// Blktrace returns the paths of blkparse and btt, which come with blktrace.
func Blktrace(t testing.TB) (blkparse, btt string) {
	t.Helper()
	const install = "apt-get install blktrace"
	return program(t, "blkparse", install, "blkparse"), program(t, "btt", install, "btt")
}

// Lab needs what a miniature cluster is made with: root, network namespaces, controllers, and GlusterFS if asked for.
func Lab(t testing.TB, gluster bool) {
	t.Helper()
	Super(t)
	program(t, "iproute2", "apt-get install iproute2", "ip")
	program(t, "ipmi_sim", "apt-get install openipmi", "ipmi_sim")
	if gluster {
		program(t, "glusterfs", "apt-get install glusterfs-server", "glusterd")
	}
}

// Super needs to be root, who alone makes namespaces, mounts, device nodes and files of other users.
func Super(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		note("root", false)
		t.Skip("namespaces, mounts, devices and files of others are root's to make: sudo go test, as .ci/run does")
	}
}

// Ipmitool returns the path of ipmitool.
func Ipmitool(t testing.TB) string {
	t.Helper()
	return program(t, "ipmitool", "apt-get install ipmitool", "ipmitool")
}

// Curl returns the path of curl.
func Curl(t testing.TB) string {
	t.Helper()
	return program(t, "curl", "apt-get install curl", "curl")
}

// Chromium returns the path of a Chromium or Chrome that can run headless.
func Chromium(t testing.TB) string {
	t.Helper()
	return program(t, "chromium", "apt-get install chromium", "chromium", "chromium-browser", "google-chrome")
}

// QEMU returns the paths of the emulator of x86-64 and of qemu-img.
func QEMU(t testing.TB) (system, img string) {
	t.Helper()
	system = program(t, "qemu", "apt-get install qemu-system-x86", "qemu-system-x86_64")
	return system, program(t, "qemu", "apt-get install qemu-utils", "qemu-img")
}

// Debian says that an image of a whole Debian can be made: as root, with mmdebstrap.
func Debian(t testing.TB) {
	t.Helper()
	Super(t)
	program(t, "mmdebstrap", "apt-get install mmdebstrap", "mmdebstrap")
}

// Corpus returns a folder of the corpus of published samples, which lies beside the repository.
func Corpus(t testing.TB, part string) string {
	t.Helper()
	dir := filepath.Join(Root(), "..", "shared", "corpus", filepath.FromSlash(part))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		note("corpus", false)
		t.Skipf("the corpus of published samples (%s) is not beside this repository", part)
	}
	note("corpus", true)
	return dir
}

// Root is the repository's top folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

func program(t testing.TB, need, install string, names ...string) string {
	t.Helper()
	Time(t)
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			note(need, true)
			return path
		}
	}
	note(need, false)
	refuse(t, fmt.Sprintf("%s is not installed (%s)", need, install))
	return ""
}

// That is for a need that the test itself looks for: it is met when there is true.
func That(t testing.TB, there bool, need, how string) {
	t.Helper()
	Time(t)
	note(need, there)
	if !there {
		refuse(t, fmt.Sprintf("%s is not there (%s)", need, how))
	}
}

func refuse(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(CIVariable) == "1" {
		t.Fatalf("%s, and %s=1 wants every test to run", reason, CIVariable)
	}
	t.Skip(reason)
}

type tally struct{ met, missed int }

var counts = struct {
	sync.Mutex
	of map[string]tally
}{of: map[string]tally{}}

func note(need string, met bool) {
	counts.Lock()
	defer counts.Unlock()
	c := counts.of[need]
	if met {
		c.met++
	} else {
		c.missed++
	}
	counts.of[need] = c
}

// Print writes a line per need that tests of this process had: how often it was there and how often it was not.
func Print(w io.Writer) {
	counts.Lock()
	defer counts.Unlock()
	for _, need := range slices.Sorted(maps.Keys(counts.of)) {
		c := counts.of[need]
		fmt.Fprintf(w, "needs: %s: there for %d tests, missing for %d\n", need, c.met, c.missed)
	}
}

// FioExamples returns the folder of the job files that come with fio, as packages lay them down or as FIO_EXAMPLES
// names it.
func FioExamples(t testing.TB) string {
	t.Helper()
	for _, dir := range []string{os.Getenv("FIO_EXAMPLES"), "/usr/share/doc/fio/examples", "/usr/share/fio/examples",
		filepath.Join(kept(), "fio-examples")} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			note("fio's examples", true)
			return dir
		}
	}
	That(t, false, "fio's examples", "setup/install test")
	return ""
}

// AxeCore returns the text of axe-core, which looks for what keeps people from reading a page. It is not of this
// repository: its licence is the MPL.
func AxeCore(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kept(), "axe-core", "axe.min.js"))
	That(t, err == nil, "axe-core", "setup/install test")
	return string(text)
}
