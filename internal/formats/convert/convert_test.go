package convert_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"plimsoll/internal/formats/convert"
	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/formats/convert/fiojob"
	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/formats/convert/vdbench"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stderr)
	os.Exit(code)
}

// A parameter file of vdbench becomes a job file of fio, with what is not the same.
func Example() {
	from, _ := convert.ByName("vdbench")
	to, _ := convert.ByName("fio")
	made, err := convert.Convert(convert.Request{Name: "my.vdb", From: from, To: to, Data: []byte(
		"sd=sd1,lun=/srv/file,size=1g,threads=8,openflags=o_direct\n" +
			"wd=wd1,sd=sd1,xfersize=8k,rdpct=70\n" +
			"rd=rd1,wd=wd1,iorate=1000,elapsed=60\n")})
	fmt.Print(made.Text, err, "\n")
	for _, n := range made.Notes {
		fmt.Println(n)
	}
	// Output:
	// [wd1]
	// filename=/srv/file
	// size=1g
	// ioengine=libaio
	// iodepth=8
	// direct=1
	// rw=randrw
	// rwmixread=70
	// norandommap
	// bs=8k
	// rate_iops=700,300
	// rate_process=poisson
	// refill_buffers
	// time_based
	// runtime=60
	// <nil>
	// my.vdb:3:27: elapsed=60: all of the time counts: vdbench leaves the first interval of a run out of its totals
}

// samples are the files of a folder, by their names.
func samples(t testing.TB, dir string) map[string]convert.Request {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]convert.Request{}
	for _, f := range files {
		from, ok := convert.ByFile(f.Name())
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if !ok || err != nil {
			t.Fatalf("%s: no tool's file, %v", f.Name(), err)
		}
		all[f.Name()] = convert.Request{Name: f.Name(), Data: data, From: from, CurveMax: 0}
	}
	if len(all) < 3 {
		t.Fatalf("only %d files in %s", len(all), dir)
	}
	return all
}

// TestSamples holds what own files of each tool become for each of the others, their notes and their objections.
func TestSamples(t *testing.T) {
	t.Parallel()
	for name, r := range samples(t, "testdata/samples") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, to := range convert.Tools() {
				r.To = to
				made, err := convert.Convert(r)
				fmt.Fprintf(&b, "== to %s\n", to.Name)
				if err != nil {
					fmt.Fprintf(&b, "%v\n\n", err)
					continue
				}
				for _, n := range made.Notes {
					fmt.Fprintf(&b, "note: %s\n", n)
				}
				fmt.Fprintf(&b, "stages: %q\n\n%s\n", made.Stages, made.Text)
			}
			golden.Compare(t, filepath.Join("testdata", "golden", name+".txt"), []byte(b.String()))
		})
	}
}

// parseOnly lets fio itself read a job file.
func parseOnly(t testing.TB, text string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.fio")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, needs.Fio(t), "--parse-only", file).CombinedOutput()
	if err != nil || len(out) > 0 {
		return fmt.Errorf("%w: %s\n%s", err, out, text)
	}
	return nil
}

// TestRealReads: fio takes every job file that comes of the samples, its own notes at its head included.
func TestRealReads(t *testing.T) {
	t.Parallel()
	needs.Fio(t)
	fio, err := convert.ByName("fio")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, dir := range []string{"testdata/samples", "testdata/run"} {
		for name, r := range samples(t, dir) {
			r.To = fio
			made, err := convert.Convert(r)
			if err != nil {
				continue
			}
			n++
			if err := parseOnly(t, made.Annotated(fio)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d samples became job files", n)
	}
}

// TestRealRuns: fio runs what comes of small files of other tools, and every job does what it can of reads and writes.
func TestRealRuns(t *testing.T) {
	t.Parallel()
	program := needs.Fio(t)
	fio, err := convert.ByName("fio")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range samples(t, "testdata/run") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.To = fio
			made, err := convert.Convert(r)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "job.fio"), []byte(made.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, "--output-format=terse", "--terse-version=3", "job.fio")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s\n%s", err, out, made.Text)
			}
			jobs := 0
			for line := range strings.Lines(string(out)) {
				fields := strings.Split(line, ";")
				if len(fields) < 100 {
					continue
				}
				jobs++
				if fields[4] != "0" || fields[5] == "0" && fields[46] == "0" { // error, KiB read, KiB written
					t.Errorf("%s: error %s, read %s KiB, wrote %s KiB", fields[2], fields[4], fields[5], fields[46])
				}
			}
			if want := strings.Count(made.Text, "\n["); jobs < want {
				t.Errorf("%d jobs of at least %d told of themselves: %s", jobs, want, out)
			}
		})
	}
}

