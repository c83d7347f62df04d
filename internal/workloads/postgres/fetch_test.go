package postgres

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Programs are unpacked when they have the checksum that is known, and nothing is left of others.
func TestFetch(t *testing.T) {
	t.Parallel()
	packed := func(names ...string) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, name := range names {
			f, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(f, name)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := packed("pg/bin/initdb", "pg/bin/postgres", "pg/lib/a.so", "other/file")
	for name, c := range map[string]struct {
		served, known []byte
		words         string
	}{
		"good":    {good, good, ""},
		"another": {append([]byte("x"), good...), good, "it was not unpacked"},
		"outside": {packed("pg/../../escaped"), packed("pg/../../escaped"), "no file that can be unpacked"},
		"empty":   {packed("pg/bin/initdb"), packed("pg/bin/initdb"), "no initdb and postgres"},
		"no zip":  {[]byte("text"), []byte("text"), "not a valid zip"},
		"absent":  {nil, good, "does not have it"},
		"endless": {nil, nil, "/simple/pack/: it is larger than 8 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				switch {
				case c.known == nil:
					_, _ = io.Copy(w, rand.Reader) // until it is hung up on
				case r.URL.Path == "/simple/pack/" && c.served != nil:
					fmt.Fprint(w, `<a href="../../files/pack-1.whl#sha256=0">pack-1.whl</a>`)
				case r.URL.Path == "/files/pack-1.whl":
					_, _ = w.Write(c.served)
				}
			}))
			defer server.Close()
			sum := sha256.Sum256(c.known)
			p := parcel{pack: "pack", file: "pack-1.whl", sum: hex.EncodeToString(sum[:]), folders: []string{"pg/"},
				bin: "pg/bin", name: "pg-1"}
			cache := filepath.Join(t.TempDir(), "cache")
			for range 2 {
				bin, root, err := p.fetch(t.Context(), server.URL+"/simple/", cache)
				if c.words != "" {
					if err == nil || !strings.Contains(err.Error(), c.words) {
						t.Errorf("%v, want %q", err, c.words)
					}
					continue
				}
				if err != nil || !complete(bin) || root != filepath.Join(cache, "pg-1") || asked != 2 {
					t.Errorf("%q, %q, %v, asked %d times", bin, root, err, asked)
				}
				if _, err := os.Stat(filepath.Join(root, "other")); err == nil {
					t.Error("more is unpacked than wanted")
				}
			}
			if parts, _ := filepath.Glob(filepath.Join(cache, "*.part-*")); len(parts) > 0 {
				t.Errorf("%q are left", parts)
			}
		})
	}
}
