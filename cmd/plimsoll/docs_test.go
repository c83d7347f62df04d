package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// treatment says what is done with a command line of the documents that is not simply run as it stands. Every other
// line is: in a temporary folder with the files of prepare in it, the lines of a page in their order, each with exit
// code 0.
type treatment struct {
	begins string // the line, without "$ "
	add    string // put behind the line
	parsed bool   // only its flags and arguments are read, by --help in place of doing it
	serves bool   // runs until it is told to end
	exits  int
	why    string
}

var treatments = []treatment{
	{begins: "plimsoll cleanup --target kubernetes", parsed: true, why: "it takes a cluster"},
	{begins: "plimsoll run db-colocation --detach", parsed: true, why: "its process outlives the command"},
	{begins: "plimsoll run db-colocation --target local --remote-write", parsed: true,
		why: "remote-write.txtar makes one"},
	{begins: "plimsoll attach", parsed: true, why: "shows the run of the line before"},
	{begins: "plimsoll run db-colocation", add: "--target sim --nodes 4", why: "77 seconds; make demo is for real"},
	{begins: "plimsoll run ./my-scenario --assert", add: "--target sim --nodes 4 --time-scale 0.02 --size-scale 0.002",
		why: "an hour"},
	{begins: "plimsoll plan my.fio --disk /dev/null", exits: 2, why: "refused on purpose"},
	{begins: "plimsoll plan my.fio --disk my.fio", exits: 2, why: "refused on purpose"},
	{begins: "plimsoll plan my.fio --disk /mnt/nowhere", exits: 2, why: "refused on purpose"},
	{begins: "plimsoll mark db ", parsed: true, why: "minutes; mark-db.txtar makes one"},
	{begins: "plimsoll mark my.fio --limit 'read p99 < 5ms'", parsed: true, why: "minutes; its other line is whole"},
	{begins: "plimsoll mark ./my-scenario", parsed: true, why: "minutes"},
	{begins: "plimsoll mark db-colocation --vary vms", add: "--target sim --nodes 4 --probes 3", why: "an hour"},
	{begins: "plimsoll mark db-colocation --vary rate --workload OLTP --limit 'read p99 < 10ms' --condition", parsed: true,
		why: "an hour; mark-lines.txtar makes one"},
	{begins: "plimsoll mark db-colocation", add: "--target sim --nodes 4 --probes 3", why: "an hour"},
	{begins: "plimsoll baseline check release run6", parsed: true, why: "there are no so many runs"},
	{begins: "plimsoll run ./my-test", add: "--target sim --nodes 4", why: "a minute and a half"},
	{begins: "plimsoll run block-size-grid", add: "--target sim --nodes 1 --once",
		why: "many runs; the page's other experiment is whole"},
	{begins: "plimsoll run ab-durable-log", add: "--target sim --nodes 1", why: "6 runs of half a minute"},
	{begins: "plimsoll run scale-out --time-scale", add: "--target sim --nodes 4", why: "minutes"},
	{begins: "plimsoll run my.fio --sweep bs=", add: "--target sim", why: "6 runs of a minute"},
	{begins: "plimsoll run my.fio --sweep iodepth=1,2,4,8,16,32 --repeat", add: "--repeat 1 --target sim",
		why: "18 runs"},
	{begins: "plimsoll run my.fio --disk /mnt/under-test --sweep", add: "--repeat 1", why: "18 runs"},
	{begins: "plimsoll run my.fio --precondition", add: "--target sim", why: "two writes of 1 GiB and 25 minutes"},
	{begins: "plimsoll usl hammerdb-1-to-64-users.txt", parsed: true, why: "an output of seven tests, which is long"},
	{begins: "plimsoll compare run1,run2,run3 run4,run5,run6 --vary kernel", parsed: true,
		why: "simulated runs have no kernel"},
	{begins: "plimsoll baseline check release run4,run5,run6 --fail-on", exits: 5,
		why: "runs so short leave measures inconclusive, and the line fails on those"},
	{begins: "plimsoll run my-scenario --size-scale 0.016", parsed: true, why: "its engine is an example"},
	{begins: "plimsoll targets check folders", parsed: true, why: "its target is an example"},
	{begins: "plimsoll plan db-colocation --target folders", parsed: true, why: "its target is an example"},
	{begins: "plimsoll lab image build", parsed: true, why: "a minute or more, and packages from the network"},
	{begins: "plimsoll targets check lab", parsed: true, why: "guests' images take a minute, and want the agent"},
	{begins: "plimsoll run my-playbooks --target lab", parsed: true, why: "nobody has those playbooks"},
	{begins: "plimsoll targets check ssh", parsed: true, why: "nobody has those hosts"},
	{begins: "plimsoll plan my-scenario --target ssh", parsed: true, why: "nobody has those hosts"},
	{begins: "plimsoll run my-scenario --target ssh", parsed: true, why: "nobody has those hosts"},
	{begins: "plimsoll db run pg --scale 10", parsed: true, why: "a minute, and PostgreSQL"},
	{begins: "plimsoll db run pg --select-only", parsed: true, why: "nobody has that server"},
	{begins: "plimsoll db run pg --sweep", parsed: true, why: "15 runs, and PostgreSQL"},
	{begins: "plimsoll db run pgbench --sweep", parsed: true, why: "9 runs, and PostgreSQL"},
	{begins: "plimsoll usl 20261125-1540", parsed: true, why: "there is no such run"},
	{begins: "plimsoll db run pg -f transfer.sql", parsed: true, why: "nobody has that server"},
	{begins: "plimsoll db run pg --rate 500", add: "--duration 2s", why: "a minute"},
	{begins: "plimsoll db run pgbench --scale 10", parsed: true, why: "a minute, and PostgreSQL"},
	{begins: "plimsoll db run pgbench --server", parsed: true, why: "nobody has that server"},
	{begins: "plimsoll db state", parsed: true, why: "nobody has that server"},
	{begins: "plimsoll run db-density", parsed: true, why: "minutes, and PostgreSQL"},
	{begins: "plimsoll run db-order-entry", parsed: true, why: "minutes, and PostgreSQL"},
	{begins: "plimsoll run db-decision-support", parsed: true, why: "minutes, and PostgreSQL"},
	{begins: "plimsoll run db-scale-up", parsed: true, why: "minutes, and PostgreSQL"},
	{begins: "plimsoll run db-client-limit", parsed: true, why: "minutes, and PostgreSQL"},
	{begins: "plimsoll run db-topology", parsed: true, why: "minutes, and PostgreSQL"},
	{begins: "plimsoll run db-numa", parsed: true, why: "the page's options make it fail, as it says"},
	{begins: "plimsoll run db-failover", parsed: true, why: "PostgreSQL, and the time of a failover"},
	{begins: "plimsoll run db-checkpoint", parsed: true, why: "minutes, and PostgreSQL"},
	{begins: "plimsoll compare RUN1 RUN2", parsed: true, why: "there are no such runs"},
	{begins: "plimsoll run db-hugepages", parsed: true, why: "changes the machine"},
	{begins: "plimsoll device inspect", parsed: true, why: "machines have other devices"},
	{begins: "plimsoll device check", parsed: true, why: "machines have other devices"},
	{begins: "plimsoll run my.fio --disk /dev/nvme1n1", parsed: true, why: "it would be overwritten"},
	{begins: "plimsoll integrity write /mnt/under-test/stamped", add: "--same-device",
		why: "the test has one file system"},
	{begins: "plimsoll trace /dev/sdb", parsed: true, why: "whatever /dev/sdb is here, it is not asked"},
	{begins: "plimsoll vioperf /mnt/under-test", add: "--duration 300ms --rate 40MB/s --reserve 0",
		why: "a minute, and a disk at its limit"},
	{begins: "plimsoll vioperf --compare-fio", add: "--duration 200ms --rounds 1 --reserve 0", why: "two minutes"},
	{begins: "plimsoll device sweep /dev/nvme1n1", parsed: true, why: "there is no such device"},
	{begins: "plimsoll device sweep /mnt/", add: "--target sim --repeats 1", why: "a quarter of an hour"},
	{begins: "plimsoll device spec /mnt/under-test", add: "--target sim --repeats 2", why: "minutes"},
	{begins: "plimsoll serve", add: "--listen 127.0.0.1:0", serves: true, why: "it serves"},
	{begins: "plimsoll run boot-storm --target lab", parsed: true, why: "it needs root and QEMU, and takes minutes"},
	{begins: "plimsoll run power-loss --target lab", parsed: true, why: "it needs root and QEMU, and takes minutes"},
	{begins: "plimsoll run node-loss --target lab", parsed: true, why: "it needs root and QEMU, and takes minutes"},
	{begins: "plimsoll lab exec", exits: 1, why: "there is no lab, which needs root and GlusterFS"},
	{begins: "plimsoll lab", parsed: true, why: "it needs root and GlusterFS; internal/targets/lab/cluster does the same"},
	{begins: "plimsoll db run tprocc", parsed: true, why: "minutes, and a server that nobody has"},
	{begins: "plimsoll db run tproch", add: "--option scale=0.01", why: "minutes"},
	{begins: "plimsoll history", parsed: true, why: "nobody has those results; history.txtar has some"},
	{begins: "plimsoll exporter mariadb", parsed: true, why: "there is no such server"},
	{begins: "plimsoll exporter postgres", parsed: true, why: "there is no such server"},
	{begins: "plimsoll exporter nutanix", parsed: true, why: "there is no such cluster; nutanix.txtar has one"},
	{begins: "plimsoll nutanix", parsed: true, why: "there is no such cluster; nutanix.txtar has one"},
	{begins: "plimsoll exporter host --listen", add: "--listen 127.0.0.1:0", serves: true, why: "it serves"},
}

