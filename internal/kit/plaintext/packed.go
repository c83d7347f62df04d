package plaintext

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Packed reports whether a file that begins so is packed with gzip or zstd.
func Packed(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) || bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// Unpack returns what a file holds that is packed with gzip or zstd, or may be; done frees what that takes.
func Unpack(in *bufio.Reader) (out io.Reader, done func(), err error) {
	head, _ := in.Peek(4) // what stands in the way of reading comes again
	switch {
	case !Packed(head):
		return in, func() {}, nil
	case head[0] == 0x1f:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return z, func() {}, nil
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return nil, nil, fmt.Errorf("zstd: %w", err)
	}
	return z, z.Close, nil
}