// TestCorpus: published files are read, and what can be had of them becomes a job file that fio takes.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := needs.Corpus(t, "vdbench")
	files, err := filepath.Glob(filepath.Join(dir, "*.vdb"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d parameter files, %v", len(files), err)
	}
	from, _ := convert.ByName("vdbench")
	fio, _ := convert.ByName("fio")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made, err := convert.Convert(convert.Request{Name: filepath.Base(file), Data: data, From: from, To: fio})
		if err != nil {
			t.Error(err)
			continue
		}
		if err := parseOnly(t, made.Text); err != nil {
			t.Error(err)
		}
	}
}

// draw makes a load of the part that a tool can say to the letter.
func draw(t *rapid.T, tool string) load.Load {
	var l load.Load
	n := 0
	data := load.Data{Kind: load.Unique}
	if tool == "vdbench" || tool == "fio" {
		data.Compressed = rapid.SampledFrom([]float64{0, 50, 75, 80}).Draw(t, "compressed")
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "stages") {
		st := load.Stage{Name: fmt.Sprintf("r%d", i+1), Runtime: rapid.Int64Range(2, 1e6).Draw(t, "runtime"),
			Warmup: rapid.Int64Range(0, 600).Draw(t, "warmup")}
		streams := rapid.IntRange(1, 3).Draw(t, "streams")
		rated, even := rapid.Bool().Draw(t, "rated"), rapid.Bool().Draw(t, "even")
		for range streams {
			n++
			s := stream(t, tool, fmt.Sprintf("s%d", n))
			if s.Reads < 100 {
				s.Data = data
			}
			if rated {
				s.Rate = float64(s.Threads) * 100 * float64(rapid.Int64Range(1, 1e4).Draw(t, "rate"))
			}
			s.Even = even || tool == "diskspd" || tool != "diskspd" && !rated
			if tool == "vdbench" {
				s.Even = even && rated
			}
			st.Streams = append(st.Streams, s)
		}
		switch {
		case tool == "vdbench":
			st.Pause = rapid.Int64Range(0, 10).Draw(t, "pause")
		case tool == "diskspd":
			st.Name = fmt.Sprintf("diskspd%d", i+1)
			for j := range st.Streams {
				st.Streams[j].Name = st.Name
				if j > 0 {
					st.Streams[j].Name = fmt.Sprintf("%s.%d", st.Name, j+1)
				}
			}
		case streams == 1:
			st.Name = st.Streams[0].Name
		default:
			st.Name = fmt.Sprintf("stage%d", i+1)
		}
		l.Stages = append(l.Stages, st)
	}
	return l
}

