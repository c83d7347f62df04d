package integrity_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"plimsoll/internal/testkit/needs"
	integrity "plimsoll/internal/workloads/integrity/driver"
)

// trial is one cut: four disks of a guest, of which fio writes the even and we the odd. The last two drop flushes from
// a moment on.
type trial struct {
	v     *victim
	first int // the number of its first disk
	fsync int // fio's writes between two flushes
	seed  int // of fio's order
	kept  [4]map[int64]bool
	state [2][]byte // what fio says to verify
	ours  [2]*output
}

func (w *trial) device(i int) string { return "/dev/sd" + string(rune('b'+w.first+i)) }

// job is what fio is asked of a disk or a file.
func (w *trial) job(name string) []string {
	return []string{"--name=j", "--ioengine=psync", "--filename=" + name, fmt.Sprint("--size=", diskBytes),
		"--rw=randwrite", "--bs=4k", "--verify=crc32c", "--verify_fatal=0", "--verify_policy=fsynced",
		fmt.Sprint("--randseed=", w.seed)}
}

// TestSameLossesAsFioInGuests cuts the power of a guest in which fio and we write to disks, some of which drop flushes
// from a moment on, and has both verify after the next boot what was flushed. What is lost is read from the images:
// what the emulator never noted down is read as zeros, and both write each block once, none of zeros. The order in
// which they wrote comes of writing again, elsewhere.
func TestSameLossesAsFioInGuests(t *testing.T) {
	needs.Long(t, "boots of an emulated guest, one more than cuts")
	fio, err := exec.LookPath(needs.CrashFio(t))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(fio)
	if err != nil {
		t.Fatal(err)
	}
	cuts, seed := 2, rand.Uint64()
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_CUTS")); err == nil {
		cuts = n
	}
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	v := newVictim(t, built(t), 8)
	var last *trial
	var lost [4]int
	for i := range cuts + 1 {
		w := &trial{v: v, first: i % 2 * 4, fsync: 1 + draw.IntN(32), seed: 1 + draw.IntN(1<<30)}
		for k := range w.kept {
			v.empty(t, w.first+k)
		}
		c := v.boot(t)
		v.put(t, c, "fio", program)
		if last != nil {
			for k, n := range last.verify(t, c, fio) {
				lost[k] += n
			}
		}
		if last = w; i < cuts {
			w.write(t, c, draw)
		}
		if err := v.machine.Kill(); err != nil { // the power is cut
			t.Fatal(err)
		}
		c.Close()
		for k := range w.kept {
			w.kept[k] = v.blocks(t, w.first+k)
		}
	}
	t.Logf("%d cuts: lost by honest disks fio %d, integrity %d; by disks that lie fio %d, integrity %d", cuts, lost[0],
		lost[1], lost[2], lost[3])
}

