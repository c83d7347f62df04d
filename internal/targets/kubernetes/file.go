package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/tagged"
	"plimsoll/unit"
)

// fleetFile is the file of a fleet. Nothing in it is secret: a kubeconfig is named, and power controllers say where
// their
// passwords are kept.
type fleetFile struct {
	Platform   string `yaml:"platform"`
	Kubeconfig string `yaml:"kubeconfig"`
	Context    string `yaml:"context"`
	// Exec lets the kubeconfig's credential plug-in run, which is a program of this machine.
	Exec      bool   `yaml:"exec"`
	Namespace string `yaml:"namespace"`
	// StorageClass is of data disks, WorkClass of the volume that keeps the agent; "" is the cluster's default.
	StorageClass string `yaml:"storage_class"`
	WorkClass    string `yaml:"work_class"`
	// SnapshotClass is of snapshots of data disks; "" is the default of their driver.
	SnapshotClass string `yaml:"snapshot_class"`
	// AccessMode is of all claims.
	AccessMode string `yaml:"access_mode"`
	// VolumeMode is of data disks: Block, or Filesystem where the class makes no other, and each is a file.
	VolumeMode string `yaml:"volume_mode"`
	// Clones says what disks of a clone are copies of: volumes, or snapshots where the storage copies nothing else.
	Clones   string `yaml:"clones"`
	WorkSize string `yaml:"work_size"`
	// Images are container images by the scenario's names of gold images; "*" is of all others.
	Images map[string]string `yaml:"images"`
	// Nodes are the cluster's nodes to use, in their order; none are all that pods may be scheduled on.
	Nodes []string `yaml:"nodes"`
	// Power is each node's power controller: its kind and its options.
	Power map[string]map[string]string `yaml:"power"`
	// Consent names the nodes that may be switched off though pods of others run there.
	Consent []string          `yaml:"consent"`
	Labels  map[string]string `yaml:"labels"`
	// Machines are pods, or virtual: machines of KubeVirt.
	Machines string `yaml:"machines"`
	// Requests are whether pods ask the scheduler for the CPUs and memory of their VM.
	Requests bool `yaml:"requests"`

	power    powers
	workSize int64
}

const mostFile = 1 << 20

var (
	label   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	dnsName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
)

// readFleet reads a fleet's file. All objections come at once.
func readFleet(name string, kinds []target.PowerKind) (*fleetFile, error) {
	if name == "" {
		return nil, errors.New(`target kubernetes: option "file" is missing: give --target-opt file=FLEET.yaml`)
	}
	data, err := regular.Read(name, os.O_RDONLY, mostFile)
	if err != nil {
		return nil, fmt.Errorf("target kubernetes: option \"file\": %w", err)
	}
	f, err := parseFleet(data, kinds)
	if err != nil {
		return nil, fmt.Errorf("target kubernetes: %s: %w", name, err)
	}
	if f.Kubeconfig != "" && !filepath.IsAbs(f.Kubeconfig) {
		if rest, home := strings.CutPrefix(f.Kubeconfig, "~/"); home {
			dir, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("target kubernetes: %s: kubeconfig %q: %w", name, f.Kubeconfig, err)
			}
			f.Kubeconfig = filepath.Join(dir, rest)
		} else if f.Kubeconfig, err = filepath.Abs(filepath.Join(filepath.Dir(name), f.Kubeconfig)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func parseFleet(data []byte, kinds []target.PowerKind) (*fleetFile, error) {
	f := &fleetFile{}
	wrong, err := tagged.Decode(data, f)
	if err = errors.Join(err, tagged.Join(wrong)); err != nil {
		return nil, err
	}
	var objections []error
	object := func(format string, args ...any) { objections = append(objections, fmt.Errorf(format, args...)) }
	if f.Platform != "kubernetes" {
		object("platform: %q: want kubernetes", f.Platform)
	}
	if !label.MatchString(f.Namespace) {
		object("namespace: %q: give the name of a namespace that is for this alone", f.Namespace)
	}
	if f.Machines != "" && f.Machines != "pods" && !f.virtual() {
		object("machines: %q: want pods, or virtual, which are those of KubeVirt", f.Machines)
	}
	if f.virtual() {
		if f.AccessMode = cmp.Or(f.AccessMode, "ReadWriteMany"); f.AccessMode != "ReadWriteMany" {
			object("access_mode: %q: machines that move while they run want ReadWriteMany", f.AccessMode)
		}
	} else if f.AccessMode = cmp.Or(f.AccessMode, "ReadWriteOncePod"); f.AccessMode != "ReadWriteOncePod" &&
		f.AccessMode != "ReadWriteOnce" {
		object("access_mode: %q: want ReadWriteOncePod, which keeps a second pod off, or ReadWriteOnce", f.AccessMode)
	}
	if f.VolumeMode = cmp.Or(f.VolumeMode, "Block"); f.VolumeMode != "Block" && !f.files() {
		object("volume_mode: %q: want Block, or Filesystem, which makes data disks files", f.VolumeMode)
	} else if f.files() && f.virtual() {
		object("volume_mode: Filesystem: disks of virtual machines are of mode Block")
	}
	if f.Clones = cmp.Or(f.Clones, "volumes"); f.Clones != "volumes" && f.Clones != "snapshots" {
		object("clones: %q: want volumes, or snapshots", f.Clones)
	}
	size, err := unit.ParseBytes(cmp.Or(f.WorkSize, "256MiB"))
	if f.workSize = int64(size); err != nil || f.workSize < 64<<20 {
		object("work_size: %q: want 64MiB or more", f.WorkSize)
	}
	if len(f.Images) == 0 {
		object(`images: none: give images: {"*": IMAGE}, one that has a shell`)
	}
	for gold, image := range f.Images {
		if strings.TrimSpace(image) == "" || strings.ContainsAny(image, " \t\n") {
			object("images: %s: %q is no name of a container image", gold, image)
		}
	}
	for _, c := range []struct{ key, name string }{{"storage_class", f.StorageClass}, {"work_class", f.WorkClass},
		{"snapshot_class", f.SnapshotClass}} {
		if c.name != "" && !dnsName.MatchString(c.name) {
			object("%s: %q is no name of a class", c.key, c.name)
		}
	}
	seen := map[string]bool{}
	for _, n := range f.Nodes {
		if !dnsName.MatchString(n) || seen[n] {
			object("nodes: %q is no name of a node, or there twice", n)
		}
		seen[n] = true
	}
	f.power = powers{}
	for _, node := range slices.Sorted(maps.Keys(f.Power)) {
		options := maps.Clone(f.Power[node])
		s := target.PowerSetting{Kind: options["kind"], Options: options}
		delete(options, "kind")
		if _, err := s.Open(fmt.Sprintf("power: %s", node), kinds); err != nil {
			objections = append(objections, err)
		}
		f.power[node] = s
	}
	for k, v := range f.Labels {
		if !dnsName.MatchString(strings.Replace(k, "/", ".", 1)) || len(v) > 63 || strings.HasPrefix(k, labelBase) {
			object("labels: %s: %q: no label that a user may give", k, v)
		}
	}
	return f, errors.Join(objections...)
}

// files says whether data disks are files, each in a volume of its own.
func (f *fleetFile) files() bool { return f.VolumeMode == "Filesystem" }

// image returns what a gold image of the scenario stands for.
func (f *fleetFile) image(gold string) (string, error) {
	if image := cmp.Or(f.Images[gold], f.Images["*"]); image != "" {
		return image, nil
	}
	return "", fmt.Errorf("image %q: the fleet's file has no container image for it: give images: {%s: IMAGE}", gold,
		gold)
}
