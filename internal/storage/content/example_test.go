package content_test

import (
	"bytes"
	"context"
	"fmt"

	"plimsoll/internal/storage/content"
)

// Blocks of which half compresses away are made anywhere, and looked at as if they had been read back.
func Example() {
	g, err := content.New(content.Options{Seed: 1, CompressibilityPercent: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	block := make([]byte, 1<<20)
	g.Fill(block, 5<<30) // what belongs to the file's bytes from 5 GiB on

	r, err := content.Check(context.Background(), bytes.NewReader(block), 1<<20, content.CheckOptions{
		DedupeBlockBytes: []int{4096}, ChunkBytes: []int{32 << 10}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("blocks that repeat:", r.Duplicates[0].Share)
	for _, c := range r.Compression {
		fmt.Printf("%s saves %.0f %%\n", c.Codec, 100*c.Share)
	}
	// Output:
	// blocks that repeat: 0
	// lz4 saves 50 %
	// zstd 1 saves 50 %
}
