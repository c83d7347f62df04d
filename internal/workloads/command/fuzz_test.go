package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/workloadtest"
)

// configs are the files of testdata, by name.
func configs(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no configs: ", err)
	}
	all := map[string][]byte{}
	for _, p := range paths {
		all[strings.TrimSuffix(filepath.Base(p), ".yml")] = read(t, p)
	}
	return all
}

// Whatever the file: objections all have its name, a file without any makes a job, always the same, that can be
// replayed.
func FuzzConfig(f *testing.F) {
	for _, c := range configs(f) {
		f.Add(c)
	}
	f.Add([]byte(faulty))
	f.Add([]byte("a: &a [*a]\n<<: *a"))
	f.Add([]byte("# nothing"))
	f.Add([]byte(served))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, config []byte) {
		spec := specOf("fuzz.yml", config)
		spec.Address, spec.Peers = "192.0.2.1", []workload.Peer{
			{VM: "db-0", Address: "192.0.2.2"},
			{VM: "db-1", Address: "192.0.2.3"},
		}
		if err := (Engine{}).Validate(spec); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\nfuzz.yml") {
				if strings.TrimSpace(strings.TrimPrefix(line, "fuzz.yml")) == "" || line[0] != ':' &&
					!strings.HasPrefix(line, "fuzz.yml:") {
					t.Errorf("an objection without a place: %q", err)
				}
			}
			return
		}
		job, err := Engine{}.Command(spec)
		if err != nil {
			t.Fatalf("it is valid, and makes no job: %v", err)
		}
		use, _, err := Engine{}.Peers(spec)
		if err != nil {
			t.Fatalf("it is valid, and does not know its peers: %v", err)
		}
		// A server may ask for disks that only its own machines can tell to be absent.
		if s, err := (Engine{}).Server(spec); err == nil &&
			(!use.Served || s.Service.Name == "" || s.Service.Command.Argv[0] == "") {
			t.Errorf("served %t, and a server that runs nothing: %+v", use.Served, s)
		} else if err != nil && use.Served && use.Group == "" {
			t.Errorf("its server, on its own machine, is refused: %v", err)
		}
		if len(job.Command.Argv) == 0 || job.Command.Argv[0] == "" || len(job.Operations)+len(job.Measures) == 0 {
			t.Errorf("a job that runs or counts nothing: %+v", job)
		}
		if _, err := newParser(job.Declared, &workloadtest.Recorder{}); err != nil {
			t.Errorf("its own format is refused: %v", err)
		}
	})
}

// fuzzOutput feeds output to the configs of one format: counters never fall, and how the output is cut into pieces
// changes nothing.
func fuzzOutput(f *testing.F, format string) {
	for name, c := range configs(f) {
		job := jobOf(f, name, c)
		if !strings.Contains(string(job.Format), `"format":"`+format+`"`) {
			continue
		}
		if paths, _ := filepath.Glob("testdata/" + name + ".out"); len(paths) == 1 {
			f.Add(string(c), read(f, paths[0]), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, config string, output []byte, size uint8) {
		spec := specOf("fuzz.yml", []byte(config))
		job, err := Engine{}.Command(spec)
		if err != nil {
			t.Skip()
		}
		var r workloadtest.Recorder
		outcome, err := Engine{}.Parse(job.Declared, bytes.NewReader(output), &r)
		if (err == nil) != (len(r.Reports) > 0) || outcome.Reports != len(r.Reports) {
			t.Errorf("%d reports, outcome %+v, error %v", len(r.Reports), outcome, err)
		}
		holds(t, job.Declared, r.Reports)
		inPieces(t, job.Declared, output, max(1, int(size)), &r)
	})
}

func FuzzLines(f *testing.F)     { fuzzOutput(f, formatLines) }
func FuzzCSV(f *testing.F)       { fuzzOutput(f, formatCSV) }
func FuzzJSONLines(f *testing.F) { fuzzOutput(f, formatObjects) }
func FuzzJSON(f *testing.F)      { fuzzOutput(f, formatJSON) }

// A layout of a damaged run folder is refused or read, never a panic.
func FuzzFormat(f *testing.F) {
	for name, c := range configs(f) {
		f.Add([]byte(jobOf(f, name, c).Format), []byte("[ 1s ] eps: 3\n{\"at\": 1}\n1;2\n"))
	}
	f.Fuzz(func(t *testing.T, format, output []byte) {
		declared := jobOf(t, "pings", read(t, "testdata/pings.yml")).Declared
		declared.Format = format
		var r workloadtest.Recorder
		if _, err := (Engine{}).Parse(declared, bytes.NewReader(output), &r); err == nil {
			holds(t, declared, r.Reports)
		}
	})
}
