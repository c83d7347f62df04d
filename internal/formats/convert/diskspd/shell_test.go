package diskspd

import (
	"fmt"
	"strings"
	"testing"
)

// What is the shell's is no target: where output goes, and what reads it.
func TestShell(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`diskspd -b8K x.dat > out.txt`:         "[x.dat] 1",
		`diskspd -b8K x.dat >out.txt`:          "[x.dat] 1",
		`diskspd -b8K x.dat >> "my out.txt"`:   "[x.dat] 1",
		`diskspd -b8K x.dat > out.txt 2>&1`:    "[x.dat] 2",
		`diskspd -b8K x.dat 2> err.txt`:        "[x.dat] 1",
		`diskspd -b8K x.dat *> all.txt`:        "[x.dat] 1",
		`diskspd -b8K x.dat 2>&1 | tee out`:    "[x.dat] 2",
		`diskspd -b8K x.dat | Out-File o.txt`:  "[x.dat] 1",
		`diskspd -b8K > out.txt x.dat y.dat`:   "[x.dat y.dat] 1",
		`diskspd -b8K x.dat < nul`:             "[x.dat] 1",
		`diskspd -b8K "a > b.dat"`:             "[a > b.dat] 0",
		`diskspd -b8K x2 >out`:                 "[x2] 1",
		`diskspd -b8K x.dat & diskspd y.dat`:   `"& diskspd y.dat" begins a further command`,
		`diskspd -b8K x.dat && diskspd y.dat`:  `begins a further command`,
		`diskspd -b8K x.dat || echo no`:        `begins a further command`,
		`diskspd -b8K x.dat >`:                 `">" names no file`,
		`diskspd -b8K x.dat ^> y.dat`:          "[x.dat > y.dat] 0",
		`diskspd -b8K x.dat > "not closed.txt`: "that is not closed",
	} {
		l, err := Read("a.cmd", []byte(line))
		got := fmt.Sprint(err)
		if err == nil {
			var names []string
			for _, st := range l.Stages {
				for _, s := range st.Streams {
					for _, target := range s.Targets {
						names = append(names, target.Name)
					}
				}
			}
			n := 0
			for _, note := range l.Notes {
				if strings.Contains(note.Differs, "shell") {
					n++
				}
			}
			got = fmt.Sprint(names, " ", n)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