func stream(t *rapid.T, tool, name string) load.Stream {
	percent := func(label string) float64 { return float64(rapid.IntRange(0, 100).Draw(t, label)) }
	s := load.Stream{Name: name, Threads: 1, Depth: rapid.IntRange(1, 256).Draw(t, "depth"), Reads: percent("reads"),
		Random: percent("random"), Direct: true, Sync: rapid.SampledFrom([]string{"", "dsync"}).Draw(t, "sync")}
	s.Sizes = []load.Share{{Bytes: 512 * rapid.Int64Range(1, 4096).Draw(t, "size"), Percent: 100}}
	if tool != "diskspd" && rapid.Bool().Draw(t, "split") {
		first := rapid.Int64Range(1, 99).Draw(t, "share")
		s.Sizes = []load.Share{{Bytes: 4096, Percent: float64(first)}, {Bytes: 12288, Percent: float64(100 - first)}}
	}
	t1 := load.Target{
		Name: rapid.SampledFrom([]string{"/srv/x", "/dev/sdb", `D:\some folder\f`}).Draw(t, "name") + name,
	}
	if tool == "vdbench" {
		t1.Alias = "d" + name
	}
	block := s.Largest()
	t1.Bytes = block * rapid.Int64Range(300, 1<<20).Draw(t, "blocks")
	if rapid.Bool().Draw(t, "part") {
		s.From.Bytes = block * rapid.Int64Range(1, 100).Draw(t, "from")
		s.Span.Bytes = block * rapid.Int64Range(1, 100).Draw(t, "span")
		if tool == "fio" {
			t1.Bytes = s.From.Bytes + s.Span.Bytes
		}
	} else if tool == "diskspd" && t1.Raw() {
		t1.Bytes = 0
	}
	if tool == "diskspd" && t1.Raw() {
		t1.Bytes = 0
	}
	if s.Random > 0 && rapid.Bool().Draw(t, "aligned") {
		s.Align = 512 * rapid.Int64Range(1, 64).Draw(t, "align")
		if s.Align == block && tool == "diskspd" {
			s.Align = 0
		}
	}
	if tool != "vdbench" {
		s.Threads = rapid.IntRange(1, 8).Draw(t, "threads")
		s.Seed = rapid.Int64Range(0, 1<<31).Draw(t, "seed")
		if rapid.Bool().Draw(t, "zones") && s.Random > 0 {
			first := rapid.IntRange(0, 100).Draw(t, "zone")
			s.Zones = []load.Zone{{Percent: float64(first), Span: load.Extent{Percent: 30}},
				{Percent: float64(100 - first), Span: load.Extent{Percent: 70}}}
		}
		if rapid.Bool().Draw(t, "thinks") {
			s.Burst, s.Think = rapid.Int64Range(1, 1000).
				Draw(t, "burst"),
				1000*rapid.Int64Range(1, 1000).
					Draw(t, "think")
		}
	}
	if tool == "fio" && s.Random > 0 {
		s.Once = rapid.Bool().Draw(t, "once")
	}
	if s.Random == 0 && s.Align == 0 && (tool != "vdbench" || len(s.Zones) == 0) && rapid.Bool().Draw(t, "skips") {
		s.Skip = 512 * rapid.Int64Range(1, 64).Draw(t, "skip")
	}
	s.Targets = []load.Target{t1}
	return s
}

// same compares what loads ask for, and not where and how it is written.
var same = cmp.Options{
	cmpopts.IgnoreTypes(load.Place{}, load.Note{}, map[string]load.Ask{}),
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b)) }),
	cmp.Transformer("written", func(s load.Stream) load.Stream { // what is never written has no kind that could be told
		if s.Reads == 100 {
			s.Data = load.Data{}
		}
		return s
	}),
}

// TestThereAndBack: what a tool can say to the letter comes back the same.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		write func(load.Load) (string, []load.Note, error)
		read  func([]byte) (load.Load, error)
	}{
		"vdbench": {vdbench.Write, func(data []byte) (load.Load, error) {
			l, _, err := vdbench.Read(vdbench.Request{Name: "x", Data: data})
			return l, err
		}},
		"diskspd": {diskspd.Write, func(data []byte) (load.Load, error) { return diskspd.Read("x", data) }},
		"fio": {func(l load.Load) (string, []load.Note, error) {
			file, notes, err := fiojob.Write(l)
			return file.String(), notes, err
		}, func(data []byte) (load.Load, error) { return fiojob.Read("x", data, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				l := draw(t, name)
				text, _, err := way.write(l)
				if err != nil {
					t.Fatalf("%v\n%+v", err, l)
				}
				back, err := way.read([]byte(text))
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				if diff := cmp.Diff(l, back, cmpopts.AcyclicTransformer("all", func(l load.Load) []load.Stage {
					return l.Stages
				}), same); diff != "" {
					t.Fatalf("(-want +got):\n%s\n%s", diff, text)
				}
			})
		})
	}
}

