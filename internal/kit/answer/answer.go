// Package answer reads what servers answer. Whoever is asked may send anything, and without end: nothing reads more of
// it than it takes.
package answer

import (
	"fmt"
	"io"

	"plimsoll/internal/kit/regular"
)

// Read reads an answer to its end. One of more than so many bytes is refused with the server's name and a
// regular.TooLarge, whatever it says of its length, after no more than that was read.
func Read(body io.Reader, server string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("the answer of %s: %w", server, regular.TooLarge(most))
	}
	return data, err
}
