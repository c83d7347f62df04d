package k8s

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Cluster is a Kubernetes that runs.
type Cluster struct {
	Dir        string // all that it keeps
	Kubeconfig string // of a user who may do everything
	URL        string // of the API server
	CA         string // the file of its authority
	Token      string // of the user
	Audit      string // a file with a line of JSON for each request to the API server
	Nodes      []Node
	Ready      float64 // seconds from the start of its first process until its nodes were ready

	client *http.Client
}

// Node is a machine of the cluster: it has process, mount, network and group namespaces of its own, and its disks
// stay when its power is cut.
type Node struct {
	Name    string
	Address string
	BMC     BMC
}

// BMC is how a node's power is reached: IPMI 2.0 (lanplus) on UDP port 623.
type BMC struct{ Address, User, Password, PasswordFile string }

// Names of what the cluster has at its start. All the classes are of one driver, whose volumes are files of this
// machine below loop devices.
const (
	Driver        = "csi.plimsoll.test"
	Shared        = "plimsoll-shared" // a volume is reached from every node; the default
	Local         = "plimsoll-local"  // from the node only that it was made for, when its first pod was placed
	FilesOnly     = "plimsoll-files"  // no Block volumes
	Plain         = "plimsoll-plain"  // neither clones nor volumes of snapshots
	SnapshotClass = "plimsoll-snapshots"
)

// patient is for how long each part of a cluster has to come or to go, on a machine with much other work.
const patient = 4 * time.Minute

// ready waits for the API server and the nodes, loads the images and makes the classes.
func (u *up) ready(ctx context.Context) (*Cluster, error) {
	begun := time.Now()
	if err := write(u.path("pki", "bmc-password"), u.Password+"\n"); err != nil {
		return nil, err
	}
	token, err := os.ReadFile(u.path("pki", "token"))
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: u.Dir, Kubeconfig: u.path("kubeconfig"), URL: "https://" + u.address(254) + ":6443",
		CA: u.path("pki", "ca.crt"), Token: strings.TrimSpace(string(token)), Audit: u.path("log", "audit.log")}
	for n := 1; n <= u.Nodes; n++ {
		c.Nodes = append(c.Nodes, Node{u.node(n), u.address(n), BMC{u.address(100 + n), "admin", u.Password,
			u.path("pki", "bmc-password")}})
	}
	wait := func(what string, ask func() error) error {
		for end := time.Now().Add(patient); ; time.Sleep(100 * time.Millisecond) {
			err := ask()
			switch {
			case err == nil:
				u.say(fmt.Sprintf("%5.1f s  %s", time.Since(begun).Seconds(), what))
				return nil
			case ctx.Err() != nil:
				return ctx.Err()
			case time.Now().After(end):
				return fmt.Errorf("%s: %w: %s", what, err, u.last())
			}
			select {
			case err := <-u.ended:
				u.ended <- err
				return fmt.Errorf("%s: the cluster ended: %w: %s", what, err, u.last())
			default:
			}
		}
	}
	archive := u.path("images.tar")
	var loaded sync.WaitGroup
	failed := make(chan error, 1+u.Nodes)
	loaded.Go(func() {
		if err := images(archive, nil, PauseImage, WorkImage); err != nil {
			failed <- err
			return
		}
		for _, n := range c.Nodes {
			loaded.Go(func() {
				if err := wait("images on "+n.Name, func() error { return c.load(n.Name, archive) }); err != nil {
					failed <- err
				}
			})
		}
	})
	if err := wait("API server", func() error {
		_, err := c.Call(http.MethodGet, "/readyz", nil)
		return err
	}); err != nil {
		return nil, err
	}
	if err := wait("classes", func() error { return c.classes(u.program("crd")) }); err != nil {
		return nil, err
	}
	for _, name := range sidecars {
		if err := c.SetPart(name, true); err != nil {
			return nil, err
		}
	}
	if err := wait("nodes", func() error {
		for _, n := range c.Nodes {
			if err := c.nodeReady(n.Name); err != nil {
				return err
			}
		}
		_, err := c.Call(http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil) // pods need it
		return err
	}); err != nil {
		return nil, err
	}
	loaded.Wait()
	close(failed)
	c.Ready = time.Since(begun).Seconds()
	return c, <-failed
}

// nodeReady is nil of a node that says it is ready.
func (c *Cluster) nodeReady(name string) error {
	var n struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	data, err := c.Call(http.MethodGet, "/api/v1/nodes/"+name, nil)
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err != nil {
		return err
	}
	said := "it has said nothing"
	for _, condition := range n.Status.Conditions {
		if condition.Type == "Ready" {
			if condition.Status == "True" {
				return nil
			}
			said = condition.Message
		}
	}
	return fmt.Errorf("%s is not ready: %s", name, said)
}

