package fio

import (
	"strings"
	"testing"

	"plimsoll/internal/contract/workload"
)

// The words are fio's own.
func TestHints(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"fio: engine libpmem not loadable": "lacks this ioengine",
		"fio: failed to load engine":       "lacks this ioengine",
		"job a ended with error 25; fio: pid=2, err=25/file:ioengines.c:399, func=td_io_queue, error=Inappropriate " +
			"ioctl for device": "disks here are files",
		"fio: pid=2, err=28/file:ioengines.c:399, func=td_io_queue, error=No space left on device": "the file system is full",
		"fio: pid=2, err=5/file:ioengines.c:399, func=td_io_queue, error=Input/output error":       "",
	} {
		if got := hint(message); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: hint %q, want %q", message, got, want)
		}
	}
}

// fio speaks of our sections, its reader of his.
func TestAuthorsNames(t *testing.T) {
	t.Parallel()
	w := newParser(nil, workload.Declared{Format: []byte(`["data read","section-1"]`)}).words
	w.Add([]byte("section-1: (g=0)\njob section-2, section-3 and section-02 of presection-1\n"))
	want := "data read: (g=0)\njob section-1, section-3 and section-02 of presection-1"
	if got := w.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
