package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device/guard"
)

const (
	lockFile  = "lock"       // held by the supervisor for as long as it lives
	beganFile = "supervisor" // its process
	exitFile  = "exit.json"  // how the unit ended
	// roomFile becomes exitFile: it has its space from the beginning, so that the end is told on a full disk, too.
	roomFile  = "room"
	roomBytes = 2048
	// Links to nothing, whose text is when the command is to begin, and when it began: they need no space.
	releaseLink = "release"
	startLink   = "start"
	labelLink   = "label" // to nothing as well: the text is the command's label
	// unitVariable is in the environment of all that a unit has started.
	unitVariable = "PLIMSOLL_UNIT="
	pause        = 5 * time.Millisecond
	patience     = time.Minute // for killed processes to be gone
	// killed is the exit code of a shell whose child was killed.
	killed = 128 + int(unix.SIGKILL)
)

// units of a folder.
type keeper struct{ folder string }

func (k keeper) dir(id string) string { return filepath.Join(k.folder, units, id) }

// start starts a unit, or finds the one that was started under its id.
func (k keeper) start(id string, s Start) (State, error) {
	if state, err := k.state(id); err != nil || state.Known {
		return state, err
	}
	began, err := os.MkdirTemp(filepath.Join(k.folder, units), ".begins-")
	if err != nil {
		return State{}, err
	}
	defer os.RemoveAll(began) //nolint:errcheck // it has its name by now, or will be removed with the folder
	lock, err := os.OpenFile(filepath.Join(began, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return State{}, err
	}
	defer lock.Close() // the supervisor has it as well
	if err := unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		return State{}, err
	}
	if err := os.WriteFile(filepath.Join(began, roomFile), bytes.Repeat([]byte(" "), roomBytes), 0o600); err != nil {
		return State{}, err
	}
	if label := s.Command.Label; label != "" {
		_ = os.Symlink(label, filepath.Join(began, labelLink)) // else its threads are not told of
	}
	switch err := os.Rename(began, k.dir(id)); {
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST): // somebody else was first
		return k.state(id)
	case err != nil:
		return State{}, err
	}
	given, err := json.Marshal(s)
	if err != nil {
		return State{}, err
	}
	for tried := 0; ; tried++ {
		supervisor := exec.Command("/proc/self/exe", "unit", k.folder, id)
		supervisor.Args[0] = Program
		supervisor.Dir, supervisor.ExtraFiles = k.folder, []*os.File{lock}
		supervisor.Stdin = bytes.NewReader(given)
		supervisor.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		supervisor.Env = []string{"PATH=" + searchPath, unitVariable + k.mark(id), "GOMAXPROCS=1", "GOGC=25"}
		out, err := supervisor.StdoutPipe()
		if err == nil {
			err = supervisor.Start()
		}
		if errors.Is(err, unix.ETXTBSY) && tried < 100 { // a program put a moment ago
			time.Sleep(pause)
			continue
		}
		if err != nil {
			return State{}, fmt.Errorf("supervisor: %w", err)
		}
		answer, err := io.ReadAll(io.LimitReader(out, 64<<10)) // until it says that the unit has begun, or failed to
		go supervisor.Wait()                                   //nolint:errcheck // its state is on disk
		if err != nil {
			return State{}, fmt.Errorf("supervisor: %w", err)
		}
		if len(answer) > 0 {
			return State{Known: true, Failed: string(answer)}, nil
		}
		return State{Known: true, Running: true}, nil
	}
}

// mark returns what unitVariable says of a unit.
func (k keeper) mark(id string) string { return k.folder + "#" + id }

// state tells how it is with a unit. One whose supervisor is gone without a word, or with one that power loss spoiled,
// is lost, and what is left of it is ended.
func (k keeper) state(id string) (State, error) {
	for range 2 { // it may end while we look
		if s, ok := k.told(id); ok {
			return s, nil
		}
		held, err := k.held(id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return State{}, nil
		case err != nil:
			return State{}, err
		case held:
			return State{Known: true, Running: true}, nil
		}
	}
	losing.Lock() // of several who ask at once one writes it down
	defer losing.Unlock()
	if s, ok := k.told(id); ok {
		return s, nil
	}
	s := State{Known: true, Exit: target.Exit{Code: -1, Lost: true}, Why: "its supervisor was killed, or the machine " +
		"was started anew"}
	err := endMarked(k.mark(id) + "\x00")
	return s, errors.Join(err, k.ended(id, s))
}

