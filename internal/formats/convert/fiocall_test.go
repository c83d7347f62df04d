package convert

import (
	"strings"
	"testing"
)

// Command lines of fio are job files: those of one call run together, those of the next after them.
func TestFioCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, object string }{
		"a job": {"fio --name=t --rw=randread --bs=4k", "[t]\nrw=randread\nbs=4k\n", ""},
		"blanks": {"fio --name t --rw randread --group_reporting --bs 4k",
			"[t]\nrw=randread\ngroup_reporting\nbs=4k\n", ""},
		"one dash": {"fio -name=t -rw=read", "[t]\nrw=read\n", ""},
		"of all jobs": {"fio --bs=4k --name=a --rw=read --name=b --rw=write",
			"[a]\nbs=4k\nrw=read\n\n[b]\nbs=4k\nrw=write\n", ""},
		"how it tells": {"fio --name=t --rw=read --output-format=json --output=x.json --eta=never", "[t]\nrw=read\n", ""},
		"a script": {"#!/bin/sh\nset -e\ncd /tmp\n# first\nsudo /usr/bin/fio --name=t --rw=read \\\n  --bs=4k > a.txt 2>&1\n" +
			"fio --name=t --rw=write | tee b.txt\n", "[t]\nrw=read\nbs=4k\n\n[t-2]\nstonewall\nrw=write\n", ""},
		"quotes":       {`fio --name="my job" --rw=read --filename='/tmp/a b'`, "[my job]\nrw=read\nfilename=/tmp/a b\n", ""},
		"a variable":   {"fio --name=t --bs=$bs", "", `"$bs" is for a shell`},
		"a job file":   {"fio --name=t my.fio", "", `"my.fio" is no option of fio`},
		"no job":       {"fio --rw=read", "", "no --name"},
		"a server":     {"fio --server --name=t", "", "no part in a load"},
		"two commands": {"fio --name=t --rw=read && sync", "", "further command"},
		"settings and helpers before it": {"A=1 sudo numactl --cpunodebind=0 nice -n 10 timeout 60s fio --name=t --rw=read",
			"[t]\nrw=read\n", ""},
		"GNU time, another user": {"sudo -u postgres /usr/bin/time -v fio --name=t --rw=read", "[t]\nrw=read\n", ""},
		"two at once":            {"fio --name=a --rw=read &\nfio --name=b --rw=write &\nwait\n", "", "runs beside"},
		"a container":            {"docker run --rm x/fio fio --name=t --rw=read", "", "run elsewhere (docker)"},
		"another host":           {"ssh h fio --name=t --rw=read", "", "run elsewhere (ssh)"},
		"a loop":                 {"for i in 1 2; do\n  fio --name=t --rw=read\ndone\n", "", `within "for"`},
		"one in a line":          {"for i in 1 2; do fio --name=t --rw=read; done\n", "", `within "for"`},
		"after a loop":           {"for i in 1; do\n echo $i\ndone\nfio --name=t --rw=read\n", "[t]\nrw=read\n", ""},
		"if":                     {"if true; then\n fio --name=t --rw=read\nfi\n", "", `within "if"`},
		"after another":          {"sync; fio --name=t --rw=read", "", "something else before"},
		"PowerShell":             {"fio.exe --name=t `\n  --rw=read\n", "[t]\nrw=read\n", ""},
		"only job files":         {"fio my.fio --output=x", "", `"my.fio" is no option of fio`},
		"a file of it":           {"[t]\nrw=read\n", "[t]\nrw=read\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := JobFile("x.sh", []byte(c.text))
			switch {
			case c.object != "":
				if err == nil || !strings.Contains(err.Error(), c.object) {
					t.Errorf("%v, want %q", err, c.object)
				}
			case err != nil || strings.TrimSpace(string(got)) != strings.TrimSpace(c.want):
				t.Errorf("%v:\n%s\nwant:\n%s", err, got, c.want)
			}
		})
	}
}
