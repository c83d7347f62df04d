package convert

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// Job files of one call run one after the other, as those of several calls do; what is global is so within its file.
func TestFioCallsOfFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a.fio": "[global]\nbs=8k ; large\n[a1]\nrw=read\n[a2]\n",
		"b.fio": "[b]\nrw=write\n[global]\nbs=16k\n[c]\ngroup_reporting\n",
		"x.fio": "no section\n",
	}
	const a, b = "[a1]\nbs=8k\nrw=read\n\n[a2]\nbs=8k\n", "rw=write\n\n[c]\nbs=16k\ngroup_reporting\n"
	for text, want := range map[string]string{
		"fio a.fio b.fio":                   a + "\n[b]\nstonewall\n" + b,
		"fio a.fio\nsudo fio b.fio":         a + "\n[b]\nstonewall\n" + b,
		"for f in b a; do fio $f.fio; done": "[b]\n" + b + "\n" + strings.Replace(a, "]\n", "]\nstonewall\n", 1),
		"fio --size=1m b.fio\nfio --name=d": "[b]\nsize=1m\nrw=write\n\n[c]\nsize=1m\nbs=16k\ngroup_reporting\n\n" +
			"[d]\nstonewall\n",
		"fio a.fio b.fio --section=a2 --section=c": "[a2]\nbs=8k\n\n[c]\nstonewall\nbs=16k\ngroup_reporting\n",
		"fio a.fio b.fio --section=q":              "no such section",
		"fio a.fio x.fio":                          "the job file x.fio:1:1",
		"fio a.fio y.fio":                          `the job file "y.fio"`,
	} {
		got, err := JobFile(Asked{Name: "s.sh", Data: []byte(text), Read: func(name string) ([]byte, error) {
			data, ok := files[name]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(data), nil
		}})
		if s := strings.TrimSpace(string(got.Data)); err == nil && s != strings.TrimSpace(want) ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v\n%s", text, err, s)
		}
	}
}

