//go:build linux

package guest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/kit/outfile"
	regularfile "plimsoll/internal/kit/regular"
)

// Kind of guest.
type Kind string

// The kinds there are.
const (
	Worker Kind = "worker"
	Debian Kind = "debian"
	Pod    Kind = "pod" // an image for containers, which the lab does not boot
)

// Kinds lists them.
var Kinds = []Kind{Worker, Debian, Pod}

// Image is a guest image in a cache. Paths are absolute.
type Image struct {
	Kind        Kind            `json:"kind"`
	ID          string          `json:"id"` // hash of all that went in, 16 hex digits
	Dir         string          `json:"dir"`
	Kernel      string          `json:"kernel"`
	Initrd      string          `json:"initrd"`
	Root        string          `json:"root,omitempty"`        // "" for none; never written to
	RootFormat  string          `json:"root_format,omitempty"` // as qemu-img says
	Append      string          `json:"append"`                // the kernel's command line
	MemoryBytes int64           `json:"memory_bytes"`          // the least that boots
	Packages    []string        `json:"packages"`              // name_version_architecture
	Files       map[string]File `json:"files"`                 // by name in Dir
	Cached      bool            `json:"cached"`                // it was there already
}

// File describes a file of an image.
type File struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Config says what to build.
type Config struct {
	Kind  Kind
	Cache string                           // folder of packages and images; made if absent
	Agent string                           // plimsoll-agent for Linux on amd64, statically linked
	Log   func(format string, args ...any) // told each stage; nil for nobody
	// Packages of Debian's that a debian has besides its own, with all that they depend on.
	Packages []string
}

// recipe changes when an image of the same packages would not be the same.
const recipe = "1"

const (
	description = "image.json"
	unfinished  = ".unfinished-"
)

// builder is one build.
type builder struct {
	Config
	cache string // absolute
}

// Build gives the image of a kind, from the cache if it is there. Two builders of one cache take turns.
func Build(ctx context.Context, c Config) (Image, error) {
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	if err := errors.Join(c.check()...); err != nil {
		return Image{}, err
	}
	fail := func(err error) (Image, error) { return Image{}, fmt.Errorf("guest image %q: %w", c.Kind, err) }
	cache, err := filepath.Abs(c.Cache)
	if err != nil {
		return fail(err)
	}
	b := &builder{Config: c, cache: cache}
	var i Image
	err = b.alone(ctx, func() (err error) {
		switch c.Kind {
		case Worker:
			i, err = b.worker(ctx)
		case Debian:
			i, err = b.debian(ctx)
		case Pod:
			i, err = b.pod(ctx)
		}
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fail(err)
	}
	return i, nil
}

func (c Config) check() (errs []error) {
	if !slices.Contains(Kinds, c.Kind) {
		errs = append(errs, fmt.Errorf("guest image %q: no such kind, there are %q", c.Kind, Kinds))
	}
	if c.Cache == "" {
		errs = append(errs, errors.New("guest image: no folder for the cache given"))
	}
	if err := staticAMD64(c.Agent); err != nil {
		errs = append(errs, fmt.Errorf("guest image: agent %q: %w: make agents builds one", c.Agent, err))
	}
	for _, name := range c.Packages {
		if !packageName.MatchString(name) {
			errs = append(errs, fmt.Errorf("guest image: package %q: want a name as apt has it, such as default-jre",
				name))
		}
	}
	if c.Kind != Debian && len(c.Packages) > 0 {
		errs = append(errs, fmt.Errorf("guest image: packages %q: a %s takes none, a debian does", c.Packages, c.Kind))
	}
	return append(errs, missing(c.Kind)...)
}

// packageName is Debian's rule for names of packages.
var packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)

// List gives the images of a cache, without those that are not whole.
func List(cache string) ([]Image, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []Image
	for _, e := range entries {
		kind, _, _ := strings.Cut(e.Name(), "-")
		if !slices.Contains(Kinds, Kind(kind)) {
			continue
		}
		if i, err := open(filepath.Join(cache, e.Name())); err == nil {
			list = append(list, i)
		}
	}
	return list, err
}

