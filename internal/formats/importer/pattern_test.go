package importer

import (
	"testing"

	"plimsoll/internal/kit/lazyregexp"
)

func TestPatternsCompile(t *testing.T) {
	if n := lazyregexp.All(); n < 80 {
		t.Errorf("%d expressions compiled: where are the others?", n)
	}
}
