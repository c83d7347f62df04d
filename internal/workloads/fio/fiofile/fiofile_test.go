package fiofile_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/workloads/fio/fiofile"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func ExampleParse() {
	f, _ := fiofile.Parse("oltp.fio", []byte("[global]\nsize=8g\n[log]\nfilename=/dev/sdb\n"))
	for _, job := range f.Jobs() {
		size, _ := fiofile.ParseSize(job.Value("size"))
		fmt.Println(job.Name, job.Value("filename"), size.Bytes)
	}
	// Output: log /dev/sdb 8589934592
}

func TestParse(t *testing.T) {
	t.Parallel()
	text := "# head\n\n[global]\nioengine = libaio\n time_based\ndirect=1 ; inline\n\n[a job]  " +
		"\nfilename=/dev/sdb\nrw=randrw\nrw=read\nopts=a=b=c\nsize=\n[empty]\n[global]\nbs=8k\n[a job]\nsize=1g"
	got, err := fiofile.Parse("x.fio", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &fiofile.File{Name: "x.fio", Sections: []fiofile.Section{
		{Name: "global", Line: 3, Col: 1, Options: []fiofile.Option{
			{Key: "ioengine", Value: "libaio", Line: 4, Col: 1, ValueCol: 12},
			{Key: "time_based", Flag: true, Line: 5, Col: 2},
			{Key: "direct", Value: "1", Line: 6, Col: 1, ValueCol: 8}}},
		{Name: "a job", Line: 8, Col: 1, Options: []fiofile.Option{
			{Key: "filename", Value: "/dev/sdb", Line: 9, Col: 1, ValueCol: 10},
			{Key: "rw", Value: "randrw", Line: 10, Col: 1, ValueCol: 4},
			{Key: "rw", Value: "read", Line: 11, Col: 1, ValueCol: 4},
			{Key: "opts", Value: "a=b=c", Line: 12, Col: 1, ValueCol: 6},
			{Key: "size", Line: 13, Col: 1, ValueCol: 6}}},
		{Name: "empty", Line: 14, Col: 1},
		{Name: "global", Line: 15, Col: 1, Options: []fiofile.Option{{Key: "bs", Value: "8k", Line: 16, Col: 1,
			ValueCol: 4}}},
		{Name: "a job", Line: 17, Col: 1, Options: []fiofile.Option{{Key: "size", Value: "1g", Line: 18, Col: 1,
			ValueCol: 6}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	jobs := got.Jobs()
	if len(jobs) != 3 || jobs[0].Value("rw") != "read" || jobs[0].Value("bs") != "" || jobs[2].Value("bs") != "8k" ||
		jobs[2].Value("ioengine") != "libaio" {
		t.Errorf("options in force: %v", jobs)
	}
	if !jobs[0].Enabled("time_based") || jobs[0].Enabled("norandommap") || got.Global() != &got.Sections[0] {
		t.Error("switches or the global section")
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", fiofile.MaxLine)
	for text, want := range map[string]string{
		"size=1\n[a]\n": `x.fio:1:1: option "size=1" stands before any section; put it under [global]`,
		"\n [a\n":       `x.fio:2:2: section header "[a" lacks its closing bracket`,
		"[a]\n =5\n":    `x.fio:2:2: "=5" lacks an option name before =`,
		"[]\n":          "x.fio:1:1: a section without a name",
		"[a]\nb\x00\n": "x.fio:2:2: a zero byte: this is not a text file, or one of " +
			"UTF-16; save it as UTF-8",
		"[a]\n; b\x00\n": "x.fio:2:4: a zero byte: this is not a text file, or one of " +
			"UTF-16; save it as UTF-8",
		"\xff\xfe[\x00a\x00]\x00": "x.fio:1:1: the file is UTF-16, which fio does not read; save it " +
			"as UTF-8",
		"\xfe\xff\x00[\x00a\x00]": "x.fio:1:1: the file is UTF-16, which fio does not read; save it " +
			"as UTF-8",
		"[a]\n" + long + "y\n":                    "x.fio:2:1: the line has 4096 bytes; fio reads lines of up to 4095",
		"[a]\n;" + long + "\n":                    "x.fio:2:1: the line has 4096 bytes; fio reads lines of up to 4095",
		"[a]\nb=1\rc\n":                           `x.fio:2:4: "\r" cannot be part of a job file; write plain text`,
		"[a]\nb\xe4\n":                            `x.fio:2:2: "\xe4" cannot be part of a job file; write plain text`,
		strings.Repeat("\n", 20_001):              "x.fio:20001:1: more than 20000 lines",
		strings.Repeat("[a]\n", 2001):             "x.fio:2001:1: more than 2000 sections",
		long[:1<<10] + strings.Repeat("x", 1<<20): "x.fio:1:1: the file has 1049600 bytes; a job file may have 1048576",
		"b\n[\n[c]\n\f\n=\n[d": "x.fio:1:1: option \"b\" stands before any section; put it under [global]\n" +
			"x.fio:2:1: section header \"[\" lacks its closing bracket\nx.fio:2:1: a section without a name\n" +
			"x.fio:4:1: \"\\f\" cannot be part of a job file; write plain text\nx.fio:5:1: \"=\" lacks an option " +
			"name before =\n" +
			"x.fio:6:1: section header \"[d\" lacks its closing bracket",
		"[" + strings.Repeat("n", 201) + "]\n": "x.fio:1:1: a section name of 201 bytes; at most 200",
	} {
		if f, err := fiofile.Parse("x.fio", []byte(text)); f != nil || err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, %v; want %q", text, f, err, want)
		}
	}
}

// What is not seen in a file means nothing: a byte order mark, returns before line ends.
func TestParseMarksAndReturns(t *testing.T) {
	t.Parallel()
	want, err := fiofile.Parse("x.fio", []byte("[a]\nbs=4k\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := fiofile.Parse("x.fio", []byte("\ufeff[a]\r\nbs=4k\t\r\n; \xe4\x01\r\n"))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for o, want := range map[fiofile.Option]string{
		{Key: "bs", Value: "4k"}:              "",
		{Key: "time_based", Flag: true}:       "",
		{Key: "a", Value: "1\nexec_prerun=x"}: "it would be read as something else in a job file",
		{Key: "a\nexec_prerun", Value: "x"}:   "it would be read as something else in a job file",
		{Key: "a=b", Value: "1"}:              "it would be read as something else in a job file",
		{Key: "[a]", Value: "1"}:              "it would be read as something else in a job file",
		{Key: "", Value: "1"}:                 `"=1" lacks an option name before =`,
		{Key: "#a", Value: "1"}:               "it would be read as something else in a job file",
		{Key: "a", Value: " 1"}:               "it would be read as something else in a job file",
		{Key: "a", Value: "1;2"}:              "it would be read as something else in a job file",
		{Key: "a", Value: "1\r2"}:             `"\r" cannot be part of a job file; write plain text`,
		{Key: "a", Value: "1\r"}:              "it would be read as something else in a job file",
		{Key: "description", Value: strings.Repeat("x", 8179) + "exec_prerun=touch x"}: "the line has 8210 bytes; " +
			"fio reads lines of up to 4095",
	} {
		got := ""
		if err := o.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40q=%.40q: %q, want %q", o.Key, o.Value, got, want)
		}
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	f, err := fiofile.Parse("x.fio", []byte("[global]\nblocksize=4k\n[a]\nsize=1g\nsize=2g\ntime_based\n"))
	if err != nil {
		t.Fatal(err)
	}
	f.Global().Set("bs", "8k")
	f.Global().SetFlag("group_reporting")
	a := f.Jobs()[0]
	a.Set("size", "3g")
	a.Delete("time_based")
	want := "[global]\nbs=8k\ngroup_reporting\n\n[a]\nsize=1g\nsize=3g\n"
	if f.String() != want || a.Value("blocksize") != "8k" {
		t.Errorf("got:\n%s\nwant:\n%s", f, want)
	}
}

// Without [global] every job gets the option, in place where it has one.
func TestSetEverywhere(t *testing.T) {
	t.Parallel()
	f, err := fiofile.Parse("f", []byte("[a]\niodepth=1\nrw=read\n[b]\nrw=write\n"))
	if err != nil {
		t.Fatal(err)
	}
	f.SetEverywhere("iodepth", "8")
	for _, job := range f.Jobs() {
		if got := job.Value("iodepth"); got != "8" {
			t.Errorf("%s: iodepth=%s", job.Name, got)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	f, err := fiofile.Parse("x.fio", []byte("[a]\nbs=${BS}\nname=${B}-${BS}\niodepth=$x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"B", "BS"}, f.Variables()); diff != "" {
		t.Error(diff)
	}
}

// The known answers are what fio 3.33 itself does with the same texts.
func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"10": 10, "4b": 4, "4k": 4096, "4K": 4096, "4kb": 4096, "4ki": 4096, "4kib": 4000, "4KiB": 4000, "1m": 1 << 20,
		"8G": 8 << 30, "2t": 2 << 40, "1p": 1 << 50,
		"1mib": 1e6, "0x10": 16, "0x10k": 16384, " 64G ": 64 << 30,
		"9223372036854775807": math.MaxInt64, "9007199254740991k": math.MaxInt64 &^ 1023, "8191p": 8191 << 50,
	} {
		got, err := fiofile.ParseSize(text)
		if err != nil || got != (fiofile.Size{Bytes: want}) {
			t.Errorf("%q: %v, %v; want %d bytes", text, got, err, want)
		}
	}
	for text, want := range map[string]int64{"4k": 4000, "4kib": 4096, "4ki": 4000, "1g": 1e9} {
		if got, err := fiofile.ParseSizeBase(text, 1000); err != nil || got.Bytes != want {
			t.Errorf("kb_base 1000, %q: %v, %v; want %d", text, got, err, want)
		}
	}
	if got, err := fiofile.ParseSize("0%"); err != nil || got != (fiofile.Size{}) {
		t.Errorf("0%%: %v, %v", got, err)
	}
	if got, err := fiofile.ParseSize("50%"); err != nil || got != (fiofile.Size{Percent: 50}) {
		t.Errorf("50%%: %v, %v", got, err)
	}
	for _, text := range []string{"", "x", "-1", "1x", "1kk", "1.5k", "k", "-0.5%", "101%", "NaN%",
		"9223372036854775808", "9007199254740992k", "8192p", "99999999999999999999", "0x", "1kiib", "8 k b"} {
		if got, err := fiofile.ParseSize(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	if _, err := fiofile.ParseSizeBase("1k", 1); err == nil {
		t.Error("kb_base 1 is accepted")
	}
}

func TestParseBSSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][][]fiofile.Share{
		"8k/90:32k/10":       {{{8192, 90}, {32768, 10}}},
		"4k/50:64k/:1m/":     {{{4096, 50}, {65536, 25}, {1 << 20, 25}}},
		"4k":                 {{{4096, 100}}},
		"4k/100,8k/60:4k/40": {{{4096, 100}}, {{8192, 60}, {4096, 40}}},
	} {
		got, err := fiofile.ParseBSSplit(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "4k/50", "4k/x", "x/100", "4k/60:8k/60", "4k/100,", "0/100", "50%/100", "4k/-1"} {
		if got, err := fiofile.ParseBSSplit(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestParseRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]fiofile.Rates{
		"500": {500, 500, 500}, "500,200": {500, 200, 0}, "500,200,1": {500, 200, 1}, ",200": {0, 200, 0},
		"1k": {1024, 1024, 1024}, "0,200": {0, 200, 0},
	} {
		if got, err := fiofile.ParseRates(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "1,2,3,4", "5%", "0%", "-1"} {
		if got, err := fiofile.ParseRates(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

var corpus = "../../../../../shared/corpus"

// TestCorpus reads every published job file and writes it back.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob(filepath.Join(corpus, "xray", "*", "*.fio"))
	if len(files) == 0 {
		t.Skipf("0 published job files found under %s: skipped", corpus)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := fiofile.Parse(filepath.Base(name), data)
		if err != nil {
			t.Error(err)
			continue
		}
		roundTrip(t, f)
		if f.Global() == nil || len(f.Jobs()) == 0 {
			t.Errorf("%s: no [global] or no job", name)
		}
		for _, job := range f.Jobs() {
			if size, err := fiofile.ParseSize(job.Value("size")); err != nil || size.Bytes == 0 {
				t.Errorf("%s [%s]: size: %v", name, job.Name, err)
			}
			if o, ok := job.Get("bssplit"); ok {
				if _, err := fiofile.ParseBSSplit(o.Value); err != nil {
					t.Errorf("%s [%s]: %v", name, job.Name, err)
				}
			}
			if o, ok := job.Get("rate_iops"); ok {
				if _, err := fiofile.ParseRates(o.Value); err != nil {
					t.Errorf("%s [%s]: %v", name, job.Name, err)
				}
			}
		}
	}
}

// roundTrip checks that what String writes reads back as the same sections, and is written the same again.
func roundTrip(t *testing.T, f *fiofile.File) {
	t.Helper()
	again, err := fiofile.Parse(f.Name, []byte(f.String()))
	if err != nil {
		t.Fatalf("%q does not read back: %v", f.String(), err)
	}
	lines := cmp.Options{
		cmpopts.IgnoreFields(fiofile.Section{}, "Line", "Col"),
		cmpopts.IgnoreFields(fiofile.Option{}, "Line", "Col", "ValueCol"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(f, again, lines); diff != "" {
		t.Fatalf("%s changes (-first +again):\n%s", f.Name, diff)
	}
}

func FuzzFiofile(f *testing.F) {
	for _, s := range []string{"[global]\nbs=4k\n[a]\nsize=1g\n", "[a]\nb", "[a b]]\n=", "\ufeff[x]\r\nk = v = w ; c\n",
		"[a]\nbssplit=4k/50:8k,1m/100\nrate_iops=1,2\nsize=0x10kib\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := fiofile.Parse("f", []byte(text))
		if (file == nil) != (err != nil) {
			t.Fatalf("%v, %v", file, err)
		}
		if file == nil {
			return
		}
		roundTrip(t, file)
		for _, job := range file.Jobs() {
			for _, o := range job.Options {
				if size, err := fiofile.ParseSize(o.Value); err == nil &&
					(size.Bytes < 0 || size.Percent < 0 || size.Percent > 100) {
					t.Fatalf("%q is %+v", o.Value, size)
				}
				directions, err := fiofile.ParseBSSplit(o.Value)
				for _, shares := range directions {
					sum := 0.0
					for _, s := range shares {
						sum += s.Percent
					}
					if err == nil && (sum < 99.999 || sum > 100.001) {
						t.Fatalf("%q adds up to %g", o.Value, sum)
					}
				}
				_, _ = fiofile.ParseRates(o.Value)
			}
		}
	})
}
