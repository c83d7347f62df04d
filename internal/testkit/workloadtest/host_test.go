package workloadtest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
)

// The suite's own machine behaves as target.Host says: output is followed, a kill takes the children along.
func TestHost(t *testing.T) {
	t.Parallel()
	h := NewHost(t, 1<<20)
	p, err := h.Start(t.Context(), target.Command{Argv: []string{"/bin/sh", "-c", "echo hello; sleep 60 & wait"},
		Stdout: "out"})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for len(text) == 0 {
		if text, err = target.ReadFile(t.Context(), h, "out", 0, 100); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(p.Kill(), p.Kill()); err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if diff := cmp.Diff(target.Exit{Code: -1, Signal: "killed"}, exit); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if string(text) != "hello\n" {
		t.Errorf("read %q", text)
	}
	h.Lose()
	if _, err := target.ReadFile(t.Context(), h, "out", 0, 100); !errors.Is(err, target.ErrNotAccessible) {
		t.Errorf("a machine that is gone answers: %v", err)
	}
}
