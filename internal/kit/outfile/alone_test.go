package outfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAlone: of twenty that each add one to a number in a file, none is lost; who waits too long is told so.
func TestAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	name := filepath.Join(dir, "number")
	add := func() error {
		data, _ := os.ReadFile(name)
		n, _ := strconv.Atoi(string(data))
		time.Sleep(time.Millisecond) // what others would come between
		return os.WriteFile(name, []byte(strconv.Itoa(n+1)), 0o600)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := Alone(t.Context(), dir, func() {}, add); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if data, err := os.ReadFile(name); string(data) != "20" {
		t.Errorf("%q, %v", data, err)
	}
	tired, told := errors.New("tired"), 0
	err := Alone(t.Context(), dir, func() {}, func() error {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, tired)
		defer cancel()
		return Alone(ctx, dir, func() { told++ }, add)
	})
	if !errors.Is(err, tired) || !strings.Contains(err.Error(), dir) || told != 1 {
		t.Error(err, told)
	}
}
