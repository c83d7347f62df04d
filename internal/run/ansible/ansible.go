// Package ansible runs playbooks with the Ansible of this machine.
//
// It sits beside package step, which knows when a playbook runs and on whom. It gives Ansible an inventory, a
// configuration and a way to each host of our own, tells what goes on while it goes on, and says at the end which task
// failed where and what it said. Hosts are reached through connections that this program makes, so jump hosts and
// networks that only this program enters work, and when a run stops nothing of the playbook stays connected.
//
// It refuses passwords: hosts are logged in to with keys, and known by their keys. It installs nothing.
package ansible

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/kit/scratch"
	"plimsoll/internal/kit/untyped"
	"plimsoll/unit"
)

//go:embed plimsoll.py
var callback []byte

// Group is a group of the inventory.
type Group struct {
	Name  string
	Hosts []target.Login
}

// Play is a playbook to be run.
type Play struct {
	Dir    string // the scenario's, in which files are looked up
	File   string // the playbook, in Dir
	Groups []Group
	// Root says that the playbook is written for logins as root: who logs in as somebody else with sudo becomes root.
	Root      bool
	Variables untyped.Object
	Forks     int
	Patience  time.Duration      // how long a process of Ansible may stand still until all of it is ended; 0: for ever
	Log       string             // the file that keeps what Ansible prints
	Task      func(name string)  // is told of each task when it begins; may be nil
	Failed    func(Failure)      // is told of each failure, also of those that the playbook ignores; may be nil
	passing   map[string]*passer // by host
}

// Failure is a task that failed on a host.
type Failure struct {
	Host, Task, Text     string
	Unreachable, Ignored bool
}

// Error tells it in a sentence.
func (f Failure) Error() string {
	how := "failed"
	if f.Unreachable {
		how = "could not be begun: the host cannot be reached"
	}
	text := fmt.Sprintf("host %s: task %q %s", f.Host, f.Task, how)
	if f.Text != "" {
		text += ": " + strings.Join(strings.Fields(f.Text), " ")
	}
	return text
}

// Recap counts the tasks of a host.
type Recap struct {
	Host        string `json:"host"`
	OK          int    `json:"ok"`
	Changed     int    `json:"changed"`
	Failed      int    `json:"failed"`
	Unreachable int    `json:"unreachable"`
	Skipped     int    `json:"skipped"`
	Ignored     int    `json:"ignored"`
}

// String is as Ansible has it.
func (r Recap) String() string {
	return fmt.Sprintf("%s: ok %d, changed %d, unreachable %d, failed %d, skipped %d, ignored %d", r.Host, r.OK,
		r.Changed, r.Unreachable, r.Failed, r.Skipped, r.Ignored)
}

// event is a line of the callback.
type event struct {
	Kind, Task, Text string
	Ignored          json.RawMessage // of a failure true or false, of a recap a number
	Recap
}

// UnmarshalJSON reads the one key that means two things.
func (e *event) UnmarshalJSON(data []byte) error {
	var head struct {
		Kind, Task, Text string
		Ignored          json.RawMessage
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	e.Kind, e.Task, e.Text, e.Ignored = head.Kind, head.Task, head.Text, head.Ignored
	if head.Kind == "recap" {
		return json.Unmarshal(data, &e.Recap)
	}
	var of struct{ Host string }
	err := json.Unmarshal(data, &of)
	e.Host = of.Host
	return err
}

const (
	program    = "ansible-playbook"
	usualForks = 32
	mostNamed  = 3
	grace      = 5 * time.Second // for Ansible to end when it is told to
)

// Find finds Ansible.
func Find() error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is missing on this machine: apt-get install --no-install-recommends ansible-core, or "+
			"pip install ansible-core", program)
	}
	return nil
}