var losing sync.Mutex

// told is how a unit ended, where that is written down.
func (k keeper) told(id string) (State, bool) {
	s := State{Known: true}
	data, err := os.ReadFile(filepath.Join(k.dir(id), exitFile))
	return s, err == nil && json.Unmarshal(data, &s) == nil
}

// held reports whether a unit has a supervisor.
func (k keeper) held(id string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(k.dir(id), lockFile), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}

// ended writes down how a unit ended.
func (k keeper) ended(id string, s State) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	part := filepath.Join(k.dir(id), exitFile+".part"+strconv.Itoa(os.Getpid()))
	if err := os.Rename(filepath.Join(k.dir(id), roomFile), part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if short := roomBytes - len(data); short > 0 {
		data = append(data, bytes.Repeat([]byte(" "), short)...)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil { // the name must not outlast the words
		return err
	}
	return os.Rename(part, filepath.Join(k.dir(id), exitFile))
}

// wait waits for the end of a unit.
func (k keeper) wait(ctx context.Context, id string) (State, error) {
	for waited := time.Duration(0); ; waited += pause {
		s, err := k.state(id)
		if err != nil || !s.Running {
			return s, err
		}
		every := pause
		if waited > 100*pause {
			every = 10 * pause
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(every):
		}
	}
}

// release lets a unit begin that was made ready, at a moment in nanoseconds since 1970, and tells when it did.
func (k keeper) release(ctx context.Context, id string, at int64) (State, error) {
	for told := false; ; {
		s, err := k.state(id)
		if err != nil || !s.Running {
			return s, err
		}
		if at, err := os.Readlink(filepath.Join(k.dir(id), startLink)); err == nil {
			s.Began, err = strconv.ParseInt(at, 10, 64)
			return s, err
		}
		if !told {
			pid, err := os.ReadFile(filepath.Join(k.dir(id), beganFile))
			if err != nil {
				return s, err
			}
			number, err := strconv.Atoi(string(pid))
			if err == nil {
				err = os.Symlink(strconv.FormatInt(at, 10), filepath.Join(k.dir(id), releaseLink))
			}
			if err == nil || errors.Is(err, fs.ErrExist) {
				err = unix.Kill(number, unix.SIGUSR2) // its supervisor, which holds the lock
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return s, fmt.Errorf("process %s: %w", pid, err)
			}
			told = true
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(max(pause, time.Unix(0, at).Sub(now()))):
		}
	}
}

// stop asks a unit to end and ends it when it has not done so within grace.
func (k keeper) stop(ctx context.Context, id string, grace time.Duration) (State, error) {
	s, err := k.state(id)
	if err != nil || !s.Running {
		return s, err
	}
	tell := func(sign unix.Signal, within time.Duration) (State, error) {
		var pid int
		for range 200 { // the supervisor may have begun a moment ago
			data, _ := os.ReadFile(filepath.Join(k.dir(id), beganFile))
			if n, err := strconv.Atoi(string(data)); err == nil {
				pid = n
				break
			}
			time.Sleep(pause)
		}
		if held, err := k.held(id); pid > 0 && held && err == nil {
			if err := unix.Kill(pid, sign); err != nil && !errors.Is(err, unix.ESRCH) {
				return State{}, fmt.Errorf("process %d: %w", pid, err)
			}
		}
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return k.wait(ctx, id)
	}
	if grace > 0 {
		if s, err := tell(unix.SIGUSR1, grace); err == nil && !s.Running {
			return s, nil
		}
	}
	s, err = tell(unix.SIGTERM, patience)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("its processes are still there %v after they were killed", patience)
	}
	return s, err
}

