package fiofile

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll/internal/testkit/needs"
)

// included are files beside a job file.
var included = fstest.MapFS{
	"fast.inc":       {Data: []byte("bs=4k ; small\niodepth=4\n\ninclude sub/more.inc\n")},
	"sub/more.inc":   {Data: []byte("rw=randread\ninclude deep.inc\n")},
	"sub/deep.inc":   {Data: []byte("size=1m\n")},
	"a b=c.inc":      {Data: []byte("numjobs=2\n")},
	"section.inc":    {Data: []byte("bs=4k\n[other]\nrw=read\n")},
	"circle.inc":     {Data: []byte("include round.inc\n")},
	"round.inc":      {Data: []byte("bs=4k\ninclude ./circle.inc\n")},
	"unreadable.inc": {Data: []byte("bs=4k\x00\n")},
}

func readIncluded(name string) ([]byte, error) { return fs.ReadFile(included, name) }

func expand(t *testing.T, text string) (*File, error) {
	t.Helper()
	f, err := Parse("my.fio", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f, f.Include(readIncluded)
}

// TestInclude holds what a job file is with what it includes to what fio itself makes of it.
func TestInclude(t *testing.T) {
	t.Parallel()
	text := "[global]\nioengine=null\n  include fast.inc\n[one]\nbs=8k\n[two]\ninclude\ta b=c.inc\nstonewall\n"
	f, err := expand(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := "[global]\nioengine=null\nbs=4k\niodepth=4\nrw=randread\nsize=1m\n[one]\nbs=8k\n[two]\nnumjobs=2\nstonewall\n"
	if got := strings.ReplaceAll(f.String(), "\n\n", "\n"); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if o, _ := f.Sections[0].Get("size"); o.Line != 3 || o.Col != 3 {
		t.Errorf("size is said to stand at %d:%d, and the line that includes it at 3:3", o.Line, o.Col)
	}

	fio, dir := needs.Fio(t), t.TempDir()
	if err := os.CopyFS(dir, included); err != nil {
		t.Fatal(err)
	}
	shown := func(name, text string) []byte {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), fio, "--showcmd", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	if theirs, ours := shown("theirs.fio", text), shown("ours.fio", f.String()); !bytes.Equal(theirs, ours) {
		t.Errorf("fio reads\n%s\nand of ours\n%s", theirs, ours)
	}
}

// TestIncludeRefused: all at once, each with its place.
func TestIncludeRefused(t *testing.T) {
	t.Parallel()
	_, err := expand(t, "[a]\ninclude none.inc\ninclude /etc/passwd\ninclude ../up.inc\ninclude section.inc\n"+
		"include circle.inc\ninclude unreadable.inc\ninclude\n")
	want := `my.fio:2:1: include none.inc: open none.inc: file does not exist
my.fio:3:1: include /etc/passwd: only files beside the job file, or in folders below it, are included; copy it there
my.fio:4:1: include ../up.inc: only files beside the job file, or in folders below it, are included; copy it there
my.fio:5:1: include section.inc: section.inc:2:1: [other]: fio takes no section in an included file
round.inc:2:1: include ./circle.inc: it includes itself, by way of circle.inc, round.inc
my.fio:7:1: include unreadable.inc: unreadable.inc:1:6: a zero byte: this is not a text file, or one of UTF-16; save it as UTF-8
my.fio:8:1: include names no file`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
