package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/testkit/needs"
)

// slowCache, if set, has the test's own executable be a builder that is in the middle of an image of that cache.
const slowCache = "PLIMSOLL_TEST_SLOW_CACHE"

func TestMain(m *testing.M) {
	if cache := os.Getenv(slowCache); cache != "" {
		_, err := imageOf(cache, "1", func(dir string) error {
			fmt.Println("in the middle")
			time.Sleep(time.Minute)
			return fmt.Errorf("%s was never finished", dir)
		})
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// imageOf is a build of an image, with the lock on the cache.
func imageOf(cache, id string, between func(dir string) error) (Image, error) {
	b := &builder{Config: Config{Kind: Worker, Log: func(string, ...any) {}}, cache: cache}
	var i Image
	err := b.alone(context.Background(), func() (err error) {
		i, err = b.image(id, Image{}, func(dir string) error {
			for _, name := range []string{"kernel", "initrd"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
					return err
				}
			}
			return between(dir)
		})
		return err
	})
	return i, err
}

func nothing(string) error { return nil }

// A builder killed in the middle of an image leaves none, and no lock: the next one makes it whole.
func TestKilledBuilder(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), slowCache+"="+cache)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 64)
	n, _ := out.Read(text)
	_ = c.Process.Kill()
	_ = c.Wait()
	if got := string(text[:n]); got != "in the middle\n" {
		t.Fatalf("the builder says %q", got)
	}
	if list, err := List(cache); err != nil || len(list) != 0 {
		t.Errorf("a builder that was killed has left %+v, %v", list, err)
	}
	i, err := imageOf(cache, "1", nothing)
	if err != nil || i.Cached {
		t.Errorf("%+v %v", i, err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if want := []string{filepath.Join(cache, "worker-1")}; err != nil ||
		!slices.Equal(left, want) {
		t.Errorf("the cache has %v, want %v", left, want)
	}
}

// Builders of one image take turns, and it is made once.
func TestBuildersTakeTurns(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	var made, inside atomic.Int32
	var w sync.WaitGroup
	for range 8 {
		w.Go(func() {
			_, err := imageOf(cache, "1", func(string) error {
				made.Add(1)
				if inside.Add(1) > 1 {
					t.Error("two builders at a time")
				}
				time.Sleep(10 * time.Millisecond)
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	w.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

// The same packages and programs give the same files to the last bit, put together twice.
func TestReproducible(t *testing.T) {
	needs.Time(t)
	user := cacheOfUser(t)
	first := built(t, Worker, user)
	again := t.TempDir()
	fios, err := filepath.Glob(filepath.Join(user, "fio-*"))
	if err != nil || len(fios) == 0 {
		t.Fatalf("no fio in %s: %v", user, err)
	}
	for _, dir := range append(fios, filepath.Join(user, "packages"), filepath.Join(user, "apt")) {
		if err := os.Symlink(dir, filepath.Join(again, filepath.Base(dir))); err != nil {
			t.Fatal(err)
		}
	}
	second := built(t, Worker, again)
	if second.Cached {
		t.Fatal("it was not put together again")
	}
	if diff := cmp.Diff(first.Files, second.Files); first.ID != second.ID || diff != "" {
		t.Errorf("%s and %s: %s", first.ID, second.ID, diff)
	}
}

// Whatever apt prints: what is taken for a part has a place and a name, each once and in order, and is found again.
func FuzzParts(f *testing.F) {
	f.Add("'http://deb.debian.org/a_1%3a2_amd64.deb' a_1%3a2_amd64.deb 12 SHA256:0f\n")
	f.Add("'x' b 1 \n'y' a 2 SHA512:00\nReading package lists...\n")
	f.Add("'unfinished a 1")
	f.Fuzz(func(t *testing.T, out string) {
		list := parts([]byte(out))
		var printed strings.Builder
		for i, p := range list {
			if p.URL == "" || p.Name == "" || strings.ContainsAny(p.Name, " \n") || i > 0 && p.Name < list[i-1].Name {
				t.Fatalf("%q gave %+v", out, list)
			}
			fmt.Fprintf(&printed, "'%s' %s 1 %s\n", p.URL, p.Name, p.Hash)
		}
		if again := parts([]byte(printed.String())); !slices.Equal(list, again) {
			t.Fatalf("%q gave %+v, which gave %+v", out, list, again)
		}
	})
}
