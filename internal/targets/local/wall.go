//go:build linux

package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/thread"
)

// wall keeps the commands of a run to the files of their sandboxes. It is put up by a thread of plimsoll's that takes
// everything away from itself, starts one command and ends: the command inherits what is left. Its parts are
// independent; findWall says which this machine bears. docs/decisions/0009-wall.md says why it is made this way.
type wall struct {
	landlock   unix.LandlockRulesetAttr // what Landlock is to refuse unless granted; zero without Landlock
	namespaces bool                     // mounts, network and System V IPC of its own
	id         int                      // user and group of its own; 0: those of plimsoll
	system     []grant                  // what every command may read

	noLandlock, noNamespaces, noID string // why that part is missing
	within                         string // the granted folder that holds the disks; "" as it should be
}

// grant is a file or a folder with all below it that a command may use.
type grant struct {
	path   string // as the command names it
	source string // the same without symbolic links
	write  bool
}

// systemPaths are what programs need to be loaded and to look at the machine. Of /etc it is what the C library reads.
var systemPaths = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/proc", "/sys",
	"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/alternatives", "/etc/localtime", "/etc/passwd", "/etc/group",
	"/etc/nsswitch.conf", "/etc/hosts", "/etc/ssl/certs", "/etc/ssl/openssl.cnf"}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// allow adds a path to grants unless it is not there or already reached.
func allow(grants []grant, path string, write bool) []grant {
	source, err := filepath.EvalSymlinks(path)
	if err != nil {
		return grants
	}
	for _, g := range grants {
		if !write && inside(g.path, path) {
			return grants
		}
	}
	return append(grants, grant{path, source, write})
}

// inside reports whether a clean absolute path is a folder or lies in it.
func inside(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// grantSystem grants the system's paths and the folders of PATH, but none of these that holds the disks.
func (w *wall) grantSystem(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, path := range systemPaths {
		w.system = allow(w.system, path, false)
	}
	for _, g := range w.system {
		if w.within == "" && inside(g.source, dir) {
			w.within = g.path
		}
	}
	for _, path := range filepath.SplitList(searchPath()) {
		path = filepath.Clean(path)
		if source, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) && !inside(source, dir) {
			w.system = allow(w.system, path, false)
		}
	}
	for _, path := range devices {
		w.system = allow(w.system, path, true)
	}
	return nil
}

// findWall finds by trying which wall this process can put up around commands that work below dir. It is an error
// when no command can be started there at all.
func findWall(dir, mark string) (wall, error) {
	var w wall
	if err := w.grantSystem(dir); err != nil {
		return w, fmt.Errorf("wall: %w", err)
	}
	var version int
	w.landlock, version, w.noLandlock = landlockRights()
	with := func(namespaces bool, id int) (wall, error) {
		w := w
		w.namespaces, w.id = namespaces, id
		err := w.try(dir)
		if err != nil && version > 0 { // is it Landlock that fails here?
			w.landlock = unix.LandlockRulesetAttr{}
			if w.try(dir) == nil {
				w.noLandlock, err = err.Error(), nil
			}
		}
		return w, err
	}
	const unprivileged = "only root can"
	if os.Geteuid() != 0 {
		best, err := with(false, 0)
		best.noID, best.noNamespaces = unprivileged, unprivileged
		return best, err
	}
	id, err := ownID(mark)
	for _, namespaces := range []bool{true, false} {
		if err != nil {
			break
		}
		best, e := with(namespaces, id)
		if e == nil {
			return best, nil
		}
		w.noNamespaces = cmp.Or(w.noNamespaces, strings.TrimPrefix(e.Error(), "namespaces: "))
		if !namespaces {
			err = e
		}
	}
	w.noID = err.Error()
	if best, err := with(true, 0); err == nil {
		best.noNamespaces = ""
		return best, nil
	} else {
		w.noNamespaces = strings.TrimPrefix(err.Error(), "namespaces: ")
	}
	return with(false, 0)
}

// try starts a program behind the wall that does nothing.
func (w wall) try(dir string) error {
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.Dir = dir
	if err := w.start(cmd, allow(w.system, dir, false), ports{}); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("wall: a trial: %w", err)
	}
	return nil
}