// instead are names in the documents that a test cannot use as they are.
var instead = map[string]string{
	"/mnt/under-test":     "under-test",
	"/mnt/a":              "disk-a",
	"/mnt/b":              "disk-b",
	"/etc/plimsoll.token": "plimsoll.token",
}

// pages are the project's documents.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := needs.Root()
	add := func(name string) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		found[rel] = string(data)
	}
	add(filepath.Join(root, "README.md"))
	add(filepath.Join(root, "CONTRIBUTING.md"))
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			add(name)
		}
		return err
	})
	if err != nil || len(found) < 10 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return found
}

// commandLine is a line of a page that a reader is to type, and what the page says that it prints.
type commandLine struct {
	text   string
	prints []string
}

var (
	fenced   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	unmarked = regexp.MustCompile(`^\s*(plimsoll|bin/plimsoll) [a-z]`)
	toMake   = regexp.MustCompile(`(?m)^(?:\$ )?make ([a-z-]+)`)
	inline   = regexp.MustCompile("`(plimsoll|make) ([^`]+)`")
	built    = regexp.MustCompile(`bin/(plimsoll) ([a-z][^#&|\n]+)`)
	goTest   = regexp.MustCompile(`(?m)^(?:\$ )?go test .*$`)
	argument = regexp.MustCompile(`'[^']*'|\S+`)
)

