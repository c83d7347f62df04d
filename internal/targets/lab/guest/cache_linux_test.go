package guest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
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
