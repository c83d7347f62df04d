package outfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/thread"
	"plimsoll/internal/testkit/needs"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// stand holds what can stand at a name: how it is made, what is then said of writing to it ("" when it is written), and
// what must hold afterwards.
type stand struct {
	make  func(name string) error
	says  string
	after func(t *testing.T, name string)
}

func holds(want string) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		t.Helper()
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
}

// like checks kind, permissions and owner.
func like(mode fs.FileMode, uid, gid uint32) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		t.Helper()
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		s := info.Sys().(*syscall.Stat_t)
		if info.Mode() != mode || s.Uid != uid || s.Gid != gid {
			t.Errorf("%s is %v of %d:%d, want %v of %d:%d", name, info.Mode(), s.Uid, s.Gid, mode, uid, gid)
		}
	}
}

func all(checks ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		t.Helper()
		for _, c := range checks {
			c(t, name)
		}
	}
}

func at(other string, check func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		t.Helper()
		check(t, filepath.Join(filepath.Dir(name), other))
	}
}

func link(t *testing.T, name string) { // whatever it leads to, it still is one
	t.Helper()
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%s: %v, %v; want a symbolic link", name, info, err)
	}
}

func kind(want fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		t.Helper()
		if info, err := os.Lstat(name); err != nil || info.Mode().Type() != want {
			t.Errorf("%s: %v, %v; want %v", name, info, err, want)
		}
	}
}

func node(mode uint32, major, minor uint32) func(string) error {
	return func(name string) error { return unix.Mknod(name, mode|0o666, int(unix.Mkdev(major, minor))) }
}

func TestEveryKind(t *testing.T) {
	needs.Super(t)
	old := func(name string) error { return os.WriteFile(name, []byte("old"), 0o644) }
	for what, s := range map[string]stand{
		"nothing": {func(string) error { return nil }, "", holds("new")},
		"file of another user, mode 0640": {func(name string) error {
			return errors.Join(old(name), os.Chmod(name, 0o640), os.Chown(name, 65534, 1))
		}, "", all(holds("new"), like(0o640, 65534, 1))},
		"file of mode 0606": {func(name string) error { return errors.Join(old(name), os.Chmod(name, 0o606)) }, "",
			all(holds("new"), like(0o606, 0, 0))},
		"link": {func(name string) error {
			return errors.Join(os.Symlink("other", name), old(filepath.Join(filepath.Dir(name), "other")))
		}, "", all(link, at("other", all(holds("new"), kind(0))))},
		"link to nothing yet": {func(name string) error { return os.Symlink("other", name) }, "",
			all(link, at("other", all(holds("new"), kind(0))))},
		"link to a link, upwards": {func(name string) error {
			in := filepath.Join(filepath.Dir(name), "in")
			return errors.Join(os.Mkdir(in, 0o755), os.Symlink("in/second", name),
				os.Symlink("../other", filepath.Join(in, "second")))
		}, "", all(link, at("in/second", link), at("other", holds("new")))},
		"link in a circle": {func(name string) error { return os.Symlink("out", name) },
			"too many levels of symbolic links", link},
		"link to a device": {func(name string) error { return os.Symlink("/dev/null", name) }, "", link},
		"hard link": {func(name string) error {
			return errors.Join(old(name), os.Link(name, filepath.Join(filepath.Dir(name), "other")))
		}, "it has 2 names (hard links)", all(holds("old"), at("other", holds("old")))},
		"character device": {node(unix.S_IFCHR, 1, 3), "", kind(fs.ModeDevice | fs.ModeCharDevice)},
		"full device": {node(unix.S_IFCHR, 1, 7), "no space left on device",
			kind(fs.ModeDevice | fs.ModeCharDevice)},
		"block device": {node(unix.S_IFBLK, 7, 250), "it is a block device", kind(fs.ModeDevice)},
		"folder": {func(name string) error { return os.Mkdir(name, 0o755) }, "it is a folder",
			kind(fs.ModeDir)},
		"socket": {func(name string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		}, "it is a socket", kind(fs.ModeSocket)},
		"what another has open": {func(name string) error { return os.Symlink("/proc/1/fd/0", name) },
			"it is what another process has open", link},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "o") // short: the path of a socket has at most 108 bytes
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			name := filepath.Join(dir, "out")
			if err := s.make(name); err != nil {
				t.Fatal(err)
			}
			err = Write(name, text("new"))
			if s.says == "" && err != nil || s.says != "" && (err == nil || !strings.Contains(err.Error(), s.says)) {
				t.Errorf("%v, want %q", err, s.says)
			}
			s.after(t, name)
			if left, err := filepath.Glob(filepath.Join(dir, ".plimsoll*")); err != nil || left != nil {
				t.Errorf("left: %q, %v", left, err)
			}
		})
	}
}

func TestPipe(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("more than a pipe holds\n", 10_000)
	written := make(chan error, 1)
	go func() { written <- Write(name, text(long)) }()
	got, err := os.ReadFile(name)
	if err := errors.Join(err, <-written); err != nil || string(got) != long {
		t.Errorf("%d bytes of %d, %v", len(got), len(long), err)
	}
	kind(fs.ModeNamedPipe)(t, name)
}