// Check has Ansible read playbooks of a scenario, and returns all that it objects to. No host is touched.
func Check(ctx context.Context, files fs.FS, playbooks []string) (err error) {
	if err := Find(); err != nil {
		return err
	}
	temporary, err := scratch.Make("ansible")
	if err != nil {
		return fmt.Errorf("playbooks: %w", err)
	}
	defer func() { err = errors.Join(err, temporary.Remove()) }()
	private := temporary.Path
	dir := filepath.Join(private, "scenario")
	if err := os.CopyFS(dir, files); err != nil {
		return fmt.Errorf("playbooks: %w", err)
	}
	if err := configure(private); err != nil {
		return err
	}
	var objections []error
	for _, name := range playbooks {
		cmd := command(ctx, private, dir, "--syntax-check", "-i", "localhost,", "--", name)
		if out, err := cmd.CombinedOutput(); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			text := strings.ReplaceAll(strings.TrimSpace(string(out)), dir+"/", "")
			objections = append(objections, fmt.Errorf("playbook %q: Ansible does not read it: %s", name, text))
		}
	}
	return errors.Join(objections...)
}

// command is Ansible with our configuration. It and what it starts end together when ctx ends.
func command(ctx context.Context, private, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	for _, name := range []string{"PATH", "HOME", "USER", "SSH_AUTH_SOCK"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8", "ANSIBLE_CONFIG="+filepath.Join(private, "ansible.cfg"),
		"ANSIBLE_HOME="+filepath.Join(private, "home"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd
}

// configure writes what Ansible is told besides arguments. Commands on hosts have a terminal, without which they would
// outlive their connections: so no pipelining.
func configure(private string) error {
	plugins := filepath.Join(private, "plugins")
	text := fmt.Sprintf(`[defaults]
callback_plugins = %s
callbacks_enabled = plimsoll
host_key_checking = True
interpreter_python = auto_silent
local_tmp = %s
nocolor = True
remote_tmp = /tmp
retry_files_enabled = False
[ssh_connection]
pipelining = False
ssh_args = -F "%s"
transfer_method = piped
`, plugins, filepath.Join(private, "tmp"), filepath.Join(private, "ssh_config"))
	return errors.Join(os.Mkdir(plugins, 0o700),
		os.WriteFile(filepath.Join(plugins, "plimsoll.py"), callback, 0o600),
		os.WriteFile(filepath.Join(private, "ansible.cfg"), []byte(text), 0o600))
}

// Run runs the playbook until it ends or ctx does. The recap is sorted by host, and is empty when Ansible did not get
// that far. Every host on which a task failed is in the error, up to three of them with the task and what it said.
func (p Play) Run(ctx context.Context) (recap []Recap, err error) {
	if err := Find(); err != nil {
		return nil, err
	}
	temporary, err := scratch.Make("ansible")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporary.Remove()) }()
	private := temporary.Path
	defer func() { err = errors.Join(err, p.hangUp()) }()
	if err := errors.Join(configure(private), p.write(private)); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	said, telling, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close()
	forks := p.Forks
	if forks <= 0 {
		forks = usualForks
	}
	cmd := command(ctx, private, p.Dir, "-i", filepath.Join(private, "hosts.json"), "--forks", strconv.Itoa(forks),
		"--extra-vars", "@"+filepath.Join(private, "variables.json"), "--", p.File)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{telling}
	err = cmd.Start()
	if err = errors.Join(err, telling.Close()); err != nil {
		return nil, err
	}
	var failures []Failure
	minding, stopMinding := context.WithCancel(ctx)
	var still string
	minder := clock.Real{}.Group()
	if p.Patience > 0 {
		minder.Go(func() { still = mind(minding, cmd.Process.Pid, p.Patience) })
	}
	reading := clock.Real{}.Group()
	reading.Go(func() { recap, failures = p.follow(said) })
	err = cmd.Wait()
	stopMinding()
	minder.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever of it is left
	_ = said.SetReadDeadline(time.Now().Add(grace))     // somebody else may still hold the other end
	reading.Wait()
	slices.SortFunc(recap, func(a, b Recap) int { return strings.Compare(a.Host, b.Host) })
	if len(recap) == 0 { // it did not come to its end, where it removes what it has put on hosts
		defer func() { err = errors.Join(err, p.clear(private)) }()
	}
	switch {
	case ctx.Err() != nil:
		return recap, ctx.Err()
	case still != "":
		return recap, fmt.Errorf("%s stood still for %s and was ended: %s", program, unit.Duration(p.Patience), still)
	case len(failures) > 0:
		return recap, asOne(failures)
	case err != nil:
		return recap, fmt.Errorf("%s: %w: it printed: %s", program, err, lastOf(p.Log))
	case len(recap) == 0:
		return recap, fmt.Errorf("no host of the inventory is meant by its hosts:; it printed: %s", lastOf(p.Log))
	}
	return recap, nil
}

