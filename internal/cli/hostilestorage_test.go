package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/visibletest"
)

// TestHostileStorage: whatever files are called that the storage tools are given, and whatever stands in them, steers
// no terminal and forges no line.
func TestHostileStorage(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for _, hostile := range visibletest.Texts {
		text := hostile.Text
		dir := t.TempDir()
		name := strings.NewReplacer("/", "", "\x00", "").Replace(text)
		name = filepath.Join(dir, "f"+name[:min(len(name), 200)])
		file := func(ending, content string) string {
			path := name + ending
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			return path
		}
		data := file(".data", strings.Repeat(text+"\n", 200))
		for _, command := range [][]string{
			{"content", "check", data},
			{"content", "check", data, "--json"},
			{"content", "check", dir},
			{"content", "check", name},
			{"integrity", "verify", data},
			{"integrity", "verify", file(".manifest", text)},
			{"integrity", "verify", file(".stamps", `{"version":1,"path":"`+text+`"}`)},
			{"convert", file(".vdb", "sd="+text+",lun="+text+"\nwd=wd1,sd=*\nrd="+text+",wd=*,iorate=max\n")},
			{"convert", file(".fio", "["+text+"]\nrw=read\nfilename="+text+"\n"), "--to", "vdbench"},
			{"convert", file(".txt", "diskspd "+text), "--to", "fio"},
			{"run", file("1.vdb", text), "--plan"},
			{"device", "spec", dir, "--sheet", file(".yml", text+": "+text)},
			{"device", "spec", dir, "--sheet", file("2.yml", "- "+text)},
			{"device", "sweep", name, "--what", text},
			{"device", "inspect", name},
			{"device", "check", name, "--consent", text},
			{"vioperf", name},
			{"vioperf", dir, "--when-full", text, "--rate", text},
			{"trace", name},
		} {
			a, out, errs := quiet(t)
			a.main(command)
			for _, printed := range []string{out.String(), errs.String()} {
				if loose := visibletest.Loose(printed); loose != "" {
					t.Errorf("%.60q of %s: %s\n%.300q", command, hostile.Name, loose, printed)
				}
			}
		}
	}
}
