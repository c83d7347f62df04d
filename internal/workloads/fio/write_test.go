package fio

import (
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/fio/fiofile"
)

// hostile are files by which text has reached fio that the check had not seen, or might.
var hostile = []string{
	// fio takes what comes after its buffer for a line of its own.
	"[a]\nfilename=/dev/sdb\nsize=1m\ndescription=" + strings.Repeat("x", 8179) + "exec_prerun=touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nbuffer_pattern=\"" + strings.Repeat("x", 4080) + "exec_prerun=touch x\"\n",
	"[" + strings.Repeat("x", 8189) + "]exec_prerun=touch x\n[a]\nfilename=/dev/sdb\nsize=1m\n",
	"[" + strings.Repeat("x", 300) + "]\nfilename=/dev/sdb\nsize=1m\n",
	"; " + strings.Repeat("x", 8189) + "exec_prerun=touch x\n[a]\nfilename=/dev/sdb\nsize=1m\n",
	"[a]\nfilename=" + strings.Repeat("/dev/sdb:", 910) + "filename=/etc/passwd\nsize=1m\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nbuffer_pattern=\"a --exec_prerun=touch x\"\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\ninclude\t/etc/fio.conf\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\ninclude /etc/fio.conf\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nfilename_format=/etc/$jobname\n",
	"[$jobname`id`]\nfilename=/dev/sdb\nsize=1m\n",
	"[a;b#c]\nfilename=/dev/sdb\nsize=1m\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nbs=${HOME}\niodepth=$ncpus\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nbs=(4*1024)\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nbs=4k\rexec_prerun=touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nbs=4k\x0cexec_prerun=touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\ndescription=a\x00\nexec_prerun=touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\ndescription=a \\\nexec_prerun=touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nexec_prerun\n=touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\n exec_prerun = touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\n--exec_prerun=touch x\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nname=../../x --exec_prerun=touch\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nioengine=external:/tmp/x.so\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nioengine=libaio:exec_prerun\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nmem=mmap:/etc/passwd\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nverify_pattern=0xff'/etc/passwd'\n",
	"[a]\nfilename=/dev/sdb\\:/etc/passwd\nsize=1m\n",
	"[a]\nfilename=/dev/sdb\nsize=1m\nverify=md5\nverify_state_load=1\nverify_state_save=1\n",
	"\xef\xbb\xbf[global]\r\nbs=4k\r\n[a]\r\nfilename=/dev/sdb\r\nsize=1m\r\n",
	"\xff\xfe[\x00a\x00]\x00\n\x00",
	"[global]\nbs=4k\n[a]\nfilename=/dev/sdb\nsize=1m\n[global]\nreadwrite=write\nblocksize=8k,\n" +
		"[a]\nwait_for=a\nfilename=/dev/sdb:/dev/sdc\nsize=1m\n" +
		"wait_for_previous\nbssplit=4k/60:8k\nrandom_distribution=zoned:60/10:30/20,50/50:50/50\n" +
		"time_based=0\noffset=0%\nstartdelay=1-2s\nrate=,1m\n",
}

// values are pieces of values for generated files, good, bad and hostile.
var values = strings.Fields("0 1 4k 8K 0x10k 1mib 50% 0% 12.5% 4k,8k ,8k 4k- 1k-4k 4k/50:8k/50 read randrw:8 " +
	"libaio psync " +
	"io_uring zipf:1.2 zoned:50/5 iops:5% 10s 500ms 1-2 EIO,5:ENOSPC md5 \"ab\"-12 0xdeadbeef %o " +
	"none all wait_before:8,write 99.5:99.9 -3 /etc/passwd /dev/sdb /dev/sdc:/dev/sdb $HOME ${X} " +
	"`id` (4*4) a;b a#b [a] ' \" \\ = exec_prerun=id")

