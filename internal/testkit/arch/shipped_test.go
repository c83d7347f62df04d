package arch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
)

// TestModulesOfTheShippedBinaries: growing these lists is a decision: it gets a line in docs/decisions/dependencies.md.
func TestModulesOfTheShippedBinaries(t *testing.T) {
	for program, list := range map[string]string{
		"./cmd/plimsoll": "testdata/modules.golden", "./cmd/plimsoll-agent": "testdata/agent-modules.golden",
	} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}",
			program)
		cmd.Dir = needs.Root()
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		modules := strings.Fields(string(out))
		slices.Sort(modules)
		modules = slices.Compact(modules)
		golden.Compare(t, list, []byte(strings.Join(modules, "\n")+"\n"))
	}
}

func TestDirectDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(needs.Root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(needs.Root(), "docs", "decisions", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	direct := regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.]+/\S+) v\S+$`).FindAllSubmatch(mod, -1)
	if len(direct) < 5 {
		t.Fatalf("found only %d direct dependencies in go.mod: the pattern is broken", len(direct))
	}
	for _, m := range direct {
		if !bytes.Contains(page, append([]byte("`"), m[1]...)) {
			t.Errorf("docs/decisions/dependencies.md does not say what %s saves", m[1])
		}
	}
}

// leaks are patterns of things that belong to one machine, one workplace or one person. They are written so that this
// file does not match them.
var leaks = map[string]*regexp.Regexp{
	"an absolute path of somebody's folder": regexp.MustCompile(`(^|[\s"'` + "`" + `(=:,])/(wo` + `rk|Use` + `rs|ho` +
		`me/[a-z]+|ro` + `ot)/`),
	"a host of a private network": regexp.MustCompile(`(?i)\b[a-z0-9-]+\.(in` + `ternal|co` + `rp|la` +
		`n|intra` + `net)(:\d+)?/`),
	"an address of a private network": regexp.MustCompile(`\b(19` + `2\.168|1` +
		`0\.\d{1,3})\.\d{1,3}\.\d{1,3}\b`),
	"a private key": regexp.MustCompile(`BEG` + `IN [A-Z ]*PRIV` + `ATE KEY`),
	"a token": regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{30,}|AK` +
		`IA[A-Z0-9]{16}|xox[bp]-[0-9A-Za-z-]{20,})\b`),
	"a package mirror": regexp.MustCompile(`(?i)GOPR` + `OXY=http|"resol` +
		`ved": "https?://|index-u` + `rl\s*=\s*http`),
}

// ofLabs are the addresses that every lab has (internal/targets/lab/cluster), in a network of its own that no machine
// is on.
var ofLabs = regexp.MustCompile(`^1` + `0\.77\.0\.\d{1,3}$`)

func TestTrackedFilesNameNoMachineAndHoldNoSecret(t *testing.T) {
	root := needs.Root()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if bytes.IndexByte(data, 0) >= 0 {
			continue
		}
		n := 0
		for line := range bytes.Lines(data) {
			n++
			for what, pattern := range leaks {
				for _, found := range pattern.FindAll(line, -1) {
					if !ofLabs.Match(found) {
						t.Errorf("%s:%d holds %s: %q", name, n, what, found)
					}
				}
			}
		}
	}
}

func TestLeaksAreFound(t *testing.T) {
	for what, text := range map[string]string{
		"an absolute path of somebody's folder": "see /ho" + "me/anna/plimsoll/x",
		"a host of a private network":           "https://mirror.some.co" + "rp/x",
		"an address of a private network":       "http://19" + "2.168.1.7:9090",
		"a private key":                         "-----BEG" + "IN RSA PRIV" + "ATE KEY-----",
		"a token":                               "gh" + "p_0123456789abcdefghijABCDEFGHIJ456789",
		"a package mirror":                      `"resol` + `ved": "https://mirror.example/uplot.tgz"`,
	} {
		if !leaks[what].MatchString(text) {
			t.Errorf("the pattern for %s does not find %q", what, text)
		}
	}
	for _, fine := range []string{`"resolved": "1.6.32"`, "folder/work/disk", "127.0.0.1", "10.5.2", "my.internals"} {
		for what, pattern := range leaks {
			if pattern.MatchString(fine) {
				t.Errorf("the pattern for %s takes %q", what, fine)
			}
		}
	}
}
