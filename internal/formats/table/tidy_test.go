package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A tidy table, a row for each value, becomes one with a column for each metric.
func TestTidy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		names []string
		rows  [][]string
		err   string
	}{
		"metrics in turn": {
			text:  "time,value,metric\n1,10,iops\n1,2.5,lat\n2,11,iops\n2,2.6,lat\n",
			names: []string{"time", "iops", "lat"}, rows: [][]string{{"1", "10", "2.5"}, {"2", "11", "2.6"}},
		},
		"one metric after the other, one value missing": {
			text:  "collected,value,metric\n2015-01-03 16:40:48,5,r\n2015-01-03 16:40:53,6,r\n2015-01-03 16:40:53,1,b\n",
			names: []string{"time", "r", "b"}, rows: [][]string{{"2015-01-03 16:40:48", "5", ""},
				{"2015-01-03 16:40:53", "6", "1"}},
		},
		"JSON": {
			text:  `[{"measure":"a","ts":1,"value":3},{"measure":"b","ts":1,"value":4}]`,
			names: []string{"ts", "a", "b"}, rows: [][]string{{"1", "3", "4"}},
		},
		"a further column of one value": {
			text:  "host,metric,time,value\nh1,a,1,2\nh1,b,1,3\n",
			names: []string{"time", "a", "b"}, rows: [][]string{{"1", "2", "3"}},
		},
		"not tidy: the metric is a number": {
			text: "time,metric,value\n1,2,3\n", names: []string{"time", "metric", "value"}, rows: [][]string{{"1", "2",
				"3"}},
		},
		"no time":       {text: "metric,value\na,1\nb,2\n", err: "without a column of times"},
		"two hosts":     {text: "host,metric,time,value\nh1,a,1,2\nh2,a,1,3\n", err: `"host" is "h1" in line 2 and "h2" in line 3`},
		"twice at once": {text: "time,metric,value\n1,a,1\n1,a,2\n", err: `line 3: it is a tidy table, and "a" has two values at "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(strings.NewReader(c.text), "")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.names, got.Names); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.rows, got.Rows); diff != "" {
				t.Error(diff)
			}
		})
	}
}
