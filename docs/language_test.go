package docs_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/docs"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/testkit/golden"
	"plimsoll/scenario"
)

const page = "scenario-language.md"

var (
	printed = regexp.MustCompile(`(?m)^<!--printed: (.*)-->$`)
	made    = regexp.MustCompile(`(?ms)^<!--made: ([^\n]*?)-->\n.*?^<!--end-->$`)
	fence   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	file    = regexp.MustCompile(`^# ([a-z]+\.[a-z]+)\n`)
	anchor  = regexp.MustCompile(`\]\(#([^)]*)\)`)
)

// TestLanguagePage holds the reference of the scenario language against the program: what stands between markers is
// what the checker says, and everything that the program prints has its place.
func TestLanguagePage(t *testing.T) {
	t.Parallel()
	text := read(t)
	parts, used := drivers.All().Reference(), map[string]bool{}
	for _, m := range printed.FindAllStringSubmatch(text, -1) {
		if _, ok := parts[m[1]]; !ok || used[m[1]] {
			t.Errorf("the page asks for %q, which nothing prints, or asks twice", m[1])
		}
		used[m[1]] = true
	}
	for _, s := range scenario.Steps() {
		used["step "+s.Name] = strings.Count(text, "\n### "+s.Name+"\n\n") == 1
	}
	examples := examples(t, text)
	got := made.ReplaceAllStringFunc(text, func(old string) string {
		name := made.FindStringSubmatch(old)[1]
		part := ""
		switch name {
		case "said": // the number of markers before this one is the number of the mistake
			part = "```text\n" + said(examples.next()) + "```\n"
		case "selectors":
			part = selectors()
		default:
			t.Errorf("the page asks for %q, which nothing makes", name)
		}
		return "<!--made: " + name + "-->\n\n" + part + "\n<!--end-->"
	})
	for name := range parts {
		if !used[name] {
			t.Errorf("the page has no place for %q: <!--printed: %s-->, or of a step its heading", name, name)
		}
	}
	golden.Compare(t, page, []byte(got))
}

// TestLanguageExamples checks every example of the page as an author's own file is checked.
func TestLanguageExamples(t *testing.T) {
	t.Parallel()
	text := read(t)
	list := examples(t, text)
	whole := list.all[0]
	if _, diags := check(whole); len(diags) != 0 {
		t.Errorf("the whole scenario: %v", diags)
	}
	// What an example that is a part of a file may leave unused, and what is a remark on purpose.
	allowed := []string{"unused-variable", "unused-workload", "unused-group", "unused-file", "estimate", "extension",
		"shell", "password", "metric-experimental"}
	seen := map[string]bool{}
	for _, e := range list.all {
		sc, diags := check(e)
		diags = slices.DeleteFunc(diags, func(d scenario.Diagnostic) bool {
			return d.Severity != scenario.Error && slices.Contains(allowed, d.Code)
		})
		if e.mistake == (len(diags) == 0) {
			t.Errorf("%s: a mistake: %t, and its objections: %v\n%s", e.section, e.mistake, diags,
				e.files["test.yml"].Data)
		}
		if sc == nil || e.mistake {
			continue
		}
		for _, s := range slices.Concat(sc.Setup, sc.Run, sc.Teardown) {
			seen[s.Name+" in "+e.section] = true
		}
		for _, r := range sc.Results {
			seen[string(r.Kind)+" "+r.Type+" in "+e.section] = true
		}
	}
	for _, s := range scenario.Steps() {
		if !seen[s.Name+" in "+s.Name] {
			t.Errorf("the section of %s has no example of it", s.Name)
		}
	}
	for _, kind := range []string{"vm_group iops", "vm_group bandwidth", "vm_group latency", "vm_group generic"} {
		if !seen[kind+" in Results of a VM group"] {
			t.Errorf("no example of a result: %s", kind)
		}
	}
	for _, kind := range []string{"workload iops", "workload bandwidth", "workload errors", "workload active"} {
		if !seen[kind+" in Results of a workload"] {
			t.Errorf("no example of a result: %s", kind)
		}
	}
	if !seen["cluster  in Results of the cluster"] {
		t.Error("no example of a result of the cluster")
	}
}

