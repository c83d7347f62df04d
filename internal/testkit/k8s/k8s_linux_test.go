package k8s

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

type object = map[string]any

const why = "building Kubernetes takes a quarter of an hour, and nothing shorter is a Kubernetes"

// TestCluster: pods with disks of every kind, a node whose cord is pulled, snapshots and clones.
func TestCluster(t *testing.T) {
	needs.Long(t, why)
	c := Start(t)
	before := holds(t, c)
	claim := func(name, class, mode, access string, source any) {
		spec := object{"accessModes": []string{access}, "volumeMode": mode, "storageClassName": class,
			"resources": object{"requests": object{"storage": "64Mi"}}}
		if source != nil {
			spec["dataSource"] = source
		}
		call(t, c, http.MethodPost, "/api/v1/namespaces/default/persistentvolumeclaims",
			object{"metadata": object{"name": name}, "spec": spec})
	}
	claim("disk", Shared, "Block", "ReadWriteOncePod", nil)
	claim("files", Local, "Filesystem", "ReadWriteOnce", nil)
	claim("refused", FilesOnly, "Block", "ReadWriteOnce", nil)
	pod(t, c, "one", "node1", "disk", "files")
	in(t, c, "node1", "one",
		"echo here > /files/a && sync && printf words | dd of=/dev/sdb bs=4096 seek=3 conv=sync,fsync")

	cut := container(t, c, "one")
	ipmi(t, c.Nodes[0], "off")
	if err := c.WaitReady("node1", false, time.Minute); err != nil {
		t.Error(err)
	}
	if on, err := c.Power("node1"); err != nil || on {
		t.Errorf("after power off node1 is on: %v, %v", on, err)
	}
	if got := loops(filepath.Base(c.Dir) + "/node1/"); len(got) > 0 {
		t.Errorf("node1 is off, and has loop devices: %s", got)
	}
	ipmi(t, c.Nodes[0], "on")
	if err := c.WaitReady("node1", true, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	wait(t, "pod one after the power cut", func() error { // what the API says first is from before it
		if id := container(t, c, "one"); id == cut {
			return fmt.Errorf("its container is %s still", id)
		}
		return nil
	})
	waitPod(t, c, "one")
	const read = "cat /files/a; dd if=/dev/sdb bs=4096 skip=3 count=1 2>/dev/null | head -c 5"
	if got := in(t, c, "node1", "one", read); got != "here\nwords" {
		t.Errorf("after a power cut the disks hold %q", got)
	}

	call(t, c, http.MethodPost, "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots", object{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": object{"name": "then"},
		"spec": object{"source": object{"persistentVolumeClaimName": "disk"}}})
	in(t, c, "node1", "one", "printf later | dd of=/dev/sdb bs=4096 seek=3 conv=sync,fsync")
	wait(t, "the snapshot", func() error {
		var s struct{ Status struct{ ReadyToUse bool } }
		get(t, c, "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots/then", &s)
		if !s.Status.ReadyToUse {
			return fmt.Errorf("not ready")
		}
		return nil
	})
	claim("restored", Shared, "Block", "ReadWriteOnce", object{"apiGroup": "snapshot.storage.k8s.io",
		"kind": "VolumeSnapshot", "name": "then"})
	claim("cloned", Shared, "Block", "ReadWriteOnce", object{"kind": "PersistentVolumeClaim", "name": "disk"})
	pod(t, c, "two", "node2", "restored", "")
	pod(t, c, "three", "node2", "cloned", "")
	const word = "dd if=/dev/sdb bs=4096 skip=3 count=1 2>/dev/null | head -c 5"
	for name, want := range map[string]string{"two": "words", "three": "later"} {
		if got := in(t, c, "node2", name, word); got != want {
			t.Errorf("pod %s reads %q, want %q", name, got, want)
		}
	}
	var events struct {
		Items []struct {
			Message        string
			InvolvedObject struct{ Name string }
		}
	}
	get(t, c, "/api/v1/namespaces/default/events", &events)
	if !slices.ContainsFunc(events.Items, func(e struct {
		Message        string
		InvolvedObject struct{ Name string }
	}) bool {
		return e.InvolvedObject.Name == "refused" && strings.Contains(e.Message, "the class has no Block volumes")
	}) {
		t.Errorf("no event says why claim refused is not bound: %+v", events)
	}

	for _, kind := range []string{"/api/v1/namespaces/default/pods",
		"/api/v1/namespaces/default/persistentvolumeclaims",
		"/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots"} {
		call(t, c, http.MethodDelete, kind, object{"gracePeriodSeconds": 1})
	}
	wait(t, "the end of all that was made", func() error {
		if now := holds(t, c); now != before {
			return fmt.Errorf("%s, and before %s", now, before)
		}
		return nil
	})
}

// TestNothingIsLeft: a cluster beside another is taken down, and one whose command is killed is cleared by the next.
func TestNothingIsLeft(t *testing.T) {
	needs.Long(t, why)
	first := Start(t)
	before := machine(t)
	c, stop := Another(t)
	if c.URL == first.URL {
		t.Errorf("two clusters have the address %s", c.URL)
	}
	use := func(c *Cluster) {
		call(t, c, http.MethodPost, "/api/v1/namespaces/default/persistentvolumeclaims", object{
			"metadata": object{"name": "disk"}, "spec": object{"accessModes": []string{"ReadWriteOnce"},
				"volumeMode": "Block", "resources": object{"requests": object{"storage": "64Mi"}}}})
		pod(t, c, "one", "node2", "disk", "")
		if now := machine(t); slices.Equal(now, before) {
			t.Error("a cluster with a pod shows nowhere on this machine: the comparison is blind")
		}
	}
	same := func(what string) {
		t.Helper()
		wait(t, what, func() error {
			var more []string
			for _, line := range machine(t) {
				if !slices.Contains(before, line) {
					more = append(more, line)
				}
			}
			if len(more) > 0 {
				return fmt.Errorf("there is left: %s", strings.Join(more, "\n"))
			}
			return nil
		})
	}
	use(c)
	if err := stop(); err != nil {
		t.Error(err)
	}
	same("an orderly end")

	c, stop = Another(t)
	use(c)
	out, err := exec.Command("pgrep", "-f", "up control "+c.Dir+"$").Output()
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(out)) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	var parent int
	if _, err := fmt.Sscan(strings.Fields(string(status))[3], &parent); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(parent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait(t, "the end of a cluster whose command was killed", func() error {
		if found := Clear(); !slices.Contains(found, c.Dir) {
			return fmt.Errorf("cleared: %s", found)
		}
		return nil
	})
	same("clearing what a kill has left")
	if err := stop(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the command that was killed ended with %v", err)
	}
}

// TestDriver is csi-sanity's word on the storage driver.
func TestDriver(t *testing.T) {
	needs.Long(t, why)
	c := Start(t)
	plan, err := readPlan(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	dir := needs.Folder(t)
	script := fmt.Sprintf(`cd %[1]s && mkdir volumes
		%[2]s/csi -id plimsoll-sanity -volumes %[1]s/volumes -endpoint %[1]s/s &
		for i in $(seq 100); do [ -S %[1]s/s ] && break; sleep 0.1; done
		%[2]s/csi-sanity -csi.endpoint %[1]s/s -csi.mountdir %[1]s/mount -csi.stagingdir %[1]s/stage -ginkgo.no-color
		code=$?; kill $!; exit $code`, dir, plan.Programs)
	run := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script)
	out, err := run.CombinedOutput()
	if err != nil || !regexp.MustCompile(`SUCCESS! -- [1-9]\d+ Passed \| 0 Failed`).Match(out) {
		t.Errorf("csi-sanity: %v\n%s", err, last(string(out)))
	}
}

// machine is what a cluster may leave on this machine.
func machine(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/*", "/run/containerd/*", "/var/log/pods/*", "/var/log/containers/*",
		"/var/lib/cni/*", "/var/lib/kubelet/*", "/var/run/kubernetes/*", "/opt/containerd/*", "/etc/cni/net.d/*",
		"/sys/fs/cgroup/*/" + prefix + "*", "/sys/fs/cgroup/" + prefix + "*", "/sys/fs/cgroup/*/k8s.io/*",
		filepath.Join(os.TempDir(), prefix+"*"), "/usr/libexec/kubernetes/*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	ours := regexp.MustCompile(prefix + `|k8s\.io|containerd-shim`)
	for _, argv := range [][]string{{"ip", "-o", "link"}, {"ip", "route"}, {"ps", "-eo", "args="},
		{"cat", "/proc/mounts"},
		{"sysctl", "vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops",
			"kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes", "net.ipv4.ip_forward"}} {
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			t.Fatalf("%s: %v", argv, err)
		}
		for line := range strings.Lines(string(out)) {
			// Of processes and mounts those of a cluster, since others come and go.
			if argv[0] == "ip" || argv[0] == "sysctl" || ours.MatchString(line) {
				all = append(all, strings.TrimSpace(line))
			}
		}
	}
	for _, device := range loops(prefix) {
		name, _ := os.ReadFile("/sys/block/" + filepath.Base(device) + "/loop/backing_file")
		all = append(all, "loop "+string(name))
	}
	return all
}

func holds(t *testing.T, c *Cluster) string {
	t.Helper()
	h, err := c.Holds()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v", h)
}

func call(t *testing.T, c *Cluster, method, path string, body any) []byte {
	t.Helper()
	data, err := c.Call(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func get(t *testing.T, c *Cluster, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(call(t, c, http.MethodGet, path, nil), into); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, what string, done func() error) {
	t.Helper()
	begun := time.Now()
	defer func() { t.Logf("%s: %.1f s", what, time.Since(begun).Seconds()) }()
	if err := until(2*time.Minute, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// pod starts one with a disk at /dev/sdb and files at /files, or without where a name is empty.
func pod(t *testing.T, c *Cluster, name, node, disk, files string) {
	t.Helper()
	container := object{"name": "main", "image": WorkImage, "imagePullPolicy": "Never",
		"command": []string{"/bin/sh", "-c", "trap exit TERM; while :; do sleep 1000 & wait; done"}}
	var volumes []object
	if disk != "" {
		container["volumeDevices"] = []object{{"name": "disk", "devicePath": "/dev/sdb"}}
		volumes = append(volumes, object{"name": "disk", "persistentVolumeClaim": object{"claimName": disk}})
	}
	if files != "" {
		container["volumeMounts"] = []object{{"name": "files", "mountPath": "/files"}}
		volumes = append(volumes, object{"name": "files", "persistentVolumeClaim": object{"claimName": files}})
	}
	call(t, c, http.MethodPost, "/api/v1/namespaces/default/pods", object{"metadata": object{"name": name},
		"spec": object{"nodeSelector": object{"kubernetes.io/hostname": node}, "containers": []object{container},
			"volumes": volumes}})
	waitPod(t, c, name)
}

func waitPod(t *testing.T, c *Cluster, name string) {
	t.Helper()
	wait(t, "pod "+name, func() error {
		var p struct {
			Status struct {
				Phase             string
				ContainerStatuses []struct {
					Ready bool
					State json.RawMessage
				}
			}
		}
		get(t, c, "/api/v1/namespaces/default/pods/"+name, &p)
		if p.Status.Phase != "Running" || len(p.Status.ContainerStatuses) != 1 || !p.Status.ContainerStatuses[0].Ready {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
}

// container is the id of a pod's container.
func container(t *testing.T, c *Cluster, name string) string {
	t.Helper()
	var p struct {
		Status struct {
			ContainerStatuses []struct{ ContainerID string }
		}
	}
	get(t, c, "/api/v1/namespaces/default/pods/"+name, &p)
	if len(p.Status.ContainerStatuses) == 0 {
		return ""
	}
	return strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://")
}

// in runs a command of the shell in a pod, by the node's runtime.
func in(t *testing.T, c *Cluster, node, name, command string) string {
	t.Helper()
	out, err := c.On(node, append(Ctr(), "tasks", "exec", "--exec-id", random(8), container(t, c, name), "/bin/sh", "-c",
		command)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ipmi(t *testing.T, n Node, want string) {
	t.Helper()
	out, err := exec.Command(needs.Ipmitool(t), "-I", "lanplus", "-C", "3", "-H", n.BMC.Address, "-U", n.BMC.User, "-f",
		n.BMC.PasswordFile, "chassis", "power", want).CombinedOutput()
	if err != nil {
		t.Fatalf("ipmitool: %v: %s", err, out)
	}
}
