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
			table, err := Read(strings.NewReader(c.text), "")
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

// Rows of several things at the same times are the course of none; those of one that has words beside it are.
func TestSeveral(t *testing.T) {
	t.Parallel()
	const by, of = "its rows are of several at the same times: ", "; keep the rows of one"
	for name, c := range map[string]struct{ text, want string }{
		"devices": {"time,device,r_s\n1,sda,5\n1,sdb,2\n2,sda,6\n2,sdb,2\n",
			`"device" is "sda" in some, and "device" is "sdb" in others`},
		"in blocks": {"t,disk,x\n1,a,5\n2,a,5\n1,b,6\n2,b,2\n", `"disk" is "a" in some, and "disk" is "b" in others`},
		"a sum without a type": {"Timestamp,Type,Name,rate\n5,GET,/a,1\n7,GET,/a,1\n7,,Aggregated,1\n9,GET,/a,2\n9,GET,/b,3" +
			"\n9,,Aggregated,5\n",
			`"Name" is "Aggregated" in line 4, which is of the other rows together`},
		"a sum": {"Type,Name,rate\nGET,/a,1\nGET,/b,2\n,Total,3\n",
			`"Name" is "Total" in line 4, which is of the other rows together`},
		"an average below": {"run,x\n1,5\n2,6\nAverage,5.5\n", `"run" is "Average" in line 4, which is of the other rows together`},
		"a sum in German":  {"Lauf;x\nLauf 1;5\nLauf 2;6\nGesamt:;11\n", `"Lauf" is "Gesamt:" in line 4, which is of the other rows together`},
		"only sums":        {"cpu,usr\nall,1\nall,2\n", ""},
		"two columns together": {"t,host,disk,x\n1,a,sda,1\n1,a,sdb,2\n1,b,sda,3\n1,b,sdb,4\n2,a,sda,1\n" +
			"2,a,sdb,2\n2,b,sda,3\n2,b,sdb,4\n",
			`"host", "disk" is "a", "sda" in some, and "host", "disk" is "a", "sdb" in others`},
		"by number": {"t,cpu,usr\n1,0,5\n1,1,9\n2,0,5\n2,1,8\n3,0,4\n3,1,7\n",
			`"cpu" is "0" in some, and "cpu" is "1" in others`},
		"one":            {"t,device,x\n1,sda,5\n2,sda,2\n3,sda,6\n4,sda,2\n", ""},
		"words of a row": {"t,note,x\n1,start,5\n2,ok,2\n3,ok,6\n4,end,2\n", ""},
		"two a second":   {"t,note,x\n1,ok,5\n1,ok,2\n2,ok,6\n2,bad,2\n", ""},
		"measures":       {"t,x,y\n1,5,1\n1,2,2\n2,6,1\n2,5,3\n3,1,1\n3,2,2\n", ""},
		"no times":       {"device,x\nsda,5\nsdb,2\nsda,6\nsdb,2\n", ""},
		"a name a row":   {"elapsed,commit,x\n3,a,1\n1,b,2\n2,c,1\n", ""},
	} {
		table, err := Read(strings.NewReader(c.text), "")
		if err != nil {
			t.Fatal(name, err)
		}
		err = table.Several()
		if (err == nil) != (c.want == "") || err != nil && err.Error() != by+c.want+of && err.Error() != c.want+of {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Rows are chosen by the value of a column; a value that is not there is refused with those that are.
func TestKeep(t *testing.T) {
	t.Parallel()
	read := func() *Table {
		table, err := Read(strings.NewReader("n,x,system\n1,10,a\n2,20,a\n1,3,b\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	table := read()
	if err := table.Keep("System", "A", true); err != nil || len(table.Rows) != 2 || table.Lines[1] != 3 {
		t.Errorf("%v, %v of lines %v", err, table.Rows, table.Lines)
	}
	if err := read().Keep("system", "c", true); err == nil || !strings.Contains(err.Error(), `there are "a", "b"`) {
		t.Errorf("a value that is not there: %v", err)
	}
	if err := table.Keep("system", "a", false); err == nil || !strings.Contains(err.Error(), `no row in which "system" is not "a"`) {
		t.Errorf("rows that are left out: %v", err)
	}
	if err := read().Keep("host", "a", true); err == nil || !strings.Contains(err.Error(), `no column "host"`) {
		t.Errorf("a column that is not there: %v", err)
	}
}

// Rows of several tests are no repeats of one.
func TestOneTest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"test,rps\nSET,10\nGET,12\nLPUSH,9\n":     `"test" is "SET", "GET", "LPUSH"`,
		"test,rps\nrun 1,10\nrun 2,12\n":          "",
		"test,rps\nSET,10\nSET,12\n":              "",
		"bs,iops\n4096,10\n8192,12\n":             `"bs" is "4096", "8192"`,
		"bs,iops\n4k,10\n4k,12\n":                 "",
		"rw;iops\nread;1,5\nwrite;2,5\n":          `"rw" is "read", "write"`,
		"test,x\n1,10\n2,12\n":                    "", // numbers of repeats
		"status,x\nok,10\nslow,12\n":              "",
		"clients,x\n1,10\n4,12\n16,9\n":           `"clients" is "1", "4", "16"; keep the rows of one, or give usl the table`,
		"n,x\n1,10\n2,12\n3,9\n":                  "", // numbers of rows
		"time,clients,x\n1,10,1\n2,12,1\n3,9,1\n": "", // a course
		"Prüfung;x\nlesen;10\nschreiben;12\n":     `"Prüfung" is "lesen", "schreiben"`,
	} {
		tab, err := Read(strings.NewReader(text), "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := tab.OneTest(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Words of which nothing is known, and that tell rows apart, are said; names of rows are not.
func TestMixed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"status,x\nok,1\nok,2\nslow,3\nslow,4\n": `"status" is "ok" in 2 of them and "slow" in 2`,
		"host,x\na,1\nb,2\nc,3\n":                "",
		"host,x\na,1\na,2\na,3\n":                "",
		"run,x\na,1\na,2\nb,3\nb,4\n":            "",
	} {
		tab, err := Read(strings.NewReader(text), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := tab.Mixed(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
