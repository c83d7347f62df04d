package answer

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"plimsoll/internal/kit/regular"
)

// counted counts what is read of zeros without end.
type counted struct{ n int64 }

func (c *counted) Read(p []byte) (int, error) {
	clear(p)
	c.n += int64(len(p))
	return len(p), nil
}

// An answer as large as may be is read whole; of a larger one no more is read than shows that it is.
func TestRead(t *testing.T) {
	t.Parallel()
	const most = 3 << 20
	for _, n := range []int64{0, 1, most} {
		whole := bytes.Repeat([]byte("x"), int(n))
		got, err := Read(iotest.HalfReader(bytes.NewReader(whole)), "s", most)
		if err != nil || !bytes.Equal(got, whole) {
			t.Errorf("%d bytes of %d, %v", len(got), n, err)
		}
	}
	endless := &counted{}
	got, err := Read(endless, "https://it:1", most)
	if want := "the answer of https://it:1: it is larger than 3 MiB"; got != nil || err == nil || err.Error() != want {
		t.Errorf("%d bytes, %v, want %s", len(got), err, want)
	}
	if large, ok := errors.AsType[regular.TooLarge](err); !ok || large != most || endless.n != most+1 {
		t.Errorf("%v after %d bytes", large, endless.n)
	}
	if _, err := Read(iotest.ErrReader(io.ErrUnexpectedEOF), "s", most); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
