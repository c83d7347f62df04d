package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What was not finished is no image: neither after an error, nor when its builder was killed, nor
// with a file cut short.
func TestInterruptedBuild(t *testing.T) {
	t.Parallel()
	b := &builder{Config: Config{Kind: Worker, Log: t.Logf}, cache: filepath.Join(t.TempDir(), "cache [1]*")}
	if err := os.Mkdir(b.cache, 0o755); err != nil {
		t.Fatal(err)
	}
	torn := errors.New("torn")
	write := func(end error) func(string) error {
		return func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "kernel"), []byte("k"), 0o644),
				os.WriteFile(filepath.Join(dir, "initrd"), []byte("i"), 0o644), end)
		}
	}
	if _, err := b.image("1", Image{}, write(torn)); !errors.Is(err, torn) {
		t.Errorf("got %v", err)
	}
	killed := filepath.Join(b.cache, unfinished+"killed")
	if err := os.Mkdir(killed, 0o755); err != nil {
		t.Fatal(err)
	}
	if list, err := List(b.cache); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	err := b.alone(t.Context(), func() error {
		if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what a killed builder left: %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		return b.alone(ctx, func() error { return torn })
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two builders of one cache: %v", err)
	}
	for _, cached := range []bool{false, true} {
		i, err := b.image("1", Image{}, write(nil))
		if err != nil || i.Cached != cached || i.Files["kernel"].Bytes != 1 {
			t.Errorf("%+v %v", i, err)
		}
	}
	if err := os.Truncate(filepath.Join(b.cache, "worker-1", "initrd"), 0); err != nil {
		t.Fatal(err)
	}
	if list, err := List(b.cache); err != nil || len(list) != 0 {
		t.Errorf("an image cut short is listed: %v %v", list, err)
	}
}

// TestDamagedImages: what has become of a file of an image is told by name when the image is wanted, at once, and none
// of it is listed; a bit that turned round is as much as a file that is gone.
func TestDamagedImages(t *testing.T) {
	t.Parallel()
	damages := map[string]func(name string, data []byte) error{
		"cut":      func(name string, _ []byte) error { return os.Truncate(name, 0) },
		"nonsense": func(name string, _ []byte) error { return os.WriteFile(name, []byte("[[{\x00"), 0o600) },
		"huge":     func(name string, _ []byte) error { return os.Truncate(name, 1<<40) },
		"gone":     func(string, []byte) error { return nil },
		"folder":   func(name string, _ []byte) error { return os.Mkdir(name, 0o700) },
		"pipe":     func(name string, _ []byte) error { return unix.Mkfifo(name, 0o600) },
		"link":     func(name string, _ []byte) error { return os.Symlink("/dev/zero", name) },
		"loop":     func(name string, _ []byte) error { return os.Symlink(filepath.Base(name), name) },
		"elsewhere": func(name string, data []byte) error {
			return os.WriteFile(name, bytes.ReplaceAll(data, []byte(`: "kernel"`), []byte(`: "../kernel"`)), 0o600)
		},
		"flipped": func(name string, data []byte) error {
			data[len(data)/2] ^= 0x10
			return os.WriteFile(name, data, 0o600)
		},
	}
	for _, file := range []string{"kernel", description} {
		for damage, do := range damages {
			if file == "kernel" && damage == "elsewhere" {
				continue
			}
			b := &builder{Config: Config{Kind: Worker, Log: t.Logf}, cache: t.TempDir()}
			made := func(dir string) error {
				return errors.Join(os.WriteFile(filepath.Join(dir, "kernel"), []byte("kernel"), 0o644),
					os.WriteFile(filepath.Join(dir, "initrd"), []byte("i"), 0o644))
			}
			if _, err := b.image("1", Image{}, made); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(b.cache, "worker-1", file)
			data, err := os.ReadFile(name)
			if err == nil && damage != "cut" && damage != "huge" {
				err = os.Remove(name)
			}
			if err = errors.Join(err, do(name, data)); err != nil {
				t.Fatal(err)
			}
			done := ended(func() {
				list, err := List(b.cache)
				if err != nil || len(list) != 0 && damage != "flipped" { // sums are not taken for a list
					t.Errorf("%s, %s: listed: %v %v", file, damage, list, err)
				}
				_, err = b.image("1", Image{}, made)
				if err == nil || !strings.Contains(err.Error(), "remove "+b.cache) {
					t.Errorf("%s, %s: it is used, or nothing is named: %v", file, damage, err)
				}
			})
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatalf("%s, %s: it does not end", file, damage)
			}
		}
	}
}

// ended runs do and gives what is closed then.
func ended(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return done
}

// TestNoProgram: what is no regular file is no agent, which is said at once.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := ended(func() {
		for _, name := range []string{pipe, "/dev/zero", filepath.Dir(pipe)} {
			if err := staticAMD64(name); err == nil {
				t.Errorf("%s: taken", name)
			}
		}
	})
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// TestWholeParts: a package is taken from the cache with the sum that apt knows only.
func TestWholeParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.deb"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum256, sum512 := fmt.Sprintf("%x", sha256.Sum256([]byte("abc"))), fmt.Sprintf("%x", sha512.Sum512([]byte("abc")))
	for hash, want := range map[string]bool{"SHA256:" + sum256: true, "SHA512:" + sum512: true,
		"SHA256:" + sum512: false, "SHA512:00": false} {
		if (part{Name: "a.deb", Hash: hash}).whole(dir) != want {
			t.Errorf("%s: want %t", hash, want)
		}
	}
	if (part{Name: "b.deb", Hash: "SHA256:" + sum256}).whole(dir) {
		t.Error("what is not there is whole")
	}
}