// endMarked kills the processes whose environment holds a mark that begins so, until none is left.
func endMarked(mark string) error {
	want := []byte("\x00" + unitVariable + mark)
	for began := time.Now(); ; time.Sleep(pause) {
		var left []int
		for _, pid := range processes() {
			environment, err := procfs.Environment(pid)
			if err == nil && pid != os.Getpid() && bytes.Contains(append([]byte{0}, environment...), want) {
				left = append(left, pid)
				_ = unix.Kill(pid, unix.SIGKILL) // whether it helped is seen
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("processes %v are still there %v after they were killed", left, patience)
		}
	}
}

func processes() (pids []int) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, _ := d.Readdirnames(-1)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// below lists the descendants of a process, with the CPU time that each and its ended children have used.
func below(pid int) (list []int, used target.Usage) {
	children := map[int][]int{}
	times := map[int][2]int64{}
	for _, p := range processes() {
		fields := procfs.Fields(p)
		if len(fields) < 15 {
			continue
		}
		n := func(i int) int64 { v, _ := strconv.ParseInt(fields[i], 10, 64); return v }
		parent := int(n(1))
		children[parent] = append(children[parent], p)
		times[p] = [2]int64{n(11) + n(13), n(12) + n(14)}
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all that Linux runs on
	for todo := children[pid]; len(todo) > 0; todo = todo[1:] {
		list = append(list, todo[0])
		todo = append(todo, children[todo[0]]...)
		used.User += time.Duration(times[todo[0]][0]) * tick
		used.System += time.Duration(times[todo[0]][1]) * tick
	}
	return list, used
}

// searchPath is where programs are looked for.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// supervise is the process that looks after one unit. What it prints is why the unit could not be begun; it closes its
// standard output once it was.
func supervise(folder, id string, in io.Reader) error {
	signal.Ignore(unix.SIGPIPE, unix.SIGHUP)
	told := make(chan os.Signal, 8)
	signal.Notify(told, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2)
	unix.CloseOnExec(3) // the lock
	k := keeper{folder}
	var s Start
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(k.dir(id), beganFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return refuse(k, id, err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return refuse(k, id, err)
	}
	lease := watch(filepath.Join(folder, leaseFile), s.Lease)
	counting := procfs.OwnStarved()
	before, counted := procfs.Starved(counting)
	process, began, ended, err := k.begin(id, s, told, lease)
	switch {
	case err != nil:
		return refuse(k, id, err)
	case ended != nil:
		return k.ended(id, *ended)
	}
	_ = os.Symlink(strconv.FormatInt(began, 10), filepath.Join(k.dir(id), startLink)) // else the end tells

	_ = os.Stdout.Close() // tells the session that it has begun
	var why atomic.Pointer[string]
	end := func(because string) {
		why.CompareAndSwap(nil, &because)
		list, _ := below(os.Getpid())
		for _, pid := range list {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone
		}
	}
	main := process.Pid
	go func() {
		for again := false; ; {
			every := time.Second
			if again {
				every = pause
			}
			select {
			case sign := <-told:
				switch sign {
				case unix.SIGUSR2: // it has begun
					continue
				case unix.SIGUSR1:
					_ = unix.Kill(main, unix.SIGTERM) // it may be gone
					continue
				}
				again = true
				end("")
			case <-time.After(every):
				if again {
					end("") // what it has started meanwhile
				} else if lease() {
					again = true
					end(silence(s.Lease))
				}
			}
		}
	}()
	state := State{Began: began}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			state.Exit, state.Why = target.Exit{Code: -1, Lost: true}, err.Error()
			break
		}
		if pid == main {
			state.Exit.Code = status.ExitStatus()
			if status.Signaled() {
				state.Exit = target.Exit{Code: -1, Signal: status.Signal().String()}
			}
			if n, ok := procfs.Starved(counting); ok && counted && (status.Signaled() || state.Exit.Code == killed) {
				state.Exit.Starved = n - before
			}
			break
		}
	}
	for { // children left behind
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			break
		}
		if pid <= 0 {
			list, _ := below(os.Getpid())
			for _, pid := range list {
				_ = unix.Kill(pid, unix.SIGKILL) // it may be gone
			}
			time.Sleep(pause / 5)
		}
	}
	if because := why.Load(); because != nil {
		state.Why = *because
	}
	var cost unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &cost); err == nil {
		state.Usage = target.Usage{User: time.Duration(cost.Utime.Nano()), System: time.Duration(cost.Stime.Nano()),
			MaxRSSBytes: cost.Maxrss << 10}
	}
	return k.ended(id, state)
}

