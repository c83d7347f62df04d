package k8s

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// plan holds what the stages of a cluster know of it: it lies in its folder.
type plan struct {
	ID       string // of the folder, the group and the loop devices: plimsoll-k8s-XXXXXX
	Dir      string
	Programs string // the folder of them
	Plugins  string // the folder of CNI's
	Base     string // the first two numbers of the addresses, and a dot
	Block    int    // the third: the nodes' net; those of the pods follow
	Nodes    int
	Password string // of the BMCs
}

func (p *plan) path(parts ...string) string {
	return filepath.Join(append([]string{p.Dir}, parts...)...)
}
func (p *plan) program(name string) string { return filepath.Join(p.Programs, name) }
func (p *plan) node(n int) string          { return fmt.Sprintf("node%d", n) }

// blocks is how many clusters have room beside each other.
const blocks = 32

// place gives the cluster one of the blocks of addresses.
func (p *plan) place(block int) { p.Base, p.Block = fmt.Sprintf("198.%d.", 18+block/16), block%16*16 }

// address is one of the nodes' net: node N has N, its BMC 100+N, the API server 254 and this machine 253.
func (p *plan) address(host int) string { return fmt.Sprintf("%s%d.%d", p.Base, p.Block, host) }
func (p *plan) net() string             { return p.address(0) + "/24" }
func (p *plan) all() string             { return p.address(0) + "/20" }
func (p *plan) pods(n int) string       { return fmt.Sprintf("%s%d.0/24", p.Base, p.Block+n) }
func (p *plan) services() string        { return fmt.Sprintf("%s%d.0/24", p.Base, p.Block+15) }

func (p *plan) save() error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return write(p.path("plan.json"), string(data))
}

func readPlan(dir string) (*plan, error) {
	data, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if err != nil {
		return nil, err
	}
	p := new(plan)
	return p, json.Unmarshal(data, p)
}

// socket is where the control answers, in its folder.
const socket = "control"

// control is process 1 of a cluster: the parts that are on no node, the bridge and the power of the nodes.
type control struct {
	*plan
	*children
	mu    sync.Mutex
	nodes map[int]*power
	parts map[string]*part
}

type power struct {
	pid  int
	done <-chan syscall.WaitStatus
}

