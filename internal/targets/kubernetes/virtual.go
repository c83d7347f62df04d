package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport/websocket"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/targets/fleet"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/result"
)

// Virtual machines of KubeVirt, where the fleet's file asks for them: instances are made and deleted as pods are, and
// move while they run. What they are made of was held against the published API alone.
var (
	instances = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	moves     = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1",
		Resource: "virtualmachineinstancemigrations"}
)

const (
	virtualVersion = "kubevirt.io/v1"
	// rootBus has the system's disk and the data disks, in this order: /dev/sda, /dev/sdb and on.
	rootBus    = "scsi"
	workDisk   = "/dev/disk/by-id/virtio-" + workSerial
	workSerial = "plimsoll"
	moveLimit  = 10 * time.Minute
)

// Objects of KubeVirt as runs make them.
type (
	instanceSpec struct {
		Grace    int64         `json:"terminationGracePeriodSeconds"`
		Hostname string        `json:"hostname"`
		Affinity affinity      `json:"affinity"`
		Domain   domain        `json:"domain"`
		Networks []network     `json:"networks"`
		Volumes  []guestVolume `json:"volumes"`
	}
	affinity struct {
		Node struct {
			Required struct {
				Terms []nodeTerm `json:"nodeSelectorTerms"`
			} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
			Preferred []preferredTerm `json:"preferredDuringSchedulingIgnoredDuringExecution"`
		} `json:"nodeAffinity"`
	}
	nodeTerm struct {
		Match []nodeMatch `json:"matchExpressions"`
	}
	nodeMatch struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	preferredTerm struct {
		Weight int64    `json:"weight"`
		Term   nodeTerm `json:"preference"`
	}
	domain struct {
		CPU     *guestCPU    `json:"cpu,omitempty"`
		Memory  *guestMemory `json:"memory,omitempty"`
		Devices struct {
			Disks      []guestDisk      `json:"disks"`
			Interfaces []guestInterface `json:"interfaces"`
		} `json:"devices"`
	}
	guestCPU struct {
		Cores int64 `json:"cores"`
	}
	guestMemory struct {
		Guest string `json:"guest"`
	}
	guestDisk struct {
		Name   string `json:"name"`
		Serial string `json:"serial,omitempty"`
		Disk   bus    `json:"disk"`
	}
	bus struct {
		Bus string `json:"bus"`
	}
	guestInterface struct {
		Name       string   `json:"name"`
		Masquerade struct{} `json:"masquerade"`
	}
	network struct {
		Name string   `json:"name"`
		Pod  struct{} `json:"pod"`
	}
	guestVolume struct {
		Name      string         `json:"name"`
		Container *containerDisk `json:"containerDisk,omitempty"`
		Claim     *claimRef      `json:"persistentVolumeClaim,omitempty"`
		Init      *cloudInit     `json:"cloudInitNoCloud,omitempty"`
	}
	containerDisk struct {
		Image string `json:"image"`
		Pull  string `json:"imagePullPolicy"`
	}
	cloudInit struct {
		UserData string `json:"userData"`
	}
	moveSpec struct {
		Instance string            `json:"vmiName"`
		Node     map[string]string `json:"addedNodeSelector"`
	}
)

// machines is the kind of objects that machines are.
func (f *fleetFile) machines() schema.GroupVersionResource {
	if f.Machines == "virtual" {
		return instances
	}
	return pods
}

func (f *fleetFile) virtual() bool { return f.machines() == instances }

// hostLabel is that of a node's name.
const hostLabel = "kubernetes.io/hostname"

// instance is a virtual machine that is on: on its node where there is room, and on another of the fleet after a move.
func (c *cluster) instance(v *vm) object {
	s := instanceSpec{Hostname: v.Short, Networks: []network{{Name: "pod"}}}
	term := func(names ...string) nodeTerm { return nodeTerm{[]nodeMatch{{hostLabel, "In", names}}} }
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.Name)
	}
	s.Affinity.Node.Required.Terms = []nodeTerm{term(all...)}
	s.Affinity.Node.Preferred = []preferredTerm{{100, term(c.nodes[v.Node].Name)}}
	if v.CPUs > 0 {
		s.Domain.CPU = &guestCPU{int64(v.CPUs)}
	}
	if v.MemoryBytes > 0 {
		s.Domain.Memory = &guestMemory{fmt.Sprint(v.MemoryBytes)}
	}
	add := func(name, bus_, serial string, source guestVolume) {
		source.Name = name
		s.Volumes = append(s.Volumes, source)
		s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, guestDisk{name, serial, bus{bus_}})
	}
	add("system", rootBus, "", guestVolume{Container: &containerDisk{v.Image, "IfNotPresent"}})
	for i := range v.DiskBytes {
		add(fmt.Sprintf("d%d", i+1), rootBus, "", guestVolume{Claim: &claimRef{v.disk(i)}})
	}
	add("work", "virtio", workSerial, guestVolume{Claim: &claimRef{workClaim(v.Short)}})
	add("init", "virtio", "", guestVolume{Init: &cloudInit{c.login.userData()}})
	s.Domain.Devices.Interfaces = []guestInterface{{Name: "pod"}}
	return object{virtualVersion, "VirtualMachineInstance", c.meta(v.Short, v), s}
}

