package integrity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
	integrity "plimsoll/internal/workloads/integrity/driver"
)

var (
	held     = regexp.MustCompile(`Stop verify because seq ([1-9]\d*) `)
	badBlock = regexp.MustCompile(` at file .* offset (\d+), length 4096 \(requested block`)
)

// TestSameLossesAsFio cuts the power of two disks of a kind, one of which is written by fio and one by us, at a moment
// drawn, and has both verify what was flushed. What each of them finds is exactly what the disk lost of it: nothing
// where flushes are honest, and where they are dropped, each block.
func TestSameLossesAsFio(t *testing.T) {
	fio := needs.CrashFio(t)
	for i := range needs.Draws(4, 200) {
		lies := i%2 == 1
		t.Run(fmt.Sprintf("cut %d, lies %t", i, lies), func(t *testing.T) { cutBoth(t, fio, uint64(i), lies) })
	}
}

func cutBoth(t *testing.T, fio string, seed uint64, lies bool) {
	d := newDrives(t, seed, lies, diskBytes, "fio", "ours")
	theirs, ours := d.disks[0], d.disks[1]
	work := t.TempDir()
	trigger := filepath.Join(work, "now")
	draw := rand.New(rand.NewPCG(seed, 2))
	// One write at a time: with more, what fio holds flushed depends on the order in which they came to the disk.
	job := []string{"--name=j", "--ioengine=psync", "--filename=" + d.path("fio"), "--size=" + fmt.Sprint(diskBytes),
		"--rw=randwrite", "--bs=4k", "--direct=1", "--fsync=" + fmt.Sprint(1+draw.IntN(32)),
		"--verify=crc32c", "--verify_fatal=0",
		"--verify_policy=fsynced", "--randseed=" + fmt.Sprint(seed+1)}
	write := exec.CommandContext(t.Context(), fio, append(job, "--verify_state_save=1", "--trigger-file="+trigger,
		"--trigger=echo off > "+d.path("power"))...)
	write.Dir = work
	var said bytes.Buffer
	write.Stdout, write.Stderr = &said, &said
	if err := write.Start(); err != nil {
		t.Fatal(err)
	}
	j := integrity.Job{Path: d.path("ours"), Device: "ours", Bytes: diskBytes, Threads: 1 + draw.IntN(4),
		BlockBytes: blockBytes, FlushBytes: blockBytes * int64(1+draw.IntN(8)), Order: integrity.Random, Passes: 1}
	worker := needs.Program(t, "./internal/workloads/integrity/driver/testdata/worker")
	var out output
	mine, err := start(t, worker, j, &out)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for enough := 50 + draw.IntN(1000); min(d.came(theirs), d.came(ours)) < enough; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("fio wrote %d blocks: %s", d.came(theirs), &said)
		}
	}
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := mine.Wait(); err == nil {
		t.Fatal("it was all written before the cut")
	}
	_ = write.Wait() // it has lost its disk
	d.mu.Lock()
	d.power(true)
	d.mu.Unlock()

	if _, err := os.Stat(filepath.Join(work, "local-j-0-verify.state")); err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	verify := exec.CommandContext(t.Context(), fio, append(job, "--verify_only=1",
		"--continue_on_error=verify", "--verify_state_load=1")...)
	verify.Dir = work
	verdict, err := verify.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if !held.Match(verdict) {
		t.Fatalf("fio held nothing to it: %s", verdict)
	}
	d.holds(t, "fio", theirs, badBlocks(verdict))

	rec, err := integrity.ReadRecord(bytes.NewReader(out.bytes()))
	if err != nil || rec.Acknowledged.Blocks == 0 {
		t.Fatalf("nothing was acknowledged: %v", err)
	}
	report, err := integrity.Verify(t.Context(), bytes.NewReader(ours.stable), diskBytes, &rec.Manifest,
		rec.Acknowledged, integrity.Options{Behind: true})
	if err != nil {
		t.Fatal(err)
	}
	found := damaged(*report)
	d.holds(t, "integrity", ours, found)
	if report.Unlisted > 0 || report.Lost != int64(len(found)) {
		t.Errorf("%d are lost, and %d are damaged", report.Lost, len(found))
	}
}

// badBlocks are those that fio's verdict names.
func badBlocks(verdict []byte) map[int64]bool {
	found := map[int64]bool{}
	for _, m := range badBlock.FindAllSubmatch(verdict, -1) {
		at, _ := strconv.ParseInt(string(m[1]), 10, 64)
		found[at/blockBytes] = true
	}
	return found
}

// damaged are the blocks that a report lists.
func damaged(r integrity.Report) map[int64]bool {
	found := map[int64]bool{}
	for _, g := range r.Damages {
		for block := g.From / blockBytes; block <= (g.To-1)/blockBytes; block++ {
			found[block] = true
		}
	}
	return found
}

// start starts a worker, in a process of its own: this one must answer it.
func start(t *testing.T, worker string, j integrity.Job, out io.Writer) (*exec.Cmd, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), worker)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), out, out
	return cmd, cmd.Start()
}

// holds sees that what was found is what the disk lost of the blocks before one of its last flushes.
func (d *drives) holds(t *testing.T, who string, k *drive, found map[int64]bool) {
	t.Helper()
	if k.lies != (len(found) > 0) {
		t.Errorf("%s finds %d lost blocks on a disk of which lies=%t", who, len(found), k.lies)
	}
	lost, here := 0, 0 // of the blocks before a flush, and those of them that were found
	for i, from := 0, 0; i < len(k.flushes); i++ {
		for _, block := range k.order[from:k.flushes[i]] {
			if !bytes.Equal(k.stable[block*blockBytes:(block+1)*blockBytes], k.meant[block]) {
				lost++
				if found[block] {
					here++
				}
			}
		}
		if from = k.flushes[i]; lost == here && here == len(found) {
			t.Logf("%s finds the %d that are lost of %d flushed blocks", who, lost, from)
			return
		}
	}
	t.Errorf("%s finds %d lost blocks; %d are lost that were flushed, of which it finds %d", who, len(found), lost, here)
}