// runControl runs in namespaces of its own until it is killed, which ends all that it has started. It begins when a
// line comes, after which the plan is whole and this machine's end of the link is there.
func runControl(dir string) error {
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	p, err := readPlan(dir)
	if err != nil {
		return err
	}
	c := &control{plan: p, children: newChildren(), nodes: map[int]*power{}, parts: map[string]*part{}}
	if err := mounts([]mount{{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""}, {"tmpfs", "/run", "tmpfs", 0, "mode=755"}}); err != nil {
		return err
	}
	if err := os.Chdir(p.Dir); err != nil { // names of sockets are short
		return err
	}
	if err := c.network(); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := c.plane(); err != nil {
		return err
	}
	for n := 1; n <= p.Nodes; n++ {
		if err := c.bmc(n); err != nil {
			return err
		}
		if err := c.on(n); err != nil {
			return err
		}
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}

func (c *control) network() error {
	// With an address of its own: else it changes with the ports, and what goes to it is lost for seconds.
	lines := `ip link set lo up
		ip link add br0 address 02:00:00:00:00:fe type bridge forward_delay 0
		ip addr add ` + c.address(254) + `/24 dev br0
		ip link set up0 master br0 up
		ip link set br0 up
	`
	for n := 1; n <= c.Nodes; n++ {
		lines += fmt.Sprintf("ip addr add %s/24 dev br0\nip route add %s via %s\n", c.address(100+n), c.pods(n),
			c.address(n))
	}
	if err := c.each(lines); err != nil {
		return err
	}
	return forwards()
}

// plane starts etcd, the API server, the controllers and the scheduler, and makes the sidecars of storage ready.
func (c *control) plane() error {
	if err := os.Setenv("NAMESPACE", "kube-system"); err != nil { // where the provisioner says what capacity is left
		return err
	}
	kcp := c.program("kcp")
	pki := func(name string) string { return c.path("pki", name) }
	for _, argv := range [][]string{
		{kcp, "etcd", "--data-dir=" + c.path("etcd"), "--unsafe-no-fsync", "--log-level=error",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380"},
		{kcp, "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--bind-address=" + c.address(254),
			"--tls-cert-file=" + pki("api.crt"), "--tls-private-key-file=" + pki("api.key"),
			"--client-ca-file=" + pki("ca.crt"), "--token-auth-file=" + pki("tokens"), "--authorization-mode=Node,RBAC",
			"--kubelet-client-certificate=" + pki("kubelet-client.crt"),
			"--kubelet-client-key=" + pki("kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP", "--endpoint-reconciler-type=none",
			"--service-cluster-ip-range=" + c.services(), "--service-account-issuer=https://" + c.address(254),
			"--service-account-key-file=" + pki("accounts.key"),
			"--service-account-signing-key-file=" + pki("accounts.key"), "--allow-privileged=true",
			"--audit-policy-file=" + c.path("audit-policy.json"), "--audit-log-path=" + c.path("log", "audit.log"),
			"--profiling=false"},
		{kcp, "kube-controller-manager", "--kubeconfig=" + c.path("kubeconfig"), "--leader-elect=false",
			"--service-account-private-key-file=" + pki("accounts.key"), "--root-ca-file=" + pki("ca.crt"),
			"--use-service-account-credentials=false", "--node-monitor-grace-period=12s", "--node-monitor-period=1s",
			"--bind-address=127.0.0.1", "--profiling=false", "--kube-api-qps=500", "--kube-api-burst=1000"},
		{kcp, "kube-scheduler", "--kubeconfig=" + c.path("kubeconfig"), "--leader-elect=false",
			"--bind-address=127.0.0.1", "--profiling=false"},
		{c.program("csi"), "csi", "-name=" + Driver, "-id=" + c.ID, "-node=control", "-volumes=" + c.path("volumes"),
			"-endpoint=" + c.path("csi")},
		{c.program("csi-provisioner"), "csi-provisioner", "--csi-address=" + c.path("csi"),
			"--kubeconfig=" + c.path("kubeconfig"), "--leader-election=false", "--default-fstype=ext4",
			"--enable-capacity", "--capacity-ownerref-level=-1"},
		{c.program("csi-snapshotter"), "csi-snapshotter", "--csi-address=" + c.path("csi"),
			"--kubeconfig=" + c.path("kubeconfig"), "--leader-election=false"},
		{c.program("snapshot-controller"), "snapshot-controller", "--kubeconfig=" + c.path("kubeconfig"),
			"--leader-election=false"},
	} {
		name := argv[1]
		if filepath.Base(argv[0]) == name { // of its own, and no part of the one binary
			argv = append(argv[:1], argv[2:]...)
		}
		if slices.Contains(sidecars, name) {
			c.parts[name] = &part{argv: argv, off: true}
		} else if err := c.service(name, argv...); err != nil {
			return err
		}
	}
	return nil
}

// sidecars are started when the API server knows what they ask it for: they ask once.
var sidecars = []string{"csi-provisioner", "csi-snapshotter", "snapshot-controller"}

// part is a program that is started again, a second after it has ended.
type part struct {
	argv []string
	pid  int
	off  bool // it is not to run
}

// service starts a part.
func (c *control) service(name string, argv ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &part{argv: argv}
	c.parts[name] = p
	return c.begin(name, p)
}

// begin starts a part while c.mu is held.
func (c *control) begin(name string, p *part) error {
	pid, done, err := c.start(c.path("log", name+".log"), nil, p.argv...)
	if err != nil {
		return err
	}
	p.pid = pid
	go func() {
		status := <-done
		fmt.Fprintf(os.Stderr, "%s ended: exit %d, signal %v\n", name, status.ExitStatus(), status.Signal())
		time.Sleep(time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		p.pid = 0
		if !p.off {
			if err := c.begin(name, p); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			}
		}
	}()
	return nil
}

// set ends a part, or starts it.
func (c *control) set(name string, on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parts[name]
	if p == nil {
		return fmt.Errorf("no part %q: %s", name, slices.Sorted(maps.Keys(c.parts)))
	}
	if p.off = !on; on && p.pid == 0 {
		return c.begin(name, p)
	}
	if !on && p.pid != 0 {
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// bmc starts the controller of a node's power: ipmi_sim on an address of its own, UDP port 623.
func (c *control) bmc(n int) error {
	own := c.path("bmc", c.node(n))
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	self := c.path("up") // no blanks
	conf := fmt.Sprintf(`name "%[1]s"
set_working_mc 0x20
  startlan 1
    addr %[2]s 623
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa12345678%07[5]d
  endlan
  chassis_control "%[3]s chassis %[4]s %[5]d"
  user 1 true "" "%[6]s" user 10 none md2 md5 straight
  user 2 true "admin" "%[6]s" admin 10 none md2 md5 straight
`, c.node(n), c.address(100+n), self, c.Dir, n, c.Password)
	if err := write(own+".conf", conf); err != nil {
		return err
	}
	if err := write(own+".emu", "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n"+
		"sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n"); err != nil {
		return err
	}
	return c.service("bmc-"+c.node(n), "ipmi_sim", "-n", "-p", "-c", own+".conf", "-f", own+".emu", "-s", own)
}

// on starts a node, unless it runs.
func (c *control) on(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[n] != nil {
		return nil
	}
	pid, done, err := c.start(c.path("log", c.node(n)+".log"), &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
		Pdeathsig: syscall.SIGKILL},
		c.path("up"), "node", c.Dir, strconv.Itoa(n))
	if err != nil {
		return err
	}
	port := portOf(n)
	if err := c.each(fmt.Sprintf("ip link add %[1]s type veth peer name eth0 netns %[2]d\n"+
		"ip link set %[1]s master br0 up", port, pid)); err != nil {
		return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	p := &power{pid, done}
	c.nodes[n] = p
	go func() {
		status := <-done
		fmt.Fprintf(os.Stderr, "%s ended: exit %d, signal %v\n", c.node(n), status.ExitStatus(), status.Signal())
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.nodes[n] == p { // it fell by itself
			c.cleared(n)
		}
	}()
	return nil
}

// portOf is the bridge's end of a node's link.
func portOf(n int) string { return fmt.Sprintf("port%d", n) }

// off cuts a node's power: nothing of it runs when this returns.
func (c *control) off(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.nodes[n]
	if p == nil {
		return nil
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	// The process that all of the node's come from is gone after them.
	if err := until(patient, func() error {
		if syscall.Kill(p.pid, 0) == nil {
			return fmt.Errorf("%s: process %d has not ended", c.node(n), p.pid)
		}
		return nil
	}); err != nil {
		return err
	}
	c.cleared(n)
	return nil
}

// cleared is a node that is off, without the kubelet's loop devices, which the kernel of a machine takes with it.
func (c *control) cleared(n int) {
	delete(c.nodes, n)
	// A connection that was cut keeps the node's namespace for a while, and with it the link, if it has not gone.
	_ = c.run("ip", "link", "del", portOf(n))
	freeLoops(c.ID + "/" + c.node(n) + "/")
	if err := removeGroup(c.ID + "/" + c.node(n)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// ServeHTTP answers GET with what runs, and changes that on POST of "on" or "off": /power/1, /part/kube-apiserver.
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var want [4]byte
	got, _ := io.ReadFull(r.Body, want[:])
	on := string(want[:got]) == "on"
	if r.Method == http.MethodPost && !on && string(want[:got]) != "off" {
		http.Error(w, "on or off", http.StatusBadRequest)
		return
	}
	name, isPart := strings.CutPrefix(r.URL.Path, "/part/")
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/power/"))
	switch {
	case isPart && r.Method == http.MethodPost:
		err = c.set(name, on)
	case isPart || err != nil || n < 1 || n > c.Nodes:
		http.NotFound(w, r)
		return
	case r.Method == http.MethodPost && on:
		err = c.on(n)
	case r.Method == http.MethodPost:
		err = c.off(n)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isPart && c.nodes[n] == nil {
		fmt.Fprint(w, "off")
	} else {
		fmt.Fprint(w, "on")
	}
}
