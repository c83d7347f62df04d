package convert

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/lazyregexp"
)

var (
	fioCall = lazyregexp.New(`(?m)^[ \t]*((?:(?:\w+=\S*|(?:/[\w/]+/)?(?:sudo(?:[ \t]+-u[ \t]+[\w-]+)?|time|exec|nice|ionice|numactl|taskset|timeout|chrt|` +
		`stdbuf|env|nohup))` +
		`(?:[ \t]+(?:-[\w=,:.-]+|[\d.,:x-]+[smh]?))*[ \t]+)*)(?:[\w./~:\\-]*[/\\])?fio(?:\.exe)?\s+(?:-|\S+\.fio\b)`)
	fioWithin = lazyregexp.New(`(?m)^[ \t]*[^\s#].*[\s;&|/(]fio(?:\.exe)?\s+--?[a-z]`) // in a line that begins otherwise
	fioRemote = lazyregexp.New(`\b(?:docker|podman|nerdctl|kubectl|oc|crictl|ssh|pdsh|ansible|srun|mpirun|lxc|virsh)\b`)
	shellOpen = lazyregexp.New(`^\s*(for|while|until|if|case|select)\b`)
	shellEnd  = lazyregexp.New(`(?:^|;)\s*(?:done|fi|esac)\b`)
	variable  = lazyregexp.New(`\$(?:\w+|[{(].*?[})])|%\w+%|` + "`")
)

// Options of a command line of fio that say how it reports, or that have it do something else than a load.
var (
	fioReports = strings.Fields("output output-format append-terse eta eta-newline eta-interval status-interval minimal " +
		"terse-version bandwidth-log latency-log warnings-fatal max-jobs alloc-size aux-path idle-prof inflate-log debug " +
		"readonly trigger-timeout")
	fioElse = strings.Fields("client server remote-config daemonize section showcmd parse-only merge-blktrace-only " +
		"trigger trigger-file trigger-remote cpuclock-test crctest cmdhelp enghelp help version replay_redirect")
	// fioBare are options of jobs that stand without a value.
	fioBare = strings.Fields("group_reporting time_based stonewall wait_for_previous new_group thread exitall norandommap " +
		"zero_buffers refill_buffers scramble_buffers fsync_on_close end_fsync create_on_open overwrite buffered direct " +
		"invalidate randrepeat do_verify minimal readonly append-terse")
)

// JobFile is a job file of fio of the command lines of it that a text holds, each after the one before it; the text as
// it is when it holds none. Only its command lines are read: a script's other commands are noted, and run by nobody.
func JobFile(name string, data []byte) ([]byte, []Note, error) {
	if !isFioCall(data) || jobFile.Match(data) {
		return data, nil, nil
	}
	t := &load.Teller{}
	var b strings.Builder
	used := map[string]int{}
	at := load.Place{File: name, Col: 1}
	calls, continued := 0, ""
	var within []string // words of a shell whose ends are still to come
	for raw := range strings.SplitSeq(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		at.Line++
		line := strings.TrimRight(raw, " \t\r")
		if strings.HasSuffix(line, "\\") || strings.HasSuffix(line, "^") || strings.HasSuffix(line, " `") {
			continued += line[:len(line)-1] + " "
			continue
		}
		line, continued = continued+line, ""
		bare := strings.TrimSpace(line)
		ends := len(shellEnd.FindAllString(line, -1))
		if m := shellOpen.FindStringSubmatch(line); m != nil {
			within = append(within, m[1])
		}
		of := ""
		if len(within) > 0 {
			of = within[len(within)-1]
		}
		within = within[:max(0, len(within)-ends)]
		switch {
		case bare == "" || strings.HasPrefix(bare, "#") || strings.HasPrefix(strings.ToLower(bare), "rem "):
			continue
		case fioWithin.MatchString(line) && fioRemote.MatchString(line):
			t.Object(at, "%.60q has fio run elsewhere (%s): give its command line alone", bare, fioRemote.FindString(line))
			continue
		case of != "" && isFioCall([]byte(line)):
			t.Object(at, "a command line within %q, which only a shell can go through: write what it comes to, a line each", of)
			continue
		case !fioCall.MatchString(line) && fioWithin.MatchString(line):
			t.Object(at, "%.60q does something else before it calls fio: write its command line on a line of its own", bare)
			continue
		case !fioCall.MatchString(line):
			t.Note(load.Ask{Text: cut(bare), At: at}, "", "only command lines of fio are read of a script")
			continue
		case variable.MatchString(line):
			t.Object(at, "%.40q is for a shell to fill in: write its value", variable.FindString(line))
			continue
		}
		words, shell, err := diskspd.Words(line, at)
		if err != nil {
			t.Object(at, "%v", err)
			continue
		}
		for _, w := range shell {
			t.Note(load.Ask{Text: w, At: at}, "", "where the output goes is the shell's to say, and no part of the load")
		}
		i := slices.IndexFunc(words, func(w string) bool { return fioCall.MatchString(w + " -") })
		before := strings.TrimSpace(fioCall.FindStringSubmatch(line)[1])
		if !slices.Contains([]string{"", "sudo", "time", "exec"}, before) {
			t.Note(load.Ask{Text: cut(before), At: at}, "", "it says how fio's own processes run")
		}
		calls++
		oneCall(t, at, words[i+1:], calls > 1, used, &b)
	}
	if continued != "" {
		t.Object(at, "the last line goes on, and there is none after it")
	}
	return []byte(b.String()), t.Notes, t.Err()
}

// isFioCall reports whether a text calls fio, be it in a way that is refused.
func isFioCall(text []byte) bool { return fioCall.Match(text) || fioWithin.Match(text) }

func cut(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return text
}

// oneCall writes the jobs of a command line. Options before its first job are those of all of them.
func oneCall(t *load.Teller, at load.Place, words []string, waits bool, used map[string]int, b *strings.Builder) {
	var common, jobs []string
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "-") || words[i] == "-" {
			t.Object(at, "%.60q is no option of fio: a job file is given as itself, by its name", words[i])
			return
		}
		key, value, has := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		if !has && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") && !slices.Contains(fioBare, key) {
			i++
			value, has = words[i], true
		}
		option := key
		if has {
			option += "=" + value
		}
		switch {
		case slices.Contains(fioReports, key):
			t.Note(load.Ask{Text: "--" + option, At: at}, "", "it says how fio reports, not what it does")
		case slices.Contains(fioElse, key):
			t.Object(at, "--%s: it has no part in a load that is described", option)
		case strings.ContainsAny(option, "\n\r") || key == "":
			t.Object(at, "%.60q is no option of fio", words[i])
		case key == "name":
			if used[value]++; used[value] > 1 {
				value = fmt.Sprintf("%s-%d", value, used[value])
			}
			jobs = append(jobs, fmt.Sprintf("[%s]\n", strings.NewReplacer("[", "(", "]", ")").Replace(value)))
			for _, o := range common {
				jobs[len(jobs)-1] += o + "\n"
			}
			if waits && len(jobs) == 1 {
				jobs[0] += "stonewall\n"
			}
		case len(jobs) == 0:
			common = append(common, option)
		default:
			jobs[len(jobs)-1] += option + "\n"
		}
	}
	if len(jobs) == 0 {
		t.Object(at, "no --name begins a job")
	}
	b.WriteString(strings.Join(jobs, "\n"))
	b.WriteString("\n")
}
