package result

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ended is the folder of a run that has ended, with one document of each kind, open for reading.
func ended(t *testing.T) *Folder {
	t.Helper()
	f, err := Create(t.TempDir(), Manifest{RunID: "run", Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	_, labelled := ChangeLabels(f.Dir(), func(l *Labels) { l.Name = "before" })
	err = errors.Join(labelled, f.WritePlan("the plan"), f.WriteData(&Data{}), f.WriteFindings(nil),
		os.WriteFile(filepath.Join(f.ScenarioDir(), "test.yml"), []byte("name: x\n"), 0o600),
		f.AppendEvent(Event{Kind: KindRunEnd, Time: time.Now()}),
		f.Update(func(m *Manifest) { m.Status = StatusSucceeded }))
	if _, at := os.Stat(filepath.Join(f.Dir(), sumsFile)); at == nil {
		err = errors.Join(err, errors.New("there are sums before the end"))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return reopened(t, f)
}

func reopened(t *testing.T, f *Folder) *Folder {
	t.Helper()
	f, err := Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func flip(t *testing.T, f *Folder, name string) {
	t.Helper()
	path := filepath.Join(f.Dir(), name)
	b, err := os.ReadFile(path)
	if err == nil {
		b[len(b)/2] ^= 1
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// damaged are the files that are said to be damaged.
func damaged(t *testing.T, f *Folder) []string {
	t.Helper()
	names := []string{}
	for _, said := range f.VerifySums() {
		name, _, _ := strings.Cut(said, ":")
		names = append(names, name)
	}
	return names
}

func TestSums(t *testing.T) {
	t.Parallel()
	f := ended(t)
	if bad := f.VerifySums(); bad != nil {
		t.Fatalf("%q", bad)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", sumsFile)
	check.Dir = f.Dir()
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 7 {
		t.Errorf("%s %v", out, err)
	}
	for _, name := range []string{manifestFile, planFile, journalFile, dataFile, findingsFile, labelsFile,
		"scenario/test.yml"} {
		f := ended(t)
		flip(t, f, name)
		if got := damaged(t, f); !cmp.Equal([]string{name}, got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What changes documents after the run renews their sums, but never has damage look whole.
func TestSumsAreRenewed(t *testing.T) {
	t.Parallel()
	label := func(f *Folder) error {
		_, err := ChangeLabels(f.Dir(), func(l *Labels) { l.Tags = append(l.Tags, "late") })
		return err
	}
	unlabel := func(f *Folder) error {
		_, err := ChangeLabels(f.Dir(), func(l *Labels) { *l = Labels{} })
		return err
	}
	manifest := func(f *Folder) error { return f.Update(func(m *Manifest) { m.Cleaned.State = "yes" }) }
	journal := func(f *Folder) error {
		return errors.Join(f.TryLock(), f.AppendEvent(Event{Kind: KindWarning, Time: time.Now()}), f.Close())
	}
	findings := func(f *Folder) error { return f.WriteFindings([]Finding{{Check: "x"}}) }
	report := func(f *Folder) error {
		return f.WriteReport(func(w io.Writer) error { _, err := w.Write([]byte("<p>")); return err })
	}
	for name, c := range map[string]struct {
		flipped string
		change  func(*Folder) error
		want    []string // damaged afterwards
	}{
		"labels":           {"", label, []string{}},
		"no labels":        {"", unlabel, []string{}},
		"manifest":         {"", manifest, []string{}},
		"journal":          {"", journal, []string{}},
		"findings":         {"", findings, []string{}},
		"report":           {"", report, []string{}},
		"damaged manifest": {manifestFile, manifest, []string{manifestFile}},
		"damaged journal":  {journalFile, journal, []string{journalFile}},
		"findings anew":    {findingsFile, findings, []string{}},
		"damaged data":     {dataFile, findings, []string{dataFile}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := ended(t)
			if c.flipped != "" {
				flip(t, f, c.flipped)
				f = reopened(t, f)
			}
			if err := c.change(f); err != nil {
				t.Fatal(err)
			}
			if got := damaged(t, reopened(t, f)); !cmp.Equal(c.want, got) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A process that is killed at any write of a change leaves nothing that looks damaged.
func TestSumsAndKills(t *testing.T) {
	t.Parallel()
	for kill := range 7 {
		f := ended(t)
		writes := 0
		f.disk = func(*os.File) error {
			if writes++; writes > kill {
				return errors.New("killed")
			}
			return nil
		}
		_ = f.WriteFindings([]Finding{{Check: "new"}}) // fails at one of its writes
		if bad := reopened(t, f).VerifySums(); bad != nil {
			t.Errorf("killed at write %d: %q", kill, bad)
		}
	}
}

func TestNoSums(t *testing.T) { // as of older runs
	t.Parallel()
	f := ended(t)
	if err := os.Remove(filepath.Join(f.Dir(), sumsFile)); err != nil {
		t.Fatal(err)
	}
	flip(t, f, labelsFile)
	if got := f.VerifySums(); got != nil {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(filepath.Join(f.Dir(), sumsFile), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"SHA256SUMS: line 1 is not a sum and a name", "SHA256SUMS: it has no sum of manifest.json"}
	if d := cmp.Diff(want, f.VerifySums()); d != "" {
		t.Error(d)
	}
}