// commandLines are the "$ plimsoll" lines in the fences of a page, each with the lines behind it.
func commandLines(page string) (lines []commandLine, wrong []string) {
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		if block[1] == "sh" { // a script, which a test of its own runs: see TestFirstTenMinutes
			continue
		}
		marked := strings.Contains("\n"+block[2], "\n$ ")
		for line := range strings.Lines(block[2]) {
			line = strings.TrimRight(line, "\n")
			switch text, ok := strings.CutPrefix(line, "$ "); {
			case ok:
				lines = append(lines, commandLine{text: text})
			case unmarked.MatchString(line):
				wrong = append(wrong, line)
			case marked && len(lines) > 0:
				lines[len(lines)-1].prints = append(lines[len(lines)-1].prints, line)
			}
		}
	}
	for line := range strings.Lines(fenced.ReplaceAllString(page, "")) {
		if unmarked.MatchString(line) {
			wrong = append(wrong, line)
		}
	}
	return lines, wrong
}

// TestCommandLinesOfTheDocuments runs every command of every page as it is written, page by page, as a reader would.
func TestCommandLinesOfTheDocuments(t *testing.T) {
	t.Parallel()
	needs.Fio(t)
	fixture := prepare(t)
	used, n := make([]bool, len(treatments)), 0
	for name, page := range pages(t) {
		lines, wrong := commandLines(page)
		if strings.Contains(page, "```sh\n") && name != firstPage {
			t.Errorf("%s has a script, which no test runs", name)
		}
		for _, w := range wrong {
			t.Errorf("%s: write \"$ \" before %q, in a fence", name, w)
		}
		n += len(lines)
		if len(lines) == 0 {
			continue
		}
		todo := make([]treatment, len(lines))
		for i, line := range lines {
			at := slices.IndexFunc(treatments, func(h treatment) bool { return strings.HasPrefix(line.text, h.begins) })
			if at >= 0 {
				todo[i], used[at] = treatments[at], true
			}
		}
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(fixture)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "plimsoll.token"), 0o600); err != nil {
				t.Fatal(err)
			}
			for i, line := range lines {
				todo[i].do(t, dir, line)
			}
		})
	}
	for i, how := range treatments {
		if !used[i] {
			t.Errorf("no page has %q any more: remove it from the table", how.begins)
		}
	}
	if n < 60 {
		t.Errorf("only %d command lines found", n)
	}
}

