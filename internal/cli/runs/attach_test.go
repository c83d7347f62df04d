package runs

import (
	"context"
	"strings"
	"testing"
	"time"
)

// endless is a file that grows faster than it is shown.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = "0123456789\n"[i%11]
	}
	return len(b), nil
}

// TestLeaveWhatNeverEnds: whoever attaches can leave, however much comes.
func TestLeaveWhatNeverEnds(t *testing.T) {
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	left := make(chan error, 1)
	go func() { left <- tail(ctx, endless{}, func() bool { return true }, func([]byte) {}) }()
	select {
	case err := <-left:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}

// TestTail: all lines of what has ended are shown, the last also where it was cut off.
func TestTail(t *testing.T) {
	var got []string
	err := tail(t.Context(), strings.NewReader("one\ntwo\nthr"), func() bool { return false },
		func(line []byte) { got = append(got, string(line)) })
	if text := strings.Join(got, "|"); err != nil || text != "one\n|two\n|thr" {
		t.Errorf("%q, %v", text, err)
	}
}
