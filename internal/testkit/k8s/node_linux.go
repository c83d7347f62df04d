package k8s

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// runNode is process 1 of a node: containerd, the kubelet and the CSI driver, in the namespaces in which it was
// started, and a namespace of groups, which it makes before it begins anew.
func runNode(dir, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	p, err := readPlan(dir)
	if err != nil {
		return err
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	const grouped = "PLIMSOLL_K8S_GROUPED"
	if os.Getenv(grouped) == "" {
		if err := enter(all, p.ID+"/"+p.node(n)); err != nil {
			return err
		}
		runtime.LockOSThread() // what is begun anew has this thread's namespaces
		if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
			return fmt.Errorf("unshare the groups: %w", err)
		}
		return syscall.Exec(p.path("up"), os.Args, append(os.Environ(), grouped+"=1"))
	}
	if err := syscall.Sethostname([]byte(p.node(n))); err != nil {
		return err
	}
	home := p.path(p.node(n))
	if err := mounts([]mount{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
	}); err != nil {
		return err
	}
	if err := mountGroups(all); err != nil {
		return err
	}
	if err := p.settings(); err != nil {
		return err
	}
	if err := p.configure(n); err != nil {
		return err
	}
	if err := mounts([]mount{
		{home + "/lib", "/var/lib", "", syscall.MS_BIND, ""},
		{home + "/log", "/var/log", "", syscall.MS_BIND, ""},
		{"none", "/", "", syscall.MS_REC | syscall.MS_SHARED, ""}, // volumes are mounted beside the pods that have them
	}); err != nil {
		return err
	}
	c := &control{plan: p, children: newChildren(), parts: map[string]*part{}}
	if err := c.join(n); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"containerd", "containerd", "-c", home + "/containerd.toml"},
		{"csi", p.program("csi"), "-name=" + Driver, "-id=" + p.ID, "-node=" + p.node(n),
			"-volumes=" + p.path("volumes"), "-endpoint=/var/lib/kubelet/plugins/" + Driver + "/csi.sock",
			"-register=/var/lib/kubelet/plugins_registry/" + Driver + "-reg.sock"},
		{"kubelet", p.program("kcp"), "kubelet", "--config=" + home + "/kubelet.json",
			"--kubeconfig=" + home + "/kubeconfig", "--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki",
			"--hostname-override=" + p.node(n), "--node-ip=" + p.address(n)},
	} {
		if err := c.service(p.node(n)+"-"+argv[0], argv[1:]...); err != nil {
			return err
		}
		if argv[0] != "containerd" {
			continue
		}
		if err := until(patient, func() error {
			_, err := os.Stat("/run/containerd/containerd.sock")
			return err
		}); err != nil {
			return err
		}
	}
	select {}
}

// settings puts files in place of the kernel's settings that a kubelet makes, which are those of the whole machine.
func (p *plan) settings() error {
	for name, value := range map[string]string{"vm/overcommit_memory": "1", "vm/panic_on_oom": "0",
		"kernel/panic": "10", "kernel/panic_on_oops": "1", "kernel/keys/root_maxkeys": "1000000",
		"kernel/keys/root_maxbytes": "25000000"} {
		file := "/run/settings/" + filepath.Base(name)
		if err := write(file, value+"\n"); err != nil {
			return err
		}
		if err := syscall.Mount(file, "/proc/sys/"+name, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// join waits for the link that the cluster gives to the node, and sets its addresses.
func (c *control) join(n int) error {
	if err := until(patient, func() error {
		_, err := net.InterfaceByName("eth0")
		return err
	}); err != nil {
		return err
	}
	lines := fmt.Sprintf("ip link set lo up\nip addr add %s/24 dev eth0\nip link set eth0 up\n"+
		"ip route add default via %s\n", c.address(n), c.address(254))
	for other := 1; other <= c.Nodes; other++ {
		if other != n {
			lines += fmt.Sprintf("ip route add %s via %s\n", c.pods(other), c.address(other))
		}
	}
	if err := c.each(lines); err != nil {
		return err
	}
	return forwards()
}

// configure writes what containerd and the kubelet are told, as a node finds it each time.
func (p *plan) configure(n int) error {
	home := p.path(p.node(n))
	for _, dir := range []string{"lib/containerd", "log", "cni"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			return err
		}
	}
	snapshots := "overlayfs"
	if !stacks(home) {
		snapshots = "native"
	}
	if err := write(home+"/containerd.toml", fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = %q
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %q
conf_dir = %q
`, PauseImage, snapshots, p.Plugins, home+"/cni")); err != nil {
		return err
	}
	type object = map[string]any
	for name, what := range map[string]object{
		"cni/pods.conflist": {"cniVersion": "0.4.0", "name": "pods", "plugins": []object{{"type": "bridge",
			"bridge": "cni0", "isDefaultGateway": true, "ipMasq": false, "ipam": object{"type": "host-local",
				"dataDir": "/run/cni", "ranges": [][]object{{{"subnet": p.pods(n)}}}}}}},
		"kubelet.json": {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
			"address":                  p.address(n),
			"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
			"authentication": object{"anonymous": object{"enabled": false}, "webhook": object{"enabled": true},
				"x509": object{"clientCAFile": p.path("pki", "ca.crt")}},
			"authorization": object{"mode": "Webhook"},
			"failCgroupV1":  false, "cgroupDriver": "cgroupfs", "cgroupsPerQOS": false,
			"enforceNodeAllocatable": []string{}, "oomScoreAdj": 0, "failSwapOn": false, "resolvConf": "",
			"makeIPTablesUtilChains": false,
			"volumePluginDir":        "/var/lib/kubelet/volumeplugins", "imageGCHighThresholdPercent": 100,
			"evictionHard":             object{"memory.available": "100Mi"}, // disks are this machine's owner's care
			"nodeLeaseDurationSeconds": 8, "nodeStatusUpdateFrequency": "2s"},
	} {
		data, err := json.Marshal(what)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(home, name), string(data)); err != nil {
			return err
		}
	}
	return nil
}

// stacks says whether overlay file systems can be made in a folder.
func stacks(home string) bool {
	for _, dir := range []string{"lower", "upper", "work", "merged"} {
		if os.MkdirAll(filepath.Join(home, "stack", dir), 0o755) != nil {
			return false
		}
	}
	at := home + "/stack"
	defer os.RemoveAll(at)
	if syscall.Mount("overlay", at+"/merged", "overlay", 0,
		fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", at)) != nil {
		return false
	}
	return syscall.Unmount(at+"/merged", 0) == nil
}
