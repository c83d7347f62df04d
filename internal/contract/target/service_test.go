package target

import (
	"context"
	"io"
	"strings"
	"testing"
)

// printed is a host whose only file is what a command has printed.
type printed struct {
	Host
	files map[string]string
}

func (p printed) Get(_ context.Context, name string, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(p.files[name])), nil
}

// TestLastWords: the end of what was printed, however much it is, standard error first.
func TestLastWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line after line\n", 1<<16) + "the\nreal\r\n\nreason\n"
	for name, c := range map[string]struct {
		out, err, want string
	}{
		"nothing":        {"", "", ""},
		"blank lines":    {"\n\n", "", ""},
		"one line":       {"down", "", "; it says: down"},
		"the last three": {long, "", "; it says: the; real; reason"},
		"standard error": {long, "oops\n", "; it says: oops"},
	} {
		h := printed{files: map[string]string{"o": c.out, "e": c.err}}
		if got := LastWords(t.Context(), h, Command{Stdout: "o", Stderr: "e"}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
