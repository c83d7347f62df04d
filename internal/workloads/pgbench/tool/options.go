package pgbench

import (
	"fmt"
	"strconv"
	"strings"

	"plimsoll/internal/kit/lazyregexp"
)

// Option is an option of pgbench that a user may give as it is.
type Option struct {
	Name       string // without the dashes
	Since      int    // version, as 906 for 9.6 and 1500 for 15
	Value      bool   // it takes one
	Initialize bool   // it is of pgbench -i, else of a run
	Instead    string // of one that cannot be given: what to write instead
}

// Oldest is the version of pgbench that Work needs: progress lines with times of day are from there on.
const Oldest = 906

// Options are all of them, in the order of their names.
func Options() []Option {
	key := func(name, instead string) Option { return Option{Name: name, Instead: instead} }
	return []Option{
		key("aggregate-interval", "the log is read as it is written, and has no size"),
		key("builtin", "scripts: [{builtin: NAME}]"),
		key("client", "clients:"),
		key("connect", "connect: true"),
		{Name: "continue-on-error", Since: 1900},
		key("debug", "nothing: it prints what was sent, and slows the run"),
		key("define", "variables: {NAME: VALUE}"),
		{Name: "exit-on-abort", Since: 1700},
		key("failures-detailed", "nothing: it is given where the version knows it"),
		key("file", "scripts: [{text: ...}]"),
		{Name: "fillfactor", Since: Oldest, Value: true, Initialize: true},
		{Name: "foreign-keys", Since: Oldest, Initialize: true},
		key("host", "server: {url: ...}"),
		{Name: "index-tablespace", Since: Oldest, Value: true, Initialize: true},
		{Name: "init-steps", Since: 1100, Value: true, Initialize: true},
		key("initialize", "a prefill step"),
		key("jobs", "threads:"),
		key("latency-limit", "latency_limit:"),
		key("log", "percentiles: true, which it is"),
		key("log-prefix", "nothing: the log is read as it is written"),
		key("max-tries", "max_tries:"),
		key("no-vacuum", "nothing: it is given"),
		{Name: "partition-method", Since: 1300, Value: true, Initialize: true},
		{Name: "partitions", Since: 1300, Value: true, Initialize: true},
		key("port", "server: {url: ...}"),
		key("progress", "nothing: it is given"),
		key("progress-timestamp", "nothing: it is given"),
		key("protocol", "mode:"),
		{Name: "quiet", Since: Oldest, Initialize: true},
		key("random-seed", "the scenario's seed"),
		key("rate", "rate:"),
		key("report-latencies", "statements: true"),
		key("report-per-command", "statements: true"),
		key("sampling-rate", "percentiles: false; percentiles are made of all transactions"),
		key("scale", "scale:"),
		{Name: "tablespace", Since: Oldest, Value: true, Initialize: true},
		key("time", "runtime_secs of the step"),
		key("transactions", "runtime_secs of the step: a run ends with its time"),
		{Name: "unlogged-tables", Since: Oldest, Initialize: true},
		key("username", "server: {url: ...}"),
		{Name: "vacuum-all", Since: Oldest},
		{Name: "verbose-errors", Since: 1500},
	}
}

var versionLine = lazyregexp.New(`^pgbench \(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// ReadVersion reads what pgbench --version prints: 906 for 9.6 and 1500 for 15, and the words.
func ReadVersion(text string) (number int, words string, err error) {
	m := versionLine.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, "", fmt.Errorf("%.80q is no version of pgbench", strings.TrimSpace(text))
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2]) // digits or nothing
	words = m[1]
	if m[2] != "" {
		words += "." + m[2]
	}
	if major < 10 {
		return major*100 + min(minor, 99), words, nil
	}
	return min(major, 999) * 100, words, nil
}

// words is a version as people write it.
func words(version int) string {
	if version < 1000 {
		return fmt.Sprintf("%d.%d", version/100, version%100)
	}
	return strconv.Itoa(version / 100)
}

// Check says what a pgbench of that version cannot do of a job.
func (j Job) Check(version int) error {
	var bad []string
	need := func(what string, since int) {
		if version < since {
			bad = append(bad, fmt.Sprintf("%s needs pgbench %s", what, words(since)))
		}
	}
	need("plimsoll", Oldest)
	for _, given := range j.Options {
		name, _, _ := strings.Cut(strings.TrimPrefix(given, "--"), "=")
		for _, o := range Options() {
			if o.Name == name {
				need("--"+name, o.Since)
			}
		}
	}
	if j.MaxTries > 1 {
		need("max_tries", 1500)
	}
	if len(bad) > 0 {
		return fmt.Errorf("pgbench there is %s: %s", words(version), strings.Join(bad, "; "))
	}
	return nil
}

// Arguments are those of pgbench of a version for a job, its name left out.
func (j Job) Arguments(version int) []string {
	if j.Initialize {
		args := append([]string{"--initialize", "--scale=" + strconv.Itoa(j.Scale)}, j.Options...)
		// It drops nothing: what is there of ours is gone, and all else is another's.
		const steps = "--init-steps="
		if version < 1100 {
			return args
		}
		for i, a := range args {
			if given, ok := strings.CutPrefix(a, steps); ok {
				args[i] = steps + strings.ReplaceAll(given, "d", "")
				return args
			}
		}
		return append(args, steps+"tgvp")
	}
	args := []string{"--no-vacuum", "--progress=1", "--progress-timestamp", "--client=" + strconv.Itoa(j.Clients),
		"--jobs=" + strconv.Itoa(j.Threads), "--time=" + strconv.Itoa(j.Seconds), "--protocol=" + j.Mode}
	given := func(yes bool, arg string) {
		if yes {
			args = append(args, arg)
		}
	}
	given(j.Log, "--log")
	own := true // all scripts are the author's, and pgbench does not count the branches
	for _, s := range j.Scripts {
		own = own && s.Builtin == ""
		if s.Builtin != "" {
			args = append(args, "--builtin="+s.Builtin+"@"+strconv.Itoa(s.Weight))
		} else {
			args = append(args, "--file="+s.File+"@"+strconv.Itoa(s.Weight))
		}
	}
	given(own, "--scale="+strconv.Itoa(j.Scale))
	given(j.Rate > 0, "--rate="+strconv.FormatFloat(j.Rate, 'f', -1, 64))
	given(j.LatencyLimitMS > 0, "--latency-limit="+strconv.FormatFloat(j.LatencyLimitMS, 'f', -1, 64))
	given(j.MaxTries > 1, "--max-tries="+strconv.Itoa(j.MaxTries))
	given(j.Connect, "--connect")
	given(j.Statements, "-r") // its long name has changed
	given(j.Seed > 0 && version >= 1100, "--random-seed="+strconv.FormatUint(j.Seed, 10))
	given(version >= 1500, "--failures-detailed")
	return append(args, j.Options...)
}