// A file that jobs of one name share is nobody's to say but fio's.
func TestFilesThatNobodyNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fio --name=a/b\nfio --name=a/b":              "[a_b.0.0]",
		"fio --name=a --filename=f\nfio --name=a":     "[a.0.0]",
		"fio --name=a --filename=a.0.0\nfio --name=b": "[]",
	} {
		if got, err := JobFile(Asked{Name: "s.sh", Data: []byte(text)}); err != nil ||
			fmt.Sprint(slices.Compact(got.Named)) != want {
			t.Errorf("%q: %v, %v", text, got.Named, err)
		}
	}
}

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
		"a script": {"#!/bin/sh\nset -e\ncd /tmp\n# 1st\nsudo /usr/bin/fio --name=t --rw=read \\\n  --bs=4k > a.txt 2>&1\n" +
			"fio --name=t --rw=write | tee b.txt\n", "[t]\nfilename=t.0.0\ndirectory=/tmp\nrw=read\nbs=4k\n\n" +
			"[t-2]\nstonewall\nfilename=t.0.0\ndirectory=/tmp\nrw=write\n", ""},
		"quotes":       {`fio --name="my job" --rw=read --filename='/tmp/a b'`, "[my job]\nrw=read\nfilename=/tmp/a b\n", ""},
		"a variable":   {"fio --name=t --bs=$bs", "", `"$bs" is for a shell`},
		"a job file":   {"fio --name=t my.fio", "", `"my.fio" is no option of fio`},
		"no job":       {"fio --rw=read", "", "no --name"},
		"a server":     {"fio --server --name=t", "", "no part in a load"},
		"two commands": {"fio --name=t --rw=read && sync", "[t]\nrw=read\n", ""},
		"settings and helpers before it": {"A=1 sudo numactl --cpunodebind=0 nice -n 10 timeout 60s fio --name=t --rw=read",
			"[t]\nnuma_cpu_nodes=0\nnice=10\nrw=read\n", ""},
		"processors": {"taskset -c 0,2-3 fio --name=t\n/usr/bin/taskset 0x5 fio --name=u\ntaskset --cpu-list 1 fio --name=v",
			"[t]\ncpus_allowed=0,2-3\n\n[u]\nstonewall\ncpus_allowed=0,2\n\n[v]\nstonewall\ncpus_allowed=1\n", ""},
		"nodes": {"numactl -N0 -m 0 -- fio --name=t\nnumactl --physcpubind=+1 fio --name=u\nnumactl -C 1 -l fio --name=v",
			"[t]\nnuma_cpu_nodes=0\nnuma_mem_policy=bind:0\n\n[u]\nstonewall\n\n" +
				"[v]\nstonewall\ncpus_allowed=1\nnuma_mem_policy=local\n", ""},
		"before whom": {"ionice -c2 -n7 nice fio --name=t\n" +
			"ionice -c idle fio --nice=3 --name=u\nnice -5 chrt -f 9 fio --name=v",
			"[t]\nprioclass=2\nprio=7\nnice=10\n\n[u]\nstonewall\nprioclass=3\nnice=3\n\n" +
				"[v]\nstonewall\nnice=5\n", ""},
		"GNU time, another user": {"sudo -u postgres /usr/bin/time -v fio --name=t --rw=read", "[t]\nrw=read\n", ""},
		"two at once":            {"fio --name=a --rw=read &\nfio --name=b --rw=write &\nwait\n", "", "runs beside"},
		"a container":            {"docker run --rm x/fio fio --name=t --rw=read", "", "run elsewhere (docker)"},
		"another host":           {"ssh h fio --name=t --rw=read", "", "run elsewhere (ssh)"},
		"a loop": {"for i in 1 2; do\n  fio --name=t --rw=read --numjobs=$i\ndone\n",
			"[t-1]\nrw=read\nnumjobs=1\n\n[t-2]\nstonewall\nrw=read\nnumjobs=2\n", ""},
		"loops": {"for b in 4k 8k; do for d in 1; do fio --name=$b-$d --bs=$b --iodepth=${d}; done; done",
			"[4k-1]\nbs=4k\niodepth=1\n\n[8k-1]\nstonewall\nbs=8k\niodepth=1\n", ""},
		"the same of a loop": {"for i in $(seq 1 2); do fio --name=t --rw=read --size=1m; done",
			"[t-1]\nfilename=t.0.0\nrw=read\nsize=1m\n\n[t-2]\nstonewall\nfilename=t.0.0\nrw=read\nsize=1m\n", ""},
		"words": {"S=(1 a b)\nfor i in \"${S[@]}\"; do fio --name=$i; done\nfor j in {3..4} {x,y}; do fio --name=$j; done",
			"[1]\n\n[a]\nstonewall\n\n[b]\nstonewall\n\n[3]\nstonewall\n\n[4]\nstonewall\n\n[x]\nstonewall\n\n" +
				"[y]\nstonewall\n", ""},
		"a loop of cmd": {"set S=1g\nfor %%b in (4k 8k) do fio --name=%%b --size=%S%",
			"[4k]\nsize=1g\n\n[8k]\nstonewall\nsize=1g\n", ""},
		"files of a shell": {"for f in /dev/nv*; do fio --name=t --filename=$f; done", "", `"/dev/nv*" is for a shell`},
		"left early":       {"for i in 1 2; do fio --name=t; break; done", "", `"break" in a loop`},
		"no end":           {"for i in 1 2; do fio --name=t", "", `"for" has no end`},
		"without an end":   {"while true; do fio --name=t; done", "", `within "while"`},
		"a function":       {"f() {\n fio --name=t\n}\nf\n", "", `within "function"`},
		"on a condition":   {"[ -d /x ] && fio --name=t", "", "on a condition"},
		"else":             {"false || fio --name=t", "", "on a condition"},
		"variables": {"B=4k\nexport S=1m Q=\"--rw=read --direct=1\"\nfio --name=t --bs=$B --size=${S} $Q",
			"[t]\nbs=4k\nsize=1m\nrw=read\ndirect=1\n", ""},
		"PowerShell's":          {"$b = \"4k\"\nfio.exe --name=t --bs=$b", "[t]\nbs=4k\n", ""},
		"a default":             {"B=${1:-4k}\nfio --name=t --bs=$B", "[t]\nbs=4k\n", ""},
		"set perhaps":           {"B=4k\nif x; then B=8k; fi\nfio --name=t --bs=$B", "", `"$B" is for a shell`},
		"set by a command":      {"B=4k\nB=$(x)\nfio --name=t --bs=$B", "", `"$B" is for a shell`},
		"of no account":         {"fio --name=t --output=$(date +%s).json > $X", "[t]\n", ""},
		"its output taken":      {"R=$(fio --name=t --rw=read)", "[t]\nrw=read\n", ""},
		"fio in a variable":     {"FIO=/opt/fio\n$FIO --name=t", "[t]\n", ""},
		"fio in none":           {"timeout 5 $FIO --name=t", "", "--set FIO=VALUE"},
		"another shell":         {"sudo bash -c 'cd /d && fio --name=t > x'", "[t]\ndirectory=/d\n", ""},
		"filled in before":      {"bash -c \"for b in 1 2; do\nfio --name=$b\ndone\"", "", `"$b" is for a shell`},
		"a shell of its own":    {"(cd /d; fio --name=t); fio --name=u", "[t]\ndirectory=/d\n\n[u]\nstonewall\n", ""},
		"where it is":           {"cd a\ncd b\nfio --name=t --directory=c", "[t]\ndirectory=a/b/c\n", ""},
		"nobody knows where":    {"cd $X\nfio --name=t", "", `depends on "cd $X"`},
		"said all the same":     {"cd $X\nfio --name=t --filename=/d/f", "[t]\nfilename=/d/f\n", ""},
		"a prompt":              {"[user@host ~]$ fio --name=t", "[t]\n", ""},
		"another prompt":        {"root@host:~# fio --name=t # as it was", "[t]\n", ""},
		"what runs it":          {"perf stat -e x strace -c doas fio --name=t", "[t]\n", ""},
		"again and again":       {"watch -n 5 fio --name=t", "", "--repeat N"},
		"in a pod":              {"kubectl exec -it p -- fio --name=t --rw=read", "", "run 'fio --name=t --rw=read'"},
		"an image":              {"docker run --rm x/fio --name=t", "", "plimsoll run 'fio --name=t'"},
		"a pod of its shell":    {"kubectl exec p -- sh -c 'fio --name=t'", "", "plimsoll run 'fio --name=t'"},
		"a document":            {"fio --bs=4k - <<EOF\n[t]\nrw=read\nEOF\n", "[global]\nbs=4k\n[t]\nrw=read\n", ""},
		"a document for root":   {"sudo fio - <<EOF\n[t]\nrw=read\nEOF\n", "[t]\nrw=read\n", ""},
		"root's own document":   {"sudo tee /x/t.fio <<E\n[t]\nE\nsudo fio /x/t.fio", "[t]\n", ""},
		"a document for a file": {"cat > /x/t.fio <<'E'\n[t]\nsize=$S\nE\nfio /x/t.fio", "[t]\nsize=$S\n", ""},
		"a document's end":      {"fio - <<EOF\n[t]\n", "", "ends nowhere"},
		"what is piped":         {"cat t.fio | fio -", "", "what another command prints"},
		"a file and jobs":       {"fio - --name=u <<E\n[t]\nE\n", "", "give them as two"},
		"a section": {"fio --section=b - <<E\n[global]\nbs=1k\n[a]\nrw=read\n[b]\nrw=write\nE\n",
			"[global]\nbs=1k\n\n\n[b]\nrw=write\n", ""},
		"no such section":       {"fio --section=c - <<E\n[a]\nE\n", "", "no such section"},
		"of all, in fio":        {"fio --name=global --bs=4k --name=a --name=b", "[a]\nbs=4k\n\n[b]\nbs=4k\n", ""},
		"values behind a blank": {"fio -name t -direct 1 -thread -nice -5", "[t]\ndirect=1\nthread\nnice=-5\n", ""},
		"one after another":     {"fio --name=a; fio --name=b", "[a]\n\n[b]\nstonewall\n", ""},
		"a comment":             {"# use fio --name=t", "# use fio --name=t", ""},
		"too many": {"for a in {1..99}; do for b in {1..99}; do fio --name=t; done\ndone", "",
			"than 2000 commands"},
		"too long":       {"fio --name=t " + strings.Repeat("\\\n", 1<<17), "", "more than 65536 characters"},
		"after a loop":   {"for i in 1; do\n echo $i\ndone\nfio --name=t --rw=read\n", "[t]\nrw=read\n", ""},
		"if":             {"if true; then\n fio --name=t --rw=read\nfi\n", "", `within "if"`},
		"after another":  {"sync; fio --name=t --rw=read", "[t]\nrw=read\n", ""},
		"behind another": {"gdb fio --name=t", "", "something else before"},
		"PowerShell":     {"fio.exe --name=t `\n  --rw=read\n", "[t]\nrw=read\n", ""},
		"only job files": {"fio my.fio --output=x", "", `"my.fio" is no option of fio`},
		"a file of it":   {"[t]\nrw=read\n", "[t]\nrw=read\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobs, err := JobFile(Asked{Name: "x.sh", Data: []byte(c.text)})
			got := jobs.Data
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

// Scripts of DISKSPD are gone through as those of fio are.
func TestDiskspdScripts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"set F=E:\\t.dat\ndiskspd -c1G -b8K %F%\n":                           "diskspd1 E:\\t.dat 8192",
		"for %%b in (4K 8K) do diskspd -c1G -b%%b t\ndel t":                  "diskspd1 t 4096, diskspd2 t 8192",
		"$b = \"8K\"\n& \"C:\\T ools\\diskspd.exe\" \"-b$b\" -c1G D:\\t.dat": "diskspd1 D:\\t.dat 8192",
		"foreach ($o in 1,2) { .\\diskspd.exe -b4K -c1G -o$o x > \"r$o\" }":  "diskspd1 x 4096, diskspd2 x 4096",
		"foreach ($o in 1..3) {\n diskspd -b4K -c1G -o$o x\n}\ndiskspd -b4K -c1G y": "diskspd1 x 4096, diskspd2 x 4096, " +
			"diskspd3 x 4096, diskspd4 y 4096",
		"mkdir D:\\t\nstart /b diskspd -b4K -c1G a\ndiskspd -b8K -c1G b": "diskspd1 a 4096 b 8192",
		"C:\\diskspd> diskspd -b4K -c1G a":                               "diskspd1 a 4096",
		"$b = x\ndiskspd -b4K -c1G $c":                                   `"$c" is for a shell to fill in`,
		"Invoke-Command s1 -ScriptBlock { diskspd -b4K -c1G x }":         "something else before it calls diskspd",
	} {
		l, _, err := readDiskspd(Request{Name: "a.cmd", Data: []byte(text)})
		var got []string
		for _, st := range l.Stages {
			of := st.Name
			for _, s := range st.Streams {
				of += fmt.Sprintf(" %s %d", s.Targets[0].Name, s.Sizes[0].Bytes)
			}
			got = append(got, of)
		}
		all := strings.Join(got, ", ")
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && all != want {
			t.Errorf("%q: %v, %s, want %s", text, err, all, want)
		}
	}
}

// Whatever a script holds, it is read or refused, and nothing of our own gets into the job file.
func FuzzFioCalls(f *testing.F) {
	for _, seed := range []string{"fio --name=t --bs=$b", "for b in 4k 8k; do fio --name=$b; done",
		"bash -c 'fio --name=t'",
		"fio - <<E\n[t]\nE\n", "S=(1 2)\nfor i in \"${S[@]}\"; do (cd x; fio --name=$i)\ndone", "R=$(fio --name=`x`)",
		"$ sudo nice -n 5 fio --name=t > x 2>&1 | tee y", "for %%b in (4k) do fio --name=%%b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		jobs, err := JobFile(Asked{Name: "x.sh", Data: text})
		if err == nil && !bytes.Equal(jobs.Data, text) && bytes.ContainsRune(jobs.Data, 0xe000) {
			t.Errorf("%q: %q", text, jobs.Data)
		}
	})
}
