package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/result"
)

// host is a fixture tree of a small machine; each test adds what it is about.
func fixture(more map[string]string) fstest.MapFS {
	files := map[string]string{
		"etc/os-release":            "NAME=x\nPRETTY_NAME=\"Example Linux 7\"\n",
		"proc/sys/kernel/osrelease": "6.9.1-example\n",
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: Example CPU\ncpu MHz\t\t: " +
			"2400.5\nflags\t\t: fpu sse hypervisor\n\nprocessor\t: 1\nmodel name\t: Example CPU\ncpu MHz\t\t: 800.0\n",
		"proc/meminfo": "MemTotal:       16384 kB\nMemAvailable:    8192 " +
			"kB\nSwapTotal:  0 kB\nSwapFree:   0 kB\nHugePages_Total:       4\nHugepagesize:       2048 kB\n",
		"proc/self/mountinfo":                                             "",
		"proc/self/cgroup":                                                "0::/user.slice/session-1.scope\n",
		"sys/kernel/mm/transparent_hugepage/enabled":                      "always [madvise] never\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
		"sys/devices/system/cpu/smt/control":                              "on\n",
		"sys/devices/system/cpu/vulnerabilities/meltdown":                 "Mitigation: PTI\n",
		"sys/devices/system/node/node0/cpulist":                           "0\n",
		"sys/devices/system/node/node1/cpulist":                           "1\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
	}
	for name, text := range more {
		files[name] = text
	}
	m := fstest.MapFS{}
	for name, text := range files {
		if text != absent {
			m[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return m
}

const absent = "\x00absent"

func check(t *testing.T, system fs.FS, c target.Config) (target.Facts, error) {
	t.Helper()
	c.RunsDir = cmp.Or(c.RunsDir, t.TempDir()) // the folder of this package need not be one to write in
	p, err := Provider{System: system}.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p.Check(t.Context())
}

// value finds a fact; a missing one reads "missing: why".
func value(f target.Facts, group, name string) string {
	for _, e := range f.Environment {
		if e.Group == group && e.Name == name {
			if e.Missing != "" {
				return "missing: " + e.Missing
			}
			return e.Value
		}
	}
	return "no such fact"
}

func TestHostFacts(t *testing.T) {
	f, err := check(t, fixture(nil), target.Config{Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := []target.Node{{Index: 0, Name: "node-0", Cores: 2, MemoryBytes: 16 << 20, Power: "simulated"},
		{Index: 1, Name: "node-1", Cores: 2, MemoryBytes: 16 << 20, Power: "simulated"}}
	if diff := gocmp.Diff(want, f.Nodes); diff != "" {
		t.Error(diff)
	}
	for _, c := range [][3]string{
		{"host", "operating system", "Example Linux 7"},
		{"host", "kernel", "6.9.1-example"},
		{"host", "virtualisation", "inside a virtual machine"},
		{"host", "maker", "missing: /sys/class/dmi/id/sys_vendor: file does not exist"},
		{"cpu", "model", "Example CPU"},
		{"cpu", "logical CPUs", "2"},
		{"cpu", "clock at check", "2400 MHz"},
		{"cpu", "governor", "performance"},
		{"cpu", "frequency driver",
			"missing: /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver: file does not exist"},
		{"cpu", "SMT", "on"},
		{"cpu", "NUMA nodes", "2"},
		{"cpu", "mitigation of meltdown", "Mitigation: PTI"},
		{"memory", "total", "16 MiB"},
		{"memory", "huge pages", "4"},
		{"memory", "transparent huge pages", "madvise"},
		{"memory", "swappiness", "missing: /proc/sys/vm/swappiness: file does not exist"},
		{"cpu", "deepest idle state", "missing: /sys/devices/system/cpu/cpu0/cpuidle: lists none that may be entered"},
		{"clock", "source", "tsc"},
	} {
		if got := value(f, c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// The deepest idle state is the slowest to wake from of those that are on, and that no program has ruled out.
func TestIdleFacts(t *testing.T) {
	t.Parallel()
	const states = "sys/devices/system/cpu/cpu0/cpuidle/state"
	tree := map[string]string{}
	for i, s := range [][3]string{{"POLL", "0", "0"}, {"C1E", "10", "0"}, {"C6", "133", "0"}, {"C9", "900", "1"}} {
		at := fmt.Sprintf("%s%d/", states, i)
		tree[at+"name"], tree[at+"latency"], tree[at+"disable"] = s[0]+"\n", s[1]+"\n", s[2]+"\n"
	}
	for asked, want := range map[string]string{"": "C6, 133 µs to wake", "\x32\x00\x00\x00": "C1E, 10 µs to wake",
		"\x00\x00\x00\x00": "POLL, 0 µs to wake", "\x00\x94\x35\x77": "C6, 133 µs to wake"} { // little-endian µs
		if asked != "" {
			tree["dev/cpu_dma_latency"] = asked
		}
		var l factList
		idleFacts(&l, fixture(tree))
		if got := l[len(l)-1]; got.Value != want || got.Kind != result.IdleWake {
			t.Errorf("asked for %q: %+v, want %s", asked, got, want)
		}
		delete(tree, "dev/cpu_dma_latency")
	}
}

func TestStorageFacts(t *testing.T) {
	dir := t.TempDir()
	root := func(fstype, source, device string) map[string]string {
		return map[string]string{
			"proc/self/mountinfo":   fmt.Sprintf("27 1 %s / / rw,noatime - %s %s rw,discard\n", device, fstype, source),
			"sys/block/nvme0n1/dev": "259:0\n", "sys/block/nvme0n1/nvme0n1p2/dev": "259:2\n",
			"sys/block/nvme0n1/device/model":     "Example SSD 1TB  \n",
			"sys/block/nvme0n1/queue/scheduler":  "mq-deadline [none]\n",
			"sys/block/nvme0n1/queue/rotational": "0\n", "sys/block/nvme0n1/queue/nr_requests": "1023\n",
		}
	}
	cases := map[string]struct {
		tree map[string]string
		want map[string]string
		note string
	}{
		"partition": {root("ext4", "/dev/nvme0n1p2", "259:2"),
			map[string]string{"file system": "ext4", "source": "/dev/nvme0n1p2",
				"device": "nvme0n1", "device model": "Example SSD 1TB", "scheduler": "none", "rotational": "0",
				"queue requests": "1023",
				"mount options":  "rw,noatime,rw,discard"}, ""},
		"device by name": {root("btrfs", "/dev/nvme0n1p2", "0:31"), map[string]string{"device": "nvme0n1"}, ""},
		"network": {root("nfs4", "server:/export", "0:50"),
			map[string]string{"device": "missing: no block device found for server:/export"}, ""},
		"memory": {root("tmpfs", "tmpfs", "0:40"),
			map[string]string{"file system": "tmpfs", "media": "none: the files are in memory"},
			"Data disks would be in memory"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := check(t, fixture(c.tree), target.Config{Options: target.Options{"dir": dir}})
			if err != nil {
				t.Fatal(err)
			}
			media := len(result.Find(f.Environment, result.StorageMedia))
			size := result.Find(f.Environment, result.StorageSize)
			if (media == 1) != (name == "memory") || len(size) != 1 || size[0].Number <= 0 || !f.OneMachine {
				t.Errorf("%d facts about media, size %+v, one machine: %t", media, size, f.OneMachine)
			}
			for fact, want := range c.want {
				if got := value(f, "storage", fact); got != want {
					t.Errorf("%s: %q, want %q", fact, got, want)
				}
			}
			if noted := strings.Contains(strings.Join(f.Notes, "\n"), "in memory"); noted != (c.note != "") {
				t.Errorf("notes: %q", f.Notes)
			}
		})
	}
}

// The facts are about the place where run folders will be, not about where the user happens to stand.
func TestStorageFactsOfRunsDir(t *testing.T) {
	runs, other := t.TempDir(), t.TempDir()
	cases := map[string]struct {
		config target.Config
		want   string
	}{
		"run folders":                   {target.Config{RunsDir: runs}, runs},
		"run folders that are not made": {target.Config{RunsDir: filepath.Join(runs, "a", "b")}, runs},
		"option before run folders":     {target.Config{RunsDir: runs, Options: target.Options{"dir": other}}, other},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := check(t, fixture(nil), c.config)
			if err != nil {
				t.Fatal(err)
			}
			if got := value(f, "storage", "folder"); got != c.want {
				t.Errorf("folder %q, want %q", got, c.want)
			}
		})
	}
}

func TestFindControlGroups(t *testing.T) {
	const unified = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	const hybrid = "30 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"31 1 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n32 1 0:28 / /sys/fs/cgroup/memory " +
		"rw - cgroup cgroup rw,memory\n"
	all := func(string) bool { return true }
	below := func(prefix string) func(string) bool {
		return func(p string) bool { return strings.HasPrefix(p, prefix) }
	}
	user := "/user.slice/user-1000.slice/user@1000.service/app.slice"
	cases := map[string]struct {
		tree     map[string]string
		writable func(string) bool
		want     [3]string // tracking, CPU, memory
	}{
		"root, v2": {map[string]string{"proc/self/mountinfo": unified, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n"}, all, [3]string{"/sys/fs/cgroup",
			"/sys/fs/cgroup", "/sys/fs/cgroup"}},
		"user service, delegated": {map[string]string{"proc/self/mountinfo": unified, "proc/self/cgroup": "0::" + user +
			"/run.scope\n",
			"sys/fs/cgroup" + user + "/cgroup.subtree_control": "cpu memory pids\n"},
			below("/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"),
			[3]string{"/sys/fs/cgroup" + user, "/sys/fs/cgroup" + user, "/sys/fs/cgroup" + user}},
		"user session, nothing delegated": {map[string]string{"proc/self/mountinfo": unified}, below("/home"),
			[3]string{}},
		"own group, without controllers": {map[string]string{"proc/self/mountinfo": unified},
			below("/sys/fs/cgroup/user.slice/session-1.scope"),
			[3]string{"/sys/fs/cgroup/user.slice/session-1.scope"}},
		"hybrid": {map[string]string{"proc/self/mountinfo": hybrid,
			"proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/job/1\n0::/\n"}, all,
			[3]string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory/job/1"}},
		"hybrid, memory at the root only": {map[string]string{"proc/self/mountinfo": hybrid,
			"proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/job/1\n0::/\n"},
			func(p string) bool {
				return !strings.Contains(p, "job")
			}, [3]string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"}},
		"none":    {nil, all, [3]string{}},
		"no proc": {map[string]string{"proc/self/mountinfo": absent}, all, [3]string{}},
		"outside the namespace": {map[string]string{"proc/self/mountinfo": unified,
			"proc/self/cgroup": "0::/../../other\n"}, below("/sys/fs/cgroup"),
			[3]string{"/sys/fs/cgroup"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := findControlGroups(fixture(c.tree), c.writable)
			if got := [3]string{g.track.dir, g.cpu.dir, g.memory.dir}; got != c.want {
				t.Errorf("tracking, CPU, memory in %q, want %q", got, c.want)
			}
			for _, b := range []controlBase{g.track, g.cpu, g.memory} {
				if (b.dir == "") != (b.why != "") {
					t.Errorf("base %+v: want a folder or a reason", b)
				}
			}
		})
	}
}

func TestCheckObjections(t *testing.T) {
	_, err := check(t, fixture(map[string]string{"proc/cpuinfo": "x: y\n", "proc/meminfo": "MemTotal: lots\n"}),
		target.Config{RunsDir: "/proc/self/status"})
	for _, want := range []string{"lists no processor", `MemTotal "lots"`, "MemAvailable", "is not a folder"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: does not say %q", err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	_, err := Provider{}.New(target.Config{Nodes: -1, Options: target.Options{"cgroups": "maybe", "reserve": "much",
		"color": "blue"}})
	for _, want := range []string{"nodes -1", `"maybe"`, `"much"`, `"color"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: does not name %s", err, want)
		}
	}
	for _, o := range (Provider{}).Options() {
		if _, err := (Provider{}).New(target.Config{Options: target.Options{o.Name: o.Default}}); err != nil {
			t.Errorf("default of %s: %v", o.Name, err)
		}
	}
	commands := []target.Capability{target.GuestCommands, target.ControllerCommands}
	for _, allowed := range []bool{false, true} {
		f, err := check(t, fixture(nil), target.Config{AllowHostCommands: allowed})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			if f.Can(c) != allowed || !allowed && !strings.Contains(f.Missing[c], "--allow-host-commands") {
				t.Errorf("allowed %t: %s claimed %t, missing %q", allowed, c, f.Can(c), f.Missing[c])
			}
		}
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c)) S 7 42 42 0 -1 4194304 99 0 0 0 150 50 25 75 20 0 1 0 105157 3133440 380 " +
		"18446744073709551615 1"
	p, err := parseStat([]byte(line))
	want := process{pid: 42, parent: 7, state: 'S', threads: 1, start: 105157, user: 1750e6, system: 1250e6}
	want.rssBytes = p.rssBytes
	if err != nil || p != want || p.rssBytes < 380*4096 {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
	for _, bad := range []string{"", "1 (x", "x (y) S 1", strings.Replace(line, "105157", "-1", 1), "1 (x) S 1 2 3"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (a) b (c)) S 7 42 42 0 -1 4194304 99 0 0 0 150 50 25 75 20 0 1 0 105157 3133440 380 " +
		"18446744073709551615 1")
	f.Fuzz(func(t *testing.T, line string) {
		if p, err := parseStat([]byte(line)); err == nil &&
			(p.rssBytes < 0 || p.user < 0 || p.system < 0 || p.state == 0) {
			t.Errorf("%q: %+v", line, p)
		}
	})
}

func FuzzParseJournal(f *testing.F) {
	f.Add(`{"op":"run","mark":"0123456789abcdef0123456789abcdef","boot":"b"}` + "\n" + `{"op":"sandbox","name":"vm"}` +
		"\n" + `{"op":"sand`)
	f.Add(`{"op":"sandbox","name":"../x"}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, _ := parseJournal([]byte(text), "journal")
		for _, e := range entries {
			if e.Op == "sandbox" && (strings.Contains(e.Name, "/") || e.Name == ".." || e.Name == "." || e.Name == "") {
				t.Errorf("a sandbox named %q would be removed", e.Name)
			}
			if e.Op == "run" && len(e.Mark) != markLength {
				t.Errorf("mark %q would match", e.Mark)
			}
		}
	})
}

func TestMarkedNeedsMark(t *testing.T) {
	for _, mark := range []string{"", "x"} {
		if list, err := marked(mark); err != nil || len(list) > 0 {
			t.Errorf("mark %q matches %d processes, %v", mark, len(list), err)
		}
	}
}

func TestDeviceName(t *testing.T) {
	got := []string{deviceName(0), deviceName(24), deviceName(25), deviceName(26 + 25), deviceName(26*27 - 2),
		deviceName(26*27 - 1)}
	if want := []string{"/dev/sdb", "/dev/sdz", "/dev/sdaa", "/dev/sdba", "/dev/sdzz", "/dev/sdaaa"}; !slices.Equal(got,
		want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestExplain(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		cause error
		want  []string
	}{
		{errNoSpace, []string{dir, "no space left", "2 MiB wanted", "free"}},
		{errTooManyFiles, []string{dir, "too many open files", "ulimit -n"}},
		{fs.ErrPermission, []string{dir, "permission denied", "user id"}},
		{errReadOnly, []string{dir, "read-only file system: name a folder", "--dir"}},
		{errTooLarge, []string{dir, "file too large", "2 MiB", "ulimit -f"}},
	} {
		err := explain(&fs.PathError{Op: "write", Path: "x", Err: c.cause}, dir, 2<<20)
		if !errors.Is(err, c.cause) {
			t.Errorf("%v hides its cause", err)
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not say %q", err, w)
			}
		}
	}
}
