package fio

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/fio/fiofile"
)

// futureFio answers for options as fio prints them; it has some that no table lists. It tells of another one when asked
// for a name like it, as fio does.
const futureFio = `#!/bin/sh
say() {
	printf '%20s: %s\n' "$1" "$2"
	shift 2
	while [ $# -gt 0 ]; do printf '%20s: %s\n' "$1" "$2"; shift 2; done
}
case "$1" in
--version) echo fio-3.55 ;;
--cmdhelp=glide|--cmdhelp=gl) say glide 'Glide for this long' alias gl type 'string with time postfix (opt=10s)' default 0 ;;
--cmdhelp=glides) echo 'No such command: glides - showing closest match'; say glide 'Glide for this long' alias gl \
	type 'string with time postfix (opt=10s)' ;;
--cmdhelp=lane_width) say lane_width 'Width of a lane' type 'string (opt=bla)' default 0 range 'min=1' ;;
--cmdhelp=lane_kind) say lane_kind 'Kind of lane' type 'string (opt=bla)' default wide 'valid values' 'wide Wide ones' '' 'narrow' ;;
--cmdhelp=lane_count) say lane_count 'Number of lanes' type 'integer value (opt=100)' default 1 ;;
--cmdhelp=eager) say eager 'Begin at once' type 'empty or boolean value ([0|1])' default 'no default' ;;
--cmdhelp=prudent) say prudent 'Look twice' type 'boolean value (opt=1)' default 0 ;;
--cmdhelp=lane_name) say lane_name 'What the lane is called' type 'string (opt=bla)' default 'no default' ;;
--cmdhelp=lane_log) say lane_log 'Lanes to this file' type 'integer value (opt=100)' default 0 ;;
--cmdhelp=sky) say sky 'Your platform has no sky' type unsupported ;;
--enghelp=libaio,vector_width) say vector_width 'Blocks at once' type 'integer value (opt=100)' ;;
*) echo "No such command: $1" >&2; exit 1 ;;
esac
`

func future(t *testing.T) Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fio")
	syscall.ForkLock.RLock() // else a program that starts meanwhile holds it open, and it cannot be run
	err := os.WriteFile(path, []byte(futureFio), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return Engine{Program: path}
}

