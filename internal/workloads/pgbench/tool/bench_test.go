package pgbench

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRead measures what a transaction of the log costs the machine of the load, besides pgbench's writing it.
func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "%d %d %d 0 1795389831 %d\n", i%8, i/8, 200+i%777, i*100)
	}
	c := newCounter(Job{Threads: 1, Log: true})
	b.SetBytes(10_000) // so that MB/s are millions of transactions a second
	for b.Loop() {
		c.read(0, strings.NewReader(text.String()))
	}
	if c.bad > 0 {
		b.Error(c.badLine)
	}
}