// do runs a line in a folder, and holds what it prints against what the page says.
func (h treatment) do(t *testing.T, dir string, line commandLine) {
	t.Helper()
	text := line.text
	if h.parsed {
		text, _, _ = strings.Cut(strings.ReplaceAll(text, " ...", ""), "#")
		h.add = "--help"
	}
	for of, is := range instead {
		text = strings.ReplaceAll(text, of, is)
	}
	text, comment, _ := strings.Cut(text, " #")
	text += " " + h.add
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+text)
	if strings.Contains(text, "|") {
		cmd = exec.CommandContext(ctx, "sh", "-c", text)
	}
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	err := h.run(cmd)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
	}
	if h.parsed && !helpsWith(strings.Fields(text)[1:], out.String()) {
		t.Errorf("%s: there is no such command", text)
	}
	if err != nil || code != h.exits {
		t.Errorf("%s%s\nexit code %d, want %d, %v\n%s", text, comment, code, h.exits, err, &out)
	}
	if len(line.prints) > 0 && !h.parsed && !quotes(line.prints, out.String()) {
		t.Errorf("%s\nprints:\n%s\nand not:\n%s", text, &out, strings.Join(line.prints, "\n"))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Logf("%s took %s", text, took.Round(time.Second))
	}
}

// run waits for a command; one that serves is told to end when it has said where.
func (h treatment) run(cmd *exec.Cmd) error {
	if !h.serves {
		return cmd.Run()
	}
	out := cmd.Stdout
	cmd.Stdout = nil
	cmd.Stderr = nil
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		told := false
		buffer := make([]byte, 4096)
		for {
			n, err := r.Read(buffer)
			_, _ = out.Write(buffer[:n])
			if !told && bytes.Contains(buffer[:n], []byte("http://127.0.0.1:")) {
				told = true
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Wait()
	return errors.Join(err, w.Close())
}

// quotes reports whether a page says what was printed: line by line, "..." standing for any number of lines, or for the
// rest of one.
func quotes(page []string, printed string) bool {
	var b strings.Builder
	b.WriteString(`^`)
	for _, line := range page {
		switch start, cut := strings.CutSuffix(line, "..."); {
		case line == "...":
			b.WriteString(`(?:.*\n)*?`)
		case cut:
			b.WriteString(regexp.QuoteMeta(start) + `.*\n`)
		default:
			b.WriteString(regexp.QuoteMeta(line) + `\n`)
		}
	}
	return regexp.MustCompile(b.String() + `$`).MatchString(printed)
}

// TestQuotes keeps the comparison strict enough to fail.
func TestQuotes(t *testing.T) {
	t.Parallel()
	const printed = "a 1\nb 2\nc 3\n"
	for page, want := range map[string]bool{
		"a 1|b 2|c 3": true, "a 1|...": true, "...|c 3": true, "a...|b...|c 3": true, "...|b 2|...": true,
		"a 1|b 2": false, "b 2|...": false, "a 1|c 3": false, "...|b 3|...": false,
	} {
		if got := quotes(strings.Split(page, "|"), printed); got != want {
			t.Errorf("%q: %t, want %t", page, got, want)
		}
	}
}

// TestCommandsInTheText reads the flags and arguments of every command that a page names in its text or begins with
// bin/plimsoll, and looks for targets of make and tests that pages name.
func TestCommandsInTheText(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	makefile, err := os.ReadFile(filepath.Join(needs.Root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for name, page := range pages(t) {
		prose := fenced.ReplaceAllString(page, "")
		fences := strings.Join(fenced.FindAllString(page, -1), "\n")
		targets := toMake.FindAllStringSubmatch(fences, -1)
		named := append(inline.FindAllStringSubmatch(prose, -1), built.FindAllStringSubmatch(fences, -1)...)
		for _, m := range named {
			if m[1] == "make" {
				targets = append(targets, m)
				targets[len(targets)-1][1] = strings.Fields(m[2])[0]
				continue
			}
			words := argument.FindAllString(strings.ReplaceAll(m[2], "...", ""), -1)
			for i, w := range words {
				words[i] = strings.Trim(w, `'"`)
			}
			line := strings.Join(words, " ")
			if words[0] == "COMMAND" || known[line] { // COMMAND stands for any
				continue
			}
			known[line] = true
			out, err := s.command(t.Context(), append(slices.Clone(words), "--help")...).CombinedOutput()
			if err != nil || !helpsWith(words, string(out)) {
				t.Errorf("%s: `plimsoll %s`: %v\n%s", name, m[2], err, out)
			}
		}
		for _, m := range targets {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m[1]) + `:`).Match(makefile) {
				t.Errorf("%s: make %s: there is no such target", name, m[1])
			}
		}
		for _, line := range goTest.FindAllString(page, -1) {
			for _, missing := range missingTests(line) {
				t.Errorf("%s: %s: %s", name, line, missing)
			}
		}
	}
	if len(known) < 15 {
		t.Errorf("only %d commands found", len(known))
	}
}

// helpsWith reports whether help is that of the command whose words these are: of one that only holds others, the next
// word is one of those.
func helpsWith(words []string, help string) bool {
	command := "plimsoll"
	for _, w := range words {
		group := command == "plimsoll" || strings.Contains(help, "  "+command+" [command]")
		if !group || strings.HasPrefix(w, "-") || w == strings.ToUpper(w) { // in capitals stands for any
			break
		}
		command += " " + w
	}
	return strings.Contains(help, "  "+command)
}

// missingTests returns what a "go test" line names that is not there: folders, tests and benchmarks.
func missingTests(line string) (missing []string) {
	line, _, _ = strings.Cut(line, " #")
	words := argument.FindAllString(line, -1)
	var source []byte
	for _, w := range words {
		if !strings.HasPrefix(w, "./") {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(needs.Root(), strings.TrimSuffix(w, "..."), "*_test.go"))
		if len(files) == 0 && !strings.HasSuffix(w, "...") {
			missing = append(missing, "no tests in "+w)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				return append(missing, err.Error())
			}
			source = append(source, data...)
		}
	}
	for flag, kind := range map[string]string{"-run": "(Test|Example|Fuzz)", "-bench": "Benchmark"} {
		i := slices.Index(words, flag)
		if i < 0 || i+1 >= len(words) || words[i+1] == "'^$'" {
			continue
		}
		wanted, err := regexp.Compile(strings.Trim(words[i+1], "'"))
		if err != nil {
			return append(missing, err.Error())
		}
		there := false
		for _, m := range regexp.MustCompile(`(?m)^func (`+kind+`\w+)`).FindAllSubmatch(source, -1) {
			there = there || wanted.Match(m[1])
		}
		if !there {
			missing = append(missing, fmt.Sprintf("nothing matches %s %s", flag, words[i+1]))
		}
	}
	return missing
}

// prepare makes the folder that the documents speak of: runs, tables, outputs of other tools, a job file, a scenario.
func prepare(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := session{t: t, runs: filepath.Join(dir, "plimsoll-runs")}
	names := []string{"run1", "run2", "run3", "run4", "run5", "run6", "20261121-204512-db-colocation-5f21",
		"last"}
	for i, name := range names {
		s.must("run", "db-colocation", "--target", "sim", "--nodes", "4", "--time-scale", "0.02", "--size-scale",
			"0.002", "--target-opt", fmt.Sprintf("seed=%d", i+1))
		rename(t, s.runs, "20260101-000000-plimsoll-db-colocation-0001", name)
	}
	s.must("scenarios", "new", filepath.Join(dir, "my-scenario"), "--from", "db-colocation")
	outputs := filepath.Join(needs.Root(), "internal", "formats", "importer", "testdata", "outputs")
	for name, of := range map[string]string{
		"out.json": "one.json", "before.json": "one.json", "after.json": "one.json", "fio_iops.1.log": "av_iops.1.log",
		"vmstat.log": "vmt.txt", "iostat.log": "iot.txt",
	} {
		data, err := os.ReadFile(filepath.Join(outputs, of))
		if err != nil {
			t.Fatal(err)
		}
		place(t, filepath.Join(dir, name), string(data))
	}
	rows := func(head string, n int, row func(i int) string) string {
		var b strings.Builder
		b.WriteString(head + "\n")
		for i := range n {
			b.WriteString(row(i) + "\n")
		}
		return b.String()
	}
	noise := func(i int) int { return (i*7919 + i*i*31) % 41 } // unlike its neighbours, the same every time
	steady := rows("second,iops", 300, func(i int) string { return fmt.Sprintf("%d,%d", i, 9980+noise(i)) })
	sweep := rows("n,x", 8, func(i int) string {
		n := float64(int(1) << i)
		return fmt.Sprintf("%g,%.1f", n, 1000*n/(1+0.02*(n-1)+0.0002*n*(n-1))+float64(noise(i))/10)
	})
	repeats := func(iops int) string {
		return rows("run,iops,p99,p99_ms", 8, func(i int) string {
			return fmt.Sprintf("%d,%d,%d,%.2f", i+1, iops+noise(i), 90+noise(i)%9, 4+float64(noise(i))/100)
		})
	}
	for name, text := range map[string]string{
		"iops.csv": steady, "iostat.csv": steady, "sweep.csv": sweep, "throughput.csv": sweep,
		"before.csv": repeats(10_000), "after.csv": repeats(10_050), "measure.sh": "cat after.csv\n",
		"history.csv": rows("commit,p99", 60, func(i int) string {
			return fmt.Sprintf("c%02d,%d", i, 500+i/30*200+noise(i))
		}),
		"rounds.txt": rows("iops", 12, func(i int) string {
			return fmt.Sprint(50_000 + 40_000/(i+1) + noise(i))
		}),
		"vdb.blkparse.txt": blkparseText(500, noise),
		"sheet.yaml":       "device: Example SSD\nrandom-read: 98000\n",
		"plimsoll.token":   "0123456789abcdef0123456789abcdef\n",
		"under-test/.keep": "", "disk-a/.keep": "", "disk-b/.keep": "",
		"my.fio": "[reads]\nfilename=/dev/sdb\nsize=64m\nrw=randread\nbs=4k\nioengine=libaio\ndirect=1\n" +
			"runtime=1\ntime_based\n",
		"my.vdb": "sd=sd1,lun=/dev/sdb,size=64m,threads=4,openflags=o_direct\nwd=wd1,sd=sd1,xfersize=8k,rdpct=70\n" +
			"rd=rd1,wd=wd1,iorate=100,elapsed=2\n",
	} {
		place(t, filepath.Join(dir, name), text)
	}
	return dir
}

// blkparseText returns what blkparse prints of a data file and a log, n of their requests.
func blkparseText(n int, noise func(int) int) string {
	var b strings.Builder
	line := func(us, pid int, action, op string, sector, sectors int, end string) {
		fmt.Fprintf(&b, "  8,16   0 %8d %5d.%06d000 %5d  %s %3s %d + %d [%s]\n", us, us/1e6, us%1e6, pid, action, op,
			sector,
			sectors, end)
	}
	for i := range n {
		op, sector, sectors, us := "R", noise(i)*4096+noise(3*i)*16, 16, i*2000
		switch {
		case i%4 == 3:
			op, sector, sectors = "WS", 1<<30+i/4*32, 32
		case i%3 == 0:
			op = "W"
		}
		line(us, 100, "Q", op, sector, sectors, "postgres")
		line(us+10, 100, "D", op, sector, sectors, "postgres")
		line(us+200+noise(i), 0, "C", op, sector, sectors, "0")
	}
	return b.String()
}

// rename gives a run the name that a page calls it by.
func rename(t *testing.T, runs, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(runs, from), filepath.Join(runs, to)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(runs, to, "SHA256SUMS")); err != nil { // as a run of before there were sums
		t.Fatal(err)
	}
	for _, name := range []string{"manifest.json", "data.json"} {
		name = filepath.Join(runs, to, name)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		place(t, name, strings.ReplaceAll(string(data), from, to))
	}
}

// TestLinksOfTheDocuments follows every relative link.
func TestLinksOfTheDocuments(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(needs.Root(), filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}
