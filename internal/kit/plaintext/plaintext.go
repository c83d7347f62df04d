// Package plaintext makes UTF-8 of texts that others gave us, whatever they are written in: UTF-16 as PowerShell's >
// makes it, with its mark or without one, UTF-8 with a mark, the one-byte text of Windows programs, and text that was
// begun in the one and goes on in the other. What is no text stays as it is: whoever reads it says so better.
package plaintext

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
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
	if mixed(head) {
		return Mixed
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
	switch e {
	case Marked, Little, Big, Mixed:
		return transform.NewReader(r, &shifting{wide: e == Little || e == Big, big: e == Big})
	case Windows:
		return charmap.Windows1252.NewDecoder().Reader(r)
	}
	return r
}

// ahead is how much of a text in UTF-16 is bytes of ASCII when it goes on in UTF-8: of other scripts' text, so much
// happens to be that in none.
const ahead = 32

// shifting makes UTF-8 of text that was begun in UTF-16 or UTF-8 and may go on in the other, as often as one was
// appended to the other. UTF-16 without a mark that follows UTF-8 is read as far as it is ASCII.
type shifting struct{ wide, big bool }

// Reset implements transform.Transformer.
func (s *shifting) Reset() {}

// Transform implements transform.Transformer.
func (s *shifting) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		rest := src[nSrc:]
		switch {
		case len(rest) < ahead && !atEOF:
			return nDst, nSrc, transform.ErrShortSrc
		case nDst+utf8.UTFMax > len(dst):
			return nDst, nSrc, transform.ErrShortDst
		}
		if s.wide && (bytes.HasPrefix(rest, utf8Mark) || narrow(rest[:min(len(rest), ahead)])) {
			s.wide = false
		}
		if n := len(rest); s.wide && n > 1 {
			one, size := s.unit(rest), 2
			if utf16.IsSurrogate(one) && n > 3 {
				if both := utf16.DecodeRune(one, s.unit(rest[2:])); both != utf8.RuneError {
					one, size = both, 4
				}
			}
			switch nSrc += size; one {
			case '\ufeff':
			case '\ufffe': // a mark of the other order
				s.big = !s.big
			default:
				nDst += utf8.EncodeRune(dst[nDst:], one)
			}
			continue
		}
		switch {
		case bytes.HasPrefix(rest, []byte{0xff, 0xfe}), bytes.HasPrefix(rest, []byte{0xfe, 0xff}):
			s.wide, s.big = true, rest[0] == 0xfe
			nSrc += 2
		case bytes.HasPrefix(rest, utf8Mark):
			nSrc += len(utf8Mark)
		case rest[0] == 0:
			nSrc++
		default:
			dst[nDst] = rest[0]
			nDst, nSrc = nDst+1, nSrc+1
		}
	}
	return nDst, nSrc, nil
}

var utf8Mark = []byte{0xef, 0xbb, 0xbf}

// unit is the first unit of a text in UTF-16.
func (s *shifting) unit(b []byte) rune {
	if s.big {
		return rune(binary.BigEndian.Uint16(b))
	}
	return rune(binary.LittleEndian.Uint16(b))
}

// narrow reports whether bytes are ASCII of a text.
func narrow(b []byte) bool {
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// mixed reports whether a text begins in UTF-8 and goes on in UTF-16.
func mixed(head []byte) bool {
	const least = 8 // of what tells it
	z := bytes.IndexByte(head, 0)
	if z < least || z+4 >= len(head) {
		return false
	}
	before := bytes.TrimSuffix(head[:z-1], []byte{0xff, 0xfe})
	control := func(r rune) bool { return r < ' ' && !narrow([]byte{byte(r)}) }
	if !utf8.Valid(before) || bytes.ContainsFunc(before, control) {
		return false
	}
	return head[z+1] != 0 && head[z+2] == 0 && head[z+3] != 0 && head[z+4] == 0
}
