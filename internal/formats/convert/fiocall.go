package convert

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio/fiofile"
)

var (
	// fioCall is fio by its name, or a variable named after it, with what can only be an argument of it behind.
	fioCall = lazyregexp.New("(?m)^[ \t]*(?:[^\\s#*;].*)?(?:^|[\\s;&|/\\\\(`'\"])" +
		"(?:fio(?:\\.exe)?|\\$\\{?[Ff][Ii][Oo]\\w*\\}?)[\"']?" +
		"(?:[ \t]|[\\\\^`][ \t]*\r?\n)+(?:--?[A-Za-z]|-(?:\\s|$)|\\S+\\.(?:fio|job|ini|cfg)\\b|[\\w./-]+[ \t]+--[a-z])")
	fioNamed = lazyregexp.New("(?:^|[\\s;&|/\\\\(`'\"])fio(?:\\.exe)?[\"']?(?:\\s|$)")
	variable = lazyregexp.New(`^(?:\$(?:\w+|[@*#?!$-]|\{[^{}]*\}|\()|%[A-Za-z_]\w*%|` + "`)")
	section  = lazyregexp.New(`^\[([^\[\]]*)\]\s*$`)
)

// Options of a command line of fio that say how it reports, or that have it do something else than a load.
var (
	fioReports = strings.Fields("output output-format append-terse eta eta-newline eta-interval status-interval minimal " +
		"terse-version bandwidth-log latency-log warnings-fatal max-jobs alloc-size aux-path idle-prof inflate-log debug " +
		"trigger-timeout")
	fioElse = strings.Fields("client server remote-config daemonize showcmd parse-only merge-blktrace-only " +
		"trigger trigger-file trigger-remote cpuclock-test crctest cmdhelp enghelp help version replay_redirect")
	// fioBare are options that stand without a value: of jobs those that fio calls a set, and those of reports.
	fioBare = strings.Fields("group_reporting time_based stonewall wait_for_previous new_group thread exitall " +
		"exitall_on_error norandommap zero_buffers refill_buffers bs_unaligned blocksize_unaligned verify_only minimal " +
		"readonly append-terse bandwidth-log latency-log eta-newline warnings-fatal parse-only showcmd")
)

// Jobs are what a text asks of fio: a job file.
type Jobs struct {
	Name  string // of the file that it is
	Data  []byte
	Notes []Note
	Used  []string // names of Asked.Set that the text has
	Named []string // files that no author has named, as fio names them
	// ReadOnly: fio is to refuse whatever writes.
	ReadOnly bool
}

// Asked is a text and what its user says besides.
type Asked struct {
	Name string
	Data []byte
	Set  map[string]string                 // values of variables
	Read func(name string) ([]byte, error) // a job file that it names; nil: there is none to be had
}

// JobFile is a job file of fio of the command lines of it that a text holds, each after the one before it; the text as
// it is when it holds none. Only its command lines are read: a script's other commands are noted, and run by nobody.
func JobFile(a Asked) (Jobs, error) {
	made := Jobs{Name: a.Name, Data: a.Data}
	text := strings.TrimPrefix(string(a.Data), "\ufeff")
	if !isFioCall(a.Data) || isJobFile(text) {
		return made, nil
	}
	t := &load.Teller{}
	at := load.Place{File: a.Name, Line: 1, Col: 1}
	if strings.ContainsAny(text, "\ue000\ue001") {
		t.Object(at, "the file has characters that no script has")
		return made, t.Err()
	}
	s := newScript(t, a.Set, a.Read)
	if list := s.statements(text, at); t.Err() == nil {
		s.run(list, nil)
	}
	s.tellOthers("fio")
	if len(s.calls) == 0 && t.Err() == nil {
		t.Object(at, "no command line of fio that can be read")
	}
	made.Notes, made.Used = t.Notes, s.taken()
	if err := t.Err(); err != nil {
		return made, err
	}
	made.Data, made.Name = s.jobs(a.Name)
	made.Named = s.named
	made.ReadOnly = !slices.ContainsFunc(s.calls, func(c call) bool { return !c.readOnly })
	return made, t.Err()
}

// tellOthers notes the commands of a script that are left out.
func (s *script) tellOthers(program string) {
	if len(s.others) == 0 {
		return
	}
	some := strings.Join(s.others[:min(3, len(s.others))], "; ")
	if n := len(s.others) - 3; n > 0 {
		some = fmt.Sprintf("%s; and %d more", some, n)
	}
	s.Note(load.Ask{Text: cut(some), At: s.otherAt}, "", "only command lines of %s are read of a script", program)
}

// isFioCall reports whether a text calls fio, be it in a way that is refused.
func isFioCall(text []byte) bool { return fioCall.Match(text) }

// isJobFile reports whether a text begins as a job file, whatever of a shell it may speak of.
func isJobFile(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != ';' {
			return section.MatchString(line)
		}
	}
	return false
}

