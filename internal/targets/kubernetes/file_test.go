package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll/internal/contract/target"
)

// A fleet's file is strict, and all that is wrong in it is said at once.
func TestFleetFile(t *testing.T) {
	good := "platform: kubernetes\nnamespace: perf\nimages: {\"*\": localhost/worker:1, ubuntu1604: w:2}\n"
	f, err := parseFleet([]byte(good), nil)
	if err != nil || f.AccessMode != "ReadWriteOncePod" || f.workSize != 256<<20 {
		t.Errorf("%+v, %v", f, err)
	}
	for gold, want := range map[string]string{"ubuntu1604": "w:2", "centos": "localhost/worker:1"} {
		if got, err := f.image(gold); got != want || err != nil {
			t.Errorf("%s: %s, %v", gold, got, err)
		}
	}
	for text, words := range map[string][]string{
		"":                       {"platform", "namespace", "images: none"},
		good + "nodez: [a]\n":    {"nodez"},
		good + "machines: vms\n": {"machines", `"vms"`, "virtual"},
		good + "volume_mode: Files\nclones: copies\n":               {`volume_mode: "Files"`, `clones: "copies"`},
		good + "machines: virtual\nvolume_mode: Filesystem\n":       {"disks of virtual machines are of mode Block"},
		good + "machines: virtual\naccess_mode: ReadWriteOncePod\n": {"access_mode", "ReadWriteMany"},
		"platform: vsphere\nnamespace: Perf\nimages: {a: \"b c\"}\naccess_mode: ReadWriteMany\nwork_size: 1MiB\nnodes: [n, n, N]\n" +
			"storage_class: \"a b\"\npower: {n: {kind: fuse}}\nlabels: {plimsoll.dev/run: x}\n": {`"vsphere"`, `"Perf"`,
			`"b c"`,
			`"ReadWriteMany"`, `"1MiB"`, `"n"`, `"N"`, `"a b"`, `"fuse"`, "plimsoll.dev/run"},
	} {
		_, err := parseFleet([]byte(text), nil)
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v: want %s", text, err, w)
			}
		}
	}
}

const userFile = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}, {name: e, user: {exec: {apiVersion: client.authentication.k8s.io/v1,
	command: /bin/true,
  interactiveMode: Never}}}]
contexts: [{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: c, user: e}}]
`

// A kubeconfig that is absent, empty, too large or no file, has several contexts and none current, names a program,
// files that are none, or an API server that is not there: each is said with what to do, and no program runs.
func TestKubeconfigs(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/a:/nowhere/b")
	dir := t.TempDir()
	written := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	config, pipe := written("config", userFile), filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	named := func(old, by string) fleetFile {
		name := written(strings.NewReplacer(" ", "", "/", "").Replace(by), strings.Replace(userFile, old, by, 1))
		return fleetFile{Kubeconfig: name, Context: "a"}
	}
	for _, c := range []struct {
		fleet fleetFile
		want  string
	}{
		{fleetFile{Kubeconfig: "/nowhere/config"}, "/nowhere/config: no such file or directory: give kubeconfig: FILE"},
		{fleetFile{Kubeconfig: written("empty", "")}, "/empty: it is empty, or there is none: give kubeconfig: FILE"},
		{fleetFile{}, "/nowhere/a, /nowhere/b: it is empty, or there is none: give kubeconfig: FILE"},
		{fleetFile{Kubeconfig: written("large", strings.Repeat("#", 5<<20))}, "larger than 4 MiB"},
		{fleetFile{Kubeconfig: pipe}, "is a named pipe"},
		{named("token: t", "tokenFile: /dev/zero"), `context "a": open /dev/zero: it is a device`},
		{named("token: t", "client-certificate: "+pipe), "pipe: it is a named pipe"},
		{named("token: t", "client-key: /dev/zero, client-certificate-data: aGk="), "/dev/zero: it is a device"},
		{named(`:1"`, `:1", certificate-authority: `+pipe), "pipe: it is a named pipe"},
		{named(`:1"`, `:1", certificate-authority-data: aGk=`), `kubeconfig: context "a": unable to load root certificates: unable to parse bytes ` +
			`as PEM block: see its server, certificate-authority`},
		{fleetFile{Kubeconfig: config}, "2 contexts and none is current: give context: NAME in the fleet's file: there are " +
			"a, b"},
		{named("kind: Config", "current-context: old"), ""},
		{fleetFile{Kubeconfig: filepath.Join(dir, "current-context:old")}, `context "old" does not exist: give another as`},
		{named("cluster: c, user: u", "cluster: gone, user: u"), `context "a": it has no cluster "gone": give kubeconfig`},
		{named("cluster: c, user: u", "cluster: c, user: gone"), `context "a": it has no user "gone": give kubeconfig`},
		{named("token: t", "tokenFile: /nowhere/token"), `context "a": open /nowhere/token: no such file`},
		{named("token: t", "client-certificate: /nowhere/crt"), `context "a": invalid configuration`},
		{fleetFile{Kubeconfig: config, Context: "b"}, `by the program "/bin/true": give exec: true`},
		{fleetFile{Kubeconfig: config, Context: "z"}, `context "z" does not exist: give another as context: in the fleet's ` +
			"file: there are a, b"},
	} {
		if _, err := c.fleet.connect(); (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %v: want %q", c.fleet, err, c.want)
		}
	}
	secret := fleetFile{Kubeconfig: written("secret", strings.Replace(userFile, "https://", "https://joe:hunter2@", 1)),
		Context: "a"}
	hidden, err := secret.connect()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hidden.get(t.Context(), pods, "x"); err == nil || strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), "https://joe:xxxxx@127.0.0.1:1") {
		t.Errorf("a password in an address: %v", err)
	}
	a, err := (&fleetFile{Kubeconfig: config, Context: "a", Namespace: "perf"}).connect()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.get(context.Background(), pods, "x"); err == nil || !strings.Contains(err.Error(),
		"does not answer") {
		t.Errorf("%v", err)
	}
}