// TestLanguageWords looks for what the tables use and the page does not explain, keys of command files that are not
// there, and links that lead nowhere.
func TestLanguageWords(t *testing.T) {
	t.Parallel()
	p := docs.ScenarioLanguage(drivers.All().Reference())
	types, _ := p.Section("types")
	for name, rows := range scenario.Tables() {
		for _, r := range rows {
			if !regexp.MustCompile(`(?m)^\|[^|]*\b` + string(r.Type) + `\b[^|]*\|`).MatchString(types) {
				t.Errorf("%s: %s: the type %q is not explained", name, r.Name, r.Type)
			}
		}
	}
	anchors := map[string]bool{}
	for _, s := range p.Sections() {
		anchors[strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(s, ".", "")), " ", "-")] = true
	}
	for _, m := range anchor.FindAllStringSubmatch(string(p), -1) {
		if !anchors[m[1]] {
			t.Errorf("the page links to #%s, which is no heading", m[1])
		}
	}
	page, err := os.ReadFile("how-to/run-any-program.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "## The file\n")
	program, _, _ = strings.Cut(program, "\n### ")
	var keys []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(program, -1) {
		keys = append(keys, fmt.Sprintf("%q", m[1]))
	}
	_, objections := drivers.All().Generators()["command"].ReadConfig("x.yml", []byte("zzzzzzzzzzzz: 1\n"), nil)
	if want := strings.Join(keys, " "); len(objections) == 0 || !strings.Contains(objections[0].What, "["+want+"]") {
		t.Errorf("the page has the keys %s; the program says: %v", want, objections)
	}
}

func ExamplePage_Section() {
	step, _ := docs.ScenarioLanguage(drivers.All().Reference()).Section("test.Wait")
	fmt.Println(strings.SplitN(step, "\n", 4)[2])
	// Output: Waits.
}

