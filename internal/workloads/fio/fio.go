// Package fio drives fio, 3.28 or later: it turns an author's job file into one that touches nothing but the machine's
// data disks, runs it, and turns its status stream into reports.
//
// Job files are written by strangers and fio may run as root, so nothing of the author's text reaches it. The file
// is read, every option is looked up in a table (options.go) that holds all of fio up to 3.42, and what is not in it
// asked of the fio of this machine (installed.go); its value is read by a form (values.go) and written anew: devices
// mapped, sizes and durations scaled, sections under names of our own. Options that would run commands or open other
// files are refused or left out with a note; what is not in the table, or has another form, is an objection with its
// place. fio still judges whether a value makes sense, in its own words, which are given back with the author's
// section names.
//
// Latency is total latency: fio's lat, from handing an operation to fio's engine to its completion, submission
// included. It is service time also for jobs with rate_process=poisson, because fio starts its watch when it sends. The
// histograms are fio's own bins, imported without loss (docs/decisions/0003-fio-latency.md).
//
// The parser reads any fio from 2.1 on, client/server files included, and refuses with a reason what holds no report.
package fio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
)

// MinVersion is the oldest fio accepted: the oldest one all of whose options and output we know by test.
const MinVersion = "3.28"

const install = "install it with: apt-get install fio (Debian, Ubuntu), dnf install fio (Fedora, RHEL)"

// Engine is the fio driver. The zero value runs the fio found on the host's PATH.
type Engine struct {
	Program string // "" is "fio"
}

var (
	_ workload.Engine   = Engine{}
	_ workload.Resident = Engine{}
)

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: "fio", OpenLoop: true, Latency: "service time", MinVersion: MinVersion,
		Blocks: true, Prefills: true}
}

// Check implements workload.Engine: it asks the host's fio for its version.
func (e Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	text, exit, err := e.ask(ctx, host)
	if err != nil {
		return workload.Tool{}, fmt.Errorf("check: fio on %s: %w", host.Name(), err)
	}
	if exit.Code != 0 {
		text = ""
	}
	tool, err := judged(text)
	if err != nil {
		return tool, fmt.Errorf("check: fio on %s: %w", host.Name(), err)
	}
	return tool, nil
}

// Here implements workload.Resident: there is a fio, which is new enough and has the options of the jobs, and the
// kernel lets them keep as many operations in flight.
func (e Engine) Here(ctx context.Context, specs []workload.Spec) (workload.Tool, error) {
	path, err := exec.LookPath(e.program())
	if err != nil {
		return workload.Tool{}, fmt.Errorf("fio: not found; %s", install)
	}
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return workload.Tool{Path: path}, fmt.Errorf("fio: %s --version: %w; %s", path, err, install)
	}
	tool, err := judged(path + "\n" + string(version))
	if err != nil {
		return tool, fmt.Errorf("fio: %w", err)
	}
	var bad []error
	engines := map[string]string{} // and why each cannot be used, "" where it can
	for _, spec := range specs {
		a, err := e.adapt(spec)
		if err != nil {
			continue // the plan has said so
		}
		lacks := lacking(e.program(), a.source)
		for _, what := range lacks {
			bad = append(bad, fmt.Errorf("workload %q: %s (%s): take it out, or install a newer one", spec.Name, what,
				path))
		}
		if len(lacks) == 0 {
			for _, what := range refuses(ctx, path, a.text) {
				bad = append(bad, fmt.Errorf("workload %q: %s refuses %s (%s): correct it, or install a newer one", spec.Name,
					tool.Version, what, path))
			}
		}
		for _, job := range a.out.Jobs() {
			for _, what := range missingProcessors(job, "/sys/devices/system") {
				bad = append(bad, fmt.Errorf("workload %q, job %s: %s", spec.Name, job.Name, what))
			}
			name := job.Value("ioengine")
			why, known := engines[name]
			if !known && name != "" {
				why = engineLacks(ctx, path, name, "/proc/sys/kernel/io_uring_disabled")
				engines[name] = why
			}
			if why != "" {
				bad = append(bad, fmt.Errorf("workload %q, job %s: ioengine=%s: %s", spec.Name, job.Name, name, why))
			}
		}
		if need, free := aioDepth(a.out.Jobs()), aioFree(); free >= 0 && need > free {
			bad = append(bad, fmt.Errorf("workload %q: its jobs keep %d operations in flight with libaio, and fs.aio-max-nr "+
				"leaves room for %d: raise it with sysctl, or write ioengine=io_uring", spec.Name, need, free))
		}
	}
	return tool, errors.Join(bad...)
}