// begin begins the command of a unit, at once or when it is released.
func (k keeper) begin(id string, s Start, told <-chan os.Signal, lease func() bool) (process *os.Process, began int64,
	ended *State, err error) {
	command, err := k.prepare(id, s)
	if err == nil && s.Held {
		return k.released(id, command, told, lease, s)
	}
	if err == nil {
		err = command.Start()
	}
	for tried := 0; errors.Is(err, unix.ETXTBSY) && tried < 100; tried++ { // it was put a moment ago
		time.Sleep(pause)
		if command, err = k.prepare(id, s); err == nil {
			err = command.Start()
		}
	}
	if err != nil {
		return nil, 0, nil, err
	}
	return command.Process, now().UnixNano(), nil, nil
}

// refuse tells why a unit was never begun.
func refuse(k keeper, id string, why error) error {
	err := k.ended(id, State{Failed: why.Error()})
	_, printed := io.WriteString(os.Stdout, why.Error())
	return errors.Join(err, printed)
}

// watch returns what tells whether nothing was heard of the run for that long, by this process's own clock.
func watch(file string, lease time.Duration) func() bool {
	var last time.Time
	heard := time.Now()
	return func() bool {
		if info, err := os.Stat(file); err == nil && info.ModTime() != last {
			last, heard = info.ModTime(), time.Now()
		}
		return lease > 0 && time.Since(heard) > lease
	}
}

// prepare makes the command of a unit, and looks once more at the disks that it may write to.
func (k keeper) prepare(id string, s Start) (*exec.Cmd, error) {
	c := s.Command
	if len(c.Argv) == 0 {
		return nil, fmt.Errorf("command %q is empty", c.Label)
	}
	if err := s.recheck(); err != nil {
		return nil, err
	}
	dir := filepath.Join(k.folder, work)
	root, err := os.OpenRoot(dir)
	if err == nil {
		err = os.Chdir(dir) // relative programs are looked for here
	}
	if err != nil {
		return nil, err
	}
	command := exec.Command(c.Argv[0], c.Argv[1:]...)
	command.Dir = dir
	command.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	home := dir
	if c.User != "" {
		if home, err = become(command, c.User, k.folder); err != nil {
			return nil, err
		}
	}
	command.Env = append([]string{"PATH=" + searchPath, "HOME=" + home, "LC_ALL=C"}, c.Env...)
	command.Env = append(command.Env, unitVariable+k.mark(id))
	files := map[string]*os.File{}
	for _, name := range []string{c.Stdout, c.Stderr} {
		if name == "" || files[name] != nil {
			continue
		}
		if files[name], err = create(root, name, target.PlainFile, os.O_APPEND); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	if f := files[c.Stdout]; f != nil {
		command.Stdout = f
	}
	if f := files[c.Stderr]; f != nil {
		command.Stderr = f
	}
	return command, nil
}

// become lets a command run as another user, who can then write to the working folder.
func become(command *exec.Cmd, name, folder string) (home string, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return "", err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err = errors.Join(err, err2); err != nil || int(uid) == os.Getuid() {
		return u.HomeDir, err
	}
	command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return u.HomeDir, errors.Join(os.Chmod(folder, 0o711), os.Chmod(filepath.Join(folder, work), 0o777|fs.ModeSticky))
}

// recheck looks at the devices that are about to be written to: each is the one that the consent is for, and in use by
// nobody but the run.
func (s Start) recheck() error {
	if s.Command.ReadOnly {
		return nil
	}
	for _, d := range s.Disks {
		c, err := guard.OpenRead(context.Background(), nil, d.Path)
		if err != nil {
			return err
		}
		if no := guard.Consent(c.Device(), d.Consent); no != nil {
			err = &guard.Refusal{Path: d.Path, Objections: []guard.Objection{*no}}
		} else {
			err = c.Recheck(context.Background())
		}
		if err = errors.Join(err, c.Release()); err != nil {
			return err
		}
	}
	return nil
}

// local refuses names that are not below the working folder.
func local(name string) error {
	if !filepath.IsLocal(name) || path.Clean(name) == "." {
		return errors.New("it is not below the working folder")
	}
	return nil
}

// create makes a file with its folders.
func create(root *os.Root, name string, mode fs.FileMode, flag int) (*os.File, error) {
	if err := local(name); err != nil {
		return nil, err
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|flag, mode)
}
