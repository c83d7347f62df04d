package integrity_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"plimsoll/internal/storage/direct"
	integrity "plimsoll/internal/workloads/integrity/driver"
)

// A file is written, one of its blocks is put back to zeros underneath, and found.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ledger, err := integrity.Create(filepath.Join(dir, "kept elsewhere"), integrity.Manifest{Bytes: 8 << 20,
		BlockBytes: 4096, Passes: 1, Order: integrity.Sequential, FlushBytes: 1 << 20}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ledger.Close()
	f, err := direct.Create(filepath.Join(dir, "tested"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	if err := integrity.Write(context.Background(), f, ledger, integrity.Options{Now: time.Now}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := f.WriteAt(direct.Buffer(4096), 40960); err != nil {
		fmt.Println(err)
		return
	}

	m, acknowledged, err := integrity.Read(ledger.Name)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := integrity.Verify(context.Background(), f, 8<<20, m, acknowledged, integrity.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Intact, "of", r.Blocks, "blocks are intact")
	for _, d := range r.Damages {
		fmt.Println(d.Kind, "from byte", d.From, "to", d.To)
	}
	// Output:
	// 2047 of 2048 blocks are intact
	// zeroed from byte 40960 to 45056
}