// start starts a command with nothing but the grants and the ports.
func (w wall) start(cmd *exec.Cmd, grants []grant, ports ports) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if w.id != 0 { // changed by the child: a thread of plimsoll's with that id could be signalled by other commands
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(w.id), Gid: uint32(w.id)}
	}
	err := thread.Run(func() error {
		if w.namespaces {
			if err := view(grants, ports, w.id); err != nil {
				return err
			}
		}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
		if err := restrict(w.landlock, grants, ports); err != nil {
			return err
		}
		if err := dropCapabilities(w.id != 0); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err == nil && w.id != 0 {
		// Root's right to lock memory, which io_uring's fixed buffers need, is gone; its limit is not for this.
		all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_MEMLOCK, &all, nil) // a program that needs more says so
	}
	return err
}

// view gives this thread a root folder with nothing but the grants in it, the network of the ports, or without one a
// network without any interface, and no System V IPC but its own. The user has a name there.
func view(grants []grant, ports ports, user int) error {
	fail := func(what string, err error) error {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // its path means nothing outside
		}
		return fmt.Errorf("namespaces: %s: %w", what, err)
	}
	own := unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	switch {
	case ports.network != nil:
		if err := unix.Setns(int(ports.network.Fd()), unix.CLONE_NEWNET); err != nil {
			return fail("network of the run", err)
		}
	case !ports.outside:
		own |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(own); err != nil {
		return fail("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fail("private mounts", err)
	}
	// /proc is there on every machine that this target runs on; the new root leaves it again at once.
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fail("mount", err)
	}
	defer unix.Umask(unix.Umask(0o022)) // this thread's own, since unshare
	const old = "/.host"
	if err := os.Mkdir("/proc"+old, 0o700); err != nil {
		return fail("mount", err)
	}
	if err := unix.PivotRoot("/proc", "/proc"+old); err != nil {
		return fail("pivot_root", err)
	}
	for _, g := range grants {
		err := error(nil)
		if g.path == "/etc/passwd" && user != 0 {
			err = named(old+g.source, g.path, user)
		} else {
			err = bind(old+g.source, g)
		}
		if err != nil {
			return fail(g.path, err)
		}
	}
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+to, "/dev/"+name); err != nil {
			return fail("/dev/"+name, err)
		}
	}
	if err := errors.Join(unix.Chdir("/"), unix.Unmount(old, unix.MNT_DETACH), os.Remove(old)); err != nil {
		return fail("leave the host's files", err)
	}
	if err := readOnly("/", 0); err != nil {
		return fail("read-only", err)
	}
	return nil
}

// named writes the list of users with one more: some programs, such as initdb, refuse to work for nobody.
func named(source, path string, user int) error {
	list, err := regular.Read(source, 0, 512<<10)
	if err != nil {
		list = nil // those who are in no file of this machine have no name here
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	line := fmt.Sprintf("plimsoll:x:%d:%d::/:/bin/sh\n", user, user)
	return os.WriteFile(path, append(list, line...), 0o644)
}

// bind shows a file or folder of the host under the grant's path.
func bind(source string, g grant) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	folder := g.path
	if !info.IsDir() {
		folder = filepath.Dir(g.path)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if _, err := os.Lstat(g.path); errors.Is(err, fs.ErrNotExist) {
		// Not by opening it: a child that is being forked elsewhere would hold it, and a mount with a file that is open
		// for writing cannot become read-only.
		if err := unix.Mknod(g.path, unix.S_IFREG|0o644, 0); err != nil {
			return err
		}
	}
	if err := unix.Mount(source, g.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if g.write {
		return nil
	}
	if err := readOnly(g.path, unix.AT_RECURSIVE); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	return nil
}

// readOnly makes a mount read-only; before Linux 5.12 without the mounts below it, which only root may write there.
// The kernel calls a mount busy while somebody writes through it, be it the time of an access. Nobody but this thread
// has these mounts, so that passes: once, on a machine that was busy itself, it was seen.
func readOnly(path string, recursive uint) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	err := unix.MountSetattr(unix.AT_FDCWD, path, recursive, &attr)
	for wait := time.Millisecond; errors.Is(err, unix.EBUSY) && wait < time.Second; wait *= 2 {
		time.Sleep(wait) // the kernel's pace, not the run's
		err = unix.MountSetattr(unix.AT_FDCWD, path, recursive, &attr)
	}
	if !errors.Is(err, unix.ENOSYS) {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	keep := uintptr(st.Flags) & (unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|keep, "")
}

// What Landlock is asked to refuse, as far as the kernel knows it.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	otherRights = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	tcpRights = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	udpRights = unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP

	abstractScope, signalScope = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, unix.LANDLOCK_SCOPE_SIGNAL
)

// landlockRights asks the kernel for every right which of them it can refuse, so that no table of versions is needed.
func landlockRights() (rights unix.LandlockRulesetAttr, version int, why string) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return rights, 0, "the kernel does not offer it: " + errno.Error()
	}
	var alone unix.LandlockRulesetAttr
	for _, r := range []struct {
		wanted    uint64
		alone, to *uint64
	}{
		{readRights | fileRights | otherRights, &alone.Handled_access_fs, &rights.Handled_access_fs},
		{tcpRights | udpRights, &alone.Handled_access_net, &rights.Handled_access_net},
		{abstractScope | signalScope, &alone.Scoped, &rights.Scoped},
	} {
		for bit := uint64(1); bit != 0; bit <<= 1 {
			if *r.alone = bit; r.wanted&bit == 0 {
				continue
			}
			if fd, err := newRuleset(alone); err == nil {
				unix.Close(fd)
				*r.to |= bit
			}
		}
		*r.alone = 0
	}
	return rights, int(v), ""
}

