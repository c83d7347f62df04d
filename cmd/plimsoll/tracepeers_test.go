package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/tracetest"
)

// TestTraceBesideBlkparse measures plimsoll trace beside blkparse and btt on the same file, by turns: processor time of
// each whole process, and events in a second of it. The gates are two million from binary and one million from text.
func TestTraceBesideBlkparse(t *testing.T) {
	if !*peers {
		t.Skip("measures this machine for a minute: -args -peers")
	}
	blkparse, btt := needs.Blktrace(t)
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	var requests []tracetest.Request
	for i := range 400_000 {
		at := int64(i)*100_000 + rng.Int64N(50_000)
		r := tracetest.Request{Queued: at, Issued: at + 5000, Completed: at + 5000 + rng.Int64N(400_000), PID: 100,
			Offset: rng.Uint64N(1<<24) * 8192, Bytes: 8192, Write: i%3 == 0}
		if i%4 == 3 {
			r.Offset, r.Bytes, r.Write, r.Pieces, r.PID = 1<<40+uint64(i)*4096, 16384, true, 2, 200
		}
		requests = append(requests, r)
	}
	events := tracetest.Events(requests)
	binaryFile := filepath.Join(dir, "sdb.blktrace.0")
	if err := os.WriteFile(binaryFile, tracetest.Files(requests, nil, binary.LittleEndian, 1)[0], 0o644); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text")
	measure := func(c *exec.Cmd, to string) time.Duration {
		c.Dir = dir
		var errs bytes.Buffer
		c.Stderr = &errs
		if to != "" {
			f, err := os.Create(to)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			c.Stdout = f
		}
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %v %s", c.Args, err, errs.String())
		}
		return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	trace := func(file string) time.Duration {
		c := s.command(t.Context(), "trace", file, "--json")
		c.Env = append(c.Env, "GOMAXPROCS=1")
		return measure(c, "")
	}
	measure(exec.Command(blkparse, "-i", "sdb"), text)
	var ours, ofText, parse, both time.Duration
	const rounds = 4
	peer := func() {
		p := measure(exec.Command(blkparse, "-i", "sdb", "-d", "merged", "-O"), "")
		parse += measure(exec.Command(blkparse, "-i", "sdb"), os.DevNull)
		both += p + measure(exec.Command(btt, "-i", "merged"), os.DevNull)
	}
	for i := range rounds {
		if i%2 == 0 {
			ours, ofText = ours+trace(binaryFile), ofText+trace(text)
			peer()
		} else {
			peer()
			ofText, ours = ofText+trace(text), ours+trace(binaryFile)
		}
	}
	var table strings.Builder
	row := func(what string, took time.Duration) float64 {
		rate := float64(events*rounds) / took.Seconds() / 1e6
		fmt.Fprintf(&table, "| %s | %.2f s | %.2f | %.2f |\n", what, took.Seconds()/rounds, rate,
			took.Seconds()/ours.Seconds())
		return rate
	}
	fmt.Fprintf(&table, "%d events, %d rounds by turns\n| what | processor time | million events/s | against ours |\n",
		events, rounds)
	fast := row("plimsoll trace, binary", ours)
	slower := row("plimsoll trace, text", ofText)
	row("blkparse -d, then btt", both)
	row("blkparse, as text", parse)
	t.Log("\n" + table.String())
	if fast < 2 || slower < 1 {
		t.Errorf("%.2f and %.2f million events/s, want 2 from binary and 1 from text", fast, slower)
	}
}
