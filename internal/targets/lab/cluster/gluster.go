//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/thread"
)

// glusterOptions let a VM outlive the loss of a node: a dead node is noticed in seconds and its locks let go of, no
// copy is written alone, and nothing is answered from a cache that another node does not know.
var glusterOptions = []string{"network.ping-timeout", "5", "performance.quick-read", "off",
	"performance.read-ahead", "off", "performance.io-cache", "off", "performance.strict-o-direct", "on",
	"network.remote-dio", "disable", "cluster.server-quorum-type", "none", "server.tcp-user-timeout", "5",
	"client.tcp-user-timeout", "5", "server.keepalive-time", "3", "server.keepalive-interval", "1",
	"server.keepalive-count", "2"}

// daemonConf is the daemon's own configuration: Debian's, but daemons of lost nodes are noticed in seconds, too, and a
// lock that a refused command has left is let go of before its three minutes are over.
const daemonConf = `volume management
    type mgmt/glusterd
    option working-directory /var/lib/glusterd
    option transport-type socket
    option transport.socket.keepalive-time 3
    option transport.socket.keepalive-interval 1
    option transport.socket.keepalive-count 2
    option transport.tcp-user-timeout 5
    option transport.socket.read-fail-log off
    option transport.socket.listen-port 24007
    option ping-timeout 5
    option event-threads 1
    option max-port 60999
    option mgmt-v3-lock-timeout 30
end-volume
`

// copies is how many nodes hold each block: all, three at most.
func (l *Lab) copies() int { return min(l.record.Nodes, 3) }

func (n *Node) brick() string { return n.Address().String() + ":" + n.path("brick", "b") }

// bootGluster starts the node's daemon, waits for its brick when the node has one, and mounts the volume.
func (n *Node) bootGluster(ctx context.Context) error {
	if err := n.glusterd(); err != nil {
		return err
	}
	for tried := time.Now(); ; {
		bricks, err := n.bricks(ctx)
		if n.number > n.lab.copies() && err == nil && len(bricks) > 0 || bricks[n.Address().String()] {
			break
		}
		if err == nil && time.Since(tried) > 8*time.Second { // the daemon has not noticed that the brick is dead
			tried = time.Now()
			if _, err := n.gluster(ctx, "volume", "start", volume, "force"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("brick of %s is not online: %w", n.Name(), errors.Join(ctx.Err(), err))
		}
	}
	args := []string{"--log-file=" + n.path("log", "mount.log"), "--volfile-id=" + volume}
	for _, m := range n.lab.Nodes() {
		args = append(args, "--volfile-server="+m.Address().String())
	}
	for !mounted(n.path("mount")) { // the answer to the first try may be that a brick is not connected yet
		if err := run(ctx, "", "glusterfs", append(args, n.path("mount"))...); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		for range 50 {
			if mounted(n.path("mount")) || !sleep(ctx, 100*time.Millisecond) {
				break
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("mount of %s: %w", n.Name(), ctx.Err())
		}
	}
	return nil
}

// glusterd starts the daemon with folders of the node's own in the places that it has built in: it, its bricks and
// what heals them see those instead of the machine's. Names are looked up in a file, for there is no server to ask.
func (n *Node) glusterd() error {
	return thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("glusterd: namespace: %w", err)
		}
		for _, m := range []struct {
			source, place, kind string
			flags               uintptr
		}{
			{"none", "/", "", unix.MS_REC | unix.MS_PRIVATE},
			{n.path("lib"), "/var/lib/glusterd", "", unix.MS_BIND},
			{n.path("log"), "/var/log/glusterfs", "", unix.MS_BIND},
			{n.lab.path("glusterd.vol"), "/etc/glusterfs/glusterd.vol", "", unix.MS_BIND},
			{n.lab.path("hosts"), "/etc/hosts", "", unix.MS_BIND},
			{n.lab.path("resolv.conf"), "/etc/resolv.conf", "", unix.MS_BIND},
			{"run", "/run", "tmpfs", 0},
		} {
			if _, err := os.Stat(m.place); err != nil && filepath.Dir(m.place) == "/etc" {
				continue // a machine without it asks nobody
			}
			if err := unix.Mount(m.source, m.place, m.kind, m.flags, ""); err != nil {
				return fmt.Errorf("glusterd: mount %s on %s: %w", m.source, m.place, err)
			}
		}
		if err := os.MkdirAll("/run/gluster", 0o755); err != nil {
			return fmt.Errorf("glusterd: %w", err)
		}
		cmd := exec.Command("glusterd", "-N", "--log-level", "WARNING")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Start()
	})
}