// fuzz reads a text as a tool's file. It is refused at places that it has, or is written for every tool in a form that
// the tool's room reads again, and then writes the same.
func fuzz(t *testing.T, name, text string) {
	tool, err := convert.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range convert.Tools() {
		made, err := convert.Convert(convert.Request{Name: "f", Data: []byte(text), From: tool, To: to, CurveMax: 1000})
		if err != nil {
			var o *load.Objection
			if !errors.As(err, &o) || o.At.File == "" {
				t.Fatalf("%v has no place", err)
			}
			continue
		}
		again, err := convert.Convert(convert.Request{Name: "g", Data: []byte(made.Annotated(to)), From: to, To: to})
		if err != nil {
			t.Fatalf("to %s: %v\n%s", to.Name, err, made.Text)
		}
		third, err := convert.Convert(convert.Request{Name: "h", Data: []byte(again.Text), From: to, To: to})
		if err != nil || third.Text != again.Text {
			t.Fatalf("to %s: %v\n%s", to.Name, err, cmp.Diff(again.Text, third.Text))
		}
	}
}

func seeds(f *testing.F, name string) {
	for _, dir := range []string{"testdata/samples", "testdata/run"} {
		for _, r := range samples(f, dir) {
			if r.From.Name == name {
				f.Add(string(r.Data))
			}
		}
	}
}

func FuzzVdbench(f *testing.F) {
	seeds(f, "vdbench")
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, "vdbench", text) })
}

func FuzzDiskspd(f *testing.F) {
	seeds(f, "diskspd")
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, "diskspd", text) })
}

func FuzzFioJob(f *testing.F) {
	seeds(f, "fio")
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, "fio", text) })
}

// TestVariablesAndIncludes: values come from the user, files from beside the file.
func TestVariablesAndIncludes(t *testing.T) {
	t.Parallel()
	from, _ := convert.ByName("vdbench")
	to, _ := convert.ByName("fio")
	r := convert.Request{Name: "dir/a.vdb", From: from, To: to, Set: map[string]string{"lun": "/srv/x", "other": "1"},
		Data: []byte("include=sds.vdb\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max,elapsed=!time\n"),
		Include: func(name string) ([]byte, error) {
			if name != "sds.vdb" {
				return nil, os.ErrNotExist
			}
			return []byte("sd=sd1,lun=$lun,size=1g,threads=0\n"), nil
		}}
	_, err := convert.Convert(r)
	want := "dir/a.vdb:3:1: !time has no value; give one with --set time=VALUE"
	if fmt.Sprint(err) != want {
		t.Error(cmp.Diff(want, fmt.Sprint(err)))
	}
	r.Set["time"] = "30"
	_, err = convert.Convert(r)
	want = "dir/sds.vdb:1:27: threads=0: it takes one number from 1 to 100000"
	if fmt.Sprint(err) != want {
		t.Error(cmp.Diff(want, fmt.Sprint(err)))
	}
	include := r.Include
	r.Include = func(name string) ([]byte, error) {
		data, err := include(name)
		return []byte(strings.Replace(string(data), "threads=0", "threads=2", 1)), err
	}
	made, err := convert.Convert(r)
	if err != nil || !slices.Equal(made.Used, []string{"lun", "time"}) {
		t.Errorf("%v, %v", made.Used, err)
	}
}

// TestRatesOfMixedBlocks: fio counts an even rate in blocks of the smallest size. The mean is 28 KiB here.
func TestRatesOfMixedBlocks(t *testing.T) {
	t.Parallel()
	vdbench, _ := convert.ByName("vdbench")
	fio, _ := convert.ByName("fio")
	for _, c := range []struct{ spaced, rate string }{
		{"", "rate_iops=70,30"}, {",distribution=deterministic", "rate_iops=490,210"}} {
		const wd = "wd=wd1,sd=sd1,xfersize=(4k,60,64k,40),rdpct=70,seekpct=100\n"
		there, err := convert.Convert(convert.Request{Name: "a.vdb", From: vdbench, To: fio, Data: []byte(
			"sd=sd1,lun=/srv/x,size=64m,threads=1\n" + wd + "rd=rd1,wd=wd1,iorate=100,elapsed=8" + c.spaced + "\n")})
		if err != nil || !strings.Contains(there.Text, "\n"+c.rate+"\n") {
			t.Fatalf("%v\n%s", err, there.Text)
		}
		back, err := convert.Convert(convert.Request{Name: "a.fio", From: fio, To: vdbench, Data: []byte(there.Text)})
		if err != nil || !strings.Contains(back.Text, "iorate=100,") {
			t.Errorf("%v\n%s", err, back.Text)
		}
	}
}