// Names of runs and machines are names that objects may have, whatever they were, and differ where those differ.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	unique := func(name, of string) {
		t.Helper()
		if other, is := seen[name]; is || !label.MatchString(name) {
			t.Errorf("%q of %q: it is no label, or that of %q", name, of, other)
		}
		seen[name] = of
	}
	for _, id := range []string{"20261127-060000-Db_Colocation-7f3a", strings.Repeat("x", 253), strings.Repeat("x",
		252) + "y", "Größe", "größe", "GRÖSSE", "a.b", "a_b", "a-b", "-a-b", "\u4e00", "\u4e01", "---"} {
		name := runName(id)
		unique(name, id)
		for _, vm := range []string{"vm 1", "vm_1", "VM 1", "Ä", "Ö", "\u00c4x", "A\u0308x", strings.Repeat("n", 253),
			strings.Repeat("ü", 126)} {
			unique(short(name, vm), id+" "+vm)
		}
	}
}

// Options come from the table, and the file is asked for.
func TestOptions(t *testing.T) {
	p, err := Provider{}.New(target.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "file=FLEET.yaml") {
		t.Errorf("%v", err)
	}
	for text, want := range map[string]int64{"24587204Ki": 24587204 << 10, "2": 2, "1500m": 1, "4Gi": 4 << 30, "x": 0,
		"": 0} {
		if got := amount(text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestPhaseOf reads what a platform says of a pod that it ended.
func TestPhaseOf(t *testing.T) {
	ended := []any{map[string]any{"state": map[string]any{"terminated": map[string]any{"reason": "OOMKilled",
		"exitCode": int64(137)}}}}
	for want, status := range map[string]map[string]any{
		"Failed, Evicted: The node was low on resource: memory.": {"phase": "Failed", "reason": "Evicted",
			"message": "The node was low on resource: memory.", "containerStatuses": ended},
		"Failed, OOMKilled (exit code 137)": {"phase": "Failed", "containerStatuses": ended},
		"Pending, 0/2 nodes are available": {"phase": "Pending", "conditions": []any{map[string]any{
			"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}}},
	} {
		phase, why := phaseOf(&unstructured.Unstructured{Object: map[string]any{"status": status}})
		if got := phase + ", " + why; got != want {
			t.Errorf("got %q: want %q", got, want)
		}
	}
}