// gluster runs its command in the mounts of the node's daemon and in its network.
func (n *Node) gluster(ctx context.Context, args ...string) ([]byte, error) {
	pid := n.program("glusterd")
	if pid == 0 {
		return nil, fmt.Errorf("%s: glusterd does not run", n.Name())
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gluster", append([]string{"--mode=script", "--xml"}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &said, "/"
	cmd.WaitDelay = time.Second
	err := within(n.NetNS(), func() error {
		mounts, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/mnt")
		if err != nil {
			return err
		}
		defer mounts.Close()
		if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS)); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err == nil {
		err = cmd.Wait()
	}
	var answer struct {
		Return int    `xml:"opRet"`
		Why    string `xml:"opErrstr"`
	}
	if err == nil {
		err = xml.Unmarshal(out.Bytes(), &answer)
	}
	if err == nil && answer.Return != 0 {
		err = errors.New("refused")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: gluster %s: %w: %s%s", n.Name(), strings.Join(args, " "), err, answer.Why,
			bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), nil
}

// bricks says of each address with a brick whether it is online, as this node's daemon knows.
func (n *Node) bricks(ctx context.Context) (map[string]bool, error) {
	out, err := n.gluster(ctx, "volume", "status", volume)
	if err != nil {
		return nil, err
	}
	return parseBricks(out)
}

func parseBricks(data []byte) (map[string]bool, error) {
	var answer struct {
		Nodes []struct {
			Host   string `xml:"hostname"`
			Path   string `xml:"path"`
			Status string `xml:"status"`
		} `xml:"volStatus>volumes>volume>node"`
	}
	if err := xml.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("gluster volume status: %w", err)
	}
	bricks := map[string]bool{}
	for _, n := range answer.Nodes {
		if strings.HasPrefix(n.Path, "/") { // else it is a daemon's
			bricks[n.Host] = n.Status == "1"
		}
	}
	return bricks, nil
}

// parseHeals reads which bricks the heals reach, by address, and counts entries that wait for healing. Bricks that are
// down do not know: -1.
func parseHeals(data []byte) (online map[string]bool, entries int, err error) {
	var answer struct {
		Bricks []struct {
			Name    string `xml:"name"`
			Status  string `xml:"status"`
			Entries string `xml:"numberOfEntries"`
		} `xml:"healInfo>bricks>brick"`
	}
	if err := xml.Unmarshal(data, &answer); err != nil {
		return nil, -1, fmt.Errorf("gluster volume heal: %w", err)
	}
	if len(answer.Bricks) == 0 {
		return nil, -1, errors.New("gluster volume heal: it names no brick")
	}
	online = map[string]bool{}
	for _, b := range answer.Bricks {
		address, _, _ := strings.Cut(b.Name, ":")
		online[address] = b.Status == "Connected"
		n, err := strconv.Atoi(b.Entries)
		switch {
		case b.Entries == "-" || entries < 0:
			entries = -1
		case err != nil || n < 0:
			return nil, -1, fmt.Errorf("gluster volume heal: brick %q: %q entries: must be a count", b.Name, b.Entries)
		default:
			entries += n
		}
	}
	return online, entries, nil
}

// Replication tells what the copies of the storage are like.
type Replication struct {
	Bricks []bool `json:"bricks"` // by node with a brick: online
	Heals  int    `json:"heals"`  // entries not healed yet; -1 while it cannot be told, with a brick down
}

// Replication asks a node that is on. Shared storage has none.
func (l *Lab) Replication(ctx context.Context) (r Replication, err error) {
	if l.record.Storage == Shared {
		return r, nil
	}
	err = errors.New("lab: storage: no node is on")
	for _, n := range l.Nodes() {
		if n.program("glusterd") == 0 {
			continue
		}
		var online map[string]bool
		r.Heals = 0
		if l.copies() == 1 {
			online, err = n.bricks(ctx)
		} else {
			// Not "volume status": it waits for nodes that are lost, two minutes if need be.
			var out []byte
			if out, err = n.gluster(ctx, "volume", "heal", volume, "info"); err == nil {
				online, r.Heals, err = parseHeals(out)
			}
		}
		if err != nil {
			continue
		}
		r.Bricks = make([]bool, l.copies())
		for i := range r.Bricks {
			m := Node{l, i + 1}
			r.Bricks[i] = online[m.Address().String()]
		}
		return r, nil
	}
	return Replication{Heals: -1}, err
}

