package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/exporters/host"
	"plimsoll/internal/testkit/exportertest"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// usage answers as the fixture's machine would.
func usage(mount string) (host.FileSystem, error) {
	switch mount {
	case "/broken":
		return host.FileSystem{}, errors.New("input/output error")
	case "/private":
		return host.FileSystem{}, fs.ErrPermission
	}
	return host.FileSystem{
		Size:      1 << 40,
		Free:      1 << 39,
		Available: 1 << 38,
		Files:     1000,
		FilesFree: 900,
		ReadOnly:  mount == "/data disk",
	}, nil
}

func sound(mount string) (host.FileSystem, error) {
	u, _ := usage(mount)
	return u, nil
}

// machine is the fixture with some of its files replaced; "" removes one.
func machine(t testing.TB, changed map[string]string) fs.FS {
	t.Helper()
	root := os.DirFS("testdata/machine")
	out := fstest.MapFS{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		out[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range changed {
		if delete(out, name); text != "" {
			out[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return out
}

// page returns what is served of a machine, without what the page says of itself.
func page(t testing.TB, c exporter.Collector) (string, error) {
	t.Helper()
	x, err := exporter.New("test", c)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	failed, err := x.Page(t.Context(), &b, exporter.Text)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?plimsoll_exporter_.*\n`).ReplaceAllString(b.String(), ""), failed
}

func TestPageOfAMachine(t *testing.T) {
	got, err := page(t, host.New(machine(t, nil), usage, host.Sections()...))
	if want := "collector host: /proc/1/mounts: \"/broken\": input/output error"; err == nil || err.Error() != want {
		t.Errorf("failure %v, want %s", err, want)
	}
	golden.Compare(t, "testdata/machine.golden", []byte(got))
}

func TestSuite(t *testing.T) {
	exportertest.Run(t, exportertest.Subject{
		New:   func(t *testing.T) exporter.Collector { return host.New(machine(t, nil), sound, host.Sections()...) },
		Empty: func(*testing.T) exporter.Collector { return host.New(fstest.MapFS{}, sound, host.Sections()...) },
	})
}

// This machine, as users run it: whatever it is, the page can be made and read.
func TestThisMachine(t *testing.T) {
	c, err := host.Kind().Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := page(t, c)
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"node_load1 ", "node_memory_MemAvailable_bytes ",
		`node_cpu_seconds_total{cpu="0",mode="idle"} `,
		`node_network_receive_bytes_total{device="lo"} `, "node_boot_time_seconds ", "node_uname_info{"} {
		if !strings.Contains(got, "\n"+name) {
			t.Errorf("the page lacks %s", name)
		}
	}
}

// A page asked for thousands of times, as over a week, holds no more memory than after the first of them.
func TestManyScrapes(t *testing.T) {
	c, err := host.Kind().Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := exporter.New("test", c)
	if err != nil {
		t.Fatal(err)
	}
	x.Deadline = time.Minute
	scraped := func(times int) (objects uint64) {
		for range times {
			if _, err := x.Page(t.Context(), io.Discard, exporter.Text); err != nil {
				t.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what was pooled before the first goes with the second
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	n := needs.Draws(500, 5000)
	before := scraped(50)
	after := scraped(n)
	t.Logf("%d objects after 50 scrapes, %d after %d more", before, after, n)
	if after > before+uint64(n)/2 { // one that is kept for every second scrape
		t.Errorf("%d objects after 50 scrapes, %d after %d more", before, after, n)
	}
}

// Debian's promtool has nothing against the page but what node_exporter's own names do.
func TestPromtool(t *testing.T) {
	tool := needs.Promtool(t)
	got, _ := page(t, host.New(machine(t, nil), sound, host.Sections()...))
	cmd := exec.CommandContext(t.Context(), tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(got)
	out, _ := cmd.CombinedOutput() // it ends with 3 when it has remarks
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "node_memory_") ||
			!strings.Contains(line, "camelCase") { // as the kernel names them
			t.Error(strings.TrimSpace(line))
		}
	}
}

// A file that is cut short, or full of something else, is named; everything else is served.
func TestDamage(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"proc/stat", "cpu0 1 2\nctxt 5\n", `line "cpu0 1 2": it is cut short`},
		{"proc/stat", "cpu0 1 2 3 4 x\n", `line "cpu0 1 2 3 4 x": "x" is no count`},
		{"proc/stat", "ctxt\n", `line "ctxt": it is cut short`},
		{"proc/stat", "ctxt -5\n", `line "ctxt -5": "-5" is no count`},
		{"proc/loadavg", "0.5 0.6\n", "it is cut short"},
		{"proc/loadavg", "a b c\n", `"a" is no load`},
		{"proc/loadavg", "NaN 1 1\n", `"NaN" is no load`},
		{"proc/meminfo", "MemTotal: 5 MB\n", `line "MemTotal: 5 MB": unit "MB" is unknown`},
		{"proc/meminfo", "MemTotal 5\n", `line "MemTotal 5": it is cut short`},
		{"proc/net/dev", "lo: 1 2\n", "no line names the columns"},
		{"proc/net/dev", "a|b|c\n f |bytes packets|bytes\n lo: 1 2\n", `line "lo: 1 2": 2 numbers for 3 columns`},
		{"proc/diskstats", "8 0 sda 1 2 3\n", `line "8 0 sda 1 2 3": it is cut short`},
		{"proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 z\n",
			`line "8 0 sda 1 2 3 4 5 6 7 8 9 10 z": "z" is no count`},
		{"proc/vmstat", "pgpgin\n", `line "pgpgin": it is cut short`},
		{"proc/pressure/io", "some avg10=0.00\n", `line "some avg10=0.00": it is cut short`},
		{"proc/pressure/io", "some total=-1\n", `line "some total=-1": "-1" is no count`},
	} {
		t.Run(path.Base(c.file)+"/"+c.text, func(t *testing.T) {
			got, err := page(t, host.New(machine(t, map[string]string{c.file: c.text}), sound, host.Sections()...))
			if err == nil || !strings.Contains(err.Error(), "/"+c.file+": "+c.want) {
				t.Errorf("failure %v, want %q", err, c.want)
			}
			if !strings.Contains(got, "node_uname_info{") || !strings.Contains(got, "node_filesystem_size_bytes{") {
				t.Error("the rest is not served")
			}
		})
	}
}

// Whatever a kernel lacks is left out, and is no failure.
func TestWhatIsNotThere(t *testing.T) {
	for _, file := range []string{"proc/stat", "proc/loadavg", "proc/meminfo", "proc/net/dev", "proc/diskstats",
		"proc/vmstat", "proc/pressure/io",
		"proc/pressure/irq", "proc/1/mounts", "proc/sys/kernel/osrelease", "proc/sys/kernel/arch"} {
		if _, err := page(t, host.New(machine(t, map[string]string{file: ""}), sound, host.Sections()...)); err != nil {
			t.Errorf("without %s: %v", file, err)
		}
	}
}

// The kernel's idle and waiting times may go back a little. A CPU that was unplugged begins anew.
func TestTimesThatGoBack(t *testing.T) {
	root := machine(t, nil).(fstest.MapFS)
	c := host.New(root, nil, host.CPU)
	read := func(line string) map[string]float64 {
		root["proc/stat"] = &fstest.MapFile{Data: []byte(line)}
		got := map[string]float64{}
		err := c.Collect(context.Background(), func(name string, v float64, labels ...string) {
			if name == "node_cpu_seconds_total" {
				got[labels[3]] = v
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, s := range []struct {
		line string
		want map[string]float64
	}{
		{"cpu0 100 0 0 5000 900 0 0 0", map[string]float64{"user": 1, "idle": 50, "iowait": 9}},
		{"cpu0 150 0 0 4900 800 0 0 0", map[string]float64{"user": 1.5, "idle": 50, "iowait": 9}},
		{"cpu0 10 0 0 100 0 0 0 0", map[string]float64{"user": 0.1, "idle": 1}},
	} {
		got := read(s.line)
		maps.DeleteFunc(got, func(_ string, v float64) bool { return v == 0 })
		if d := cmp.Diff(s.want, got); d != "" {
			t.Errorf("%s: %s", s.line, d)
		}
	}
}

func TestRootThatIsNone(t *testing.T) {
	_, err := host.Kind().Open(target.Options{"root": "testdata/machine.golden"})
	if want := `exporter host: option "root": "testdata/machine.golden" is no folder`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Any content of any file gives a page that can be read, within bounds.
func FuzzFiles(f *testing.F) {
	files := []string{
		"proc/stat",
		"proc/loadavg",
		"proc/meminfo",
		"proc/net/dev",
		"proc/diskstats",
		"proc/vmstat",
		"proc/pressure/io",
		"proc/1/mounts",
	}
	root := os.DirFS("testdata/machine")
	for i, file := range files {
		data, err := fs.ReadFile(root, file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), data)
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		file := files[int(which)%len(files)]
		got, err := page(t, host.New(fstest.MapFS{file: &fstest.MapFile{Data: data}}, sound, host.Sections()...))
		if err != nil &&
			regexp.MustCompile("internal error|twice|described").MatchString(err.Error()) {
			t.Error(err)
		}
		lines := slices.Collect(strings.Lines(got))
		if n := bytes.Count(data, []byte(" ")) + 2*bytes.Count(data, []byte("\n")) + 100; len(lines) > 20*n {
			t.Errorf("%d lines of %d bytes", len(lines), len(data))
		}
	})
}

// What one look at this machine costs.
func BenchmarkThisMachine(b *testing.B) {
	x, err := exporter.New(
		"test",
		host.New(os.DirFS("/"), nil, host.CPU, host.Load, host.Memory, host.Network, host.Kernel, host.Paging,
			host.Pressure),
	)
	if err != nil {
		b.Fatal(err)
	}
	x.Deadline = time.Minute
	for b.Loop() {
		body, _, err := x.Get(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		_ = body.Close()
	}
}

// In a container with a CPU quota its periods are counted, and with a memory limit how often it was reached, in either
// version's hierarchy; elsewhere there are none.
func TestQuota(t *testing.T) {
	const (
		counted = "plimsoll_cpu_quota_periods_total 40\nplimsoll_cpu_quota_throttled_periods_total 25\n"
		limitOf = "plimsoll_memory_limit_bytes 268435456\n"
		limited = limitOf + "plimsoll_memory_limit_hits_total 12\n"
	)
	for name, c := range map[string]struct{ files, want string }{
		"v2":         {"cpu.stat=usage_usec 9\nnr_periods 40\nnr_throttled 25\nthrottled_usec 7\n", counted},
		"v1":         {"cpu/cpu.stat=nr_periods 40\nnr_throttled 25\nthrottled_time 7\n", counted},
		"memory, v2": {"memory.max=268435456\n|memory.events=low 0\nhigh 3\nmax 12\noom 1\n", limited},
		"memory, v1": {"memory/memory.limit_in_bytes=268435456\n|memory/memory.failcnt=12\n", limited},
		"memory and swap, v1": {"memory/memory.limit_in_bytes=268435456\n|memory/memory.failcnt=3\n|" +
			"memory/memory.memsw.failcnt=9\n|memory/memory.memsw.limit_in_bytes=268435456\n", limited},
		"more swap, v1": {"memory/memory.limit_in_bytes=268435456\n|memory/memory.failcnt=0\n|" +
			"memory/memory.memsw.failcnt=0\n|memory/memory.memsw.limit_in_bytes=268435457\n",
			limitOf + "plimsoll_memory_limit_hits_total 0\n"},
		"not counted, v1": {"memory/memory.limit_in_bytes=268435456\n|memory/memory.failcnt=0\n|" +
			"memory/memory.memsw.failcnt=0\n|memory/memory.memsw.limit_in_bytes=268435456\n", limitOf},
		"not counted, v2": {"memory.max=268435456\n", limitOf},
		"no quota":        {"cpu.stat=usage_usec 9\nnr_periods 0\nnr_throttled 0\n|memory.max=max\n", ""},
		"no limit, v1":    {"memory/memory.limit_in_bytes=9223372036854771712\n|memory/memory.failcnt=0\n", ""},
		"a whole machine": {"cpu.stat=usage_usec 9\n", ""},
	} {
		system := fstest.MapFS{}
		for _, f := range strings.Split(c.files, "|") {
			file, text, _ := strings.Cut(f, "=")
			system["sys/fs/cgroup/"+file] = &fstest.MapFile{Data: []byte(text)}
		}
		got, _ := page(t, host.New(system, nil, host.Quota))
		lines := ""
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "plimsoll_cpu_quota") || strings.HasPrefix(line, "plimsoll_memory") {
				lines += line
			}
		}
		if lines != c.want {
			t.Errorf("%s: %q: want %q\n%s", name, lines, c.want, got)
		}
	}
}
