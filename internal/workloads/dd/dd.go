// Package dd drives GNU dd as a database drives its log: commits of one size, written one after the other from the
// start of a disk to its end and round again, each of them on the device before the next begins (oflag=dsync).
//
// It is the worked example of docs/how-to/add-an-engine.md and is in no registry. Its config is a text of lines:
//
//	commit 8KiB      # the size of a commit
//	disk /dev/sdc    # default: the first one
//
// dd tells once a second how much it has written, and no latencies: reports have the sum of the service times alone,
// which is the time that dd ran. It refuses other programs of the name dd, which print other words.
package dd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// Engine is the generator `dd`. The zero value is ready for use.
type Engine struct{}

var _ workload.Engine = Engine{}

// Describe implements workload.Engine. A commit waits for the device's cache as well, so what is known of a storage's
// plain writes does not apply to it: these are no blocks.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: "dd", Latency: "service time", MinVersion: "8.24"}
}

// config holds what the author's file says.
type config struct {
	commit int64 // bytes
	disk   target.Disk
}

// parse reads the file, then the settings of the workload on top of it. Without disks in the Spec it judges the form.
func parse(spec workload.Spec) (config, error) {
	var c config
	bad := &workload.ConfigError{File: spec.ConfigFile}
	set := func(key, value string, at scenario.Objection) {
		object := func(format string, args ...any) {
			at.What = fmt.Sprintf(format, args...)
			bad.Objections = append(bad.Objections, at)
		}
		switch key {
		case "commit":
			n, err := unit.ParseBytes(value)
			if err == nil && (n < 512 || n > 1<<20 || n%512 != 0) {
				err = fmt.Errorf("%q is not a whole number of sectors (512 bytes) up to 1MiB", value)
			}
			if c.commit = int64(n); err != nil {
				object("commit: %v", err)
			}
		case "disk":
			c.disk.Device = value
			i := slices.IndexFunc(spec.Disks, func(d target.Disk) bool { return d.Device == value })
			if i >= 0 {
				c.disk = spec.Disks[i]
			} else if len(spec.Disks) > 0 {
				object("disk: the VM has no %q", value)
			}
		default:
			object("unknown key %q; known are commit, disk", key)
		}
	}
	for i, line := range strings.Split(string(spec.Config), "\n") {
		text, _, _ := strings.Cut(line, "#")
		if key, value, _ := strings.Cut(strings.TrimSpace(text), " "); key != "" {
			at := scenario.Objection{Line: i + 1, Col: strings.Index(line, key) + 1}
			set(key, strings.TrimSpace(value), at)
		}
	}
	for _, s := range spec.Settings {
		set(s.Key, s.Value, scenario.Objection{Setting: true})
	}
	if c.disk == (target.Disk{}) && len(spec.Disks) > 0 {
		c.disk = spec.Disks[0]
	}
	if len(bad.Objections) == 0 && c.commit == 0 {
		bad.Objections = append(bad.Objections, scenario.Objection{What: `it needs a line such as "commit 8KiB"`})
	}
	if len(bad.Objections) > 0 {
		return c, bad
	}
	return c, nil
}

// Validate implements workload.Engine.
func (Engine) Validate(spec workload.Spec) error {
	_, err := parse(spec)
	return err
}

// format holds what Parse needs to know of a job: what makes commits and passes of bytes.
type format struct {
	Commit int64 `json:"commit_bytes"`
	Pass   int64 `json:"pass_bytes"` // what is written from the disk's start to its end
}

// script begins dd anew whenever it has come to the disk's end, until the time is over. Its arguments are the seconds,
// the disk, the size of a commit and how many of them the disk holds.
const script = `end=$(($(date +%s) + $1))
while left=$((end - $(date +%s))); [ "$left" -gt 0 ]; do
	timeout --foreground -s INT "$left" dd if=/dev/zero of="$2" bs="$3" count="$4" conv=notrunc oflag=dsync status=progress
	case $? in 0 | 124) ;; *) exit 1 ;; esac
done
echo "time is over"
`

// Command implements workload.Engine.
func (Engine) Command(spec workload.Spec) (workload.Job, error) {
	c, err := parse(spec)
	count := int64(0)
	switch {
	case err != nil:
		return workload.Job{}, err
	case spec.Prefill:
		err = errors.New("dd has no prefill; leave it out")
	case spec.Runtime < time.Second:
		err = fmt.Errorf("dd runs for a second or more, and its time is %v: give a longer runtime_secs or time scale", spec.Runtime)
	case c.disk.Path == "":
		err = errors.New("the VM has no data disk; give it one")
	default:
		if count = c.disk.Bytes / c.commit; count == 0 {
			err = fmt.Errorf("disk %s has %d bytes, a commit %d; make the disk larger", c.disk.Device, c.disk.Bytes,
				c.commit)
		}
	}
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	format, err := json.Marshal(format{c.commit, count * c.commit})
	folder := workload.FolderName(spec.Name)
	output := folder + "/output"
	return workload.Job{
		Declared: workload.Declared{
			Operations: []result.Operation{{Name: "commit", Noun: "commits", Bytes: true}},
			Measures:   []result.Measure{{Name: "passes", Unit: "passes", Kind: result.Count}},
			Format:     format,
		},
		Files: map[string][]byte{folder + "/commits.sh": []byte(script)},
		Command: target.Command{Label: spec.Name, Stdout: output, Stderr: output,
			Argv: []string{"/bin/sh", folder + "/commits.sh", strconv.Itoa(int(spec.Runtime.Seconds())), c.disk.Path,
				strconv.FormatInt(c.commit, 10), strconv.FormatInt(count, 10)}},
		Output:  output,
		Limit:   spec.Runtime,
		Streams: []result.Stream{{Name: "log", Depth: 1, TimeBased: true, Runtime: spec.Runtime}},
	}, err
}