func TestPage(t *testing.T) {
	t.Parallel()
	p := docs.Page("# T\n\nintro\n\n## A\n\na\n\n```\n## no\n```\n\n### A.b\n\nab\n\n## C\n\nc\n")
	if diff := cmp.Diff([]string{"A", "A.b", "C"}, p.Sections()); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{
		"a":   "## A\n\na\n\n```\n## no\n```\n\n### A.b\n\nab\n",
		"A.B": "### A.b\n\nab\n",
		"C":   "## C\n\nc\n",
	} {
		if got, ok := p.Section(name); !ok || got != want {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
	if _, ok := p.Section("no"); ok {
		t.Error("a heading within a fence counts")
	}
	if text := string(docs.ScenarioLanguage(drivers.All().Reference())); strings.Contains(text, "<!--") ||
		!strings.Contains(text, "- `runtime_secs` (") {
		t.Error("the page has its markers, or lacks its lists")
	}
}

func read(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// example is a block of the page, made a whole scenario.
type example struct {
	section string
	mistake bool
	files   fstest.MapFS
}

type exampleList struct {
	all  []example
	said int // index of the last mistake that was given out
}

func (l *exampleList) next() example {
	l.said += 1 + slices.IndexFunc(l.all[l.said+1:], func(e example) bool { return e.mistake })
	return l.all[l.said]
}

// examples are the blocks of the page, in order. A block that begins with the name of a file as a comment is that file;
// it goes with the block before, or stands for itself where there is none. The first example is the whole scenario,
// whose sections the others replace.
func examples(t *testing.T, text string) *exampleList {
	t.Helper()
	list := &exampleList{}
	var base []section
	heading, files := "", fstest.MapFS{}
	blocks := fence.FindAllStringSubmatchIndex(text, -1)
	for i, b := range blocks {
		lang, body, before := text[b[2]:b[3]], text[b[4]:b[5]], text[:b[0]]
		if at := strings.LastIndex("\n"+before, "\n## "); at >= 0 {
			heading = strings.TrimSpace(strings.SplitN(before[at:], "\n", 2)[0])
		}
		if at := strings.LastIndex("\n"+before, "\n### "); at >= 0 && at > strings.LastIndex("\n"+before, "\n## ") {
			heading = strings.TrimSpace(strings.SplitN(before[at:], "\n", 2)[0])
		}
		heading = strings.TrimLeft(heading, "# ")
		if lang == "text" {
			continue
		}
		end := len(text)
		if i+1 < len(blocks) {
			end = blocks[i+1][0]
		}
		mistake := strings.Contains(text[b[1]:end], "<!--made: said-->")
		name := ""
		if m := file.FindStringSubmatch(body); m != nil {
			name = m[1]
		}
		switch {
		case name == "" && base == nil:
			base = sections(body)
			list.all = append(list.all, example{heading, mistake, with(files, "test.yml", body)})
		case name == "":
			yml := join(base, sections(body))
			list.all = append(list.all, example{heading, mistake, with(files, "test.yml", yml)})
		case len(list.all) == 1: // of the whole scenario: all have it
			files = with(files, name, body)
			list.all[0].files = with(list.all[0].files, name, body)
		case !strings.Contains(text[blocks[i-1][1]:b[0]], "**"): // right behind the block it belongs to
			last := &list.all[len(list.all)-1]
			last.files, last.mistake = with(last.files, name, body), mistake
		default:
			yml := join(base, nil)
			list.all = append(list.all, example{heading, mistake, with(with(files, "test.yml", yml), name, body)})
		}
	}
	list.said = 0
	if len(list.all) < 40 {
		t.Fatalf("%d examples", len(list.all))
	}
	return list
}

func with(files fstest.MapFS, name, text string) fstest.MapFS {
	files = maps.Clone(files)
	files[name] = &fstest.MapFile{Data: []byte(text)}
	return files
}

// section holds what begins at a key in column 0.
type section struct{ key, text string }

func sections(text string) []section {
	var out []section
	for line := range strings.SplitAfterSeq(text, "\n") {
		key, _, ok := strings.Cut(line, ":")
		if ok && key != "" && !strings.ContainsAny(key[:1], " #{-") {
			out = append(out, section{key: key})
		}
		if len(out) > 0 {
			out[len(out)-1].text += line
		}
	}
	return out
}

// join puts sections in the place of those of the whole scenario: before it where they begin with vars, which must not
// stand last, else after it.
func join(base, own []section) string {
	has := map[string]bool{}
	var mine, rest strings.Builder
	for _, s := range own {
		has[s.key] = true
		mine.WriteString(s.text)
	}
	for _, s := range base {
		if !has[s.key] {
			rest.WriteString(s.text)
		}
	}
	if len(own) > 0 && own[0].key == "vars" {
		return mine.String() + "\n" + rest.String()
	}
	return rest.String() + "\n" + mine.String()
}

// check reads an example as plimsoll check --strict --nodes 4 does.
func check(e example) (*scenario.Scenario, []scenario.Diagnostic) {
	return scenario.Load(e.files, scenario.LoadOptions{
		Strict: true, Nodes: 4, Now: time.Unix(0, 0), Generators: drivers.All().Generators(),
		CheckQuery: collect.CheckQuery,
	})
}

// said returns what is said of a mistake, without what its being a part of a file brings about.
func said(e example) string {
	_, diags := check(e)
	var b strings.Builder
	for _, d := range diags {
		if strings.HasPrefix(d.Code, "unused-") || d.Code == "estimate" {
			continue
		}
		d.Pos = scenario.Pos{}
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

// grid is a table in Markdown whose columns but the last are of equal width: it is read in terminals too.
func grid(cells [][]string) string {
	width := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	for n, row := range cells {
		for i, c := range row[:len(row)-1] {
			fmt.Fprintf(&b, "| %-*s ", width[i], c)
		}
		fmt.Fprintf(&b, "| %s |\n", row[len(row)-1])
		if n == 0 {
			for _, w := range width[:len(width)-1] {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|---|\n")
		}
	}
	return b.String()
}

// selectors are examples of the language of node selectors with what they select on four nodes.
func selectors() string {
	cells := [][]string{{"selector", "nodes", "read as"}}
	for _, e := range [][2]string{
		{"0", "the first"}, {"-1", "the last"}, {"0,2", "a list, in this order"}, {"1:", "all but the first"},
		{":n-1", "all but the last"}, {":n/2", "the first half"}, {"n/2:", "the second half"}, {"::2", "every other"},
		{"3,0:2", "an index and a slice"}, {"all", "every node"}, {"2:9", "a slice is clipped"},
	} {
		s, err := scenario.ParseSelector(e[0])
		if err != nil {
			panic(err)
		}
		nodes, err := s.Resolve(4)
		if err != nil {
			panic(err)
		}
		cells = append(cells, []string{fmt.Sprintf("`%q`", e[0]), strings.Trim(fmt.Sprint(nodes), "[]"), e[1]})
	}
	return grid(cells)
}
