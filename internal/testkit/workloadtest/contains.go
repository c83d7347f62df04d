package workloadtest

import (
	"strings"
	"testing"
)

func contains(t *testing.T, text string, words []string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q lacks %q", text, word)
		}
	}
}
