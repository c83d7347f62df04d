package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/golden"
)

// TestOptionTables makes the tables of keys on the how-to pages of what the engines' own tables say: every engine that
// has one is on a page.
func TestOptionTables(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	engines := drivers.All().ByName()
	for name, e := range engines {
		if _, ok := e.(workload.Configured); ok {
			missing[name] = true
		}
	}
	if len(missing) < 8 {
		t.Errorf("only %v have a table", missing)
	}
	pages, err := filepath.Glob("how-to/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pages {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got := made.ReplaceAllStringFunc(string(data), func(old string) string {
			what := made.FindStringSubmatch(old)[1]
			engine, ok := strings.CutPrefix(what, "options of ")
			c, configured := engines[engine].(workload.Configured)
			if !ok || !configured {
				t.Errorf("%s: nothing makes %q", name, what)
				return old
			}
			delete(missing, engine)
			return "<!--made: " + what + "-->\n\n" + optionTable(t, engine, c.Options()) + "\n<!--end-->"
		})
		golden.Compare(t, name, []byte(got))
	}
	for name := range missing {
		t.Errorf("no page has <!--made: options of %s--> and <!--end-->", name)
	}
}

func optionTable(t *testing.T, of string, options []target.Option) string {
	var b strings.Builder
	b.WriteString("| key | default | |\n|---|---|---|\n")
	for _, o := range options {
		shown := o.Shown()
		if strings.Contains(shown.Help, "|") {
			t.Errorf("%s: %s: its help is %q", of, o.Name, shown.Help)
		}
		if problem := o.Check(); problem != nil {
			t.Errorf("%s: %s: %v", of, o.Name, problem)
		}
		value := shown.Default
		if value != "" {
			value = "`" + value + "`"
		}
		b.WriteString("| `" + o.Name + "` | " + value + " | " + shown.Help + " |\n")
	}
	return b.String()
}