var version = regexp.MustCompile(`^dd \(coreutils\) (\d+)\.(\d+)`)

// Check implements workload.Engine.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	text, _, err := workload.Ask(ctx, host, []string{"dd", "--version"}, ".dd-version", "dd version", true)
	if err != nil {
		return workload.Tool{}, fmt.Errorf("check: dd on %s: %w; install coreutils there", host.Name(), err)
	}
	m := version.FindStringSubmatch(text)
	if m == nil {
		return workload.Tool{}, fmt.Errorf("check: dd on %s: %q is not GNU's; install coreutils there", host.Name(),
			workload.FirstLines(text, 1))
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2])
	if major < 8 || major == 8 && minor < 24 {
		return workload.Tool{}, fmt.Errorf("check: dd on %s: it is %s, needed is 8.24 or later", host.Name(), m[0])
	}
	return workload.Tool{Path: "dd", Version: m[1] + "." + m[2]}, nil
}

// parser reads what dd prints: lines ended by "\n", and its progress ended by "\r".
type parser struct {
	sink     workload.Sink
	format   format
	rest     []byte          // of a line that is not whole yet
	now      workload.Report // so far
	before   workload.Report // when the pass began
	passOver bool            // the next count is the last one of its pass
	pending  bool            // now has not been reported: there may be more of its moment
	said     workload.Said
	out      workload.Outcome
}

func newParser(d workload.Declared, sink workload.Sink) (*parser, error) {
	p := &parser{sink: sink}
	if err := json.Unmarshal(d.Format, &p.format); err != nil || p.format.Commit <= 0 || p.format.Pass <= 0 {
		return nil, fmt.Errorf("dd: the format %q has no size of a commit and of a pass", d.Format)
	}
	p.now = workload.Report{Ops: make(workload.Counts, 1), Values: make([]float64, 1)}
	p.before = p.now
	return p, nil
}

// longest bounds what is kept of a line.
const longest = 4096

var copied = regexp.MustCompile(`^(\d+) bytes.* copied, ([0-9.e+-]+) s,`)

// Feed implements workload.Parser.
func (p *parser) Feed(data []byte) {
	p.rest = append(p.rest, data...)
	for {
		i := bytes.IndexAny(p.rest, "\r\n")
		if i < 0 {
			p.rest = p.rest[:min(len(p.rest), longest)]
			return
		}
		p.line(p.rest[:i])
		p.rest = p.rest[i+1:]
	}
}

func (p *parser) line(line []byte) {
	text := string(line)
	switch m := copied.FindStringSubmatch(text); {
	case m != nil:
		n, err := strconv.ParseUint(m[1], 10, 64)
		seconds, err2 := strconv.ParseFloat(m[2], 64)
		if err != nil || err2 != nil || n > 1<<50 || seconds < 0 || seconds > 1e9 {
			p.said.Add(line)
			return
		}
		p.count(n, seconds)
	case strings.HasSuffix(text, " records out"):
		p.passOver = true
	case text == "time is over":
		p.now.Final = true
	case text != "" && !strings.HasSuffix(text, " records in"):
		p.said.Add(line)
	}
}

// count takes what dd says of the pass that it is at. A report goes out when the next moment begins: no two are of one.
func (p *parser) count(n uint64, seconds float64) {
	was, elapsed := p.before.Ops[0], p.before.Elapsed+time.Duration(seconds*float64(time.Second))
	if p.pending && elapsed > p.now.Elapsed {
		p.report()
	}
	p.now.Elapsed = max(p.now.Elapsed, elapsed) // dd rounds the seconds of its progress up as well
	bytes := max(was.Bytes+n, p.now.Ops[0].Bytes)
	p.now.Ops = workload.Counts{{Ops: bytes / uint64(p.format.Commit), Bytes: bytes, Seconds: p.now.Elapsed.Seconds()}}
	p.now.Values = []float64{float64(bytes) / float64(p.format.Pass)}
	if p.passOver {
		p.passOver, p.before = false, p.now
	}
	p.pending = true
}

func (p *parser) report() {
	p.pending = false
	p.out.Reports++
	p.sink.Report(p.now)
}

// Finish implements workload.Parser.
func (p *parser) Finish() (workload.Outcome, error) {
	if p.pending {
		p.report()
	}
	p.out.Message = p.said.String()
	if p.out.Reports == 0 {
		return p.out, errors.New("dd: nothing in its output says how much it has written")
	}
	return p.out, nil
}

// Worked implements workload.Parser.
func (p *parser) Worked() bool { return p.now.Ops.Total() > 0 }

// Words implements workload.Parser.
func (p *parser) Words(text []byte) string { return p.said.Beyond(text) }

// Run implements workload.Engine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	p, err := newParser(job.Declared, env.Sink)
	if err != nil {
		return workload.Outcome{}, err
	}
	return workload.Follow(ctx, env, job, p, workload.Words{Name: "dd"})
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	p, err := newParser(d, sink)
	if err != nil {
		return workload.Outcome{}, err
	}
	return workload.Replay(raw, p, "dd")
}