// login is how the guests of a run are logged into: by keys that are made for it and end with it.
type login struct {
	key, known string // files
	public     string
	host       []byte // the key of all guests, which is how they are known
	hostPublic string
}

// newLogin makes the keys.
func newLogin(dir string) (l login, err error) {
	own, public, err := remote.NewKey("plimsoll")
	if err == nil {
		l.host, l.hostPublic, err = remote.NewKey("plimsoll")
	}
	l.public, l.key, l.known = public, filepath.Join(dir, "key"), filepath.Join(dir, "known_hosts")
	return l, errors.Join(err, os.WriteFile(l.key, own, 0o600),
		os.WriteFile(l.known, []byte("* "+l.hostPublic), 0o600))
}

// forget removes the key: nobody logs in after the run.
func (l login) forget() error {
	if l.key == "" {
		return nil
	}
	return os.RemoveAll(l.key)
}

// userData tells cloud-init what to do in a guest: take the keys, and make a file system on the work volume once.
func (l login) userData() string {
	data, err := json.Marshal(map[string]any{ // YAML takes JSON
		"disable_root": false, "ssh_pwauth": false, "ssh_authorized_keys": []string{l.public},
		"ssh_keys": map[string]string{"ed25519_private": string(l.host), "ed25519_public": l.hostPublic},
		"fs_setup": []any{map[string]any{"device": workDisk, "filesystem": "ext4", "label": workSerial,
			"overwrite": false}},
		"mounts": [][]string{{workDisk, workFolder, "ext4", "defaults,nofail", "0", "2"}},
	})
	if err != nil {
		panic(err) // it is texts
	}
	return "#cloud-config\n" + string(data)
}

// entered is a machine as the agent's way into it has it: by exec into a pod, by SSH through the API into a guest.
func (c *cluster) entered(v *vm, disks []target.Disk) remote.Machine {
	m := remote.Machine{Name: v.Name, Folder: workFolder + "/run", Own: disks}
	if !c.fleet.virtual() {
		m.Agent, m.Way = agentFile, c.api.way(v.Short)
		return m
	}
	m.Hop = remote.Hop{Address: v.Short, Port: 22, User: "root", Keys: []string{c.login.key},
		KnownHosts: []string{c.login.known}, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.api.forward(ctx, v.Short, 22)
		}}
	return m
}

// plainStream is the protocol by which KubeVirt forwards a port: the bytes as they are.
const plainStream = "plain.kubevirt.io"

// forward connects to a port of a guest, through the API.
func (a *api) forward(ctx context.Context, instance string, port int) (net.Conn, error) {
	base, _, err := rest.DefaultServerURL(a.config.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return nil, err
	}
	u := base.JoinPath("apis/subresources.kubevirt.io/v1/namespaces", a.namespace, instances.Resource, instance,
		"portforward", fmt.Sprint(port), "tcp")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	trip, holder, err := websocket.RoundTripperFor(a.config)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(trip, holder, r, plainStream)
	if err != nil {
		return nil, fmt.Errorf("port %d of %s: %w", port, instance, a.said(err))
	}
	return &forwarded{Conn: conn.NetConn(), web: conn}, nil
}

// forwarded is a connection whose bytes go in messages.
type forwarded struct {
	net.Conn
	web interface {
		ReadMessage() (kind int, data []byte, err error)
		WriteMessage(kind int, data []byte) error
	}
	rest []byte
}

