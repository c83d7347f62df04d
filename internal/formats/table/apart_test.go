package table

import (
	"strings"
	"testing"
)

// Rows of several systems, tests or block sizes have no one curve over their concurrency, which is the first column
// here; names of rows and of levels tell none apart.
func TestApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"numbers alone":           {"n,x\n1,10\n2,20\n4,30\n", ""},
		"one system":              {"n,x,system\n1,10,a\n2,20,a\n4,30,a\n", ""},
		"two systems":             {"n,x,system\n1,10,a\n2,20,a\n1,3,b\n2,6,b\n", `"system" is "a", "b"`},
		"two after one another":   {"n,x,host\n1,10,a\n2,20,a\n4,3,b\n8,6,b\n", `"host" is "a", "b"`},
		"a name for each row":     {"n,x,run\n1,10,r1\n2,20,r2\n4,30,r3\n", ""},
		"a name for each level":   {"n,x,label\n1,10,one\n1,11,one\n2,20,two\n2,21,two\n", ""},
		"block sizes as words":    {"n,x,bs\n1,10,4k\n2,20,4k\n1,3,1m\n2,6,1m\n", `"bs" is "4k", "1m"`},
		"block sizes as numbers":  {"n,x,block_size\n1,10,4096\n2,20,4096\n1,3,65536\n2,6,65536\n", `"block_size"`},
		"a measure with its unit": {"n,x,lat\n1,10,1ms\n2,20,1ms\n1,11,2ms\n2,21,2ms\n", ""},
		"a varied number":         {"n,x,readers\n1,10,1\n2,20,1\n4,30,1\n1,3,2\n2,6,2\n4,9,2\n", `"readers" is "1", "2"`},
		"repeats":                 {"n,x,run\n1,10,1\n2,20,1\n4,30,1\n1,3,2\n2,6,2\n4,9,2\n", ""},
		"some errors":             {"n,x,errors\n1,10,0\n2,20,0\n4,30,0\n1,3,0\n2,6,1\n4,9,2\n", ""},
		"jobs and their depth":    {"n,x,numjobs\n1,10,1\n2,20,1\n4,3,4\n8,6,4\n", `"numjobs" is "1", "4"`},
		"times":                   {"n,x,date\n1,10,2026-01-01\n2,20,2026-01-01\n1,3,2026-01-02\n2,6,2026-01-02\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, err := Read(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			err = table.Apart(0)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Rows are chosen by the value of a column; a value that is not there is refused with those that are.
func TestKeep(t *testing.T) {
	t.Parallel()
	read := func() *Table {
		table, err := Read(strings.NewReader("n,x,system\n1,10,a\n2,20,a\n1,3,b\n"))
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	table := read()
	if err := table.Keep("System", "A"); err != nil || len(table.Rows) != 2 || table.Lines[1] != 3 {
		t.Errorf("%v, %v of lines %v", err, table.Rows, table.Lines)
	}
	if err := read().Keep("system", "c"); err == nil || !strings.Contains(err.Error(), `there are "a", "b"`) {
		t.Errorf("a value that is not there: %v", err)
	}
	if err := read().Keep("host", "a"); err == nil || !strings.Contains(err.Error(), `no column "host"`) {
		t.Errorf("a column that is not there: %v", err)
	}
}
