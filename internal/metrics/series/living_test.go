package series

import "testing"

// Every rate of a query leaves out machines that are off, and nothing else is changed.
func TestLiving(t *testing.T) {
	off := func(within string) string {
		return " unless on (instance) (last_over_time(up[" + within + "]) unless up))"
	}
	for query, want := range map[string]string{
		`max_over_time(x[1m]) + y`:  `max_over_time(x[1m]) + y`,
		`sum(irate(x{a="b"}[30s]))`: `sum((irate(x{a="b"}[30s])` + off("30s") + `)`,
		`-rate(x[90s]) / (y)`:       `-(rate(x[1m30s])` + off("1m30s") + ` / (y)`,
		`histogram_quantile(0.9, sum by (le) (rate(x[1500ms])))`: `histogram_quantile(0.9, sum by (le) ((rate(x[1s500ms])` +
			off("1s500ms") + `))`,
		`max_over_time(rate(x[1m])[5m:10s])`: `max_over_time((rate(x[1m])` + off("1m") + `[5m:10s])`,
		`rate(sum(x)[5m:10s])`:               `(rate(sum(x)[5m:10s])` + off("5m"),
	} {
		got, err := Living(query, "up")
		if err != nil || got != want {
			t.Errorf("%s: %v\n%s, want\n%s", query, err, got, want)
		}
		if err := CheckQuery(got); err != nil {
			t.Error(err)
		}
	}
}
