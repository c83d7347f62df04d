package nearest_test

import (
	"fmt"
	"testing"

	"plimsoll/internal/kit/nearest"
)

func ExampleOf() {
	fmt.Println(nearest.Of("contenton", []string{"seed", "contention", "cores"}))
	// Output: contention
}

func TestOf(t *testing.T) {
	names := []string{"time-scale", "size-scale", "nodes", "set", "set-file"}
	for word, want := range map[string]string{"time-scle": "time-scale", "node": "nodes", "setfile": "set-file",
		"nothing-like-it": "", "": ""} {
		if got := nearest.Of(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