func newRuleset(rights unix.LandlockRulesetAttr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&rights)), unsafe.Sizeof(rights), 0)
	if errno != 0 {
		return -1, fmt.Errorf("landlock: rules: %w", errno)
	}
	return int(fd), nil
}

// restrict has Landlock refuse this thread everything that it can refuse and that is not granted.
func restrict(rights unix.LandlockRulesetAttr, grants []grant, ports ports) error {
	if rights == (unix.LandlockRulesetAttr{}) {
		return nil
	}
	ruleset, err := newRuleset(rights)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	for _, g := range grants {
		if err := grantPath(ruleset, rights, g); err != nil {
			return fmt.Errorf("landlock: %s: %w", g.path, err)
		}
	}
	if err := grantPorts(ruleset, rights, ports); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

func grantPath(ruleset int, rights unix.LandlockRulesetAttr, g grant) error {
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	access := uint64(readRights)
	if g.write {
		access |= fileRights | otherRights
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | fileRights
	}
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		// To read a disk is to ask its size. What ioctls do to its content asks for a descriptor that may write.
		access |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & rights.Handled_access_fs, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// dropCapabilities empties this thread's capability sets; with change it keeps those it has until the child has
// changed its user, which loses them.
func dropCapabilities(change bool) error {
	for c := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) == nil; c++ {
		// Until there is no such capability, or from the first for want of one: then none can be gained either.
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // an old kernel has none
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if change {
		if err := unix.Capget(&header, &sets[0]); err != nil {
			return fmt.Errorf("capabilities: %w", err)
		}
		sets[0].Inheritable, sets[1].Inheritable = 0, 0
	} else {
		const rootIsNobody = 0b11 // SECBIT_NOROOT and its lock: user id 0 gains nothing from starting a program
		_ = unix.Prctl(unix.PR_SET_SECUREBITS, rootIsNobody, 0, 0, 0)
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// ownID is a user id that nobody has, from a range that no distribution hands out, or from that of transient services
// where plimsoll itself is in a user namespace that knows no others. It is an error where plimsoll, for want of a
// capability, could not look after processes and files of another user.
func ownID(mark string) (int, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return 0, fmt.Errorf("capabilities: %w", err)
	}
	for _, c := range []struct {
		bit  uint
		name string
	}{{unix.CAP_CHOWN, "CAP_CHOWN"}, {unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"}, {unix.CAP_KILL, "CAP_KILL"},
		{unix.CAP_SETGID, "CAP_SETGID"}, {unix.CAP_SETUID, "CAP_SETUID"}, {unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}} {
		if sets[0].Effective&(1<<c.bit) == 0 {
			return 0, fmt.Errorf("plimsoll lacks %s", c.name)
		}
	}
	n, err := strconv.ParseUint(mark[:7], 16, 32)
	if err != nil {
		return 0, fmt.Errorf("mark %q: %w", mark, err)
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return 0, err
	}
	groups, err := os.ReadFile("/proc/self/gid_map")
	if err != nil {
		return 0, err
	}
	for _, id := range []uint64{0x70000000 + n, 61184 + n%4336} {
		if mapped(string(users), id) && mapped(string(groups), id) {
			return int(id), nil
		}
	}
	return 0, errors.New("this user namespace has no user id to spare")
}

// mapped reports whether an id exists in the user namespace of that map (user_namespaces(7)).
func mapped(table string, id uint64) bool {
	for line := range strings.Lines(table) {
		var first, outside, count uint64
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 && id >= first && id-first < count {
			return true
		}
	}
	return false
}

// leaks names what commands can reach behind the wall besides their disks and the system's programs.
func (w wall) leaks() (list []string) {
	add := func(stopped bool, what string) {
		if !stopped {
			list = append(list, what)
		}
	}
	ll, own := w.landlock, w.id != 0
	add(w.namespaces || ll.Handled_access_fs != 0, "other files that "+w.user()+" may use")
	add(w.namespaces || ll.Handled_access_net&tcpRights == tcpRights, "TCP ports")
	add(w.namespaces || ll.Handled_access_net&udpRights == udpRights, "UDP ports")
	add(w.namespaces, "ports by other protocols, such as MPTCP") // Landlock knows no others
	add(w.namespaces || ll.Handled_access_fs&unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX != 0,
		"named sockets that "+w.user()+" may use")
	add(w.namespaces || ll.Scoped&abstractScope != 0, "abstract sockets")
	add(w.namespaces || own, "System V shared memory of "+w.user())
	add(w.within == "", "disks of the run's other VMs, since the run folder lies in "+w.within)
	switch {
	case ll.Scoped&signalScope != 0:
	case own:
		list = append(list, "signals to processes of the run's other VMs")
	default:
		list = append(list, "signals to other processes of "+w.user())
	}
	return list
}

func (w wall) user() string {
	if w.id != 0 {
		return "anybody"
	}
	return "user " + userName()
}

// facts tells how commands are kept to their disks, the same for every run on a machine.
func (w wall) facts(l *factList) {
	const group = "wall"
	user, namespaces := "plimsoll's own, without capabilities ("+w.noID+")", ""
	if w.id != 0 {
		user = "one of their own, without capabilities"
	}
	l.add(group, "user of load generators", user, "")
	var parts []string
	ll := w.landlock
	for _, p := range []struct {
		rights uint64
		name   string
	}{{ll.Handled_access_fs, "files"}, {ll.Handled_access_net & tcpRights, "TCP"},
		{ll.Handled_access_net & udpRights, "UDP"}, {ll.Scoped & abstractScope, "abstract sockets"},
		{ll.Scoped & signalScope, "signals"}} {
		if p.rights != 0 {
			parts = append(parts, p.name)
		}
	}
	if w.namespaces {
		namespaces = "mounts, network, System V IPC"
	}
	l.add(group, "Landlock", strings.Join(parts, ", "), w.noLandlock)
	l.add(group, "namespaces", namespaces, w.noNamespaces)
	l.add(group, "may still pass", cmp.Or(strings.Join(w.leaks(), ", "), "nothing known"), "")
}

// note says in a sentence what the wall does not stop; "" when it is whole.
func (w wall) note() string {
	leaks := w.leaks()
	if len(leaks) == 0 {
		return ""
	}
	var why []string
	parts := [][2]string{{"Landlock", w.noLandlock}, {"namespaces", w.noNamespaces}, {"a user of their own", w.noID}}
	for _, p := range parts {
		if p[1] != "" {
			why = append(why, p[0]+": "+p[1])
		}
	}
	if len(why) == 0 {
		why = []string{"Landlock of this kernel does not cover them"}
	}
	return fmt.Sprintf("Load generators are not kept from: %s (%s).", strings.Join(leaks, ", "),
		strings.Join(why, "; "))
}