// open reads the image of a folder. Files of another size than they were made with make it no image.
func open(dir string) (Image, error) {
	text, err := regularfile.Read(filepath.Join(dir, description), regularfile.NoLinks, regularfile.Document)
	if err != nil {
		return Image{}, err
	}
	i := Image{}
	if err := json.Unmarshal(text, &i); err != nil {
		return Image{}, fmt.Errorf("%s: %w", filepath.Join(dir, description), err)
	}
	for at, name := range []string{i.Root, i.Kernel, i.Initrd} {
		f, known := i.Files[name]
		if name == "" && (at == 0 || i.Kind == Pod) {
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case !known || name != filepath.Base(name):
			return Image{}, fmt.Errorf("%s: it does not describe %q", filepath.Join(dir, description), name)
		case err != nil:
			return Image{}, err
		case !info.Mode().IsRegular() || info.Size() != f.Bytes:
			return Image{}, fmt.Errorf("%s: %d bytes, was made with %d", filepath.Join(dir, name), info.Size(), f.Bytes)
		}
	}
	i.Dir, i.Cached = dir, true
	for _, p := range []*string{&i.Kernel, &i.Initrd, &i.Root} {
		if *p != "" {
			*p = filepath.Join(dir, *p)
		}
	}
	return i, nil
}

// mostSummed is the size of the largest file that is read whole before an image is used. Disks are larger: what is on
// them a guest's own file system looks after.
const mostSummed = 1 << 30

// intact says which file of an image is not as it was made.
func (i Image) intact() error {
	for name, of := range i.Files {
		if of.Bytes > mostSummed {
			continue
		}
		path := filepath.Join(i.Dir, name)
		if sum, err := sumOf(path, sha256.New()); err != nil {
			return err
		} else if sum != of.SHA256 {
			return fmt.Errorf("%s: changed since it was made", path)
		}
	}
	return nil
}

// sumOf is the sum of a file's content, in hexadecimal digits.
func sumOf(name string, h hash.Hash) (string, error) {
	f, err := regularfile.Open(name, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// image gives the image of an ID, made by make in a folder of its own if it is not there.
func (b *builder) image(id string, i Image, make func(dir string) error) (Image, error) {
	i.Kind, i.ID = b.Kind, id
	if b.Kind != Pod {
		i.Kernel, i.Initrd = "kernel", "initrd"
	}
	made := false
	dir, err := b.stage(string(b.Kind)+"-"+id, func(dir string) error {
		made = true
		if err := make(dir); err != nil {
			return err
		}
		return describe(dir, i)
	})
	if err != nil {
		return Image{}, err
	}
	got, err := open(dir)
	if got.Cached = !made; err == nil && got.Cached {
		err = got.intact()
	}
	if err != nil {
		err = fmt.Errorf("%w: remove %s and build again", err, dir)
	}
	return got, err
}

// describe writes what an image is into its folder, with the files that are there.
func describe(dir string, i Image) error {
	i.Files = map[string]File{}
	for _, name := range []string{i.Kernel, i.Initrd, i.Root} {
		if name == "" {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, name), sha256.New())
		if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		i.Files[name] = File{Bytes: info.Size(), SHA256: sum}
	}
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, description), append(text, '\n'), 0o644)
}

// stage gives a folder of the cache. If it is not there it is made by make under another name, and gets its own
// when all of it is on disk.
func (b *builder) stage(name string, make func(dir string) error) (string, error) {
	dir := filepath.Join(b.cache, name)
	if _, err := os.Lstat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(b.cache, unfinished)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the next build removes what is left
	if err := errors.Join(os.Chmod(tmp, 0o755), make(tmp)); err != nil {
		return "", err
	}
	if err := flushed(tmp); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// flushed has all files of a folder on disk.
func flushed(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() && !d.IsDir() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// alone runs build while no other builder is in the cache, without what builders that were killed have left in it.
func (b *builder) alone(ctx context.Context, build func() error) error {
	waiting := func() { b.Log("waiting for another build in %s", b.cache) }
	return outfile.Alone(ctx, b.cache, waiting, func() error {
		left, err := os.ReadDir(b.cache)
		for _, e := range left {
			if strings.HasPrefix(e.Name(), unfinished) {
				err = errors.Join(err, os.RemoveAll(filepath.Join(b.cache, e.Name())))
			}
		}
		if err != nil {
			return err
		}
		return build()
	})
}

// hashOf names what went in.
func hashOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// DefaultCache is where images are kept when nobody says otherwise.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "plimsoll", "guests"), err
}
