package procfs

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// ThreadWatch looks at the threads of commands again and again.
type ThreadWatch struct {
	again time.Time // no look before
	seen  map[int]threads
}

// ThreadUse tells what the busiest thread of a command has done since the look before.
type ThreadUse struct {
	Busy    float64 // share of the time for which it ran on a CPU, 0 to 1
	Waiting float64 // share of the time for which it was ready and had no CPU
}

// threads holds what was seen of a command's threads at one moment.
type threads struct {
	at    time.Time
	times map[string]schedule // by thread id
}

// schedule is how long a thread has run, and how long it was ready and waited for a CPU.
type schedule struct{ ran, waited time.Duration }

// threadsPerSecond bounds the cost of looking at threads: with more, they are looked at less often than once a second.
const threadsPerSecond = 200

// Look compares the threads of commands, of each the first process and all below it, with what they were at the look
// before. A command that was not there then has no use yet, and none has where it is too early to look again.
func (w *ThreadWatch) Look(system fs.FS, now time.Time, pids []int) map[int]ThreadUse {
	if now.Before(w.again) {
		return nil
	}
	count, seen, uses := 0, map[int]threads{}, map[int]ThreadUse{}
	for _, pid := range pids {
		seen[pid] = threads{now, schedules(system, pid)}
		count += len(seen[pid].times)
		if use, ok := seen[pid].since(w.seen[pid]); ok {
			uses[pid] = use
		}
	}
	w.seen, w.again = seen, now.Add(time.Duration(count/threadsPerSecond)*time.Second)
	return uses
}

// since returns what the busiest thread did between two looks; false when there is nothing to compare with. A thread
// that ended between them is not seen, one that began counts from its beginning.
func (t threads) since(before threads) (use ThreadUse, ok bool) {
	elapsed := t.at.Sub(before.at).Seconds()
	if before.times == nil || elapsed <= 0 || len(t.times) == 0 {
		return use, false
	}
	busiest := -1.0
	for id, s := range t.times {
		b := before.times[id]
		ran, waited := (s.ran-b.ran).Seconds()/elapsed, (s.waited-b.waited).Seconds()/elapsed
		if ran < 0 || waited < 0 {
			continue // another thread with the same id
		}
		if ran+waited > busiest {
			busiest = ran + waited
			use = ThreadUse{min(1, ran), min(1, waited)}
		}
	}
	return use, busiest >= 0
}

// mostProcesses bounds what is looked at of one command.
const mostProcesses = 10_000

// schedules reads the scheduler's account of all threads of a process and its children, by thread id. Where the kernel
// keeps none, CPU times come from stat, and waiting is not known.
func schedules(system fs.FS, pid int) map[string]schedule {
	out := map[string]schedule{}
	pids := []string{strconv.Itoa(pid)}
	for i := 0; i < len(pids) && i < mostProcesses; i++ {
		tasks, err := fs.ReadDir(system, path.Join("proc", pids[i], "task"))
		if err != nil {
			continue // it has ended
		}
		for _, t := range tasks {
			dir := path.Join("proc", pids[i], "task", t.Name())
			if s, ok := scheduleOf(system, dir); ok {
				out[t.Name()] = s
			}
			children, _ := fs.ReadFile(system, path.Join(dir, "children"))
			pids = append(pids, strings.Fields(string(children))...)
		}
	}
	return out
}

// scheduleOf reads one thread: nanoseconds on a CPU and nanoseconds waiting on a run queue
// (Documentation/scheduler/sched-stats.rst).
func scheduleOf(system fs.FS, dir string) (schedule, bool) {
	data, _ := fs.ReadFile(system, path.Join(dir, "schedstat"))
	if f := strings.Fields(string(data)); len(f) == 3 {
		ran, errA := strconv.ParseInt(f[0], 10, 64)
		waited, errB := strconv.ParseInt(f[1], 10, 64)
		if errA == nil && errB == nil && ran > 0 && waited >= 0 {
			return schedule{time.Duration(ran), time.Duration(waited)}, true
		}
	}
	data, _ = fs.ReadFile(system, path.Join(dir, "stat"))
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) < 13 {
		return schedule{}, false
	}
	ticks, err := Counts(f[11:13]) // of user and system
	if err != nil || max(ticks[0], ticks[1]) > mostTicks {
		return schedule{}, false
	}
	return schedule{ran: time.Duration(ticks[0]+ticks[1]) * Tick}, true
}