// What this process has open is written to where it stands, as "{ echo a; plimsoll ...; } > file" wants it.
func TestOpenFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("before "); err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if err := Write(by+itoa(f.Fd()), text(by+" ")); err != nil {
			t.Fatal(err)
		}
	}
	holds("before /dev/fd/ /proc/self/fd/ /proc/thread-self/fd/ ")(t, name)
}

// A file of the kernel's is refused for what it is, by whatever name.
func TestKernelFiles(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/proc/self/mem", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/proc/self/mem", "/proc/version", "/sys/kernel/uevent_seqnum", link} {
		err := Write(name, text("x"))
		if err == nil || !strings.Contains(err.Error(), name+": it is a file of the kernel") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func itoa(n uintptr) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// asNobody has do in a thread of user and group 65534, without the privileges of root.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if err := thread.Run(func() error {
		for _, call := range [][2]uintptr{{unix.SYS_SETGROUPS, 0}, {unix.SYS_SETFSGID, 65534},
			{unix.SYS_SETFSUID, 65534}} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], 0, 0); call[0] == unix.SYS_SETGROUPS && errno != 0 {
				return errno
			}
		}
		do()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A failure of whatever sort leaves what stood there.
func TestFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the document cannot be made")
	err := Write(name, func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte("half"), 1<<20))
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	holds("old")(t, name)
	err = Write(filepath.Join(dir, "none", "out"), text("new"))
	want := "write " + dir + "/none/out: the folder " + dir + "/none does not exist"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !cmp.Equal([]string{name}, names) {
		t.Errorf("%q, %v", names, err)
	}
}

// As a user who is not root: what may not be written is not got round by a rename, and an owner is not taken away.
func TestOthersFiles(t *testing.T) {
	needs.Super(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	err := os.Chmod(dir, 0o777)
	for name, mode := range map[string]fs.FileMode{"read-only": 0o444, "of root": 0o666} {
		err = errors.Join(err, os.WriteFile(in(name), []byte("old"), 0o600), os.Chmod(in(name), mode))
	}
	err = errors.Join(err, os.Chown(in("read-only"), 65534, 65534), os.Mkdir(in("closed"), 0o755))
	for up := dir; up != "/"; up = filepath.Dir(up) {
		info, e := os.Stat(up)
		if err = errors.Join(err, e); e == nil && info.Mode().Perm()&0o005 != 0o005 {
			err = errors.Join(err, os.Chmod(up, info.Mode().Perm()|0o055))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	asNobody(t, func() {
		for _, name := range []string{"read-only", "of root", "closed/out", "own"} {
			got[name] = "written"
			if err := Write(in(name), text("new")); err != nil {
				got[name] = strings.ReplaceAll(err.Error(), dir+"/", "")
			}
		}
	})
	want := map[string]string{
		"read-only": "open read-only: permission denied",
		"of root": "write of root: it belongs to user 0 and group 0, and a new file in its place could not be given to " +
			"them: give another name",
		"closed/out": "write closed/out: no file can be made in the folder closed: permission denied",
		"own":        "written",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	holds("old")(t, in("read-only"))
	holds("old")(t, in("of root"))
}

func TestUmask(t *testing.T) { // of the whole process: not parallel, which t.Parallel tests wait for
	old := unix.Umask(0o027)
	defer unix.Umask(old)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(Write(in("new"), text("")), Replace(in("replaced"), text("")),
		Folder(in("folder"), func(dir string) error { return Write(filepath.Join(dir, "in"), text("")) }))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	for _, name := range []string{"new", "replaced", "folder", "folder/in"} {
		info, err := os.Stat(in(name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = info.Mode()
	}
	want := map[string]fs.FileMode{"new": 0o640, "replaced": 0o640, "folder": 0o750 | fs.ModeDir, "folder/in": 0o640}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Replace follows nothing: in a folder of others a link could lead anywhere.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim, name := filepath.Join(dir, "victim"), filepath.Join(dir, "out")
	if err := errors.Join(os.WriteFile(victim, []byte("old"), 0o600), os.Symlink("victim", name),
		Replace(name, text("new"))); err != nil {
		t.Fatal(err)
	}
	holds("old")(t, victim)
	all(holds("new"), kind(0))(t, name)
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := errors.New("half way")
	err := Folder(filepath.Join(dir, "a", "b"), func(dir string) error {
		return errors.Join(Write(filepath.Join(dir, "in"), text("half")), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := Folder(filepath.Join(dir, "dangling"), func(string) error { return nil }); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "a"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What grows is there under its name before it is whole, and stays there when nobody commits it; a file that stands
// there is replaced at the end.
func TestGrow(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "out")
	for _, want := range []string{"ab", "ab"} { // made, then standing there
		f, err := Grow(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("ab")); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("while it is written: %q, %v, want %q", got, err, want)
		}
		f.Discard()
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("afterwards: %q, %v, want %q", got, err, want)
		}
	}
}