// clear removes from hosts the folders of an Ansible that was killed, in which are the arguments of its tasks.
func (p Play) clear(private string) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	folders := "/tmp/ansible-tmp-" + filepath.Base(private) + "[-_]*"
	remove := "rm -rf " + folders
	var mu sync.Mutex
	var left []error
	clearing := clock.Real{}.Group()
	for host := range p.passing {
		clearing.Go(func() {
			ssh := exec.CommandContext(ctx, "ssh", "-F", filepath.Join(private, "ssh_config"), host,
				remove+" 2>/dev/null || sudo -n "+remove)
			ssh.WaitDelay = time.Second
			if out, err := ssh.CombinedOutput(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, fmt.Errorf("host %s: files of the playbook may be left in %s: %w: %s", host,
					folders, cmp.Or(ctx.Err(), err), bytes.TrimSpace(out)))
			}
		})
	}
	clearing.Wait()
	return errors.Join(left...)
}

// mind ends a group of processes one of which stands, stopped or hanging in the kernel, for so long, and says which; ""
// when ctx is done first.
func mind(ctx context.Context, group int, patience time.Duration) string {
	since := map[int]time.Time{} // by thread
	for {
		now := time.Now()
		standing := map[int]time.Time{}
		for _, s := range procfs.GroupStands(group) {
			first, known := since[s.TID]
			if !known {
				first = now
			}
			if standing[s.TID] = first; now.Sub(first) >= patience {
				_ = syscall.Kill(-group, syscall.SIGKILL)
				return s.String()
			}
		}
		since = standing
		if (clock.Real{}).Sleep(ctx, min(patience/8, 5*time.Second)) != nil {
			return ""
		}
	}
}

// asOne is all that failed, failures before hosts that could not be reached.
func asOne(failures []Failure) error {
	slices.SortStableFunc(failures, func(a, b Failure) int {
		if a.Unreachable == b.Unreachable {
			return strings.Compare(a.Host, b.Host)
		}
		if b.Unreachable {
			return -1
		}
		return 1
	})
	var all []string
	for i, f := range failures {
		if i == mostNamed {
			all = append(all, fmt.Sprintf("and %d more", len(failures)-i))
			break
		}
		all = append(all, f.Error())
	}
	return errors.New(strings.Join(all, "; "))
}

// lastOf is the end of a log.
func lastOf(name string) string {
	const most = 2000
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	} else {
		_, _ = f.Seek(0, io.SeekStart)
	}
	data, _ := io.ReadAll(io.LimitReader(f, most))
	return strings.TrimSpace(string(data))
}

// follow reads what the callback says until it ends.
func (p Play) follow(r io.Reader) (recap []Recap, failures []Failure) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return recap, failures // what is left was cut off with Ansible
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch e.Kind {
		case "task":
			if p.Task != nil {
				p.Task(e.Task)
			}
		case "failed", "unreachable":
			f := Failure{Host: e.Host, Task: e.Task, Text: e.Text, Unreachable: e.Kind == "unreachable",
				Ignored: string(e.Ignored) == "true"}
			if p.Failed != nil {
				p.Failed(f)
			}
			if !f.Ignored {
				failures = append(failures, f)
			}
		case "recap":
			recap = append(recap, e.Recap)
		}
	}
}

