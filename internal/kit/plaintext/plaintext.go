// Package plaintext makes UTF-8 of texts that others gave us, whatever they are written in: UTF-16 as PowerShell's >
// makes it, with its mark or without one, UTF-8 with a mark, the one-byte text of Windows programs, and text that was
// begun in the one and goes on in the other. What is no text stays as it is: whoever reads it says so better.
package plaintext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Encoding tells what a text is written in, as people call it; "" is UTF-8 and anything that is no text.
type Encoding string

// The encodings that are told apart.
const (
	Plain   Encoding = ""
	Marked  Encoding = "UTF-8 with a byte order mark"
	Little  Encoding = "UTF-16, little endian"
	Big     Encoding = "UTF-16, big endian"
	Windows Encoding = "Windows-1252"
	Mixed   Encoding = "UTF-8 that goes on in UTF-16"
)

// sniffed is how much of a text tells its encoding.
const sniffed = 64 << 10

// Of tells the encoding of a text by its beginning.
func Of(head []byte) Encoding {
	head = head[:min(len(head), sniffed)]
	switch {
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		return Marked
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return Little
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return Big
	}
	var zeros [2]int
	control := false
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
		control = control || c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b
	}
	const most = 0.4 // of the characters are ASCII, in a text of a tool
	switch pairs := float64(len(head) / 2); {
	case pairs >= 4 && zeros[0] == 0 && float64(zeros[1]) >= most*pairs:
		return Little
	case pairs >= 4 && zeros[1] == 0 && float64(zeros[0]) >= most*pairs:
		return Big
	case !control && !valid(head):
		return Windows
	}
	return Plain
}

// valid reports whether a text is UTF-8; its last character may be cut.
func valid(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(head)
		}
		head = head[n:]
	}
	return true
}

// Look tells the encoding of all of a text, which it reads to its end.
func Look(r io.Reader) (Encoding, error) {
	b := bufio.NewReaderSize(r, sniffed)
	head, err := b.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return Plain, err
	}
	if e := Of(head); e != Plain || bytes.IndexByte(head, 0) >= 0 {
		return e, nil
	}
	buf := make([]byte, sniffed)
	for {
		n, err := b.Read(buf)
		if bytes.IndexByte(buf[:n], 0) >= 0 {
			return Mixed, nil
		}
		if errors.Is(err, io.EOF) {
			return Plain, nil
		}
		if err != nil {
			return Plain, err
		}
	}
}

// Reader is a text as UTF-8, by its beginning.
func Reader(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, sniffed)
	head, _ := b.Peek(sniffed) // what stands in the way of reading comes again
	return Decode(b, Of(head))
}

// Bytes is a text as UTF-8. What is not marked as another encoding, nor looks like UTF-16, stays as it is.
func Bytes(text []byte) []byte {
	e := Of(text)
	if e == Plain || e == Windows {
		return text
	}
	out, err := io.ReadAll(Decode(bytes.NewReader(text), e))
	if err != nil {
		return text
	}
	return out
}

// Decode is a text of an encoding as UTF-8. Marks within it, of texts appended to one another, are left out.
func Decode(r io.Reader, e Encoding) io.Reader {
	unmarked := runes.Remove(runes.Predicate(func(r rune) bool { return r == '\ufeff' }))
	switch e {
	case Marked:
		return transform.NewReader(r, unmarked)
	case Little, Big:
		order := unicode.LittleEndian
		if e == Big {
			order = unicode.BigEndian
		}
		decoder := unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder()
		return transform.NewReader(r, transform.Chain(decoder, unmarked))
	case Windows:
		return charmap.Windows1252.NewDecoder().Reader(r)
	case Mixed:
		return transform.NewReader(r, runes.Remove(runes.Predicate(func(r rune) bool { return r == 0 })))
	}
	return r
}
