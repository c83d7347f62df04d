package table

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		names []string
		rows  [][]string
		fails string // whole
	}{
		"csv": {text: "a, b\n1,2\n\n# note\n3 , 4\n", names: []string{"a", "b"},
			rows: [][]string{{"1", "2"}, {"3", "4"}}},
		"quoted": {text: "\"a, x\",b\n1,2\n", names: []string{"a, x", "b"}, rows: [][]string{{"1", "2"}}},
		"tabs": {text: "a b\tc\n1\t2\n\t3\n4\t\n", names: []string{"a b", "c"},
			rows: [][]string{{"1", "2"}, {"", "3"}, {"4", ""}}},
		"semicolons": {text: "\ufeffa;b\r\n1;2\r\n", names: []string{"a", "b"}, rows: [][]string{{"1", "2"}}},
		"blanks": {text: "1  2\n3 4", names: []string{"column 1", "column 2"},
			rows: [][]string{{"1", "2"}, {"3", "4"}}},
		"one per line":  {text: "5\n6", names: []string{"column 1"}, rows: [][]string{{"5"}, {"6"}}},
		"old Macintosh": {text: "n\r5\r6\r", names: []string{"n"}, rows: [][]string{{"5"}, {"6"}}},
		"an unnamed column": {text: ",x\n0,5\n1,6\n", names: []string{"column 1", "x"},
			rows: [][]string{{"0", "5"}, {"1", "6"}}},
		"no header, bad first": {text: "1;2,5\n2;3,5\n", names: []string{"column 1", "column 2"},
			rows: [][]string{{"1", "2.5"}, {"2", "3.5"}}},
		"sizes as names": {text: "4k,8k\n1,2\n", names: []string{"4k", "8k"}, rows: [][]string{{"1", "2"}}},
		"list": {text: "[1, 2.5, null]", names: []string{"column 1"},
			rows: [][]string{{"1"}, {"2.5"}, {""}}},
		"lists": {text: "[[1,2],[3,4]]", names: []string{"column 1", "column 2"},
			rows: [][]string{{"1", "2"}, {"3", "4"}}},
		"objects": {text: `[{"x":1,"n":2},{"n":4,"x":3},{"n":5}]`, names: []string{"n", "x"},
			rows: [][]string{{"2", "1"}, {"4", "3"}, {"5", ""}}},
		"JSON lines": {text: "{\"n\":1}\n{\"n\":2}\n", names: []string{"n"}, rows: [][]string{{"1"}, {"2"}}},
		"columns": {text: `{"n":[1,2],"x":[3,4]}`, names: []string{"n", "x"},
			rows: [][]string{{"1", "3"}, {"2", "4"}}},
		"empty":             {text: " \n", fails: "no data"},
		"comments only":     {text: "# a\n", fails: "no rows"},
		"header only":       {text: "a,b\n", fails: `no rows below the header "a,b"`},
		"ragged":            {text: "a,b\n1\n", fails: `line 2 has 1 cell, the first has 2: "1"`},
		"another delimiter": {text: "a,b\n1;2\n", fails: `line 2 has 1 cell, the first has 2: "1;2"`},
		"twice":             {text: "a,b,A\n1,2,3\n", fails: `columns 1 and 3 are both called "A"`},
		"binary":            {text: "a\n\x00\x01", fails: "line 2: byte 0x00 is no text: a table is text in UTF-8"},
		"Latin-1":           {text: "caf\xe9,b\n", fails: "line 1: byte 0xe9 is no text: a table is text in UTF-8"},
		"Markdown": {text: "# Of today\n\nAs it was:\n\n| n | **x** |\n|--:|:--|\n| 1 | 5 |\n| 2 | `6` |\n\nSo.\n",
			names: []string{"n", "x"}, rows: [][]string{{"1", "5"}, {"2", "6"}}},
		"two in Markdown": {text: "|n|x|\n|-|-|\n|1|5|\n\n|n|x|\n|--|--|\n|1|5|\n\n|n|x|\n|--|--|\n|1|5|\n",
			fails: "it has 2 tables, below line 5 and line 9: give one of them"},
		"psql": {text: " n | x \n---+---\n 1 | 5\n 2 | 6\n(2 rows)\n", names: []string{"n", "x"},
			rows: [][]string{{"1", "5"}, {"2", "6"}}},
		"psql -A": {text: "n|x\n1|5\n2|6\n(2 rows)\n", names: []string{"n", "x"},
			rows: [][]string{{"1", "5"}, {"2", "6"}}},
		"mysql": {text: "+---+---+\n| n | x |\n+---+---+\n| 1 | 5 |\n| 2 | 6 |\n+---+---+\n", names: []string{"n", "x"},
			rows: [][]string{{"1", "5"}, {"2", "6"}}},
		"sep=": {text: "sep=;\nn;x\n1;5,5\n", names: []string{"n", "x"}, rows: [][]string{{"1", "5.5"}}},
		"a heading over columns": {text: ",read,,write\nn,iops,lat,iops\n1,5,6,7\n2,5,6,7\n",
			names: []string{"n", "read iops", "read lat", "write iops"},
			rows:  [][]string{{"1", "5", "6", "7"}, {"2", "5", "6", "7"}}},
		"units below the names": {text: "n,iops,lat\n,1/s,(ms)\n1,5,6\n2,5,6\n",
			names: []string{"n", "iops (1/s)", "lat (ms)"}, rows: [][]string{{"1", "5", "6"}, {"2", "5", "6"}}},
		"UTF-16":      {text: "\xff\xfea\x00", fails: "line 1: the text is in UTF-16: save it as UTF-8"},
		"a long line": {text: "a\n" + strings.Repeat("1", maxLine+1), fails: "line 2 is longer than 1024 KiB"},
		"XML":         {text: "<?xml version=\"1.0\"?>\n<Res", fails: "it is XML, and no table"},
		"not JSON":    {text: "[1,", fails: "not valid JSON: line 1: it ends early, as a file does that was cut short"},
		"broken JSON": {text: "[1,\n2,\nx]", fails: "not valid JSON: line 3: invalid character 'x' looking " +
			"for beginning of value"},
		"no list": {text: `{"n":1}`, fails: `"n" is not a list of numbers`},
		"an object inside": {text: `[{"n":{"mean":1}}]`,
			fails: `element 1: "n" holds a list or an object, where a number is wanted`},
		"unequal lists": {text: `{"n":[1],"x":[1,2]}`, fails: `"x" has 2 values, "n" has 1`},
		"a field more": {text: `[{"n":1},{"n":1,"x":2}]`,
			fails: `element 2 has what those before it lack: "x"`},
		"mixed elements":    {text: `[1,{"n":1}]`, fails: "element 2 is an object, and the first is none"},
		"a list of another": {text: `[[1,2],[3]]`, fails: "element 2 has 1 value, the first has 2"},
		"empty list":        {text: `[]`, fails: "no rows"},
		"empty objects":     {text: `[{},{}]`, fails: "no columns"},
	} {
		s, err := Read(strings.NewReader(c.text), "")
		if c.fails != "" {
			if err == nil || err.Error() != c.fails {
				t.Errorf("%s: %v, want %q", name, err, c.fails)
			}
			continue
		}
		if err != nil || !cmp.Equal(c.names, s.Names) || !cmp.Equal(c.rows, s.Rows) {
			t.Errorf("%s: %v\n%s%s", name, err, cmp.Diff(c.names, s.Names), cmp.Diff(c.rows, s.Rows))
		}
	}
	ofNumbers, ofLists := strings.Repeat("1,", maxColumns)+"1\n", `{"a0":[1]`+columnsOf(maxColumns)+"}"
	for _, wide := range []string{ofNumbers, ofLists} {
		_, err := Read(strings.NewReader(wide), "")
		if err == nil || err.Error() != "10001 columns are more than 10000: that is raw data, not a result" {
			t.Errorf("too many columns: %v", err)
		}
	}
	if _, err := Read(io.LimitReader(ones{}, maxBytes+2), ""); err == nil ||
		err.Error() != "more than 64 MiB: that is raw data, not a result" {
		t.Errorf("enormous: %v", err)
	}
}