// write writes the inventory, the variables and the configuration of SSH, and begins to pass connections on.
func (p *Play) write(private string) error {
	type host struct {
		Become bool `json:"ansible_become,omitempty"`
	}
	type group struct {
		Hosts    map[string]host  `json:"hosts,omitempty"`
		Children map[string]group `json:"children,omitempty"`
	}
	groups := map[string]group{}
	var ssh strings.Builder
	p.passing = map[string]*passer{}
	for _, g := range p.Groups {
		hosts := map[string]host{}
		for _, h := range g.Hosts {
			hosts[h.Machine] = host{Become: p.Root && h.User != "root" && h.Sudo}
			if p.passing[h.Machine] != nil {
				continue
			}
			pass, err := listen(h)
			if err != nil {
				return fmt.Errorf("host %s: %w", h.Machine, err)
			}
			p.passing[h.Machine] = pass
			known, err := quoted(h.KnownHosts...)
			keys, keysErr := quoted(h.Keys...)
			if err = errors.Join(err, keysErr); err != nil {
				return fmt.Errorf("host %s: %w", h.Machine, err)
			}
			fmt.Fprintf(&ssh, "Host %s\n  HostName 127.0.0.1\n  Port %d\n  User %s\n  HostKeyAlias %s\n"+
				"  UserKnownHostsFile %s\n", h.Machine, pass.port(), h.User, h.KnownAs, strings.Join(known, " "))
			for _, k := range keys {
				fmt.Fprintf(&ssh, "  IdentityFile %s\n", k)
			}
		}
		groups[g.Name] = group{Hosts: hosts}
	}
	ssh.WriteString("Host *\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  CheckHostIP no\n" +
		"  BatchMode yes\n  ControlMaster no\n  ForwardAgent no\n  ServerAliveInterval 15\n")
	inventory, err := json.Marshal(map[string]group{"all": {Children: groups}})
	variables, err2 := json.Marshal(p.Variables)
	if p.Variables == nil {
		variables = []byte("{}")
	}
	return errors.Join(err, err2, os.WriteFile(filepath.Join(private, "hosts.json"), inventory, 0o600),
		os.WriteFile(filepath.Join(private, "variables.json"), variables, 0o600),
		os.WriteFile(filepath.Join(private, "ssh_config"), []byte(ssh.String()), 0o600))
}

// quoted are file names as ssh_config has them.
func quoted(names ...string) (list []string, err error) {
	for _, n := range names {
		if strings.ContainsAny(n, "\"\n\\") {
			return nil, fmt.Errorf("file %q: ssh_config takes no such name", n)
		}
		list = append(list, `"`+strings.ReplaceAll(n, "%", "%%")+`"`)
	}
	return list, nil
}

func (p *Play) hangUp() (err error) {
	for _, pass := range p.passing {
		err = errors.Join(err, pass.close())
	}
	return err
}

// passer takes connections on loopback and passes them on to a host.
type passer struct {
	listener net.Listener
	work     interface {
		Go(func())
		Wait()
	}
	cancel context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]bool // nil when it is closed
}

func listen(h target.Login) (*passer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &passer{listener: l, work: clock.Real{}.Group(), cancel: cancel, conns: map[net.Conn]bool{}}
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			if p.keep(c) {
				p.work.Go(func() { p.pass(ctx, c, h) })
			}
		}
	})
	return p, nil
}

func (p *passer) port() int { return p.listener.Addr().(*net.TCPAddr).Port } // it is TCP

// keep remembers a connection, to be closed with the others; it closes it when that is over already.
func (p *passer) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *passer) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (p *passer) pass(ctx context.Context, c net.Conn, h target.Login) {
	defer p.drop(c)
	there, err := h.Dial(ctx)
	if err != nil || !p.keep(there) {
		return // ssh says that the connection was closed
	}
	defer p.drop(there)
	back := clock.Real{}.Group()
	back.Go(func() {
		_, _ = io.Copy(c, there)
		_ = c.Close()
	})
	_, _ = io.Copy(there, c)
	_ = there.Close()
	back.Wait()
}

func (p *passer) close() error {
	p.cancel()
	err := p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.work.Wait()
	return err
}
