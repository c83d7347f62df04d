package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestServer: what database servers counted is drawn in a section of its own and not again among the machines; a run
// without one has no such section.
func TestServer(t *testing.T) {
	t.Parallel()
	in := runInput(reporttest.Options{VMs: 3, Length: time.Minute})
	page := func() string {
		var b bytes.Buffer
		if err := renderHTML(&b, New(in), stub(t, true)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if strings.Contains(page(), `id="server"`) {
		t.Error("a section of no server")
	}
	for _, s := range []result.Series{
		{Measure: result.DatabaseTransactions, Unit: "ops/s"}, {Measure: result.DatabaseLog, Unit: "bytes/s"},
		{Measure: result.DatabaseCheckpoints, Unit: "bytes/s"}, {Measure: result.DatabaseSpread, Unit: "ratio"},
		{Measure: result.DatabaseSessions, Unit: "count", Part: "IO"},
	} {
		s.Name, s.Machine, s.Start, s.Step = "db", "db", in.Data.Start, 1
		for i := range 60 {
			s.Values = append(s.Values, new(float64(i)))
		}
		in.Data.Series = append(in.Data.Series, s)
	}
	got := page()
	_, section, _ := strings.Cut(got, `id="server"`)
	section, _, _ = strings.Cut(section, "</section>")
	for _, want := range []string{"as the server counts them", "Log and checkpoints", "</i>checkpoints</li>",
		"</i>IO</li>", "transactions/s"} {
		if !strings.Contains(section, want) {
			t.Errorf("the section lacks %q", want)
		}
	}
	if strings.Contains(section, "IOPS") || strings.Contains(got, "Db ") {
		t.Error("transactions are called IOPS, or a server's series is among the machines'")
	}
}
