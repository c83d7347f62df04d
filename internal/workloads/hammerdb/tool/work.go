package hammerdb

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/unit"
)

// Began begins the line that says by the machine's clock when a worker began, in nanoseconds.
const Began = "plimsoll: began "

const (
	longestLine = 4096
	mostProfile = 16 << 20 // bytes of a time profile
	leastMasked = 6        // letters of a password that is looked for in lines; a shorter one could be any word
)

// Work does a job in the working folder. Its error says what failed although HammerDB ended with success.
func Work(ctx context.Context, config io.Reader, to io.Writer) error {
	var job Job
	if err := json.NewDecoder(io.LimitReader(config, 1<<20)).Decode(&job); err != nil {
		return fmt.Errorf("the job: %w", err)
	}
	found, err := exec.CommandContext(ctx, "/bin/sh", "-c", Find, "find", job.Folder).Output()
	folder := strings.TrimSpace(string(found))
	if err != nil || folder == "" {
		return errors.New("HammerDB is not there: unpack it into /opt, or name its folder under folder:")
	}
	passwords := map[string]string{}
	if job.Passwords != "" {
		data, err := os.ReadFile(job.Passwords)
		if err = errors.Join(err, os.Remove(job.Passwords)); err != nil {
			return err
		}
		if json.Unmarshal(data, &passwords) != nil {
			return errors.New("the file of passwords is damaged") // and not quoted
		}
	}
	temporary, err := filepath.Abs(job.Temporary)
	script, err2 := filepath.Abs(job.Script)
	if err := errors.Join(err, err2, os.RemoveAll(temporary), os.MkdirAll(temporary, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // clean-up takes the folder above
	command := exec.CommandContext(ctx, "/bin/sh", "-c", `exec ./hammerdbcli auto "$1" 2>&1`, "hammerdb", script)
	command.Dir = folder
	command.Env = append(os.Environ(), "TMP="+temporary, "TEMP="+temporary, "TMPDIR="+temporary)
	var masked []string
	for name, value := range passwords {
		command.Env = append(command.Env, Variable(name)+"="+value)
		if len(value) >= leastMasked {
			masked = append(masked, value)
		}
	}
	out := &output{to: to, masked: masked, began: time.Now()}
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(to, "0.000 %s%d\n", Began, out.began.UnixNano())
	stop := make(chan struct{})
	out.ends = sync.OnceFunc(func() { close(stop) })
	if job.Orders != nil {
		out.times = sync.OnceFunc(func() {
			out.counting.Go(func() { out.count(ctx, job.Orders, passwords, stop) })
		})
	}
	out.copy(stdout)
	out.ends()
	out.counting.Wait()
	err = command.Wait()
	if job.Profile {
		out.profile(temporary)
	}
	return out.verdict(job, err)
}

// output holds what a worker prints of HammerDB's lines, and what they said.
type output struct {
	mu      sync.Mutex // of what is printed
	to      io.Writer
	masked  []string
	began   time.Time
	failed  int
	trouble int
	result  bool
	sets    int
	lost    int // calls of procedures that failed, which HammerDB does not take for an error
	err     error

	times    func() // called when the time of the test begins; may be nil
	ends     func() // and when it is over
	counting sync.WaitGroup

	cause    string // what stopped it, in its own words
	lesser   string // or else
	within   bool   // the lines of the cause go on
	previous [2]string
}

// mostCause bounds a cause.
const mostCause = 300

// blame looks in a line for what stopped HammerDB: the error of a virtual user with the lines that follow, or of Tcl
// with the lines before its trace.
func (o *output) blame(text string) {
	defer func() { o.previous = [2]string{o.previous[1], text} }()
	goesOn := o.within && !own.MatchString(text) && len(o.cause) < mostCause
	switch o.within = false; {
	case goesOn:
		o.cause += "; " + text
		o.within = true
	case o.cause != "":
	case Trouble(text):
		o.cause, o.within = text, true
	case text == "while executing" && o.previous[1] != "":
		o.cause = o.previous[1]
		if strings.HasPrefix(o.previous[0], "While ") {
			o.cause = o.previous[0] + " " + o.cause
		}
	case o.lesser == "" && strings.HasPrefix(text, "Transaction Counter Error"):
		o.lesser = text
	}
}

// copy prints the lines of a stream.
func (o *output) copy(r io.Reader) {
	in := bufio.NewReaderSize(r, longestLine)
	for {
		line, more, err := in.ReadLine()
		if err != nil {
			return
		}
		text := string(line)
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		o.line(strings.TrimSpace(text))
	}
}

// line prints one, unless it has a password.
func (o *output) line(text string) {
	if text == "" || Secret(text) {
		return
	}
	o.blame(text)
	_, result := Achieved(text)
	_, sample := Counter(text)
	_, set := QuerySet(text)
	switch {
	case result:
		o.result = true
	case set:
		o.sets++
	case Failed(text):
		o.failed++
	case Trouble(text):
		o.trouble++
	case Swallowed(text):
		o.lost++
	}
	if !result && !sample {
		text = o.mask(text)
	}
	o.print(text)
	switch {
	case Times(text) && o.times != nil:
		o.times()
	case Ends(text):
		o.ends()
	}
}

// mask leaves passwords out of a line.
func (o *output) mask(text string) string {
	for _, m := range o.masked {
		text = strings.ReplaceAll(text, m, "***")
	}
	return text
}

func (o *output) print(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := fmt.Fprintf(o.to, "%.3f %s\n", time.Since(o.began).Seconds(), text); err != nil && o.err == nil {
		o.err = err
	}
}

// profile prints the newest time profile that HammerDB wrote: the folder is new, so an older run's is not in it.
func (o *output) profile(folder string) {
	files, _ := fs.Glob(os.DirFS(folder), "hdbxtprofile*.log") // the pattern is right
	if len(files) == 0 {
		o.line("plimsoll: HammerDB wrote no time profile")
		return
	}
	f, err := os.Open(filepath.Join(folder, slices.Max(files)))
	if err != nil {
		o.line("plimsoll: " + err.Error())
		return
	}
	defer f.Close()
	o.copy(io.LimitReader(f, mostProfile))
}

// verdict says what went wrong.
func (o *output) verdict(job Job, ended error) error {
	var bad []string
	if cause := cmp.Or(o.cause, o.lesser); cause != "" && (o.failed+o.trouble > 0 || ended != nil || !o.result) {
		cause = o.mask(cause)
		bad = append(bad, strings.ToValidUTF8(cause[:min(len(cause), mostCause)], ""))
	}
	if ended != nil && len(bad) == 0 {
		bad = append(bad, "it ended with "+ended.Error())
		if last := o.mask(o.previous[1]); last != "" {
			bad = append(bad, "its last line: "+strings.ToValidUTF8(last[:min(len(last), mostCause)], ""))
		}
	}
	if o.failed > 0 {
		bad = append(bad, unit.Plural(o.failed, "virtual user")+" ended with FINISHED FAILED")
	}
	if o.trouble > 0 {
		says := map[bool]string{true: " says", false: " say"}[o.trouble == 1]
		bad = append(bad, unit.Plural(o.trouble, "line")+says+" that a virtual user had an error")
	}
	switch {
	case job.Queries && o.sets == 0:
		bad = append(bad, "no set of queries was completed")
	case !job.Queries && !o.result:
		bad = append(bad, "there is no TEST RESULT")
	}
	if len(bad) > 0 {
		return errors.Join(errors.New("HammerDB: "+strings.Join(bad, "; ")), ended)
	}
	return errors.Join(ended, o.err)
}
