package procfs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/kit/procfs"
)

func TestCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []procfs.CPU
		err  string
	}{
		"all columns": {
			text: "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 0 0 0 7 0 0 0 0 0 0 5 5\nintr " +
				"5\ncpufreq 1\n",
			want: []procfs.CPU{
				{Ticks: [procfs.Modes]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
				{Number: 12, Ticks: [procfs.Modes]uint64{procfs.Idle: 7}},
			},
		},
		"an old kernel": {
			text: "cpu0 1 2 3 4\n", want: []procfs.CPU{{Ticks: [procfs.Modes]uint64{1, 2, 3, 4}}},
		},
		"twice": {
			text: "cpu1 1 1 1 1\ncpu1 2 2 2 2\n",
			want: []procfs.CPU{{Number: 1, Ticks: [procfs.Modes]uint64{1, 1, 1, 1}}},
		},
		"damage beside what is whole": {
			text: "cpu0 1 2 3\ncpu1 1 2 3 x\ncpu2 1 2 3 4\ncpu3 1 2 3 999999999999999\n",
			want: []procfs.CPU{{Number: 2, Ticks: [procfs.Modes]uint64{1, 2, 3, 4}}},
			err: "line \"cpu0 1 2 3\": it is cut short\nline \"cpu1 1 2 3 x\": \"x\" is no count\n" +
				"line \"cpu3 1 2 3 999999999999999\": 999999999999999 is no time",
		},
		"nothing": {text: "intr 5\n"},
	} {
		got, err := procfs.CPUs([]byte(c.text))
		if diff := cmp.Diff(c.want, got) + cmp.Diff(c.err, text(err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestTimes(t *testing.T) {
	c := procfs.CPU{Ticks: [procfs.Modes]uint64{procfs.User: 123, procfs.Nice: 77}}
	if c.Seconds(procfs.User) != 1.23 || c.Time(procfs.User, procfs.Nice) != 2*time.Second {
		t.Error(c.Seconds(procfs.User), c.Time(procfs.User, procfs.Nice))
	}
}

// The kernel's idle and waiting times may go back a little. A CPU that was unplugged begins anew.
func TestRising(t *testing.T) {
	ticks := func(user, idle, wait uint64) procfs.CPU {
		return procfs.CPU{Ticks: [procfs.Modes]uint64{procfs.User: user, procfs.Idle: idle, procfs.IOWait: wait}}
	}
	before := ticks(100, 5000, 900)
	for name, c := range map[string]struct{ now, want procfs.CPU }{
		"rose":       {ticks(101, 5001, 901), ticks(101, 5001, 901)},
		"went back":  {ticks(150, 4900, 800), ticks(150, 5000, 900)},
		"unplugged":  {ticks(10, 100, 0), ticks(10, 100, 0)},
		"unplugged2": {ticks(10, 4700, 0), ticks(10, 4700, 0)},
	} {
		if diff := cmp.Diff(c.want, c.now.Rising(before)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDisks(t *testing.T) {
	got, err := procfs.Disks([]byte("   8 0 sda 10 1 800 5 20 2 1600 6 0 1500 11 7\n 8 1 sda1 1 1 1 1 1 1 1 1 1 1 1\n"+
		" 8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n 254 0 vdx 1 2 3\n 254 16 vdy a 0 0 0 0 0 0 0 0 0 0\n"), 10)
	want := []procfs.Disk{
		{Major: "8", Minor: "0", Name: "sda", Counts: []uint64{10, 1, 800, 5, 20, 2, 1600, 6, 0, 1500}},
		{Major: "8", Minor: "1", Name: "sda1", Counts: []uint64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	}
	objections := "line \"254 0 vdx 1 2 3\": it is cut short\nline \"254 16 vdy a 0 0 0 0 0 0 0 0 0 0\": \"a\" is " +
		"no count"
	if diff := cmp.Diff(want, got) + cmp.Diff(objections, text(err)); diff != "" {
		t.Error(diff)
	}
}

func FuzzProc(f *testing.F) {
	f.Add([]byte("cpu0 100 50 30 1000 20 5 10 7 0 0\n"))
	f.Add([]byte("   8       0 sda 10 1 800 5 20 2 1600 6 0 1500 11\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cpus, _ := procfs.CPUs(data)
		seen := map[int]bool{}
		for _, c := range cpus {
			if c.Number < 0 || seen[c.Number] || c.Time(procfs.User, procfs.Nice) < 0 ||
				c.Time(procfs.Idle, procfs.IOWait) < 0 {
				t.Errorf("%q: %+v", data, c)
			}
			seen[c.Number] = true
		}
		disks, _ := procfs.Disks(data, 10)
		for _, d := range disks {
			if len(d.Counts) != 10 || d.Name == "" {
				t.Errorf("%q: %+v", data, d)
			}
		}
	})
}
