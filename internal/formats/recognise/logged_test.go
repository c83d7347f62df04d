package recognise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"plimsoll/internal/formats/importer"
	"plimsoll/internal/formats/recognise"
)

const ofFio = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\n" +
	"fio-3.33\nStarting 1 process\n\na: (groupid=0, jobs=1): err= 0: pid=77: Fri Nov 27 09:04:44 2026\n" +
	"  read: IOPS=250, BW=1000KiB/s (1024kB/s)(2000KiB/2000msec)\n" +
	"  IO depths    : 1=100.0%\n\nRun status group 0 (all jobs):\n"

// logs are the ways in which logs write before a line.
var logs = map[string]func(n int, line string) string{
	"journald":    func(_ int, l string) string { return "Nov  7 09:03:02 host1 bench[1234]: " + l },
	"journal ISO": func(_ int, l string) string { return "2026-11-27T09:03:02+0100 host1 bench[12]: " + l },
	"compose":     func(_ int, l string) string { return "bench-1  | " + l },
	"coloured":    func(_ int, l string) string { return "\x1b[36mbench-1  |\x1b[0m " + l },
	"kubectl logs --timestamps": func(n int, l string) string {
		return fmt.Sprintf("2026-11-27T09:03:02.%09dZ %s", n, l)
	},
	"kubectl logs --prefix": func(_ int, l string) string { return "[pod/bench-x7/bench] " + l },
	"both": func(n int, l string) string {
		return fmt.Sprintf("[pod/b-x7/b] 2026-11-27T09:03:02.%09dZ %s", n, l)
	},
	"CRI": func(_ int, l string) string { return "2026-11-27T09:03:02.1Z stdout F " + l },
	"Jenkins": func(n int, l string) string {
		return fmt.Sprintf("[2026-11-27T09:03:02.%03dZ] %s", n%1000, l)
	},
	"Jenkins, freestyle": func(n int, l string) string { return fmt.Sprintf("09:03:%02d  %s", n%60, l) },
	"pdsh":               func(_ int, l string) string { return "node1: " + l },
	"mpirun":             func(_ int, l string) string { return "[1,0]<stdout>:" + l },
	"a quotation":        func(_ int, l string) string { return "> " + l },
	"logging":            func(_ int, l string) string { return "2026-11-27 09:03:02,123 - INFO - " + l },
	"Docker's own": func(_ int, l string) string {
		b, _ := json.Marshal(map[string]string{"log": l + "\n", "stream": "stdout"}) // strings
		return `{"log":` + strings.TrimPrefix(string(b), `{"log":`)
	},
}

// TestLogged writes what logs write before each line of many outputs, and wants the outputs back. Of none as it was is
// anything taken away.
func TestLogged(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../importer/testdata/outputs/*")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d outputs, %v", len(files), err)
	}
	outputs := map[string]string{"fio": ofFio}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, known, _ := importer.Recognise(text); known && bytes.Count(text, []byte("\n")) > 4 {
			outputs[filepath.Base(name)] = string(text)
		}
	}
	for name, text := range outputs {
		if l, err := recognise.Logged([]byte(text)); l != nil || err != nil {
			t.Errorf("%s as it is: %q, %v", name, l, err)
		}
		text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + "\n"
		for how, before := range logs {
			var b strings.Builder
			for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				b.WriteString(before(n, line) + "\n")
			}
			l, err := recognise.Logged([]byte(b.String()))
			if l == nil || err != nil {
				t.Errorf("%s, %s: nothing is seen, %v", name, how, err)
				continue
			}
			got, err := io.ReadAll(l.Text(iotest.HalfReader(strings.NewReader(b.String()))))
			if err != nil || string(got) != text {
				t.Errorf("%s, %s: %v, %.200q; want %.200q", name, how, err, got, text)
			}
		}
	}
}

// TestLoggedOfSeveral tells whose lines an output is made of, and refuses to mix two.
func TestLoggedOfSeveral(t *testing.T) {
	t.Parallel()
	of := func(before string) (out []string) {
		for line := range strings.Lines(ofFio) {
			out = append(out, before+line)
		}
		return out
	}
	var mixed, turns []string
	for i, line := range of("node1: ") {
		mixed = append(mixed, line, of("node2: ")[i])
		turns = append(turns, line, fmt.Sprintf("db-1: LOG: checkpoint %d\n", i))
	}
	const day = "Nov 27 09:03:02 h "
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"two hosts":             {mixed, ""},
		"a server that says":    {turns, ofFio},
		"one after another":     {append(of(day+"fio[7]: "), of(day+"fio[9]: ")...), ofFio + ofFio},
		"what started it":       {append([]string{day + "systemd[1]: Started.\n"}, of(day+"fio[7]: ")...), ofFio},
		"lines without a head":  {append(of("node1: "), "node1:\n"), ofFio + "\n"},
		"words of nobody known": {[]string{"a: 1\n", "b: 2\n", "c: 3\n", "d: 4\n"}, "as it is"},
	} {
		text := strings.Join(c.lines, "")
		l, err := recognise.Logged([]byte(text))
		switch {
		case c.want == "" && !errors.Is(err, recognise.ErrMixed):
			t.Errorf("%s: %q, %v; want it refused", name, l, err)
		case c.want == "as it is" && (l != nil || err != nil):
			t.Errorf("%s: %q, %v; want it left", name, l, err)
		case c.want == "" || c.want == "as it is":
		case l == nil || err != nil:
			t.Errorf("%s: nothing is seen, %v", name, err)
		default:
			if got, err := io.ReadAll(l.Text(strings.NewReader(text))); err != nil || string(got) != c.want {
				t.Errorf("%s: %v, %q", name, err, got)
			}
		}
	}
}