// blocks gives which blocks of a disk are not zeros.
func (v *victim) blocks(t *testing.T, disk int) map[int64]bool {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw")
	convert := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "qcow2", "-O", "raw", v.disks[disk], raw)
	if out, err := convert.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(raw)
	if err == nil {
		err = os.Remove(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	kept, zeros := map[int64]bool{}, make([]byte, blockBytes)
	for i := int64(0); i < diskBytes/blockBytes; i++ {
		if !bytes.Equal(data[i*blockBytes:(i+1)*blockBytes], zeros) {
			kept[i] = true
		}
	}
	return kept
}

// write has all four disks written until the moment of the cut, which is drawn.
func (w *trial) write(t *testing.T, c *ssh.Client, draw *rand.Rand) {
	t.Helper()
	var writing sync.WaitGroup
	t.Cleanup(writing.Wait)
	begin := func(command string, out *output) {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		s.Stdout, s.Stderr = out, out
		writing.Go(func() { _ = s.Run(command) }) // it ends with the guest's power
	}
	for k := range w.ours {
		dir := fmt.Sprint("/tmp/write", k)
		begin(fmt.Sprintf("mkdir %[1]s && cd %[1]s && /tmp/fio %[2]s --direct=1 --fsync=%[3]d --verify_state_save=1 "+
			"--trigger-file=now --trigger='touch saved'", dir, strings.Join(w.job(w.device(2*k)), " "), w.fsync),
			new(output))
		text, err := json.Marshal(integrity.Job{Path: w.device(2*k + 1), Device: "ours", Bytes: diskBytes,
			Threads: 1 + draw.IntN(4), BlockBytes: blockBytes, FlushBytes: blockBytes * int64(1+draw.IntN(8)),
			Order: integrity.Random, Passes: 1})
		if err != nil {
			t.Fatal(err)
		}
		w.v.put(t, c, fmt.Sprint("job", k), text)
		w.ours[k] = new(output)
		begin(fmt.Sprintf("cd /tmp && ./worker < job%d", k), w.ours[k])
	}
	come := func(writes int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for k := range w.kept {
			stat := "cat /sys/block/" + filepath.Base(w.device(k)) + "/stat"
			for done := 0; done < writes; {
				if ctx.Err() != nil {
					t.Fatalf("%s: %d of %d writes", w.device(k), done, writes)
				}
				done, _ = strconv.Atoi(strings.Fields(string(run(t, c, nil, stat)))[4])
			}
		}
	}
	honest := 20 + draw.IntN(300)
	come(honest)
	for k := 2; k < 4; k++ {
		run(t, c, nil, "echo write through > /sys/block/"+filepath.Base(w.device(k))+"/queue/write_cache")
	}
	come(honest + 100 + draw.IntN(500))
	for k := range w.state {
		dir := fmt.Sprint("/tmp/write", k)
		w.state[k] = run(t, c, nil, "cd "+dir+" && touch now && i=0 && while ! [ -e saved ] && [ $i -lt 300 ]; do "+
			"sleep 0.1; i=$((i+1)); done; cat local-j-0-verify.state")
	}
}

// verify gives how many blocks were found to be lost of each disk: as many as are, and the very ones.
func (w *trial) verify(t *testing.T, c *ssh.Client, fio string) (lost [4]int) {
	t.Helper()
	order := w.fioOrder(t, fio)
	for k := range w.state {
		w.v.put(t, c, "local-j-0-verify.state", w.state[k])
		verdict := run(t, c, nil, "cd /tmp && ./fio "+strings.Join(w.job(w.device(2*k)), " ")+
			" --direct=1 --verify_only=1 --continue_on_error=verify --verify_state_load=1 2>&1; true")
		m := held.FindSubmatch(verdict)
		if m == nil {
			t.Fatalf("fio held nothing to it: %s", verdict)
		}
		n, _ := strconv.Atoi(string(m[1]))
		bad := badBlocks(verdict)
		lost[2*k] = w.holds(t, "fio", 2*k, order[:n], int64(len(bad)), bad)

		rec, err := integrity.ReadRecord(bytes.NewReader(w.ours[k].bytes()))
		if err != nil || rec.Acknowledged.Blocks == 0 {
			t.Fatalf("nothing was acknowledged: %v", err)
		}
		data, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		w.v.put(t, c, "record", data)
		var out output
		w.v.work(t.Context(), t, c, integrity.Job{Path: w.device(2*k + 1), Device: "ours", Threads: 2,
			WrittenBy: "the write", Record: "record"}, "", &out)
		var report integrity.Report
		said := false
		for line := range bytes.SplitSeq(out.bytes(), []byte("\n")) {
			if r, ok := integrity.Verified(line); ok {
				report, said = r, true
			}
		}
		named := damaged(report) // all, where the list of the worker is not full
		if !said || report.Unlisted == 0 && report.Lost != int64(len(named)) {
			t.Errorf("said %t: %d are lost, and %d are damaged", said, report.Lost, len(named))
		}
		lost[2*k+1] = w.holds(t, "integrity", 2*k+1, ourOrder(t, rec), report.Lost, named)
	}
	return lost
}

// holds sees that as many are said to be lost as the image lost of the blocks that were flushed, and that those
// that are named are.
func (w *trial) holds(t *testing.T, who string, disk int, flushed []int64, said int64, named map[int64]bool) int {
	t.Helper()
	lies, lost, right := disk >= 2, 0, 0
	for _, block := range flushed {
		if !w.kept[disk][block] {
			if lost++; named[block] {
				right++
			}
		}
	}
	if said != int64(lost) || right != len(named) || lies != (lost > 0) {
		t.Errorf("%s, lies %t: says %d and names %d, of which %d are lost; %d of %d flushed blocks are", who, lies, said,
			len(named), right, lost, len(flushed))
	}
	t.Logf("%s, lies %t: finds the %d that are lost of %d flushed blocks, names %d", who, lies, lost, len(flushed),
		len(named))
	return lost
}

// fioOrder gives the blocks in the order in which fio writes them.
func (w *trial) fioOrder(t *testing.T, fio string) (order []int64) {
	t.Helper()
	dir := t.TempDir()
	disk, log := filepath.Join(dir, "disk"), filepath.Join(dir, "log")
	cmd := exec.CommandContext(t.Context(), fio, append(w.job(disk), "--do_verify=0", "--write_iolog="+log)...)
	cmd.Dir = dir // it saves what it wrote there
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(log)
	if err == nil {
		err = os.Remove(disk)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m) write (\d+) 4096$`).FindAllSubmatch(data, -1) {
		at, _ := strconv.ParseInt(string(m[1]), 10, 64)
		order = append(order, at/blockBytes)
	}
	return order
}

// places is a storage that notes down where is written, and refuses more than so many writes.
type places struct {
	most  int64
	order []int64
}

var errEnough = errors.New("enough")

func (p *places) WriteAt(b []byte, at int64) (int, error) {
	if int64(len(p.order)) == p.most {
		return 0, errEnough
	}
	p.order = append(p.order, at/blockBytes)
	return len(b), nil
}

func (p *places) Sync() error { return nil }

// ourOrder gives the blocks that a write had acknowledged.
func ourOrder(t *testing.T, rec *integrity.Record) []int64 {
	t.Helper()
	l, err := integrity.Create(t.TempDir(), rec.Manifest, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Manifest = rec.Manifest
	l.Manifest.FlushBytes = diskBytes
	p := &places{most: rec.Acknowledged.Blocks}
	err = integrity.Write(t.Context(), p, l, integrity.Options{Workers: 1, Now: time.Now})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	return p.order
}