// refused matches the lines in which fio names an option or a value that it does not take.
var refused = lazyregexp.New(`(?m)^(?:fio: failed parsing |Bad option <)([^>\n]+)>?$`)

// refuses are the lines of a job file that the fio at path does not take: it reads them all, and opens and makes
// nothing.
func refuses(ctx context.Context, path string, job []byte) (lines []string) {
	limited, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	cmd := exec.CommandContext(limited, path, "--parse-only", "-")
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(job), time.Second
	said, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	for _, m := range refused.FindAllStringSubmatch(string(said), 20) {
		lines = append(lines, m[1])
	}
	return lines
}

// engineLacks says why an engine cannot be used here: the fio has it not, or the kernel has io_uring switched off.
func engineLacks(ctx context.Context, path, name, switched string) string {
	limited, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	said, err := exec.CommandContext(limited, path, "--enghelp="+name).CombinedOutput()
	// Of an engine without options it ends with 1, too, as of whatever else goes wrong.
	if err != nil && bytes.Contains(said, []byte("engine "+name+" not found")) {
		return path + " has it not: name another, such as libaio or psync"
	}
	off, _ := os.ReadFile(switched) // without the file it is on
	if v := strings.TrimSpace(string(off)); name == "io_uring" && (v == "2" || v == "1" && os.Geteuid() != 0) {
		return "the kernel has io_uring switched off (kernel.io_uring_disabled is " + v + "): name libaio"
	}
	return ""
}

// missingProcessors says which processors and memory nodes a job asks for that are not there, by the kernel's folder.
func missingProcessors(job fiofile.Job, system string) (missing []string) {
	for _, key := range []string{"cpus_allowed", "verify_async_cpus", "log_compression_cpus", "numa_cpu_nodes",
		"numa_mem_policy"} {
		what, value := "cpu", job.Value(key)
		if strings.HasPrefix(key, "numa") {
			what, value = "node", value[strings.IndexByte(value, ':')+1:]
		}
		text, err := os.ReadFile(system + "/" + what + "/possible")
		has := strings.TrimSpace(string(text))
		last, numberErr := strconv.Atoi(has[strings.LastIndexAny(has, ",-")+1:])
		if errors.Join(err, numberErr) != nil {
			continue
		}
		for _, digits := range strings.FieldsFunc(value, func(r rune) bool { return r < '0' || r > '9' }) {
			if n, err := strconv.Atoi(digits); err != nil || n > last {
				missing = append(missing, fmt.Sprintf("%s=%s: this machine has %ss %s: write those, or take it out", key,
					job.Value(key), map[string]string{"cpu": "CPU", "node": "memory node"}[what], has))
				break
			}
		}
	}
	return missing
}

// aioDepth is how many operations jobs may have in flight with libaio at once, over all their processes.
func aioDepth(jobs []fiofile.Job) (most int64) {
	var stage int64
	for _, job := range jobs {
		if job.Enabled("stonewall") {
			stage = 0
		}
		if job.Value("ioengine") == "libaio" {
			stage += int64(number(job, "iodepth", 1)) * int64(number(job, "numjobs", 1))
		}
		most = max(most, stage)
	}
	return most
}

// aioFree is how many more operations of libaio the kernel lets be in flight, -1 where that is not known.
func aioFree() int64 {
	read := func(name string) int64 {
		text, err := os.ReadFile("/proc/sys/fs/" + name)
		n, numberErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if errors.Join(err, numberErr) != nil {
			return -1
		}
		return n
	}
	limit, used := read("aio-max-nr"), read("aio-nr")
	if limit < 0 || used < 0 {
		return -1
	}
	return max(limit-used, 0)
}

