package plaintext_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"plimsoll/internal/kit/plaintext"
)

// wide is a text in UTF-16.
func wide(text string, big bool) string {
	var b bytes.Buffer
	for _, u := range utf16.Encode([]rune(text)) {
		low, high := byte(u), byte(u>>8)
		if big {
			low, high = high, low
		}
		b.Write([]byte{low, high})
	}
	return b.String()
}

// TestEncodings states of each text what it is taken for, and that it comes out as UTF-8 in whatever pieces it comes.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const text = "Größe,µs\r\n1,2.5\r\n"
	long := strings.Repeat("1,2,3,4\n", 20_000)
	for name, c := range map[string]struct {
		given string
		want  plaintext.Encoding
		out   string
	}{
		"plain":                      {text, plaintext.Plain, text},
		"nothing":                    {"", plaintext.Plain, ""},
		"UTF-8 with a mark":          {"\ufeff" + text, plaintext.Marked, text},
		"two texts with marks":       {"\ufeff" + text + "\ufeff" + text, plaintext.Marked, text + text},
		"little endian":              {"\xff\xfe" + wide(text, false), plaintext.Little, text},
		"two of them":                {strings.Repeat("\xff\xfe"+wide(text, false), 2), plaintext.Little, text + text},
		"little endian without mark": {wide(text, false), plaintext.Little, text},
		"big endian":                 {"\xfe\xff" + wide(text, true), plaintext.Big, text},
		"big endian without mark":    {wide(text, true), plaintext.Big, text},
		"of a Windows program":       {"Gr\xf6\xdfe,\xb5s\r\n", plaintext.Windows, "Größe,µs\r\n"},
		"begun in UTF-8":             {long + wide("5,6\n", false), plaintext.Mixed, long + "5,6\n"},
		"begun in UTF-8, and marked": {"read 1\nµs 2, which is ascii but for one\n\xff\xfe" + wide(text, false),
			plaintext.Mixed,
			"read 1\nµs 2, which is ascii but for one\n" + text},
		"a prompt before it": {"$ fio a\n\xff\xfe" + wide(text, false), plaintext.Mixed, "$ fio a\n" + text},
		"goes on in UTF-8":   {"\xff\xfe" + wide(text, false) + long + text, plaintext.Little, text + long + text},
		"goes on in UTF-8, and back": {"\xfe\xff" + wide(text, true) + long + "\xff\xfe" + wide(text, false),
			plaintext.Big, text + long + text},
		"goes on in UTF-8 with a mark": {wide(text, false) + "\ufeff" + text, plaintext.Little, text + text},
		"a mark, and UTF-16": {"\ufeff" + long + "\xff\xfe" + wide(text, false), plaintext.Marked,
			long + text},
		"little endian of China": {"\xff\xfe" + wide(strings.Repeat("结果与延迟中上下丮", 40)+"😀", false), plaintext.Little,
			strings.Repeat("结果与延迟中上下丮", 40) + "😀"},
		"bytes that are no text": {"\x00\x01\x02\xff\xfe\x00\x00\x07", plaintext.Plain,
			"\x00\x01\x02\xff\xfe\x00\x00\x07"},
		"a character that is cut off": {"1,2\nx\xc3", plaintext.Plain, "1,2\nx\xc3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := plaintext.Look(iotest.OneByteReader(strings.NewReader(c.given)))
			if err != nil || got != c.want {
				t.Errorf("it is %q, %v; want %q", got, err, c.want)
			}
			out, err := io.ReadAll(plaintext.Decode(iotest.HalfReader(strings.NewReader(c.given)), got))
			if err != nil || string(out) != c.out {
				t.Errorf("%.80q, %v; want %.80q", out, err, c.out)
			}
		})
	}
	if got := string(plaintext.Bytes([]byte("\xff\xfe" + wide(text, false)))); got != text {
		t.Errorf("Bytes: %q", got)
	}
}
