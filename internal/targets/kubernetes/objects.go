package kubernetes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll/internal/targets/fleet"
)

// Labels and annotations of what a run makes.
const (
	labelBase  = "plimsoll.dev/"
	runLabel   = labelBase + "run"
	vmLabel    = labelBase + "vm"    // the short name
	vmNote     = labelBase + "vm"    // annotation: the name as the scenario has it
	groupNote  = labelBase + "group" // annotation
	madeNote   = labelBase + "made"  // annotation: when, for who cleans up without the folder
	ownerNote  = labelBase + "owner" // annotation: who started it, and where
	offNote    = labelBase + "off"   // annotation of the lease: nodes that the run has switched off, with commas
	container  = "machine"
	workFolder = "/plimsoll"
	agentFile  = workFolder + "/bin/agent"
)

// short is a name of a machine that objects may have, whatever the scenario calls it.
func short(run, vm string) string {
	sum := sha256.Sum256([]byte(run + "\x00" + vm))
	return "m" + hex.EncodeToString(sum[:6])
}

// workClaim and disk are the names of a machine's volumes. Disks that were restored are others.
func workClaim(short string) string { return short + "-work" }

func (v *vm) disk(i int) string {
	if v.Restored > 0 {
		return fmt.Sprintf("%s-d%d-r%d", v.Short, i+1, v.Restored)
	}
	return fmt.Sprintf("%s-d%d", v.Short, i+1)
}

// claims are the names of all of them.
func (v *vm) claims() []string {
	if v.Plain {
		return nil
	}
	names := []string{workClaim(v.Short)}
	for i := range v.DiskBytes {
		names = append(names, v.disk(i))
	}
	return names
}

// Objects as runs make them: of what Kubernetes has in each, only what is said of it here.
type (
	object struct {
		Version string    `json:"apiVersion"`
		Kind    string    `json:"kind"`
		Meta    *metadata `json:"metadata,omitempty"`
		Spec    any       `json:"spec"`
	}
	metadata struct {
		Name        string            `json:"name,omitempty"`
		Namespace   string            `json:"namespace,omitempty"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations"`
	}
	claimSpec struct {
		AccessModes []string  `json:"accessModes"`
		Mode        string    `json:"volumeMode"`
		Resources   resources `json:"resources"`
		Class       string    `json:"storageClassName,omitempty"`
		From        *source   `json:"dataSource,omitempty"`
	}
	// source names the claim or snapshot that a volume is a copy of.
	source struct {
		Group string `json:"apiGroup,omitempty"`
		Kind  string `json:"kind"`
		Name  string `json:"name"`
	}
	resources struct {
		Limits   map[string]string `json:"limits,omitempty"`
		Requests map[string]string `json:"requests,omitempty"`
	}
	podSpec struct {
		Restart      string            `json:"restartPolicy"`
		Grace        int64             `json:"terminationGracePeriodSeconds"`
		ServiceLinks bool              `json:"enableServiceLinks"`
		Token        bool              `json:"automountServiceAccountToken"`
		Hostname     string            `json:"hostname"`
		Node         map[string]string `json:"nodeSelector"`
		Volumes      []volume          `json:"volumes"`
		Containers   []containerSpec   `json:"containers"`
	}
	volume struct {
		Name  string    `json:"name"`
		Claim *claimRef `json:"persistentVolumeClaim,omitempty"`
		Empty *struct{} `json:"emptyDir,omitempty"`
	}
	claimRef struct {
		Name string `json:"claimName"`
	}
	security struct {
		Privileged bool `json:"privileged"`
	}
	containerSpec struct {
		Name      string    `json:"name"`
		Image     string    `json:"image"`
		Pull      string    `json:"imagePullPolicy"`
		Command   []string  `json:"command"`
		Resources resources `json:"resources"`
		Mounts    []mount   `json:"volumeMounts"`
		Devices   []device  `json:"volumeDevices,omitempty"`
		Security  *security `json:"securityContext,omitempty"`
	}
	mount struct {
		Name string `json:"name"`
		Path string `json:"mountPath"`
	}
	device struct {
		Name string `json:"name"`
		Path string `json:"devicePath"`
	}
)

// encoded is the object as the client sends it.
func (o object) encoded() (*unstructured.Unstructured, error) {
	data, err := json.Marshal(o)
	out := &unstructured.Unstructured{}
	if err == nil {
		err = out.UnmarshalJSON(data)
	}
	return out, err
}