func cut(text string) string {
	text = strings.ReplaceAll(text, "\n", " ")
	if r := []rune(text); len(r) > 100 {
		return string(r[:100]) + "..."
	}
	return text
}

// call is one command line of fio.
type call struct {
	at     load.Place
	common []string // options of all its jobs
	jobs   []callJob
	files  []namedFile // that it names
	of     []string    // values of the loops it stands in
	// readOnly: see Jobs
	readOnly bool
}

type callJob struct {
	name    string
	options []string
	waits   bool // for all before it
}

// namedFile is a job file that a command line names.
type namedFile struct {
	name string
	data []byte
}

// call reads a command line. Options before its first job are those of all of them, and of its job file.
func (s *script) call(st statement, words, shell, of []string) {
	c := call{at: st.at, of: of, common: s.carried}
	var sections []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") || word == "-" {
			c.jobFile(s, st, word, shell)
			continue
		}
		key, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !has && i+1 < len(words) && (!strings.HasPrefix(words[i+1], "-") || number.MatchString(words[i+1][1:])) &&
			!slices.Contains(fioBare, key) {
			i++
			value, has = words[i], true
		}
		option := key
		if has {
			option += "=" + value
		}
		switch {
		case slices.Contains(fioReports, key):
			if len(of) > 0 { // the same of every time
				option = key
			}
			s.Note(load.Ask{Text: "--" + s.shown(option), At: st.at}, "", "it says how fio reports, not what it does")
		case key == "readonly":
			c.readOnly = true
		case mark.MatchString(option):
			s.Object(st.at, "--%s: %s", s.shown(option), s.unknown(mark.FindString(option)))
		case slices.Contains(fioElse, key):
			s.Object(st.at, "--%s: it has no part in a load that is described", option)
		case key == "section":
			sections = append(sections, value)
		case strings.ContainsAny(option, "\n\r") || key == "":
			s.Object(st.at, "%.60q is no option of fio", word)
		case key == "name" && value == "global":
			c.jobs = append(c.jobs, callJob{name: value})
		case key == "name":
			c.jobs = append(c.jobs, callJob{name: strings.NewReplacer("[", "(", "]", ")").Replace(value)})
		case len(c.jobs) == 0:
			c.common = append(c.common, option)
		default:
			last := &c.jobs[len(c.jobs)-1]
			last.options = append(last.options, option)
		}
	}
	c.settle()
	switch {
	case len(c.files) == 0 && len(c.jobs) == 0 && s.Err() == nil:
		s.Object(st.at, "no --name begins a job")
	case len(c.files) > 0 && len(c.jobs) > 0:
		s.Object(st.at, "jobs of its own beside the job file %s: give them as two", c.files[0].name)
	case len(sections) > 0 && len(c.files) > 0:
		s.only(&c, sections)
	}
	if s.lost != "" && len(c.files) == 0 && !c.absolute() {
		s.Object(st.at, "where its files lie depends on %.60q, which only a shell can follow: write --directory", s.lost)
	} else if s.dir != "" {
		c.enter(s.dir)
	}
	s.calls = append(s.calls, c)
}

// settle gives what stands under --name=global to the jobs behind it.
func (c *call) settle() {
	global, jobs := slices.Clone(c.common), []callJob(nil)
	for _, j := range c.jobs {
		if j.name == "global" {
			global = append(global, j.options...)
			continue
		}
		j.options = append(slices.Clone(global), j.options...)
		jobs = append(jobs, j)
	}
	c.common, c.jobs = global, jobs
}

// jobFile takes a job file that a command line names: one that stands in the script, or one beside it.
func (c *call) jobFile(s *script, st statement, name string, shell []string) {
	for _, w := range shell {
		if from, ok := strings.CutPrefix(w, "< "); ok && name == "-" {
			name = from
		}
	}
	written, inScript := s.files[name]
	switch {
	case mark.MatchString(name):
		s.Object(st.at, "%s: %s", s.shown(name), s.unknown(mark.FindString(name)))
	case name == "-" && st.hasDoc || name == "/dev/stdin" && st.hasDoc:
		c.files = append(c.files, namedFile{st.at.File, padded(s.body(st), st.at.Line)})
	case inScript:
		c.files = append(c.files, namedFile{name, []byte(written)})
	case name == "-" || s.read == nil:
		s.Object(st.at, "%.60q is no option of fio: a job file is given as itself, by its name", name)
	default:
		if s.dir != "" && !path.IsAbs(name) {
			name = path.Join(s.dir, name)
		}
		data, err := s.read(name)
		if err != nil {
			s.Object(st.at, "the job file %.60q: %v", name, err)
			return
		}
		c.files = append(c.files, namedFile{name, data})
	}
}

// padded is a text whose lines count as they stand in the script, below the line with this number.
func padded(text string, line int) []byte { return []byte(strings.Repeat("\n", line) + text) }

