package read_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"plimsoll/internal/storage/trace"
	"plimsoll/internal/storage/trace/read"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/tracetest"
)

// blkparseText returns what blkparse prints of requests, made here so that no tool is needed.
func blkparseText(requests []tracetest.Request) []byte {
	var b bytes.Buffer
	n := 0
	write := func(at int64, pid uint32, action string, r tracetest.Request, what string) {
		n++
		op := "R"
		if r.Write {
			op = "W"
		}
		if r.Sync {
			op += "S"
		}
		fmt.Fprintf(&b, "  8,16   1 %8d %5d.%09d %5d  %s %3s %d + %d [%s]\n", n, at/1e9, at%1e9, pid, action, op,
			r.Offset/512, r.Bytes/512, what)
	}
	for _, r := range requests {
		for _, a := range []struct {
			at     int64
			action string
		}{{r.Queued, "Q"}, {r.Queued, "G"}, {r.Issued, "I"}, {r.Issued, "D"}} {
			write(a.at, r.PID, a.action, r, "postgres")
		}
		write(r.Completed, 0, "C", r, "0")
	}
	return b.Bytes()
}

// BenchmarkBinary is the gate of two million events a second: reading and the whole analysis, on one core.
func BenchmarkBinary(b *testing.B) {
	file := tracetest.Files(load(200_000, 1), nil, binary.LittleEndian, 1)[0]
	rate(b, file)
}

// BenchmarkText is the gate of one million events a second.
func BenchmarkText(b *testing.B) { rate(b, blkparseText(load(200_000, 1))) }

func rate(b *testing.B, file []byte) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.SetBytes(int64(len(file)))
	events := uint64(0)
	for b.Loop() {
		r := analyse(b, []read.Input{{Name: "f", From: bytes.NewReader(file)}}, "", trace.Options{})
		events += r.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// TestMemory: what is kept does not grow with the trace.
func TestMemory(t *testing.T) {
	needs.Time(t)
	if needs.Race {
		t.Skip("the race detector keeps memory of its own, and is ten times slower")
	}
	heap := func(events int) (bytes uint64) {
		opened, err := read.Open([]read.Input{{Name: "f", From: newEndless(events)}}, "")
		if err != nil {
			t.Fatal(err)
		}
		a := trace.NewAnalyzer(trace.Options{}, opened.Names, opened.Problems)
		buf := make([]trace.Event, 4096)
		for {
			n, err := opened.Next(buf)
			a.Add(buf[:n])
			if errors.Is(err, io.EOF) {
				break
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if r := a.Result(); r.Events != uint64(events) {
			t.Errorf("%d events, want %d", r.Events, events)
		}
		return m.HeapAlloc
	}
	short, long := heap(1_000_000), heap(10_000_000)
	t.Logf("heap after 1 million events %d KiB, after 10 million %d KiB", short>>10, long>>10)
	if long > short+short/10 {
		t.Errorf("after ten times the events %d bytes are kept, after one %d", long, short)
	}
}
