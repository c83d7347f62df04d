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
	fsync int // fio's writes between two flushes
	seed  int // of fio's order
	kept  [4]map[int64]bool
	state [2][]byte // what fio says to verify
	ours  [2]*output
	fios  [2]*output
}

func (w *trial) device(i int) string { return "/dev/sd" + string(rune('b'+i)) }

// job gives fio's options for a disk or a file.
func (w *trial) job(name string) []string {
	return []string{"--name=j", "--ioengine=psync", "--filename=" + name, fmt.Sprint("--size=", diskBytes),
		"--rw=randwrite", "--bs=4k", "--verify=crc32c", "--verify_fatal=0", "--verify_policy=fsynced",
		fmt.Sprint("--randseed=", w.seed)}
}

// TestSameLossesAsFioInGuests cuts the power of a guest in which fio and we write to disks, some of which drop flushes
// from a moment on, and has both verify what the images hold then of what was flushed. What is lost is read from the
// images too: what the emulator never noted down is read as zeros, and both write each block once, none of zeros. The
// order in which they wrote comes of writing again, elsewhere. TestPowerCut has the guest that boots again verify.
func TestSameLossesAsFioInGuests(t *testing.T) {
	needs.Long(t, "a boot of an emulated guest for each cut")
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
	v := newVictim(t, built(t), 4)
	var lost, agreed [4]int
	for i := range cuts {
		w := &trial{v: v, fsync: 1 + draw.IntN(32), seed: 1 + draw.IntN(1<<30)}
		begun := time.Now()
		for k := range v.disks {
			v.empty(t, k)
		}
		c := v.boot(t)
		v.put(t, c, "fio", program)
		w.write(t, c, draw)
		if err := v.machine.Kill(); err != nil { // the power is cut
			t.Fatal(err)
		}
		c.Close()
		w.verify(t, fio, &lost, &agreed)
		t.Logf("cut %d of %d took %v: honest disks: fio agrees with the image in %d and finds %d lost, integrity %d and %d; "+
			"disks that lie: fio %d and %d, integrity %d and %d", i+1, cuts, time.Since(begun).Round(time.Second),
			agreed[0], lost[0], agreed[1], lost[1], agreed[2], lost[2], agreed[3], lost[3])
	}
}

// raw gives a file of what a disk holds.
func (v *victim) raw(t *testing.T, disk int) string {
	t.Helper()
	raw := fmt.Sprint(v.disks[disk], ".raw")
	convert := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "qcow2", "-O", "raw", v.disks[disk], raw)
	if out, err := convert.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return raw
}

// blocks gives which blocks of a disk are not zeros.
func blocks(data []byte) map[int64]bool {
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
	t.Cleanup(func() {
		c.Close()
		writing.Wait()
	})
	begin := func(command string, out *output) {
		s := session(t, c, command, nil, out)
		writing.Go(func() { // it ends with the guest's power
			if died := (*ssh.ExitError)(nil); errors.As(s.Wait(), &died) {
				fmt.Fprint(out, died)
			}
		})
	}
	for k := range w.ours {
		dir := fmt.Sprint("/tmp/write", k)
		w.fios[k] = new(output)
		begin(fmt.Sprintf("mkdir -p %[1]s && cd %[1]s && /tmp/fio %[2]s --direct=1 --fsync=%[3]d --verify_state_save=1 "+
			"--trigger-file=now --trigger='touch saved'", dir, strings.Join(w.job(w.device(2*k)), " "), w.fsync),
			w.fios[k])
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
					t.Fatalf("%s: %d of %d writes; fio: %s, %s", w.device(k), done, writes, w.fios[0].bytes(),
						w.fios[1].bytes())
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

// verify adds to what was found to be lost of each disk, and to the disks of which that is what the image lost.
func (w *trial) verify(t *testing.T, fio string, lost, agreed *[4]int) {
	t.Helper()
	order := w.fioOrder(t, fio)
	for disk := range w.kept {
		raw := w.v.raw(t, disk)
		data, err := os.ReadFile(raw)
		if err != nil {
			t.Fatal(err)
		}
		w.kept[disk] = blocks(data)
		n, same := 0, false
		if disk%2 == 0 {
			n, same = w.verifyFio(t, fio, disk, raw, order)
		} else {
			n, same = w.verifyOurs(t, disk, data)
		}
		if lost[disk] += n; same {
			agreed[disk]++
		}
		if err := os.Remove(raw); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *trial) verifyFio(t *testing.T, fio string, disk int, raw string, order []int64) (lost int, same bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "local-j-0-verify.state"), w.state[disk/2], 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), fio, append(w.job(raw), "--verify_only=1",
		"--continue_on_error=verify", "--verify_state_load=1")...)
	cmd.Dir = dir
	verdict, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	m := held.FindSubmatch(verdict)
	if m == nil {
		t.Fatalf("fio held nothing to it: %s", verdict)
	}
	n, _ := strconv.Atoi(string(m[1]))
	bad := badBlocks(verdict)
	return w.holds(t, "fio", disk, order[:n], int64(len(bad)), bad)
}