// Read implements net.Conn.
func (f *forwarded) Read(b []byte) (int, error) {
	for len(f.rest) == 0 {
		_, data, err := f.web.ReadMessage()
		if err != nil {
			return 0, err
		}
		f.rest = data
	}
	n := copy(b, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Write implements net.Conn.
func (f *forwarded) Write(b []byte) (int, error) {
	const binary = 2 // the kind of a message
	return len(b), f.web.WriteMessage(binary, b)
}

// nodeOf is the node that an object of a machine is on, by its number; -1 where that is none of the fleet, or none yet.
func (c *cluster) nodeOf(o *unstructured.Unstructured) int {
	name := untyped.Object(o.Object).Object("status").Text("nodeName")
	return slices.IndexFunc(c.nodes, func(n target.Node) bool { return n.Name == name })
}

// Migrate implements target.Migrator: KubeVirt moves the machine while it runs.
func (c *cluster) Migrate(ctx context.Context, name string, to int) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	v, err := c.get(name)
	if err == nil {
		err = c.nodeOn(ctx, to)
	}
	if err == nil && !v.On {
		err = fmt.Errorf("vm %q is off", name)
	}
	if err != nil || v.Node == to {
		return errors.Join(err)
	}
	if err := c.migrate(ctx, v, to); err != nil {
		return fmt.Errorf("migrate: vm %q: %w", name, err)
	}
	return nil
}

func (c *cluster) migrate(ctx context.Context, v *vm, to int) error {
	if o, _ := c.pods.get(v.Short); o != nil {
		if m := conditionOf(o, "LiveMigratable"); m.Text("status") == "False" {
			return fmt.Errorf("KubeVirt cannot: %s: %s", m.Text("reason"), m.Text("message"))
		}
	}
	ctx, cancel := clock.WithTimeout(ctx, c.place.clock, moveLimit)
	defer cancel()
	name := fmt.Sprintf("%s-%x", v.Short, c.place.clock.Now().UnixNano())
	c.meter.begin(result.Migrated, name, v)
	defer c.meter.drop(result.Migrated, name)
	made, _, err := c.create(ctx, moves, object{virtualVersion, "VirtualMachineInstanceMigration", c.meta(name, v),
		moveSpec{v.Short, map[string]string{hostLabel: c.nodes[to].Name}}})
	if err != nil {
		return err
	}
	defer c.api.removeThis(context.WithoutCancel(ctx), moves, made, nil) //nolint:errcheck // a clean-up does, too
	for {
		o, err := c.api.get(ctx, moves, made.GetName())
		if err == nil && o == nil {
			return errors.New("its migration was removed by somebody else")
		}
		phase := ""
		if o != nil {
			status := untyped.Object(o.Object).Object("status")
			switch phase = status.Text("phase"); phase {
			case "Succeeded":
				c.meter.done(result.Migrated, name) // how long it stood still it does not say
				return c.change(func() { v.Node = to })
			case "Failed":
				return fmt.Errorf("KubeVirt failed to: %s", status.Object("migrationState").Text("failureReason"))
			}
		}
		if c.place.clock.Sleep(ctx, lookEach) != nil {
			return fmt.Errorf("its migration is %q after %v: %w", phase, moveLimit, errors.Join(err,
				target.ErrNotAccessible))
		}
	}
}

// sync has a guest write what it holds.
func (c *cluster) sync(ctx context.Context, h *fleet.Machine) error {
	p, err := h.Start(ctx, target.Command{Argv: []string{"sync"}})
	if err != nil {
		return err
	}
	exit, err := p.Wait(ctx)
	if err == nil && exit != (target.Exit{}) {
		err = fmt.Errorf("sync: %+v", exit)
	}
	return err
}

// claimVirtual looks whether the cluster has KubeVirt, and claims what its machines can beyond pods where they are
// asked for.
func (a *api) claimVirtual(ctx context.Context, f *fleetFile, facts *target.Facts, object func(string, ...any)) {
	_, _, err := a.plain(ctx, "apis/"+virtualVersion)
	there := fmt.Sprintf("whether KubeVirt is there is not known: %v", a.said(err))
	switch {
	case err == nil && f.virtual():
		facts.Capabilities[target.LiveMigration] = "KubeVirt's, of machines all of whose volumes several nodes may have"
		facts.Capabilities[target.VMPowerControl] = "virtual machines of KubeVirt made and deleted"
		facts.Capabilities[target.GuestCommands] = "the agent in each guest, over SSH through the API"
		facts.Capabilities[target.Services] = facts.Capabilities[target.GuestCommands]
		return
	case err == nil:
		there = "KubeVirt is there (" + virtualVersion + "), and machines: virtual in the fleet's file uses it"
	case apierrors.IsNotFound(err):
		there = "KubeVirt is not there (" + virtualVersion + ")"
	}
	if f.virtual() {
		object("machines: virtual: %s", there)
	}
	facts.Missing[target.LiveMigration] = "pods do not move while they run; " + there
}