// WaitHealed returns when every brick is online and has nothing to heal. Whoever loses a node before that may lose the
// last good copy.
func (l *Lab) WaitHealed(ctx context.Context) error {
	for {
		r, err := l.Replication(ctx)
		online := 0
		for _, up := range r.Bricks {
			if up {
				online++
			}
		}
		if err == nil && online == len(r.Bricks) && r.Heals == 0 { // shared: 0 of 0
			return nil
		}
		if !sleep(ctx, 250*time.Millisecond) {
			return fmt.Errorf("lab: storage is not whole: %d of %d bricks online, %d entries to heal (-1: unknown): %w",
				online, l.copies(), r.Heals, errors.Join(ctx.Err(), err))
		}
	}
}

// makeVolume makes the nodes' daemons one cluster with one volume on their bricks.
func (l *Lab) makeVolume(ctx context.Context) error {
	nodes := l.Nodes()
	first := nodes[0]
	for _, n := range nodes { // commands wait for each other's locks, daemons for nothing
		for {
			_, err := n.gluster(ctx, "peer", "status")
			if err == nil {
				break
			}
			if !sleep(ctx, 100*time.Millisecond) {
				return fmt.Errorf("%w: %w\n%s\n%s", err, ctx.Err(), tail(n.path("boot.log")),
					tail(filepath.Join(n.path("log"), "glusterd.log")))
			}
		}
		if n.number > 1 {
			if _, err := first.gluster(ctx, "peer", "probe", n.Address().String()); err != nil {
				return err
			}
		}
	}
	for joined := false; !joined; {
		out, err := first.gluster(ctx, "peer", "status")
		if err != nil {
			return err
		}
		joined = bytes.Count(out, []byte("<state>3</state>")) == len(nodes)-1 // 3: Peer in Cluster
		if !joined && !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("gluster: peers do not join: %w", ctx.Err())
		}
	}
	create := []string{"volume", "create", volume}
	if l.copies() > 1 {
		create = append(create, "replica", strconv.Itoa(l.copies()))
	}
	for _, n := range nodes[:l.copies()] {
		create = append(create, n.brick())
	}
	options := glusterOptions
	if l.copies() > 1 {
		options = append(options[:len(options):len(options)], "cluster.quorum-type", "auto")
	}
	for _, args := range [][]string{append(create, "force"), append([]string{"volume", "set", volume}, options...),
		{"volume", "start", volume}} {
		for {
			_, err := first.gluster(ctx, args...)
			if err == nil {
				break
			}
			if !settling(err) {
				return err
			}
			if !sleep(ctx, 500*time.Millisecond) {
				return fmt.Errorf("%w: %w", err, ctx.Err())
			}
		}
	}
	return nil
}

// settling reports whether the daemons refused because they still tell each other that they have joined, which takes
// its time on a busy machine: some of them hold their locks then.
func settling(err error) bool {
	return slices.ContainsFunc([]string{"Another transaction is in progress", "Locking failed on ",
		"is not in 'Peer in Cluster' state"}, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// mounted says whether the volume is mounted and answers.
func mounted(dir string) bool {
	there := make(chan bool, 1)
	go func() { // a volume without a quorum may take its time, and is not there meanwhile
		var s unix.Statfs_t
		const fuse = 0x65735546
		there <- unix.Statfs(dir, &s) == nil && s.Type == fuse
	}()
	select {
	case yes := <-there:
		return yes
	case <-time.After(2 * time.Second):
		return false
	}
}

// unmount takes away the mount of the node, whose server may be dead.
func (n *Node) unmount() error {
	for {
		below, err := mountsBelow(n.path("mount"))
		if err != nil || len(below) == 0 {
			return err
		}
		if err := unix.Unmount(n.path("mount"), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", n.path("mount"), err)
		}
	}
}

// mountsBelow lists what is mounted on a folder and below it.
func mountsBelow(dir string) (list []string, err error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) > 4 && (f[4] == dir || strings.HasPrefix(f[4], dir+"/")) {
			list = append(list, f[4])
		}
	}
	return list, nil
}
