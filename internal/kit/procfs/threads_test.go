package procfs

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The threads of a command are those of its process and of all below it.
func TestSchedules(t *testing.T) {
	stat := "7 (a b) S 1 1 1 0 -1 0 0 0 0 0 300 100 0 0 20 0 1 0 5 0 0"
	system := fstest.MapFS{}
	for name, text := range map[string]string{
		"proc/5/task/5/schedstat": "2000000000 500000000 7\n", "proc/5/task/5/children": "6 7 ",
		"proc/5/task/51/schedstat": "10 20 1\n",
		"proc/6/task/6/schedstat":  "1000 0 1\n", "proc/6/task/6/children": "",
		"proc/7/task/7/schedstat": "0 0 0\n", "proc/7/task/7/stat": stat + " 0\n",
		"proc/8/task/8/schedstat": "1 1 1\n",
	} {
		system[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got := schedules(system, 5)
	want := map[string]schedule{"5": {2 * time.Second, 500 * time.Millisecond}, "51": {10, 20}, "6": {1000, 0},
		"7": {4 * time.Second, 0}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(schedule{})); diff != "" {
		t.Error(diff)
	}
	if got := schedules(system, 4); len(got) != 0 {
		t.Errorf("a process that has ended: %v", got)
	}
}

func TestBusiestThread(t *testing.T) {
	start := time.Unix(100, 0)
	second := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	before := threads{start, map[string]schedule{"1": {second(5), 0}, "2": {second(1), second(1)}, "3": {second(9), 0}}}
	after := func(times map[string]schedule) threads { return threads{start.Add(2 * time.Second), times} }
	for name, c := range map[string]struct {
		before, now threads
		want        ThreadUse
		ok          bool
	}{
		"first look": {threads{}, before, ThreadUse{}, false},
		"gone":       {before, after(nil), ThreadUse{}, false},
		"ran": {before, after(map[string]schedule{"1": {second(7), 0}, "2": {second(1.5), second(1)}}),
			ThreadUse{Busy: 1}, true},
		"waited": {before, after(map[string]schedule{"1": {second(6), 0}, "2": {second(2), second(2)}}),
			ThreadUse{Busy: 0.5, Waiting: 0.5}, true},
		"new thread": {before, after(map[string]schedule{"1": {second(5), 0}, "4": {second(0.5), 0}}),
			ThreadUse{Busy: 0.25}, true},
		"id reused": {before, after(map[string]schedule{"3": {second(1), 0}, "1": {second(5.5), 0}}),
			ThreadUse{Busy: 0.25}, true},
		"same time": {before, before, ThreadUse{}, false},
	} {
		got, ok := c.now.since(c.before)
		if diff := cmp.Diff(c.want, got); ok != c.ok || diff != "" {
			t.Errorf("%s: %v %s", name, ok, diff)
		}
	}
}

// A command has a use from its second look on; many threads are looked at less often.
func TestThreadWatch(t *testing.T) {
	of := func(ran string, more int) fstest.MapFS {
		system := fstest.MapFS{"proc/5/task/5/schedstat": {Data: []byte(ran + " 0 7\n")}}
		for i := range more {
			system[fmt.Sprintf("proc/5/task/%d/schedstat", 100+i)] = &fstest.MapFile{Data: []byte("1 0 1\n")}
		}
		return system
	}
	start := time.Unix(100, 0)
	var w ThreadWatch
	for i, c := range []struct {
		system fstest.MapFS
		after  time.Duration
		want   map[int]ThreadUse
	}{
		{of("1000000000", 0), 0, map[int]ThreadUse{}},
		{of("1500000000", 3*threadsPerSecond), time.Second, map[int]ThreadUse{5: {Busy: 0.5}}},
		{of("2500000000", 0), 2 * time.Second, nil},
		{of("2500000000", 0), 5 * time.Second, map[int]ThreadUse{5: {Busy: 0.25}}},
		{fstest.MapFS{}, 6 * time.Second, map[int]ThreadUse{}},
	} {
		if diff := cmp.Diff(c.want, w.Look(c.system, start.Add(c.after), []int{5})); diff != "" {
			t.Errorf("look %d: %s", i, diff)
		}
	}
}
