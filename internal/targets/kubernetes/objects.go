package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

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
	names := []string{workClaim(v.Short)}
	for i := range v.DiskBytes {
		names = append(names, v.disk(i))
	}
	return names
}

func (c *cluster) meta(name string, v *vm) map[string]any {
	labels := map[string]any{}
	for k, l := range c.fleet.Labels {
		labels[k] = l
	}
	maps.Copy(labels, map[string]any{runLabel: c.state.Run, vmLabel: v.Short})
	return map[string]any{"name": name, "namespace": c.state.Namespace, "labels": labels,
		"annotations": map[string]any{vmNote: v.Name, groupNote: v.Group, madeNote: c.state.Made, ownerNote: owner()}}
}

// claim is a claim of a volume. A source is a claim or a snapshot that it is a copy of.
func (c *cluster) claim(name string, v *vm, bytes int64, block bool, source map[string]any) map[string]any {
	mode, class := "Filesystem", c.fleet.WorkClass
	if block {
		mode, class = "Block", c.fleet.StorageClass
	}
	if class == "" {
		class = c.fleet.StorageClass
	}
	spec := map[string]any{"accessModes": []any{c.fleet.AccessMode}, "volumeMode": mode,
		"resources": map[string]any{"requests": map[string]any{"storage": fmt.Sprint(bytes)}}}
	if class != "" {
		spec["storageClassName"] = class
	}
	if source != nil {
		spec["dataSource"] = source
	}
	return map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": c.meta(name, v),
		"spec": spec}
}

// firstProcess reaps what is left to it, and ends at once when it is told to.
const firstProcess = `trap 'kill -9 -1 2>/dev/null; exit 0' TERM INT; while :; do sleep 86400 & wait $!; done`

// pod is a machine that is on.
func (c *cluster) pod(v *vm) map[string]any {
	devices, list := []any{}, []any{map[string]any{"name": "work",
		"persistentVolumeClaim": map[string]any{"claimName": workClaim(v.Short)}}}
	for i := range v.DiskBytes {
		name := fmt.Sprintf("d%d", i+1)
		devices = append(devices, map[string]any{"name": name, "devicePath": fleet.Device(i)})
		list = append(list, map[string]any{"name": name,
			"persistentVolumeClaim": map[string]any{"claimName": v.disk(i)}})
	}
	limits := map[string]any{}
	if v.CPUs > 0 {
		limits["cpu"] = fmt.Sprint(v.CPUs)
	}
	if v.MemoryBytes > 0 {
		limits["memory"] = fmt.Sprint(v.MemoryBytes)
	}
	requests := map[string]any{"cpu": "10m", "memory": "32Mi"}
	if c.fleet.Requests {
		requests = limits
	}
	node := c.nodes[v.Node].Name
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": c.meta(v.Short, v), "spec": map[string]any{
		"restartPolicy": "Never", "terminationGracePeriodSeconds": int64(1), "enableServiceLinks": false,
		"automountServiceAccountToken": false, "hostname": v.Short,
		"nodeSelector": map[string]any{"kubernetes.io/hostname": node},
		"volumes":      list,
		"containers": []any{map[string]any{"name": container, "image": v.Image, "imagePullPolicy": "IfNotPresent",
			"command":       []any{"/bin/sh", "-c", firstProcess},
			"resources":     map[string]any{"limits": limits, "requests": requests},
			"volumeMounts":  []any{map[string]any{"name": "work", "mountPath": workFolder}},
			"volumeDevices": devices}},
	}}
}
