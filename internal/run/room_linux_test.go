package run_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"plimsoll/internal/run"
	"plimsoll/internal/testkit/needs"
)

// A run whose folder has too little room for its metrics is refused before it begins, and one that has what is asked
// ends: no room is taken for what is never written.
func TestRoomOfARunFolder(t *testing.T) {
	on := func(size string) (*harness, error) {
		h := newHarness(t, short)
		h.req.Root = needs.Disk(t, size)
		_, err := run.Execute(t.Context(), h.req)
		return h, err
	}
	h, err := on("20m")
	if refused := (*run.RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(),
		h.req.Root+" has 20 MiB free, 12 MiB less than the 32 MiB that a run folder needs, ") {
		t.Errorf("%v", err)
	}
	if made, err := os.ReadDir(h.req.Root); err != nil || len(made) > 0 {
		t.Errorf("%v, %v", made, err)
	}
	if _, err := on("33m"); err != nil {
		t.Errorf("with room: %v", err)
	}
}