// TestIncludesOfElsewhere: a file of another place is looked for beside the one that includes it, and what is taken is
// said.
func TestIncludesOfElsewhere(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"/opt/vdbench/sds": "include=sds", `C:\vdb\sds`: "include=sds", "sds": "", "/opt/other": "copy it there",
	} {
		_, notes, err := readVdbench(vdbench.Request{Name: "a.vdb", Data: []byte("include=" + name +
			"\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max,elapsed=5\n"),
			Include: func(name string) ([]byte, error) {
				if name != "sds" {
					return nil, os.ErrNotExist
				}
				return []byte("sd=sd1,lun=/srv/x,size=1g,openflags=(o_direct,fsync)\n"), nil
			}})
		got := fmt.Sprint(notes, err)
		if !strings.Contains(got, want) || want == "" && strings.Contains(got, "beside") {
			t.Errorf("%s: %s, want %q", name, got, want)
		}
	}
}

// TestOnceThrough: a job without a time that goes to random places ends after as many bytes; of a size that is not
// known it cannot be said.
func TestOnceThrough(t *testing.T) {
	t.Parallel()
	from, _ := convert.ByName("fio")
	to, _ := convert.ByName("vdbench")
	for job, want := range map[string]string{
		"[a]\nrw=randread\nbs=4k\nsize=64m\nnumjobs=2\n":             "maxdata=134217728", // 2 * 64 MiB
		"[a]\nrw=randread\nbs=4k\nsize=64m\nruntime=5\ntime_based\n": "elapsed=5,",
		"[a]\nrw=randread\nbs=4k\nfilename=/dev/sdx\n":               "give it a runtime",
	} {
		made, err := convert.Convert(convert.Request{Name: "a.fio", From: from, To: to, Data: []byte(job)})
		if got := fmt.Sprint(made.Text, err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", job, got, want)
		}
	}
}

func readVdbench(r vdbench.Request) (load.Load, []load.Note, error) {
	l, _, err := vdbench.Read(r)
	return l, l.Notes, err
}

// TestCurve: the points of a curve are shares of a rate that is given.
func TestCurve(t *testing.T) {
	t.Parallel()
	l, _, err := vdbench.Read(vdbench.Request{Name: "x", Max: 12345, Data: []byte("sd=sd1,lun=/srv/x,size=1g\n" +
		"wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=curve,curve=(10,50,100),elapsed=10,forxf=(4k,8k)\n")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, st := range l.Stages {
		got = append(got, fmt.Sprintf("%s: %g of %d", st.Name, st.Streams[0].Rate, st.Streams[0].Sizes[0].Bytes))
	}
	want := []string{"rd1 xfersize=4k: 0 of 4096", "rd1 xfersize=4k iorate=10%: 1300 of 4096",
		"rd1 xfersize=4k iorate=50%: 6200 of 4096", "rd1 xfersize=4k iorate=100%: 12400 of 4096",
		"rd1 xfersize=8k: 0 of 8192", "rd1 xfersize=8k iorate=10%: 1300 of 8192",
		"rd1 xfersize=8k iorate=50%: 6200 of 8192", "rd1 xfersize=8k iorate=100%: 12400 of 8192"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkVdbench(b *testing.B) {
	data, err := os.ReadFile("testdata/samples/oltp.vdb")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, err := vdbench.Read(vdbench.Request{Name: "x", Data: data}); err != nil {
			b.Fatal(err)
		}
	}
}
