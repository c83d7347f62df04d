package table

import (
	"strings"
	"testing"
)

// A concurrency is known by what people call it, however they write it; a number of one thread is a name.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"iodepth", "QD", "queue depth", "Queue_Depth", "outstanding", "numjobs", "nj",
		"threads", "Number of threads", "num_threads", "# clients", "thread count", "connection_count", "VUs",
		"virtual users", "procs", "Outstanding IOs", "no. of users", "N", "concurrent requests",
		"Parallel_Requests", "streams", "threadcount"} {
		table := &Table{Names: []string{"x", name}}
		if table.Concurrency() != 1 || !IsConcurrency(name) {
			t.Errorf("%q is not known as a concurrency", name)
		}
	}
	for _, name := range []string{"thread", "client", "user", "latency", "threads_running_ms", "jobs done", "count",
		"requests", "total requests", "number of requests"} {
		if IsConcurrency(name) {
			t.Errorf("%q is taken for a concurrency", name)
		}
	}
}

// A comment right above the rows that has a word for each of their numbers names the columns.
func TestNamesInAComment(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# clients,tps\n1,10\n2,20\n":    "clients tps",
		"# clients tps\n1 10\n2 20\n":    "clients tps",
		"# two runs, of mine\n1 10 3\n":  "column 1 column 2 column 3",
		"# made by me\nn,x\n1,10\n":      "n x",
		"# clients,tps\n\n1,10\n2,20,\n": "",
	} {
		table, err := Read(strings.NewReader(text), "")
		if got := ""; err == nil {
			if got = strings.Join(table.Names, " "); got != want {
				t.Errorf("%q: columns %q, want %q", text, got, want)
			}
		} else if want != "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