// classes makes the cluster's own objects, as far as they are not there.
func (c *Cluster) classes(definitions string) error {
	type object = map[string]any
	class := func(name, binding string, parameters object) object {
		return object{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": object{"name": name,
			"annotations": object{"storageclass.kubernetes.io/is-default-class": fmt.Sprint(name == Shared)}},
			"provisioner": Driver, "volumeBindingMode": binding, "parameters": parameters}
	}
	type made struct {
		at   string
		what any
	}
	list := []made{
		{"/apis/storage.k8s.io/v1/csidrivers", object{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
			"metadata": object{"name": Driver}, "spec": object{"attachRequired": false, "fsGroupPolicy": "File"}}},
		{"/apis/storage.k8s.io/v1/storageclasses", class(Shared, "Immediate", object{})},
		{"/apis/storage.k8s.io/v1/storageclasses", class(Local, "WaitForFirstConsumer", object{"local": "yes"})},
		{"/apis/storage.k8s.io/v1/storageclasses", class(FilesOnly, "Immediate", object{"block": "no"})},
		{"/apis/storage.k8s.io/v1/storageclasses", class(Plain, "Immediate", object{"sources": "no"})},
	}
	crds, _ := filepath.Glob(filepath.Join(definitions, "*.yaml"))
	for _, name := range crds {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		list = append(list, made{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text})
	}
	list = append(list, made{"/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", object{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "driver": Driver,
		"deletionPolicy": "Delete", "metadata": object{"name": SnapshotClass, "annotations": object{
			"snapshot.storage.kubernetes.io/is-default-class": "true"}}}})
	for _, m := range list {
		var said *Refused
		if _, err := c.Call(http.MethodPost, m.at, m.what); err != nil &&
			!(errors.As(err, &said) && said.Code == http.StatusConflict) {
			return err
		}
	}
	return nil
}

// Refused is an answer of the API server that is no success.
type Refused struct {
	Code int
	Text string
}

func (r *Refused) Error() string { return fmt.Sprintf("%d: %s", r.Code, r.Text) }

// Call is one request to the API server, as the user who may do everything. A body that is bytes is YAML or JSON as
// it is; a PATCH is a merge.
func (c *Cluster) Call(method, path string, body any) ([]byte, error) {
	if c.client == nil {
		ca, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		c.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 16}}
	}
	text, raw := body.([]byte)
	kind := "application/yaml"
	if !raw && body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
		kind = "application/json"
	}
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	r, err := http.NewRequest(method, c.URL+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set("Content-Type", kind)
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		var status struct{ Message string }
		if json.Unmarshal(data, &status) != nil || status.Message == "" {
			status.Message = string(data)
		}
		err = &Refused{answer.StatusCode, method + " " + path + ": " + status.Message}
	}
	return data, err
}

// load imports an archive of images on a node.
func (c *Cluster) load(node, archive string) error {
	_, err := c.On(node, "ctr", "-a", "/run/containerd/containerd.sock", "-n", "k8s.io", "images", "import", archive)
	return err
}

// On runs a program on a node, as root and with this machine's programs, and gives what it says.
func (c *Cluster) On(node string, argv ...string) (string, error) {
	pid, err := c.pid(node)
	if err != nil {
		return "", err
	}
	var said, wrong bytes.Buffer
	run := exec.Command("nsenter", append([]string{"-t", pid, "-m", "-n", "-p", "-u", "-i", "--"}, argv...)...)
	run.Stdout, run.Stderr = &said, &wrong
	if err := run.Run(); err != nil {
		return said.String(), fmt.Errorf("%s: %s: %w: %s", node, strings.Join(argv, " "), err,
			strings.TrimSpace(wrong.String()))
	}
	return said.String(), nil
}

// pid is that of a node's first process, as this machine numbers them.
func (c *Cluster) pid(node string) (string, error) {
	want := strings.Join([]string{c.Dir + "/up", "node", c.Dir, strings.TrimPrefix(node, "node")}, "\x00") + "\x00"
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		if text, err := os.ReadFile(name); err == nil && string(text) == want {
			return filepath.Base(filepath.Dir(name)), nil
		}
	}
	return "", fmt.Errorf("%s is off", node)
}

// at is a cluster's folder, where its control answers.
type at string

func (a at) ask(method, path, body string) (string, error) {
	client := http.Client{Timeout: 2 * patient, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(string(a), socket))
		}}}
	r, err := http.NewRequest(method, "http://control/"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, strings.TrimSpace(string(data)))
	}
	return string(data), err
}

func (a at) power(node, want string) error {
	_, err := a.ask(http.MethodPost, "power/"+strings.TrimPrefix(node, "node"), want)
	return err
}

func (a at) state(node string) (string, error) {
	return a.ask(http.MethodGet, "power/"+strings.TrimPrefix(node, "node"), "")
}

func (c *Cluster) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d nodes, ready after %.1f s\n\n", version, len(c.Nodes), c.Ready)
	fmt.Fprintf(&b, "use it      export KUBECONFIG=%s\n", c.Kubeconfig)
	fmt.Fprintf(&b, "            curl --cacert %s -H 'Authorization: Bearer %s' %s/api/v1/nodes\n", c.CA, c.Token,
		c.URL)
	for _, n := range c.Nodes {
		fmt.Fprintf(&b, "%s       %s, power: ipmitool -I lanplus -C 3 -H %s -U %s -f %s chassis power status|off|on\n",
			n.Name, n.Address, n.BMC.Address, n.BMC.User, n.BMC.PasswordFile)
	}
	fmt.Fprintf(&b, "on node1    nsenter -t $(pgrep -f 'up node %s 1$') -m -n -p -u\n", c.Dir)
	fmt.Fprintf(&b, "images      %s is loaded; others: see Load in package k8s\n", WorkImage)
	fmt.Fprintf(&b, "storage     classes %s, %s, %s, %s; snapshots %s\n", Shared, Local, FilesOnly, Plain,
		SnapshotClass)
	fmt.Fprintf(&b, "look into   %s/log\n", c.Dir)
	fmt.Fprintf(&b, "stop it     Ctrl-C, or kill %d: nothing of it stays\n", os.Getpid())
	return b.String()
}