// judged is the fio of which a path and a version are known, on a line each, and what is wrong with it.
func judged(text string) (workload.Tool, error) {
	path, version, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if path == "" {
		return workload.Tool{}, fmt.Errorf("not found; %s", install)
	}
	tool := workload.Tool{Path: path, Version: strings.TrimSpace(version)}
	have, ok := parseVersion(tool.Version)
	if !ok {
		return tool, fmt.Errorf("%s says it is %q, which is no version of fio; %s", path, tool.Version, install)
	}
	if need, _ := parseVersion(MinVersion); have[0] < need[0] || have[0] == need[0] && have[1] < need[1] {
		return tool, fmt.Errorf("%s is %s, needed is %s or later; %s", path, tool.Version, MinVersion, install)
	}
	return tool, nil
}

const versionFile = ".fio-version"

// ask runs fio --version on the host. A missing program shows as a non-zero exit.
func (e Engine) ask(ctx context.Context, host target.Host) (string, target.Exit, error) {
	argv := []string{"/bin/sh", "-c", `command -v "$0" && exec "$0" --version`, e.program()}
	return workload.Ask(ctx, host, argv, versionFile, "fio --version", false)
}

func (e Engine) program() string {
	if e.Program != "" {
		return e.Program
	}
	return "fio"
}

var versionNumbers = lazyregexp.New(`^(?:fio-)?(\d{1,4})\.(\d{1,4})(?:\D|$)`)

// parseVersion reads "fio-3.33", "fio-3.28-dirty", "fio-3.36-44-g9bc9" and the like.
func parseVersion(text string) ([2]int, bool) {
	m := versionNumbers.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return [2]int{}, false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return [2]int{major, minor}, true
}

// Validate implements workload.Engine. Without disks in the Spec it judges the form of device names only.
func (e Engine) Validate(spec workload.Spec) error {
	_, err := e.adapt(spec)
	return err
}

// Command implements workload.Engine. The job's files lie in a folder of their own, named after the workload.
func (e Engine) Command(spec workload.Spec) (workload.Job, error) {
	if len(spec.Disks) == 0 {
		return workload.Job{}, fmt.Errorf("prepare: workload %q on %s: the machine has no data disk", spec.Name,
			spec.VM)
	}
	a, err := e.adapt(spec)
	if err != nil {
		return workload.Job{}, err
	}
	name := spec.Name
	if spec.Prefill && !strings.HasSuffix(name, "_prefill") {
		name += "_prefill"
	}
	folder := workload.FolderName(name)
	argv := []string{
		e.program(),
		"--output-format=json+",
		"--status-interval=1", // a run can be watched, however rarely the author wants reports
		"--output=" + folder + "/fio.out",
		"--eta=never",
		"--lat_percentiles=1", // bins of total latency
		"--clat_percentiles=0",
		// As processes, fio's jobs each begin a session of their own and outlive a kill of the process that started
		// them.
		"--thread",
	}
	if spec.Runtime > 0 && !spec.Prefill {
		argv = append(argv, "--runtime="+strconv.FormatInt(int64(wholeSeconds(spec.Runtime)/time.Second), 10))
	}
	// randrepeat is on by default and then, whatever randseed says, every job of every machine visits the same
	// offsets (seen with 3.33). Off, randseed alone decides; without it the sequence differs from run to run.
	argv = append(argv, "--randrepeat=0")
	if spec.Seed != 0 {
		argv = append(argv, "--randseed="+strconv.FormatUint(spec.Seed&math.MaxInt64, 10))
	}
	readOnly := !spec.Prefill && a.readsOnly()
	if readOnly {
		argv = append(argv, "--readonly")
	}
	sections, err := json.Marshal(streamNames(a.streams))
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q on %s: names of its sections: %w", spec.Name, spec.VM,
			err)
	}
	declared := workload.Declared{Operations: result.BlockOperations(), Format: sections}
	if !spec.Prefill && slices.ContainsFunc(a.out.Jobs(), flushes) {
		declared.Measures = syncMeasures
	}
	return workload.Job{
		Declared: declared,
		Command: target.Command{
			Argv:     append(argv, folder+"/job.fio"),
			Stderr:   folder + "/fio.err",
			Label:    name,
			ReadOnly: readOnly,
		},
		Files:   map[string][]byte{folder + "/job.fio": a.text},
		Config:  folder + "/job.fio",
		Output:  folder + "/fio.out",
		Limit:   a.limit,
		Streams: a.streams,
		Apart:   a.apart,
		Notes:   a.notes,
	}, nil
}