// only leaves sections of job files that are not to run empty.
func (s *script) only(c *call, sections []string) {
	found := false
	for i := range c.files {
		keep := true
		lines := strings.Split(string(c.files[i].data), "\n")
		for k, line := range lines {
			if m := section.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				here := slices.Contains(sections, m[1])
				keep, found = here || m[1] == "global", found || here
			}
			if !keep {
				lines[k] = ""
			}
		}
		c.files[i].data = []byte(strings.Join(lines, "\n"))
	}
	if !found {
		s.Object(c.at, "--section=%s: the job file has no such section", strings.Join(sections, ", "))
	}
}

// open gives a call the jobs of its files, each of which begins when those of the one before it have ended. What is
// global is so within its file.
func (s *script) open(c *call) {
	for i, f := range c.files {
		file, err := fiofile.Parse(f.name, f.data)
		if err == nil && s.read != nil {
			err = file.Include(func(name string) ([]byte, error) { return s.read(path.Join(path.Dir(f.name), name)) })
		}
		if err != nil {
			s.Object(c.at, "the job file %v", err)
			continue
		}
		of := call{common: c.common}
		for _, section := range file.Sections {
			j := callJob{name: section.Name}
			for _, o := range section.Options {
				if line := o.Key; o.Flag {
					j.options = append(j.options, line)
				} else {
					j.options = append(j.options, line+"="+o.Value)
				}
			}
			of.jobs = append(of.jobs, j)
		}
		if of.settle(); len(of.jobs) > 0 {
			of.jobs[0].waits = i > 0
		}
		c.jobs = append(c.jobs, of.jobs...)
	}
	c.files = nil
}

// enter puts files that lie where cd has led there.
func (c *call) enter(dir string) {
	put := func(options []string) []string {
		for i, o := range options {
			if key, value, _ := strings.Cut(o, "="); key == "directory" && !path.IsAbs(value) {
				options[i] = "directory=" + path.Join(dir, value)
			}
		}
		if slices.ContainsFunc(options, func(o string) bool {
			key, value, _ := strings.Cut(o, "=")
			return key == "directory" || key == "filename" && path.IsAbs(value)
		}) {
			return options
		}
		return append([]string{"directory=" + dir}, options...)
	}
	if len(c.files) > 0 {
		c.common = put(c.common)
	}
	for i := range c.jobs {
		c.jobs[i].options = put(c.jobs[i].options)
	}
}

// absolute reports whether all jobs say where their files lie, from wherever they are run.
func (c *call) absolute() bool {
	for _, j := range c.jobs {
		if !slices.ContainsFunc(j.options, func(o string) bool {
			key, value, _ := strings.Cut(o, "=")
			return (key == "directory" || key == "filename") && path.IsAbs(value)
		}) {
			return false
		}
	}
	return true
}

// jobs are all calls as one job file, and its name.
func (s *script) jobs(name string) ([]byte, string) {
	if c := s.calls[0]; len(s.calls) == 1 && len(c.files) == 1 {
		data := c.files[0].data
		if len(c.common) == 0 {
			return data, c.files[0].name
		}
		head := "[global]\n" + strings.Join(c.common, "\n") + "\n"
		for range strings.Count(head, "\n") { // its lines keep their numbers where there is room
			data = bytes.TrimPrefix(data, []byte("\n"))
		}
		return append([]byte(head), data...), c.files[0].name
	}
	for i := range s.calls {
		s.open(&s.calls[i])
	}
	times, used := map[string]int{}, map[string]bool{}
	for _, c := range s.calls {
		for _, j := range c.jobs {
			times[j.name]++
			used[j.name] = true
		}
	}
	var b strings.Builder
	seen := map[string]int{}
	for i, c := range s.calls {
		for k, j := range c.jobs {
			title := j.name
			if seen[j.name]++; times[j.name] > 1 {
				if of := strings.Join(c.of, "-"); of != "" && !used[title+"-"+of] {
					title += "-" + strings.NewReplacer("[", "(", "]", ")").Replace(of)
				} else if n := seen[j.name]; n > 1 {
					title = fmt.Sprintf("%s-%d", title, n)
				}
				used[title] = true
			}
			fmt.Fprintf(&b, "[%s]\n", title)
			if i > 0 && k == 0 || j.waits {
				b.WriteString("stonewall\n")
			}
			if times[j.name] > 1 && !says(j.options, "filename", "filename_format", "opendir", "nrfiles", "numjobs") {
				// Jobs of one name work on one file, which fio names so.
				file := strings.ReplaceAll(j.name, "/", "_") + ".0.0"
				fmt.Fprintf(&b, "filename=%s\n", strings.ReplaceAll(file, ":", `\:`))
				s.named = append(s.named, file)
			}
			for _, o := range j.options {
				b.WriteString(o + "\n")
			}
			b.WriteString("\n")
		}
	}
	return []byte(b.String()), name
}

// says reports whether options have one of these names.
func says(options []string, keys ...string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		key, _, _ := strings.Cut(o, "=")
		return slices.Contains(keys, key)
	})
}