func (w *trial) verifyOurs(t *testing.T, disk int, data []byte) (lost int, same bool) {
	t.Helper()
	rec, err := integrity.ReadRecord(bytes.NewReader(w.ours[disk/2].bytes()))
	if err != nil || rec.Acknowledged.Blocks == 0 {
		t.Fatalf("nothing was acknowledged: %v", err)
	}
	report, err := integrity.Verify(t.Context(), bytes.NewReader(data), diskBytes, &rec.Manifest, rec.Acknowledged,
		integrity.Options{Behind: true})
	if err != nil {
		t.Fatal(err)
	}
	named := damaged(*report) // all, where the list is not full
	if report.Unlisted == 0 && report.Lost != int64(len(named)) {
		t.Errorf("%d are lost, and %d are damaged", report.Lost, len(named))
	}
	return w.holds(t, "integrity", disk, ourOrder(t, rec), report.Lost, named)
}

// holds sees whether what is said of a disk agrees with its image.
func (w *trial) holds(t *testing.T, who string, disk int, flushed []int64, said int64, named map[int64]bool) (
	lost int, same bool) {
	t.Helper()
	lies := disk >= 2
	lost, same = agrees(w.kept[disk], flushed, said, named, lies)
	told := t.Logf
	if !same {
		told = t.Errorf
	}
	told("%s, lies %t: says %d and names %d; %d of %d flushed blocks are lost", who, lies, said, len(named), lost,
		len(flushed))
	return lost, same
}

// agrees reports how many of the blocks that were flushed an image lost, and whether as many are said to be lost, those
// that are named are, and the disk lost some only where it lies.
func agrees(kept map[int64]bool, flushed []int64, said int64, named map[int64]bool, lies bool) (lost int, same bool) {
	right := 0
	for _, block := range flushed {
		if !kept[block] {
			if lost++; named[block] {
				right++
			}
		}
	}
	return lost, said == int64(lost) && right == len(named) && lies == (lost > 0)
}

// TestAgrees: what is counted as agreement invents none, misses none, and names no other.
func TestAgrees(t *testing.T) {
	kept, flushed := map[int64]bool{1: true, 3: true}, []int64{1, 2, 3, 4}
	of := func(blocks ...int64) map[int64]bool {
		m := map[int64]bool{}
		for _, b := range blocks {
			m[b] = true
		}
		return m
	}
	for name, c := range map[string]struct {
		flushed []int64
		said    int64
		named   map[int64]bool
		lies    bool
		lost    int
		same    bool
	}{
		"the same":             {flushed, 2, of(2, 4), true, 2, true},
		"a list that is full":  {flushed, 2, of(2), true, 2, true},
		"one missed":           {flushed, 1, of(2), true, 2, false},
		"one invented":         {flushed, 3, of(2, 3, 4), true, 2, false},
		"another named":        {flushed, 2, of(2, 3), true, 2, false},
		"never flushed":        {flushed, 2, of(2, 5), true, 2, false},
		"honest":               {[]int64{1, 3}, 0, nil, false, 0, true},
		"honest, one invented": {[]int64{1, 3}, 1, of(1), false, 0, false},
		"honest, and lost":     {flushed, 2, of(2, 4), false, 2, false},
		"lies, and lost none":  {[]int64{1, 3}, 0, nil, true, 0, false},
	} {
		if lost, same := agrees(kept, c.flushed, c.said, c.named, c.lies); lost != c.lost || same != c.same {
			t.Errorf("%s: %d lost, the same %t", name, lost, same)
		}
	}
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
