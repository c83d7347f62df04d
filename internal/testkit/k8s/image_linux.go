package k8s

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// PauseImage holds a pod's namespaces; WorkImage has a shell, for the rest. Both are busybox. AgentImage has an agent,
// too, where a test loads one.
const (
	PauseImage = "localhost/plimsoll/pause:1"
	WorkImage  = "localhost/plimsoll/busybox:1"
	AgentImage = "localhost/plimsoll/agent:1"
)

// LoadAgent imports AgentImage with a program as its agent on every node.
func (c *Cluster) LoadAgent(t testing.TB, program string) {
	t.Helper()
	agent, err := os.ReadFile(program)
	file := filepath.Join(t.TempDir(), "agent.tar")
	if err = errors.Join(err, images(file, agent, AgentImage)); err != nil {
		t.Fatal(err)
	}
	c.Load(t, file)
}

// images writes an archive with an image by some names, as `ctr images import` and `podman load` take it, made of this
// machine's busybox and an agent, if there is one.
func images(file string, agent []byte, names ...string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("%w: %w (apt-get install busybox-static)", errCannot, err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("%s: %w", busybox, err)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%w: %s is linked to libraries (apt-get install busybox-static)", errCannot, busybox)
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(h tar.Header, data []byte) {
		h.Size, h.Format = int64(len(data)), tar.FormatPAX
		if err == nil {
			err = w.WriteHeader(&h)
		}
		if err == nil {
			_, err = w.Write(data)
		}
	}
	for _, dir := range []string{"bin", "etc", "root", "proc", "sys", "dev", "run", "var"} {
		add(tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, program)
	add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	if agent != nil {
		add(tar.Header{Typeflag: tar.TypeReg, Name: "usr/bin/plimsoll-agent", Mode: 0o755}, agent)
	}
	for name := range strings.FieldsSeq(string(applets)) {
		if name != "busybox" {
			add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + filepath.Base(name), Linkname: "busybox",
				Mode: 0o777}, nil)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	type object = map[string]any
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))
	config, err := json.Marshal(object{"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Env": []string{"PATH=/bin"}, "Cmd": []string{"/bin/sleep", "2147483647"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{sum}}})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]object{{"Config": "config.json", "RepoTags": names,
		"Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w = tar.NewWriter(&archive)
	add(tar.Header{Typeflag: tar.TypeReg, Name: "manifest.json", Mode: 0o644}, manifest)
	add(tar.Header{Typeflag: tar.TypeReg, Name: "config.json", Mode: 0o644}, config)
	add(tar.Header{Typeflag: tar.TypeReg, Name: "layer.tar", Mode: 0o644}, layer.Bytes())
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, archive.Bytes(), 0o644)
}