// What only the installed fio knows is passed on as far as its value can name nothing, and refused with both said
// otherwise.
func TestOptionsOfTheInstalledFio(t *testing.T) {
	t.Parallel()
	e := future(t)
	const knows, others = `refused: fio-3.55 here knows it (`, `), but plimsoll does not, and `
	for line, want := range map[string]string{
		"glide=10s":         "glide=10s",
		"gl=10s":            "gl=10s",
		"glide=long":        `"long" is not a time`,
		"glides=10s":        "no option of fio 3.28 to 3.42 has this name, nor has fio-3.55 here",
		"lane_width=64k":    "lane_width=64k",
		"lane_width=/etc/x": `"/etc/x" is not a number`,
		"lane_kind=narrow":  "lane_kind=narrow",
		"lane_kind=/bin/sh": `"/bin/sh" is none of wide, narrow`,
		"lane_count=3,-4":   "lane_count=3,-4",
		"eager":             "eager",
		"eager=0":           "eager=0",
		"prudent=1":         "prudent=1",
		"prudent":           "it needs a value",
		"lane_name=x":       knows + `"What the lane is called"` + others + "its value is a text, which may name a file or a program",
		"lane_log=1":        knows + `"Lanes to this file"` + others + "it may reach more than the data disks",
		"sky=1":             "refused: fio-3.55 here cannot do it: Your platform has no sky; take it out",
		"vector_width=8":    "vector_width=8",
		"--output=/etc/x=1": "has this name",
		"ramp_size=16m":     "ramp_size=16m",
	} {
		s := spec("[a]\nfilename=/dev/sdb\nsize=1m\n" + line + "\n")
		job, err := e.Command(s)
		got := ""
		for _, text := range job.Files {
			got += string(text)
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got+"\n", want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	job, err := e.Command(spec("[a]\nfilename=/dev/sdb\nsize=1m\nlane_count=3\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"lane_count is not known to plimsoll and passed on as it is, neither scaled nor judged; fio-3.55 here says " +
		"of it: Number of lanes"}
	if diff := cmp.Diff(want, job.Notes); diff != "" {
		t.Error(diff)
	}
}

// Options of the table that the installed fio is too old for are found before the run, and told by check.
func TestInstalledFioTooOld(t *testing.T) {
	t.Parallel()
	e := future(t) // it lacks every option of the table
	const text = "[global]\nfilename=/dev/sdb\n[a]\nsize=64m\nlog_max_value=1\nramp_size=16m\nss_interval=1\n[b]\nramp_size=1m\nsize=1m\n"
	_, err := e.Here(t.Context(), []workload.Spec{{Name: "w", ConfigFile: "w.fio", Config: []byte(text)}})
	want := `workload "w": ramp_size needs fio 3.42 or later, and here is fio-3.55 (` + e.Program +
		"): take it out, or install a newer one\n" +
		`workload "w": ss_interval needs fio 3.35 or later, and here is fio-3.55 (` + e.Program +
		"): take it out, or install a newer one"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	own, err := e.ReadOwn(workload.OwnRequest{Name: "w.fio", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if len(own.Notes) < 2 || own.Notes[0] != "ramp_size needs fio 3.42 or later, and here is fio-3.55: a run on this machine is refused" {
		t.Errorf("notes %q", own.Notes)
	}
}

// A value that the fio here does not take is found before the run.
func TestInstalledFioRefuses(t *testing.T) {
	t.Parallel()
	path := needs.Fio(t)
	_, err := Engine{}.Here(t.Context(), []workload.Spec{{Name: "w", ConfigFile: "w.fio",
		Config: []byte("[a]\nfilename=/dev/sdb\nsize=64m\nrw=randread\nprioclass=9\n")}})
	if want := " refuses prioclass=9 (" + path + "): correct it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Every option that has a first version is in the table and reaches fio.
func TestSince(t *testing.T) {
	t.Parallel()
	for name, version := range since {
		if o, ok := table[name]; !ok || o.form == nil {
			t.Errorf("%s of fio %s does not reach fio", name, version)
		}
	}
}

// TestAioDepth: processes count, stages do not add up, and only libaio takes room of the kernel's.
func TestAioDepth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"[a]\nioengine=libaio\n":                                                   1,
		"[a]\nioengine=libaio\niodepth=32\nnumjobs=4\n":                            128,
		"[global]\nioengine=libaio\niodepth=8\n[a]\n[b]\n":                         16,
		"[global]\nioengine=libaio\niodepth=8\n[a]\n[b]\nstonewall\niodepth=100\n": 100,
		"[a]\nioengine=io_uring\niodepth=512\n":                                    0,
	} {
		f, err := fiofile.Parse("w.fio", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := aioDepth(f.Jobs()); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// An engine is refused before a run where the fio has it not, or the kernel will not have it.
func TestEngineLacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, switched := filepath.Join(dir, "fio"), filepath.Join(dir, "io_uring_disabled")
	script := "#!/bin/sh\ncase $1 in --enghelp=rados) echo 'IO engine rados not found';; *) echo no options;; esac\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil { // it is run
		t.Fatal(err)
	}
	for _, c := range []struct{ engine, off, want string }{
		{"io_uring", "0\n", ""}, {"io_uring", "2\n", "(kernel.io_uring_disabled is 2)"}, {"libaio", "2\n", ""},
		{"rados", "0\n", "has it not"},
	} {
		if err := os.WriteFile(switched, []byte(c.off), 0o600); err != nil {
			t.Fatal(err)
		}
		got := engineLacks(t.Context(), program, c.engine, switched)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s with %q: %q, want %q", c.engine, c.off, got, c.want)
		}
	}
	real := needs.Fio(t)
	for engine, has := range map[string]bool{"psync": true, "sync": true, "libaio": true, "null": true,
		"nosuch": false} {
		if got := engineLacks(t.Context(), real, engine, switched); (got == "") != has {
			t.Errorf("%s of the fio here: %q", engine, got)
		}
	}
	if got := engineLacks(t.Context(), program, "io_uring", filepath.Join(dir, "none")); got != "" {
		t.Errorf("of a kernel without the switch: %q", got)
	}
}

// Processors and memory nodes that are not there are found before the run: fio only says so when it is started.
func TestMissingProcessors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, has := range map[string]string{"cpu": "0-3\n", "node": "0\n"} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700),
			os.WriteFile(filepath.Join(dir, name, "possible"), []byte(has), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"cpus_allowed=0-3\nnuma_mem_policy=local\nverify_async_cpus=1,3": "",
		"cpus_allowed=0,2-4":     "cpus_allowed=0,2-4: this machine has CPUs 0-3: write those, or take it out",
		"numa_cpu_nodes=all":     "",
		"numa_cpu_nodes=0-1":     "numa_cpu_nodes=0-1: this machine has memory nodes 0: write those, or take it out",
		"numa_mem_policy=bind:1": "numa_mem_policy=bind:1: this machine has memory nodes 0: write those, or take it out",
	} {
		file, err := fiofile.Parse("a.fio", []byte("[a]\n"+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(missingProcessors(file.Jobs()[0], dir), "; "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := missingProcessors(file.Jobs()[0], dir+"/none"); got != nil {
			t.Errorf("%q: nothing is known, and %q", text, got)
		}
	}
}