func (c *cluster) meta(name string, v *vm) *metadata {
	labels := map[string]string{}
	maps.Copy(labels, c.fleet.Labels)
	maps.Copy(labels, map[string]string{runLabel: c.state.Run, vmLabel: v.Short})
	return &metadata{name, c.state.Namespace, labels,
		map[string]string{vmNote: v.Name, groupNote: v.Group, madeNote: c.state.Made, ownerNote: owner()}}
}

// claim is a claim of a volume, of a data disk or for the agent, a copy of a source where there is one.
func (c *cluster) claim(name string, v *vm, bytes int64, block bool, from *source) object {
	spec := claimSpec{AccessModes: []string{c.fleet.AccessMode}, Mode: "Filesystem",
		Class: cmp.Or(c.fleet.WorkClass, c.fleet.StorageClass), From: from,
		Resources: resources{Requests: map[string]string{"storage": fmt.Sprint(bytes)}}}
	if block {
		spec.Mode, spec.Class = c.fleet.VolumeMode, c.fleet.StorageClass
	}
	if block && c.fleet.files() { // what file systems keep for themselves
		spec.Resources.Requests["storage"] = fmt.Sprint(bytes + bytes/16 + 64<<20)
	}
	return object{"v1", "PersistentVolumeClaim", c.meta(name, v), spec}
}

// diskFolder is where the file of a data disk is, where disks are files.
func diskFolder(i int) string { return "/disks/" + path.Base(fleet.Device(i)) }

// makeFiles is a command line that makes the files of data disks which are not there yet. A file system that cannot
// keep space for a file, as over NFS, is asked whether it has as much.
func makeFiles(sizes []int64) string {
	lines := []string{"set -e"}
	for i, bytes := range sizes {
		lines = append(lines, fmt.Sprintf(`cd %s; if [ ! -e disk ]; then
if ! fallocate -l %d part 2>/dev/null; then rm -f part; set -- $(df -Pk . | tail -n 1)
[ "$4" -ge %d ] || { echo "disk %s: its volume has room for $4 KiB of %[3]d" >&2; exit 1; }
dd if=/dev/null of=part bs=1 seek=%[2]d 2>/dev/null; fi
mv part disk; fi`, diskFolder(i), bytes, bytes>>10, fleet.Device(i)))
	}
	return strings.Join(lines, "\n")
}

// firstProcess reaps what is left to it, and ends at once when it is told to.
const firstProcess = `trap 'kill -9 -1 2>/dev/null; exit 0' TERM INT; while :; do sleep 86400 & wait $!; done`

// pod is a machine that is on.
func (c *cluster) pod(v *vm) object {
	box := containerSpec{Name: container, Image: v.Image, Pull: "IfNotPresent",
		Command: []string{"/bin/sh", "-c", firstProcess}, Mounts: []mount{{"work", workFolder}}}
	work := volume{Name: "work", Claim: &claimRef{workClaim(v.Short)}}
	if v.Plain {
		work.Claim, work.Empty, box.Security = nil, &struct{}{}, &security{Privileged: true}
	}
	volumes := []volume{work}
	for i := range v.DiskBytes {
		name := fmt.Sprintf("d%d", i+1)
		if c.fleet.files() {
			box.Mounts = append(box.Mounts, mount{name, diskFolder(i)})
		} else {
			box.Devices = append(box.Devices, device{name, fleet.Device(i)})
		}
		volumes = append(volumes, volume{Name: name, Claim: &claimRef{v.disk(i)}})
	}
	limits := map[string]string{}
	if v.CPUs > 0 {
		limits["cpu"] = fmt.Sprint(v.CPUs)
	}
	if v.MemoryBytes > 0 {
		limits["memory"] = fmt.Sprint(v.MemoryBytes)
	}
	box.Resources = resources{limits, map[string]string{"cpu": "10m", "memory": "32Mi"}}
	if c.fleet.Requests {
		box.Resources.Requests = limits
	}
	return object{"v1", "Pod", c.meta(v.Short, v), podSpec{Restart: "Never", Grace: 1, Hostname: v.Short,
		Node: map[string]string{"kubernetes.io/hostname": c.nodes[v.Node].Name}, Volumes: volumes,
		Containers: []containerSpec{box}}}
}
