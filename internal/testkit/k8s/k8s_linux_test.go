package k8s

import (
	"encoding/json"
	"fmt"
	"net"
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

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/power/ipmi"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/powertest"
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
	ipmitool(t, c.Nodes[0], "off")
	if err := c.WaitReady("node1", false, patient); err != nil {
		t.Error(err)
	}
	if on, err := c.Power("node1"); err != nil || on {
		t.Errorf("after power off node1 is on: %v, %v", on, err)
	}
	if got := loops(filepath.Base(c.Dir) + "/node1/"); len(got) > 0 {
		t.Errorf("node1 is off, and has loop devices: %s", got)
	}
	ipmitool(t, c.Nodes[0], "on")
	if err := c.WaitReady("node1", true, patient); err != nil {
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

	if err := c.SetPart("kube-apiserver", false); err != nil {
		t.Fatal(err)
	}
	wait(t, "the API server's end", func() error {
		if _, err := c.Call(http.MethodGet, "/readyz", nil); err == nil {
			return fmt.Errorf("it answers")
		}
		return nil
	})
	if err := c.SetPart("kube-apiserver", true); err != nil {
		t.Fatal(err)
	}
	wait(t, "the API server", func() error { _, err := c.Call(http.MethodGet, "/readyz", nil); return err })

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
	before := places(t)
	use := func(c *Cluster) {
		call(t, c, http.MethodPost, "/api/v1/namespaces/default/persistentvolumeclaims", object{
			"metadata": object{"name": "disk"}, "spec": object{"accessModes": []string{"ReadWriteOnce"},
				"volumeMode": "Block", "resources": object{"requests": object{"storage": "64Mi"}}}})
		pod(t, c, "one", "node2", "disk", "")
		now := strings.Join(traces(t, c), "\n")
		for _, want := range []string{"loop ", "link ", "route ", "containerd-shim", "etcd", "group ", "folder "} {
			if !strings.Contains(now, want) {
				t.Errorf("no trace of a cluster that runs has %q: the comparison is blind\n%s", want, now)
			}
		}
	}
	gone := func(c *Cluster, what string) {
		t.Helper()
		wait(t, what, func() error {
			if left := traces(t, c); len(left) > 0 {
				return fmt.Errorf("there is left:\n%s", strings.Join(left, "\n"))
			}
			return nil
		})
		if now := places(t); !slices.Equal(now, before) {
			t.Errorf("%s: this machine has\n%s\nand had\n%s", what, strings.Join(now, "\n"), strings.Join(before, "\n"))
		}
	}
	c, stop := Another(t)
	if c.URL == first.URL {
		t.Errorf("two clusters have the address %s", c.URL)
	}
	use(c)
	if err := stop(); err != nil {
		t.Error(err)
	}
	gone(c, "an orderly end")

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
	if err := stop(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the command that was killed ended with %v", err)
	}
	Clear()
	gone(c, "clearing what a kill has left")
	if _, err := first.Call(http.MethodGet, "/readyz", nil); err != nil {
		t.Errorf("the cluster beside them: %v", err)
	}
}

// TestPower: the nodes' BMCs are driven by the suite of power controllers.
func TestPower(t *testing.T) {
	needs.Long(t, why)
	c := Start(t)
	n := c.Nodes[1]
	o := target.Options{"address": n.BMC.Address, "user": n.BMC.User, "password": "file:" + n.BMC.PasswordFile}
	powertest.RunKind(t, powertest.Bench{Kind: ipmi.Kind{}, Options: o, Secret: n.BMC.Password,
		Node: func() (target.PowerState, error) {
			on, err := c.Power(n.Name)
			return map[bool]target.PowerState{true: target.On, false: target.Off}[on], err
		},
		Wait: func(done func() bool) {
			wait(t, "the node's power", func() error {
				if !done() {
					return fmt.Errorf("it never was")
				}
				return nil
			})
		},
		Wrong: powertest.With(o, "user", "nobody"), Graceful: true})
	if err := c.WaitReady(n.Name, true, patient); err != nil {
		t.Error(err)
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

// TestImages reads the archive of images as a runtime does.
func TestImages(t *testing.T) {
	needs.That(t, exec.Command("busybox", "true").Run() == nil, "busybox", "apt-get install busybox-static")
	file := filepath.Join(t.TempDir(), "images.tar")
	if err := images(file, nil, PauseImage, WorkImage); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	var config struct {
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	for name, into := range map[string]any{"manifest.json": &manifest, "config.json": &config} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sum, err := exec.Command("sha256sum", filepath.Join(dir, manifest[0].Layers[0])).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "sha256:" + strings.Fields(string(sum))[0]; !slices.Equal(config.Rootfs.DiffIDs, []string{want}) {
		t.Errorf("the layer is %s, and said to be %s", want, config.Rootfs.DiffIDs)
	}
	if !slices.Equal(manifest[0].RepoTags, []string{PauseImage, WorkImage}) {
		t.Errorf("the archive has %s", manifest[0].RepoTags)
	}
	root := t.TempDir()
	layer := filepath.Join(dir, manifest[0].Layers[0])
	if out, err := exec.Command("tar", "-xf", layer, "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(root+"/bin/sh", "-c", "echo of busybox").CombinedOutput()
	if err != nil || string(out) != "of busybox\n" {
		t.Errorf("its shell says %q, %v", out, err)
	}
}

// TestAddresses: the nets of a cluster lie in its block, and not in another's or each other's.
func TestAddresses(t *testing.T) {
	seen := map[string]bool{}
	for at := range blocks {
		p := &plan{Nodes: 2}
		p.place(at)
		_, block, err := net.ParseCIDR(p.all())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{p.net(), p.pods(1), p.pods(2), p.services()} {
			_, own, err := net.ParseCIDR(name)
			if err != nil || !block.Contains(own.IP) || seen[name] {
				t.Errorf("block %d has %s: %v", at, name, err)
			}
			seen[name] = true
		}
	}
}

// traces are all that this machine shows of a cluster.
func traces(t *testing.T, c *Cluster) (all []string) {
	t.Helper()
	id := filepath.Base(c.Dir)
	for kind, pattern := range map[string]string{"folder ": c.Dir, "group ": "/sys/fs/cgroup/*/" + id} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all = append(all, kind+name)
		}
	}
	for _, device := range loops(id + "/") {
		all = append(all, "loop "+device)
	}
	for kind, argv := range map[string][]string{"link ": {"ip", "-o", "link"}, "route ": {"ip", "route"},
		"mount ": {"cat", "/proc/mounts"}} {
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			t.Fatalf("%s: %v", argv, err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, linkOf(id)) || strings.Contains(line, c.Dir) {
				all = append(all, kind+strings.TrimSpace(line))
			}
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		line, _ := os.ReadFile(name) // it may have ended
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cgroup"))
		if strings.Contains(string(groups), id) || strings.Contains(string(line), c.Dir) {
			all = append(all, "process "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// places are where a Kubernetes keeps its things elsewhere, and the kernel's settings that it makes there.
func places(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/cni-*", "/run/containerd/*", "/var/log/pods/*",
		"/var/log/containers/*", "/var/lib/cni/*", "/var/lib/kubelet/*", "/run/kubernetes/*", "/opt/containerd/*",
		"/etc/cni/net.d/*",
		"/sys/fs/cgroup/*/k8s.io/*", "/sys/fs/cgroup/*/kubepods*", "/usr/libexec/kubernetes/*", "/run/cni/*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name+": "+strings.TrimSpace(string(value)))
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
	if err := until(patient, done); err != nil {
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

// in runs a command of the shell in a pod. It enters the container by its process: ctr tasks exec lost what was said.
func in(t *testing.T, c *Cluster, node, name, command string) string {
	t.Helper()
	tasks, err := c.On(node, append(Ctr(), "tasks", "list")...)
	if err != nil {
		t.Fatal(err)
	}
	id := container(t, c, name)
	for line := range strings.Lines(tasks) {
		if words := strings.Fields(line); words[0] == id {
			out, err := c.On(node, "nsenter", "-t", words[1], "-m", "-p", "-r", "-w", "/bin/sh", "-c", command)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	t.Fatalf("pod %s has no container %s on %s", name, id, node)
	return ""
}

func ipmitool(t *testing.T, n Node, want string) {
	t.Helper()
	out, err := exec.Command(needs.Ipmitool(t), "-I", "lanplus", "-C", "3", "-H", n.BMC.Address, "-U", n.BMC.User, "-f",
		n.BMC.PasswordFile, "chassis", "power", want).CombinedOutput()
	if err != nil {
		t.Fatalf("ipmitool: %v: %s", err, out)
	}
}
