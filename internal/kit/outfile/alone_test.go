package outfile

import (
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
			if err := Alone(dir, time.Minute, add); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if data, err := os.ReadFile(name); string(data) != "20" {
		t.Errorf("%q, %v", data, err)
	}
	err := Alone(dir, time.Minute, func() error { return Alone(dir, 20*time.Millisecond, add) })
	if err == nil || !strings.Contains(err.Error(), "another process has been changing what is there for 20ms") {
		t.Error(err)
	}
}
