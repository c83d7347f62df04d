//go:build linux

package guest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	regularfile "plimsoll/internal/kit/regular"
)

// PodImage is the name that the image of pods has where it is loaded.
const PodImage = "localhost/plimsoll/pod:1"

const podFile = "pod.tar"

// pod builds the image of pods of a Kubernetes: busybox with all its names, the worker's fio and the agent, as the
// archive that ctr, podman and docker load.
func (b *builder) pod(ctx context.Context) (Image, error) {
	fio, key, source, err := b.fio(ctx)
	if err != nil {
		return Image{}, err
	}
	debs, err := closure(ctx, "busybox-static")
	if err != nil {
		return Image{}, err
	}
	agent, err := regularfile.Read(b.Agent, os.O_RDONLY, regularfile.Document)
	if err != nil {
		return Image{}, err
	}
	i := Image{Root: podFile, RootFormat: "docker-archive", Packages: append(names(debs), names(source)...)}
	slices.Sort(i.Packages)
	return b.image(hashOf(recipe, fmt.Sprint(debs), key, string(agent)), i, func(dir string) error {
		b.Log("putting together an image for pods")
		tree, err := b.podTree(ctx, dir, debs)
		if err != nil {
			return err
		}
		program, err := regularfile.Read(fio, os.O_RDONLY, regularfile.Document)
		if err != nil {
			return err
		}
		tree["usr/bin/fio"] = entry{mode: regular | 0o755, data: program}
		tree["usr/bin/plimsoll-agent"] = entry{mode: regular | 0o755, data: agent}
		archive, err := tree.image(PodImage)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, podFile), archive, 0o644)
	})
}

// podTree is busybox with a link for each of the programs that it is.
func (b *builder) podTree(ctx context.Context, dir string, list []part) (unpacked, error) {
	packages, err := b.fetch(ctx, list)
	if err != nil {
		return nil, err
	}
	debs := unpacked{}
	for _, p := range list {
		err = errors.Join(err, debs.unpack(ctx, filepath.Join(packages, p.Name), func(name string) bool {
			return strings.HasSuffix(name, "bin/busybox")
		}))
	}
	if err != nil {
		return nil, err
	}
	busybox, err := debs.file("bin/busybox")
	if err != nil {
		if busybox, err = debs.file("usr/bin/busybox"); err != nil {
			return nil, err
		}
	}
	program := filepath.Join(dir, "busybox")
	if err := os.WriteFile(program, busybox.data, 0o755); err != nil {
		return nil, err
	}
	applets, err := command(ctx, "", nil, program, "--list")
	if err = errors.Join(err, os.Remove(program)); err != nil {
		return nil, err
	}
	tree := unpacked{"bin/busybox": busybox,
		"etc/passwd": {mode: regular | 0o644, data: []byte("root:x:0:0:root:/root:/bin/sh\n")},
		"etc/group":  {mode: regular | 0o644, data: []byte("root:x:0:\n")},
		"root":       {mode: folder | 0o700}, "tmp": {mode: folder | 0o1777}, "proc": {mode: folder | 0o755},
		"sys": {mode: folder | 0o755}, "dev": {mode: folder | 0o755}, "run": {mode: folder | 0o755}}
	for name := range strings.FieldsSeq(string(applets)) {
		if name != "busybox" {
			tree["bin/"+path.Base(name)] = entry{mode: symlink | 0o777, data: []byte("busybox")}
		}
	}
	return tree, nil
}

// image is the tree as an image of one layer, the same bytes each time.
func (u unpacked) image(name string) ([]byte, error) {
	all := maps.Clone(u)
	for name := range u {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = entry{mode: folder | 0o755}
			}
		}
	}
	layer, err := all.tar()
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(layer)
	}
	if err == nil {
		err = w.Close()
	}
	config := fmt.Appendf(nil, `{"architecture":"amd64","config":{"Cmd":["/bin/sh"],"Env":["PATH=/usr/bin:/bin"]},`+
		`"os":"linux","rootfs":{"diff_ids":["sha256:%x"],"type":"layers"}}`, sha256.Sum256(layer))
	manifest, e := json.Marshal([]struct {
		Config           string
		Layers, RepoTags []string
	}{{"config.json", []string{"layer.tar"}, []string{name}}})
	if err = errors.Join(err, e); err != nil {
		return nil, err
	}
	return unpacked{"manifest.json": {mode: regular | 0o644, data: manifest},
		"config.json": {mode: regular | 0o644, data: config},
		"layer.tar":   {mode: regular | 0o644, data: packed.Bytes()}}.tar()
}

// tar is the tree as an archive: sorted, owned by root, of 1970.
func (u unpacked) tar() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(u)) {
		e := u[name]
		h := tar.Header{Name: name, Mode: int64(e.mode & 0o7777), Format: tar.FormatUSTAR, Typeflag: tar.TypeReg,
			Size: int64(len(e.data))}
		switch e.mode &^ 0o7777 {
		case folder:
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
		case symlink:
			h.Typeflag, h.Linkname, h.Size, e.data = tar.TypeSymlink, string(e.data), 0, nil
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}