// generated is a file of random options in random sections. Every other one is tame, so that most of it passes.
func generated(r *rand.Rand) string {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	names := slices.Concat(slices.Sorted(maps.Keys(table)), slices.Sorted(maps.Keys(aliases)))
	sections := []string{"a", "b", "global", "a b", "ü", strings.Repeat("n", 200)}
	paths := []string{"/dev/sdb", "/dev/sdc:/dev/sdb"}
	tame := r.IntN(2) == 0
	if !tame {
		sections, paths = append(sections, "x]y", "$", "globals"), append(paths, "/etc/passwd", "${X}", "/dev/sdb;")
	}
	var b strings.Builder
	for range 1 + r.IntN(4) {
		b.WriteString("[" + pick(sections) + "]\nfilename=" + pick(paths) + "\nsize=1m\n")
		for range r.IntN(4) {
			name, value := pick(names), pick(values)
			if o := table[canonical(name)]; tame && o.form == nil {
				continue
			} else if fits := slices.DeleteFunc(slices.Clone(values), func(v string) bool {
				if o.form == nil {
					return true
				}
				_, err := o.form(v)
				return err != nil
			}); len(fits) > 0 && r.IntN(8) > 0 {
				value = pick(fits)
			} else if tame {
				continue
			}
			line := name + "=" + value
			if !tame {
				long := name + " = " + strings.Repeat(value, r.IntN(2000))
				line = pick([]string{line, line, line, name, name + "\t" + line, name + "\r" + line, long})
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String() + "[last]\nfilename=/dev/sdb\nsize=1m\n"
}

// writtenLine is every line a file for fio may hold, apart from the names of disks.
var writtenLine = regexp.MustCompile(`^(|\[global\]|\[section-[0-9]{1,4}\]|` +
	`([a-z_-]{2,40})(=[0-9A-Za-z%,./:_-]+|=[0-9A-Za-z%-]*"[ -~]*"[ -~]*)?|filename=[ -~]+)$`)

// checkWritten looks at a job's file by itself, without the code that made it.
func checkWritten(t testing.TB, s workload.Spec, job workload.Job) {
	t.Helper()
	data := string(job.Files[filepath.Dir(job.Output)+"/job.fio"])
	jobs := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(data, "\n"), "\n") {
		m := writtenLine.FindStringSubmatch(line)
		if m == nil || len(line) >= 4096 || strings.ContainsAny(line, "$`;#'()<>|&") {
			t.Fatalf("the file for fio has a line %.200q", line)
		}
		if key, value, _ := strings.Cut(line, "="); key == "filename" {
			for _, path := range splitEscaped(value) {
				known := func(d target.Disk) bool { return strings.ReplaceAll(d.Path, ":", `\:`) == path }
				if !slices.ContainsFunc(s.Disks, known) {
					t.Fatalf("fio gets the file %q", path)
				}
			}
		} else if o, ok := table[key]; m[2] != "" && (!ok || o.action == drop || o.action == refuse) {
			t.Fatalf("fio gets the option %q", key)
		}
		if strings.HasPrefix(line, "[section-") {
			jobs++
		}
	}
	if jobs != len(job.Streams) || !strings.HasPrefix(data, "[global]\n") {
		t.Fatalf("%d sections for %d lanes:\n%s", jobs, len(job.Streams), data)
	}
}

// Whatever the file says, what fio gets is made of options of the table, names of our own and the machine's disks.
func FuzzAdapt(f *testing.F) {
	f.Add([]byte("[global]\nbs=4k\n[a]\nfilename=/dev/sdb\nsize=1g\n"), 0.5)
	f.Add([]byte("[a]\nfilename=/dev/sdb:/dev/sdc\nexec_prerun=x\nruntime=5m\nbssplit=4k/10:8k\n"), 1.0)
	f.Add([]byte("[a]\nreadwrite=write:4\nfilename=/dev/sdb\nrate_iops=5,\nnumjobs=9999999\nstartdelay=1-2\n"), 1e-5)
	for _, text := range hostile {
		f.Add([]byte(text), 1.0)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		f.Add([]byte(generated(r)), 1.0)
	}
	f.Fuzz(func(t *testing.T, config []byte, scale float64) {
		s := spec(string(config))
		s.SizeScale, s.TimeScale = scale, scale
		for _, s.Prefill = range []bool{false, true} {
			if job, err := (Engine{}).Command(s); err == nil {
				checkWritten(t, s, job)
			}
		}
	})
}

// reported holds what fio says of one section: its options in the order of their names.
type reported struct {
	Name    string
	Options []string
}

// listed returns what fio has to report of a file of ours. It names no [global]: with each one it repeats all the
// options of [global] so far, at the end of the section before.
func listed(data string) []reported {
	file, _ := fiofile.Parse("job.fio", []byte(data))
	all := []reported{{}}
	var globals []string
	for _, s := range file.Sections {
		var options []string
		for _, o := range s.Options {
			text := "--" + o.Key
			if !o.Flag {
				text += "=" + o.Value
			}
			options = append(options, commandWords(text)...)
		}
		if s.Name == fiofile.Global {
			globals = append(globals, options...)
			last := &all[len(all)-1]
			last.Options = append(last.Options, globals...)
		} else {
			all = append(all, reported{s.Name, options})
		}
	}
	return sortedOptions(all)
}

// commandWords parts a command line as fio writes it, without quotes: a text with " --" in it becomes two, here and
// there.
func commandWords(line string) []string {
	words := strings.Split(" "+line, " --")[1:]
	for i := range words {
		words[i] = "--" + strings.TrimSpace(words[i])
	}
	return words
}

func sortedOptions(all []reported) []reported {
	for i := range all {
		slices.Sort(all[i].Options)
	}
	return all
}

// help matches what fio prints, between the options, about values that have more to them than their names.
var help = regexp.MustCompile(`(?s) *valid values: .*?\n\n`)

// showOptions lets fio parse a file and gives the options it has found; false when fio refuses the file.
func showOptions(t testing.TB, fio, data string) ([]reported, bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job.fio"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(arg string) (string, bool) {
		cmd := exec.CommandContext(t.Context(), fio, arg, "job.fio")
		cmd.Dir = dir
		out, err := cmd.Output()
		return string(out), err == nil
	}
	if _, ok := run("--parse-only"); !ok {
		return nil, false
	}
	out, ok := run("--showcmd")
	if !ok {
		return nil, false
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Fatalf("fio left files beside the job file: %v, %v", left, err)
	}
	out = help.ReplaceAllString(out, " ")
	all := []reported{{}}
	for _, word := range commandWords(strings.TrimPrefix(strings.TrimSpace(out), "fio ")) {
		if name, ok := strings.CutPrefix(word, "--name="); ok {
			all = append(all, reported{Name: name})
			continue
		}
		last := &all[len(all)-1]
		last.Options = append(last.Options, word)
	}
	return sortedOptions(all), true
}

// fio finds in a file of ours what we have put there, and nothing else: whole names, whole values.
func agree(t testing.TB, fio string, config []byte) (compared bool) {
	t.Helper()
	job, err := Engine{}.Command(spec(string(config)))
	if err != nil {
		return false
	}
	data := string(job.Files["w/job.fio"])
	got, ok := showOptions(t, fio, data)
	if !ok {
		return false
	}
	if diff := cmp.Diff(listed(data), got); diff != "" {
		t.Fatalf("fio found other options than were written (-written +found):\n%s\nin\n%s\nfrom\n%.2000q", diff, data,
			config)
	}
	return true
}

func TestRealFindsWhatIsWritten(t *testing.T) {
	t.Parallel()
	fio := needs.Fio(t)
	compared, files := 0, 120
	for _, text := range hostile {
		if agree(t, fio, []byte(text)) {
			compared++
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range files {
		if agree(t, fio, []byte(generated(r))) {
			compared++
		}
	}
	if compared < files/5 {
		t.Errorf("only %d of the files were compared; the others were refused, here or by fio", compared)
	}
	t.Logf("%d files compared", compared)
}

// FuzzReal is the same for any file, with fio's word on each.
func FuzzReal(f *testing.F) {
	fio := needs.Fio(f)
	for _, text := range hostile {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, config []byte) { agree(t, fio, config) })
}

// The table has every option that the fio of this machine lists, for itself and for the engines allowed. A newer fio
// has more; those of 3.33 are in it.
func TestRealOptionsAreInTheTable(t *testing.T) {
	t.Parallel()
	fio := needs.Fio(t)
	ask := func(arg string) string {
		out, err := exec.CommandContext(t.Context(), fio, arg).Output()
		if err != nil && len(out) == 0 {
			t.Fatal(err)
		}
		return string(out)
	}
	text := ask("--cmdhelp=all")
	for name := range engines {
		if name != "io_uring" { // cmd_type is an option of io_uring_cmd alone
			text += ask("--enghelp=" + name)
		}
	}
	listed := regexp.MustCompile(`(?m)^ *([a-z_-]+) *: `).FindAllStringSubmatch(text, -1)
	for _, m := range listed {
		if o, ok := table[m[1]]; !ok {
			t.Errorf("%s is not in the table", m[1])
		} else if o.action != drop && o.action != refuse && o.action != force && o.form == nil &&
			!slices.Contains([]string{"filename", "ioengine", "wait_for"}, m[1]) {
			t.Errorf("%s has no form", m[1])
		}
	}
	if len(listed) < 200 {
		t.Errorf("fio lists %d options", len(listed))
	}
}

// Every second name of the table leads to an option of it.
func TestAliases(t *testing.T) {
	t.Parallel()
	for alias, name := range aliases {
		if _, ok := table[name]; !ok {
			t.Errorf("%s stands for %s, which is not in the table", alias, name)
		}
		if _, ok := table[alias]; ok {
			t.Errorf("%s is a name of its own", alias)
		}
	}
}
