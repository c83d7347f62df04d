package fio

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio/fiofile"
)

// newest is the last fio of which the table lists every option.
const newest = "3.42"

// since are the options of the table that fio 3.28 has not, and the first fio that has each.
var since = func() map[string]string {
	m := make(map[string]string)
	for version, names := range map[string]string{
		"3.29": "log_entries",
		"3.30": "log_alternate_epoch log_alternate_epoch_clock_id",
		"3.35": "steadystate_check_interval",
		"3.36": "priohint",
		"3.37": "thinkcycles",
		"3.38": "verify_write_sequence",
		"3.39": "libaio_vectored",
		"3.40": "recover_zbd_write_error verify_header_seed verify_pattern_interval",
		"3.41": "sprandom spr_num_regions spr_op",
		"3.42": "end_syncfs ramp_size spr_cs write_zone_remainder",
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = version
		}
	}
	return m
}()

// told holds what the fio of this machine says of an option that was asked for by name.
type told struct {
	version string // of that fio, "" where there is none
	name    string // the first of its names, "" for an option that this fio has not
	help    string // what it says the option is for
	kind    string // how its value is written, in fio's words
	words   []string
	ranged  bool // it is a number within bounds
}

// askable is a name that fio is asked for: it is handed over as an argument.
var askable = lazyregexp.New(`^[a-z][a-z0-9_-]{0,39}$`)

// asked are the answers by program and name: a fio is asked once, however many machines run the job.
var asked sync.Map

// ask has the fio of this machine say what it knows of an option.
func ask(program, key string) told {
	if !askable.MatchString(key) {
		return told{}
	}
	once, _ := asked.LoadOrStore(program+" "+key, sync.OnceValue(func() told { return answer(program, key) }))
	return once.(func() told)()
}

func answer(program, key string) told {
	path, err := exec.LookPath(program)
	if err != nil {
		return told{}
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	says := func(arg string) string {
		cmd := exec.CommandContext(ctx, path, arg)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if err != nil && len(out) == 0 {
			return ""
		}
		return string(out[:min(len(out), 1<<16)])
	}
	version := strings.TrimSpace(says("--version"))
	if _, ok := parseVersion(version); !ok {
		return told{}
	}
	t := described(says("--cmdhelp="+key), key)
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		if t.name == "" {
			t = described(says("--enghelp="+name+","+key), key)
		}
	}
	t.version = version
	return t
}

// described reads fio's help for an option. Asked for one that it has not, it describes another with a name like it.
func described(text, key string) told {
	t := told{}
	right := false
	for line := range bytes.Lines([]byte(text)) {
		field, value, ok := strings.Cut(string(line), ":")
		field, value = strings.TrimSpace(field), strings.TrimSpace(value)
		switch {
		case !ok:
		case t.name == "":
			t.name, t.help = field, value
			right = field == key
		case field == "alias":
			right = right || value == key
		case field == "type":
			t.kind = value
		case field == "range":
			t.ranged = true
		case field == "valid values" || field == "" && len(t.words) > 0:
			word, _, _ := strings.Cut(value, " ")
			t.words = append(t.words, word)
		}
	}
	if !right || !askable.MatchString(t.name) || t.kind == "" {
		return told{}
	}
	return t
}

// reaches are words of a help text for an option that may touch more than the data disks and their I/O.
var reaches = lazyregexp.New(`(?i)\b(files?|filename|dir|director(y|ies)|folder|paths?|commands?|program|scripts?|` +
	`execut\w*|shell|load|librar(y|ies)|network|hosts?|hostname|ports?|sockets?|address|url|server|client|user|uid|gid|` +
	`cgroup|unlink|delete|remove|mount\w*|fill|append|module|device)\b`)

// option returns what may be done with an option of which nothing is known but what the installed fio says of it: what
// is a number, a switch or one of fio's own words is passed on as it is written. A text is refused, since it may name
// anything, and so is what says of itself that it has to do with files, programs or the network.
func (t told) option() option {
	refused := func(why string) option {
		return option{action: refuse, why: fmt.Sprintf("%s here knows it (%q), but plimsoll does not, and %s",
			t.version, t.help, why)}
	}
	switch {
	case t.kind == "unsupported":
		return option{action: refuse, why: fmt.Sprintf("%s here cannot do it: %s", t.version, t.help)}
	case reaches.MatchString(t.help) || reaches.MatchString(strings.ReplaceAll(t.name, "_", " ")):
		return refused("it may reach more than the data disks")
	}
	number := anyOf("a number", amount, percent, integer, decimal)
	switch kind, _, _ := strings.Cut(t.kind, " ("); {
	case len(t.words) > 0:
		return option{form: word(strings.Join(t.words, " "))}
	case kind == "boolean value":
		return option{form: toggle}
	case kind == "empty or boolean value", kind == "no argument":
		return option{form: toggle, bare: true}
	case kind == "integer value":
		return option{form: list(",", 3, true, anyOf("a whole number, with or without a unit such as k or m", amount,
			integer))}
	case kind == "string with time postfix":
		return option{form: duration}
	case kind == "one to three ranges":
		return option{form: blockSpans}
	case strings.HasPrefix(kind, "list of floating point"):
		return option{form: decimals3}
	case t.ranged: // of texts, sizes alone have bounds
		return option{form: number}
	}
	return refused("its value is a text, which may name a file or a program")
}

// option looks an option up in the table, and what is not in it at the fio of this machine.
func (a *adaptation) option(o fiofile.Option) (option, bool) {
	if known, ok := optionFor(o); ok {
		return known, true
	}
	if len(a.objections) > mostAsked {
		return option{}, false
	}
	if t := ask(a.program, o.Key); t.name != "" {
		return t.option(), true
	}
	return option{}, false
}

// mostAsked is after how many objections nobody is asked any more for options that are not in the table, nor for names
// that resemble theirs: both take time.
const mostAsked = 20

// unknown says why an option is none, and which may be meant.
func (a *adaptation) unknown(key string) string {
	why := "no option of fio " + MinVersion + " to " + newest + " has this name"
	if len(a.objections) > mostAsked {
		return why
	}
	if t := ask(a.program, key); t.version != "" {
		why += ", nor has " + t.version + " here"
	} else if askable.MatchString(key) {
		why += ", and there is no fio here to ask"
	}
	return why + didYouMean(key)
}

// passed says of options that only the installed fio knows what becomes of them.
func (a *adaptation) passed(o fiofile.Option) {
	if _, ok := optionFor(o); ok {
		return
	}
	t := ask(a.program, o.Key)
	a.note("%s is not known to plimsoll and passed on as it is, neither scaled nor judged; %s here says of it: %s", o.Key,
		t.version, t.help)
}

// lacking are the options that the fio of this machine has not, for the newer one that they need.
func lacking(program string, f *fiofile.File) (out []string) {
	seen := map[string]bool{}
	for _, s := range f.Sections {
		for _, o := range s.Options {
			name := canonical(o.Key)
			need := since[name]
			if need == "" || seen[name] {
				continue
			}
			seen[name] = true
			if t := ask(program, name); t.version != "" && t.name == "" {
				out = append(out, fmt.Sprintf("%s needs fio %s or later, and here is %s", o.Key, need, t.version))
			}
		}
	}
	return out
}
