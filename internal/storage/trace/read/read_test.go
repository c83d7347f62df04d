package read_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"plimsoll/internal/storage/trace"
	"plimsoll/internal/storage/trace/read"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/tracetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// A table that somebody made is a trace when its header names time, operation, offset and size.
func Example() {
	table := "time_ms,op,offset_bytes,size_bytes,latency_us\n0,read,0,8192,250\n5,read,8192,8192,150\n"
	t, err := read.Open([]read.Input{{Name: "table.csv", From: strings.NewReader(table)}}, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	r, err := trace.Analyze(t, trace.Options{}, t.Names, t.Problems, func() error { return nil })
	fmt.Println(t.Formats, r.Events, r.Operations[0].Response.Mean, err)
	// Output: [csv] 2 0.0002 <nil>
}

// events are all of a trace.
func events(t testing.TB, name, text, format string) (list []trace.Event, opened *read.Trace) {
	t.Helper()
	opened, err := read.Open([]read.Input{{Name: name, From: strings.NewReader(text)}}, format)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	buf := make([]trace.Event, 7)
	for {
		n, err := opened.Next(buf)
		list = append(list, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return list, opened
		}
	}
}

const device = 8<<20 | 16

// TestForms reads a few lines of every text form, and compares whole events.
func TestForms(t *testing.T) {
	t.Parallel()
	table := uint32(1 << 31)
	none := trace.UnknownTime
	for _, c := range []struct {
		name, format, text string
		want               []trace.Event
	}{
		{"blkparse", "blkparse", `
  8,16   0        1     0.000000100   77  A   W 1000 + 8 <- (8,17) 200
  8,16   0        2     0.000000200   77  Q  WS 1000 + 8 [a b]
  8,16   0        3     0.000000300   77  M   W 1008 + 8 [a b]
  8,16   0        4     0.000000400   77  X   W 1000 / 1004 [a b]
  8,16   0        5     0.000000500   77  P   N [a b]
  8,16   0        6     0.000000600   77  D WFS 1000 + 16 [a b]
  8,16   1        1     0.000000700    0  C WFS 1000 + 16 [-5]
  8,16   0        7     0.000000800   77  D  FN [a b]
  8,16   0        8     0.000000900   77  D   R 36 (12 00 00 00 24 00 ..) [a b]
  8,16   0        0     0.000000950   77  m   N some text
CPU0 (sdb):
 Reads Queued:           0,        0KiB
`, []trace.Event{
			{Time: 100, Offset: 512000, Bytes: 4096, PID: 77, Action: trace.Remap, Op: trace.Write},
			{Time: 200, Offset: 512000, Bytes: 4096, PID: 77, Action: trace.Queue, Op: trace.Write, Flags: trace.Sync},
			{Time: 300, Offset: 516096, Bytes: 4096, PID: 77, Action: trace.Merge, Op: trace.Write},
			{Time: 400, Offset: 512000, Aux: 514048, PID: 77, Action: trace.Split, Op: trace.Write},
			{Time: 500, PID: 77},
			{Time: 600, Offset: 512000, Bytes: 8192, PID: 77, Action: trace.Issue, Op: trace.Write,
				Flags: trace.Sync | trace.FUA},
			{Time: 700, Offset: 512000, Bytes: 8192, Action: trace.Complete, Op: trace.Write,
				Flags: trace.Sync | trace.FUA | trace.Failed},
			{Time: 800, PID: 77, Action: trace.Issue, Op: trace.Flush},
			{Time: 900, PID: 77, Action: trace.Issue, Op: trace.Read, Flags: trace.Packet},
			{Time: 950, PID: 77},
		}},
		{"tracefs", "tracefs", `# tracer: nop
             fio-77      [001] d..1.     1.000100: block_bio_queue: 8,16 R 24704 + 16 [fio]
             fio-77      [001] .....     1.000200: block_rq_issue: 8,16 RA 8192 () 24704 + 16 be,0,7 [fio]
CPU:1 [LOST 12 EVENTS]
          <idle>-0       [000] ..s1.     1.000300: block_rq_complete: 8,16 RA () 24704 + 16 none,0,0 [0]
 kworker/1:1H-99         [001] .....     1.000400: block_rq_issue: 8,16 FF 0 () 18446744073709551615 + 0 [kworker/1:1H]
           a b-77        [001] .....     1.000500:   8,16   Q  WS 8 + 8 [a b]
`, []trace.Event{
			{Time: 1000100e3, Offset: 24704 * 512, Bytes: 8192, PID: 77, Action: trace.Queue, Op: trace.Read},
			{Time: 1000200e3, Offset: 24704 * 512, Bytes: 8192, PID: 77, Action: trace.Issue, Op: trace.Read,
				Flags: trace.Ahead},
			{Time: 1000300e3, Offset: 24704 * 512, Bytes: 8192, Action: trace.Complete, Op: trace.Read,
				Flags: trace.Ahead},
			{Time: 1000400e3, PID: 99, Action: trace.Issue, Op: trace.Flush},
			{Time: 1000500e3, Offset: 4096, Bytes: 4096, PID: 77, Action: trace.Queue, Op: trace.Write,
				Flags: trace.Sync},
		}},
		{"iolog 3", "iolog", `fio version 3 iolog
22 /dev/sdb add
126 /dev/sdb open
130 /dev/sdb read 57344 8192
217 /dev/sdb trim 0 4096
300 /dev/sdb sync 0 0
`, []trace.Event{
			{Time: 130e3, Offset: 57344, Bytes: 8192, Device: table, Action: trace.Whole, Op: trace.Read, Aux: none},
			{Time: 217e3, Bytes: 4096, Device: table, Action: trace.Whole, Op: trace.Discard, Aux: none},
			{Time: 300e3, Device: table, Action: trace.Whole, Op: trace.Flush, Aux: none},
		}},
		{"iolog 2", "iolog", `fio version 2 iolog
/dev/sdb add
/dev/sdb write 4096 512
/dev/sdb wait 250 0
/dev/sdb read 0 512
`, []trace.Event{
			{Offset: 4096, Bytes: 512, Device: table, Action: trace.Whole, Op: trace.Write, Aux: none},
			{Time: 250e3, Bytes: 512, Device: table, Action: trace.Whole, Op: trace.Read, Aux: none},
		}},
		{"x_lat.1.log", "fio-log", "20, 25598, 0, 8192, 876544, 0\n30, 1000000, 1, 4096, 0, 0\n", []trace.Event{
			{Time: 20e6 - 25598, Offset: 876544, Bytes: 8192, Device: table, Action: trace.Whole, Aux: 25598,
				Op: trace.Read},
			{Time: 29e6, Bytes: 4096, Device: table, Action: trace.Whole, Op: trace.Write, Aux: 1e6},
		}},
		{"msr", "csv-msr", "128166372003061629,hm,1,Read,383496192,32768,41286\n" +
			"128166372016382155,hm,1,Write,2822144,512,1963\n", []trace.Event{
			{Offset: 383496192, Bytes: 32768, Device: table, Action: trace.Whole, Op: trace.Read, Aux: 4128600},
			{Time: 1332052600, Offset: 2822144, Bytes: 512, Device: table, Action: trace.Whole, Op: trace.Write,
				Aux: 196300},
		}},
		{"alibaba", "csv-alibaba", "419,W,12288,4096,1577808144360767\n725,R,0,4096,1577808144360768\n", []trace.Event{
			{Offset: 12288, Bytes: 4096, Device: table, Action: trace.Whole, Op: trace.Write, Aux: none},
			{Time: 1000, Bytes: 4096, Device: table + 1, Action: trace.Whole, Op: trace.Read, Aux: none},
		}},
		{"tencent", "csv-tencent", "1538323199,1263,16,0,1283\n1538323200,1279,8,1,1283\n", []trace.Event{
			{Offset: 1263 * 512, Bytes: 8192, Device: table, Action: trace.Whole, Op: trace.Read, Aux: none},
			{Time: 1e9, Offset: 1279 * 512, Bytes: 4096, Device: table, Action: trace.Whole, Op: trace.Write,
				Aux: none},
		}},
		{"systor", "csv", "Timestamp,Response,IOType,LUN,Offset,Size\n1455592771.300225,0.002,W,2,184320,4096\n" +
			"1455592771.300325,,R,2,0,512\n", []trace.Event{
			{Time: 300225e3, Offset: 184320, Bytes: 4096, Device: table, Action: trace.Whole, Op: trace.Write,
				Aux: 2e6},
			{Time: 300325e3, Bytes: 512, Device: table, Action: trace.Whole, Op: trace.Read, Aux: none},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, opened := events(t, c.name, c.text, "")
			for i := range c.want {
				if c.want[i].Device == 0 {
					c.want[i].Device = device
				}
			}
			near := cmp.Comparer(func(a, b int64) bool { return a-b < 100 && b-a < 100 }) // a fraction of a second
			if d := cmp.Diff(c.want, got, near); d != "" || opened.Formats[0] != c.format {
				t.Errorf("as %v (-want +got):\n%s", opened.Formats, d)
			}
		})
	}
}

// TestBadLines: a line that is not understood is named with its number and counted, and the others count.
func TestBadLines(t *testing.T) {
	t.Parallel()
	good := "  8,16   0        2     0.000000200   77  Q   R 1000 + 8 [a]\n"
	for bad, says := range map[string]string{
		"  8,16   0        2     0.000000200   77  Y   R 1000 + 8 [a]\n":              "an unknown action",
		"  8,16   0        2     0.000000200   77  Q   ? 1000 + 8 [a]\n":              "an unknown operation",
		"  8,16   0        2     0.000000200   77  Q   R 99999999999999999 + 8 [a]\n": "a sector or a size is out of range",
		"  8,16   0        2     0.000000200   77  Q   R 1000 + 99999999999 [a]\n":    "a sector or a size is out of range",
		"  8,16   0        2     soon   77  Q   R 1000 + 8 [a]\n":                     "a time that is no number",
		"what is this\n":                          "a line that does not begin with a device",
		strings.Repeat("x", 100<<10) + "\n":       "a line of more than 64 KiB",
		"  8,16   0        2     0.0000002":       "the last line is cut off",
		strings.TrimSuffix(good, "8 [a]\n") + "8": "the last line is cut off",
	} {
		text := good + good + bad
		if strings.HasSuffix(bad, "\n") {
			text += good
		}
		list, opened := events(t, "f", text, "")
		problems := opened.Problems.All()
		want := strings.Count(text, good)
		if len(list) != want && !strings.Contains(says, "cut off") || len(problems) != 1 || problems[0].Count != 1 ||
			!strings.HasPrefix(problems[0].What, says) || !strings.HasPrefix(problems[0].First, "f: line 3: ") {
			t.Errorf("%.60q: %d events, want %d, problems %+v, want %q", bad, len(list), want, problems, says)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	newer := []byte{8, 't', 'a', 'e'}
	for name, c := range map[string]struct{ text, format, says string }{
		"empty":       {"", "", "it is empty"},
		"a story":     {"Once upon a time\n", "", `it is no trace that is known here (blktrace, `},
		"its version": {string(append(newer, make([]byte, 60)...)), "", "blktrace of version 8"},
		"no offsets":  {"0, 10645, 0, 8192, 0\n0, 2915, 0, 8192, 0\n", "", "without offsets"},
		"no column":   {"time,op,size\n1,R,512\n", "csv", "names no column of the offset"},
		"no format":   {"x", "pcap", `no format "pcap"; there are: blktrace, `},
		"half a gzip": {"\x1f\x8b\x08", "", "gzip: "},
	} {
		_, err := read.Open([]read.Input{{Name: "f", From: strings.NewReader(c.text)}}, c.format)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestPacked: what is packed reads as what is not; what is cut off within the packing keeps what came before.
func TestPacked(t *testing.T) {
	t.Parallel()
	file := tracetest.Files(load(3_000, 8), nil, binary.LittleEndian, 1)[0]
	var zipped, squeezed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	s, err := zstd.NewWriter(&squeezed)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{z, s} {
		if _, err := w.Write(file); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := events(t, "f", string(file), "")
	for name, packed := range map[string]string{"gzip": zipped.String(), "zstd": squeezed.String()} {
		if got, _ := events(t, "f", packed, ""); !cmp.Equal(got, want) {
			t.Errorf("%s: %d events differ from the %d of the plain file", name, len(got), len(want))
		}
		r := analyse(t, []read.Input{{Name: "f", From: strings.NewReader(packed[:len(packed)*2/3])}}, "",
			trace.Options{})
		if !r.Partial || r.Events == 0 {
			t.Errorf("%s cut off: %d events, partial %v, %+v", name, r.Events, r.Partial, r.Problems)
		}
	}
}

// TestRealIolog reads what the fio here writes.
func TestRealIolog(t *testing.T) {
	t.Parallel()
	fio := needs.Fio(t)
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), fio, "--name=a", "--filename=f", "--size=1m", "--rw=randrw", "--bs=8k",
		"--ioengine=psync", "--write_iolog=io.log", "--write_lat_log=x", "--log_offset=1", "--minimal")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"io.log", "x_lat.1.log"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		r := analyse(t, []read.Input{{Name: name, From: f}}, "", trace.Options{})
		sum := uint64(0)
		for _, o := range r.Operations {
			sum += o.Bytes
		}
		if sum != 1<<20 || r.WorkingSet.Bytes != 1<<20 || r.Partial {
			t.Errorf("%s: %d bytes, working set %d, problems %+v", name, sum, r.WorkingSet.Bytes, r.Problems)
		}
		_ = f.Close()
	}
}

// TestCorpus reads published traces.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := needs.Corpus(t, "blkparse")
	for name, want := range map[string]trace.Layer{
		"sample.blktrace.0.bin":         {Queued: 963, Remapped: 963, Issued: 963, Completed: 963},
		"blkparse-nvme0n1.first500.txt": {Queued: 94, Merged: 46, Remapped: 179, Issued: 48, Completed: 56},
	} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		r := analyse(t, []read.Input{{Name: name, From: f}}, "", trace.Options{})
		want.Pending = r.Layer.Pending
		if d := cmp.Diff(want, r.Layer); d != "" || len(r.Problems) > 0 {
			t.Errorf("%s: %s%+v", name, d, r.Problems)
		}
		_ = f.Close()
	}
}

// FuzzOpen: nothing that a file holds brings the reading or the analysis down, or makes a result that cannot be.
func FuzzOpen(f *testing.F) {
	f.Add(tracetest.Files(load(3, 9), tracetest.Names{1: "a"}, binary.BigEndian, 1)[0])
	f.Add(blkparseText(load(3, 9)))
	for _, seed := range []string{"fio version 3 iolog\n1 a read 0 1\n", "0, 1, 0, 512, 512, 0\n", "1,a,1,Read,0,1,1\n",
		"1,R,0,1,1\n", "1,2,3,0,4\n", "time,op,offset,size\n1,R,0,1\n", "\x1f\x8b", "\x28\xb5\x2f\xfd",
		" a-1 [0] . 1.1: block_split: 8,16 R 8 / 9 [a]\n", "  8,16   0        2     0.2   77  D   R 36 (12) [a b]\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []string{"", read.Formats()[len(data)%len(read.Formats())]} {
			opened, err := read.Open([]read.Input{{Name: "a", From: bytes.NewReader(data)}, {Name: "b",
				From: bytes.NewReader(data)}}, format)
			if err != nil {
				continue
			}
			r, err := trace.Analyze(opened, trace.Options{Sampled: 16}, opened.Names, opened.Problems,
				func() error { return nil })
			opened.Close()
			if err != nil {
				t.Fatal(err)
			}
			sane(t, r)
		}
	})
}

func sane(t *testing.T, r *trace.Result) {
	t.Helper()
	if r.Seconds < 0 || len(r.Series) > 1025 {
		t.Fatalf("%v s, %d moments", r.Seconds, len(r.Series))
	}
	for _, o := range r.Operations {
		sum := uint64(0)
		for _, k := range o.Kinds {
			sum += k.Requests
		}
		sizes := uint64(0)
		for _, s := range o.Sizes {
			sizes += s.Requests
		}
		if sum > o.Requests || sizes != sum {
			t.Fatalf("%d requests, %d of a kind, %d of a size: %+v", o.Requests, sum, sizes, o)
		}
	}
	if _, err := fmt.Fprint(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	_ = r.FioJob(io.Discard)
}