// ones is an endless table.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "1\n"[i%2]
	}
	return len(p), nil
}

func TestNumericColumns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		list     []int
		warnings []string
		fails    string
	}{
		"gaps":          {text: "a,b\n1,\n,2\nNaN,n/a\n", list: []int{0, 1}},
		"text beside":   {text: "host,a\nx,1\ny,2\n", list: []int{1}},
		"hashes beside": {text: "commit,a\n7f3a,1\n1234,2\n99bb,3\n", list: []int{1}},
		"a unit":        {text: "t,lat\n1,12ms\n2,13ms\n", list: []int{0, 1}},
		"units of two kinds": {text: "t,lat\n1,12ms\n2,13%\n", list: []int{0},
			warnings: []string{`lat is left out: line 2: "12ms" is not a number: write the number alone; its unit belongs in the name of the column`}},
		"commas of decimals or thousands": {text: "a;b\n1;1,500\n2;2,500\n",
			fails: `line 2: b: "1,500" is not a number beyond doubt: 1.500 or 1500? Say --decimal comma or --decimal point`},
		"codes": {text: "Status-Code,code,ms\n200,x,5\n500,y,2\n", list: []int{2},
			warnings: []string{"Status-Code is left out: its numbers are codes, which have no mean"}},
		"one bad cell": {text: "a,b\n1,1\n2,2\n3,broken\n", fails: `line 4: b: "broken" is not a number`},
		"infinite": {text: "a\n1\n2\nInf\n1e999\n3\n", fails: "line 4: a: \"Inf\" is not finite; line 5: " +
			"a: \"1e999\" is not finite"},
		"no numbers": {text: "a:b\n1:2\n",
			fails: `no column of numbers among "a:b": line 2 begins with "1:2"`},
		"only with commas": {text: "a\n1,234\n",
			fails: `line 2: a: "1,234" is not a number beyond doubt: 1.234 or 1234? Say --decimal comma or --decimal point`},
		"all missing": {text: "a,b\n,x\n,y\n",
			fails: `no column of numbers among "a", "b": line 2 begins with ""`},
		"an element of a list": {text: `[1,2,"x"]`, fails: `element 3: column 1: "x" is not a number`},
	} {
		s, err := Read(strings.NewReader(c.text), "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list, warnings, err := s.Numeric()
		if c.fails != "" {
			if err == nil || err.Error() != c.fails {
				t.Errorf("%s: %v, want %s", name, err, c.fails)
			}
			continue
		}
		if diff := cmp.Diff(c.list, list) + cmp.Diff(c.warnings, warnings); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	type found struct {
		Step  float64
		Place []int
		Notes []string
	}
	for name, c := range map[string]struct {
		text  string
		want  *found
		fails string
	}{
		"seconds":      {text: "time,x\n10,1\n11,1\n12,1\n", want: &found{1, []int{0, 1, 2}, nil}},
		"milliseconds": {text: "x,time_ms\n1,0\n1,500\n1,1000\n", want: &found{0.5, []int{0, 1, 2}, nil}},
		"since 1970": {text: "ts,x\n1700000000000,1\n1700000002000,1\n1700000004000,1\n", want: &found{2,
			[]int{0, 1, 2}, nil}},
		"half a day": {text: "time,x\n11:59:58 AM,1\n11:59:59 AM,1\n12:00:00 PM,1\n", want: &found{1, []int{0,
			1, 2}, nil}},
		"days first": {text: "Datum;x\n31.01.2026 10:00:00;1\n31.01.2026 10:00:05;1\n01.02.2026 10:00:10;1\n", want: &found{43205,
			nil, []string{"Datum: rows lie from 5 s to 86405 s apart; they are taken in their order, as if 43205 s apart"}}},
		"months first": {text: "time,x\n1/30/2026 10:00,1\n1/31/2026 10:00,1\n2/1/2026 10:00,1\n", want: &found{86400,
			[]int{0, 1, 2}, nil}},
		"a day beside": {text: "date,time,x\n2026-01-31,23:59:58,1\n2026-01-31,23:59:59,1\n2026-02-01,00:00:00,1\n",
			want: &found{1, []int{0, 1, 2}, nil}},
		"of a spreadsheet": {text: "datetime,x\n46000.5,1\n46001,1\n46001.5,1\n", want: &found{43200, []int{0,
			1, 2}, nil}},
		"hours or minutes": {text: "elapsed,x\n0:00,1\n0:05,1\n0:10,1\n", want: &found{300, []int{0, 1, 2},
			[]string{"elapsed: 0:00 is read as hours and minutes"}}},
		"clocks put back": {text: "time,x\n2025-10-26 02:50,1\n2025-10-26 02:55,1\n2025-10-26 02:00,1\n2025-10-26 02:05,1\n",
			fails: `line 4: time: "2025-10-26 02:00" comes after "2025-10-26 02:55": where clocks went back an hour, write times in UTC or with their offset, like +02:00`},
		"midnight": {text: "time,x\n23:59:58,1\n23:59:59,1\n00:00:00,1\n00:00:01,1\n", want: &found{1,
			[]int{0, 1, 2, 3}, nil}},
		"dots, offset":       {text: "time,x\n2024.01.01 3:00:00 +0100,1\n2024.01.02 3:00:00 +0100,1\n2024.01.03 3:00:00 +0100,1\n", want: &found{86400, []int{0, 1, 2}, nil}},
		"logs":               {text: "time,x\n31/Jan/2026:23:59:50 +0000,1\n01/Feb/2026:00:00:00 +0000,1\n01/Feb/2026:00:00:10 +0000,1\n", want: &found{10, []int{0, 1, 2}, nil}},
		"which is the month": {text: "time,x\n01/02/2026 10:00,1\n02/02/2026 10:00,1\n03/02/2026 10:00,1\n"},
		"dates": {text: "timestamp,x\n2026-01-01T00:00:00Z,1\n2026-01-01T00:01:00Z,1\n2026-01-01T00:02:00Z,1\n",
			want: &found{60, []int{0, 1, 2}, nil}},
		"a gap": {text: "t,x\n1,1\n2,1\n5,1\n6,1\n", want: &found{1, []int{0, 1, 4, 5},
			[]string{"t: 2 of 6 points are missing, the first after line 3"}}},
		"uneven":  {text: "t,x\n0,1\n1,1\n2.4,1\n3,1\n", want: &found{1, nil, []string{"t: rows lie from 0.6 s to 1.4 s apart; they are taken in their order, as if 1 s apart"}}},
		"falling": {text: "t,x\n3,1\n2,1\n1,1\n", fails: `line 3: t: "2" comes before "3": put the oldest row first`},
		"shuffled": {text: "time,x\n5,1\n1,1\n9,1\n3,1\n2,1\n8,1\n4,1\n10,1\n6,1\n7,1\n",
			fails: `line 3: time: "1" comes after "5"; line 5: time: "3" comes after "9"; line 6: time: "2" comes after "3"; line 8: time: "4" comes after "8"; line 10: time: "6" comes after "10"`},
		"ties":           {text: "time,x\n5,1\n1,1\n9,1\n3,1\n2,1\n8,1\n4,1\n10,1\n6,1\n6,1\n"},
		"uneven measure": {text: "time,x\n5,1\n1.1,1\n9,1\n3.7,1\n2,1\n8,1\n4.6,1\n10,1\n5.9,1\n7,1\n"},
		"backwards":      {text: "t,x\n1,1\n2,1\n3,1\n2.5,1\n4,1\n5,1\n6,1\n7,1\n8,1\n9,1\n10,1\n11,1\n", fails: `line 5: t: "2.5" comes after "3"`},
		"twice":          {text: "t,x\n1,1\n2,1\n2,1\n3,1\n4,1\n5,1\n6,1\n7,1\n8,1\n9,1\n10,1\n11,1\n", fails: `line 4: t: "2" is there twice, after "2"`},
		"two a second": {text: "t,x\n1,1\n1,1\n2,1\n2,1\n3,1\n3,1\n4,1\n4,1\n5,1\n5,1\n", want: &found{4.0 / 9, nil,
			[]string{"t: 5 of 10 rows have the time of the row above; they are taken in their order, as if 0.444444 s apart"}}},
		"a long hole": {text: "t,x\n0,1\n1,1\n2,1\n9002,1\n", want: &found{1, []int{0, 1, 2, 9002},
			[]string{"t: 8999 of 9003 points are missing, the first after line 4"}}},
		"a bad one": {text: "t,x\n1,1\n2,1\nthree,1\n4,1\n5,1\n6,1\n7,1\n8,1\n9,1\n10,1\n11,1\n", fails: `line 4: t: "three" is no time`},
		"a measure": {text: "time,x\n3,1\n1,1\n2,1\n5,2\n2,2\n", want: nil},
		"dates, to and fro": {text: "timestamp,x\n1700000003000,1\n1700000001000,1\n1700000002000,1\n",
			fails: `line 3: timestamp: "1700000001000" comes after "1700000003000"`},
		"no such":      {text: "a,x\n3,1\n1,1\n2,1\n", want: nil},
		"all the same": {text: "t,x\n1,1\n1,1\n1,1\n", fails: "line 3: t: \"1\" is there twice, after \"1\"; line 4: t: \"1\" is there twice, after \"1\""},
		"far away":     {text: "t,x\n0,1\n1,1\n2,1\n1e9,1\n", want: &found{2.5e8, nil, []string{"t: rows lie from 1 s to 1e+09 s apart; they are taken in their order, as if 3.33333e+08 s apart"}}},
	} {
		s, err := Read(strings.NewReader(c.text), "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		line, err := s.Times()
		if c.fails != "" {
			if err == nil || err.Error() != c.fails {
				t.Errorf("%s: %v, want %s", name, err, c.fails)
			}
			continue
		}
		var got *found
		if line != nil {
			got = &found{line.Step, line.steps, line.Notes}
		}
		if name == "far away" || name == "uneven" || name == "days first" {
			got.Step = c.want.Step // the mean, which the note says
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestSplitUnit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"p99 (ms)": {"p99", "ms"}, "p99_us": {"p99", "us"}, "Latency [s]": {"latency", "s"}, "bw_kib": {"bw", "kib"},
		"iops": {"iops", ""}, "_ms": {"_ms", ""}, "stems": {"stems", ""},
	} {
		if stem, unit := SplitUnit(name); stem != want[0] || unit != want[1] {
			t.Errorf("%s: %q in %q", name, stem, unit)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "[1,2]", `{"n":[1]}`, `[{"n":1}]`, "1 2\n3 4", "a;b\n\"1;2\n",
		"\ufeff#\n", "t,x\n1,1\n2,1\n2,1\n", "time;a\n2026-01-01;1,5\n",
		"1;2,5\n2;3,5", "{\"n\":1}\n{\"n\":2}", "a\tb\n\t1\n", "x\n1e999\n-0\nNaN\n0x1p-2\n", "\r\r\n", "a,A\n1,2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(strings.NewReader(text), "")
		if err != nil {
			return
		}
		if len(s.Rows) == 0 || len(s.Lines) != len(s.Rows) || !slices.IsSorted(s.Lines) || s.Lines[0] < 1 {
			t.Fatalf("%d rows, lines %v", len(s.Rows), s.Lines)
		}
		for _, r := range s.Rows {
			if len(r) != len(s.Names) {
				t.Fatalf("a row of %d cells in %d columns", len(r), len(s.Names))
			}
		}
		for i, name := range s.Names {
			if at := s.Column(name); at != i {
				t.Fatalf("column %d, %q, is found as %d", i, name, at)
			}
		}
		if list, _, err := s.Numeric(); err == nil {
			for _, c := range list {
				values, err := s.Numbers(c, true)
				if err != nil || slices.ContainsFunc(values, func(v float64) bool { return math.IsInf(v, 0) }) {
					t.Fatal(err, values)
				}
			}
		}
		line, err := s.Times()
		if err != nil || line == nil {
			return
		}
		if !(line.Step > 0) || math.IsInf(line.Step, 0) {
			t.Fatalf("a step of %v", line.Step)
		}
		if grid := line.Grid(make([]float64, len(s.Rows))); len(grid) < len(s.Rows) {
			t.Fatalf("%d rows on a grid of %d", len(s.Rows), len(grid))
		}
	})
}

// columnsOf are members of a JSON object, each a list of one number.
func columnsOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"b%d":[1]`, i)
	}
	return b.String()
}

// TestUnreadTimes: dates in a form that is not read are said, other columns and times that are read are not.
func TestUnreadTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"time,x\n01/02/2026 10:00,1\n02/02/2026 10:00,1\n": `time: "01/02/2026 10:00" (line 2) is no time in a form that is read`,
		"date,x\nyesterday,1\ntoday,1\n":                   `date: "yesterday" (line 2) is no time`,
		"time,x\n2026-01-01,1\n2026-01-02,1\n":             "",
		"time,x\n1:00 PM,1\n1:01 PM,1\n":                   "",
		"commit,x\na,1\nb,1\n":                             "",
	} {
		s, err := Read(strings.NewReader(text), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.UnreadTimes(); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Decimal commas are read where nothing else can be meant, and refused where it can.
func TestDecimalCommas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"users;tput\n1;10,5\n2;20,125\n":             "10.5 20.125", // 20,125 beside 10,5
		"users;tput\n1;1.010,5\n2;2.020\n":           "1010.5 2020",
		"users\ttput\n1\t0,125\n2\t7\n":              "0.125 7",
		"users,tput\n1,\"10,5\"\n2,\"11,25\"\n":      "10.5 11.25",
		"1;10,5\n2;20,25\n":                          "10.5 20.25",
		"users;tput\n1;10,125\n2;20,125\n":           "refused", // or thousands
		"users;tput\n1;1,010.5\n2;10,5\n":            "refused",
		"users;tput\n1;10,5\n2;9.875\n":              "refused", // 9875, or another writer's
		"users;tput;p\n1;10,5;0.5\n2;9,5;0.75\n":     "refused",
		"users;tput\n1;10.125\n2;20.125\n":           "refused", // a decimal point, or thousands
		"users,tput\n1,10.125\n2,20.125\n":           "10.125 20.125",
		"users,tput\n1,10.120\n2,20.125\n3,950\n":    "refused",
		"users,tput\n1,\"1,010.5\"\n2,\"2,020\"\n":   "1010.5 2020",
		"users,tput\n1,\"1,010,000\"\n2,\"2,020\"\n": "1.01e+06 2020",
		"users,tput\n1,\"1,010\"\n2,\"2,020\"\n":     "refused",
		"users,tput\n1,1 010\n2,12\u00a0020\n":       "1010 12020",
		"users,tput\n1,1'010.5\n2,12\u202f020\n":     "1010.5 12020",
		"users;tput\n1;1’010,5\n2;2,25\n":            "1010.5 2.25",
		"users;tput\n1;1.010.000\n2;2,5\n":           "1.01e+06 2.5",
		"users;tput\n1;1 ms\n2;1500 us\n":            "1 1.5",
		"users;tput\n1;2.5 GiB/s\n2;512 MiB/s\n":     "2.5 0.5",
		"users;tput\n1;1.2k\n2;950\n":                "1200 950",
		"users;tput\n1;12.5%\n2;13 %\n":              "12.5 13",
		"users;tput (ms)\n1;12 us\n2;13 us\n":        "refused",
		"users;tput\n1;12 ms\n2;13\n":                "refused",
		"users;size\n1;4k\n2;8k\n":                   "refused",
	} {
		tab, err := Read(strings.NewReader(text), "")
		if err != nil {
			t.Fatal(text, err)
		}
		got := "refused"
		if v, err := tab.Numbers(1, true); err == nil {
			got = fmt.Sprintf("%g %g", v[0], v[1])
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for said, want := range map[string]float64{"comma": 1.5, "point": 1500} {
		tab, err := Read(strings.NewReader("n;x\n1;1,500\n2;2,500\n"), said)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := tab.Numbers(1, true); err != nil || v[0] != want {
			t.Errorf("--decimal %s: %v, %v", said, v, err)
		}
	}
	tab, err := Read(strings.NewReader("n;x\n1;1,500\n2;2.5\n"), "comma")
	if err != nil {
		t.Fatal(err)
	}
	const says = `"2.5" is not a number with a decimal comma`
	if _, err := tab.Numbers(1, true); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a point where commas are said: %v", err)
	}
}
