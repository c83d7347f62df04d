package report

import (
	"bytes"
	"os"
	"testing"
	"time"

	"plimsoll/internal/analysis"
	"plimsoll/internal/report/reporttest"
)

func document(opt reporttest.Options) *Document {
	run := reporttest.Neighbour(opt)
	return New(Input{Manifest: run.Manifest, Data: run.Data, Findings: analysis.Run(run.Manifest, run.Data), Events: run.Events, Plan: run.Plan})
}

func TestTmp(t *testing.T) {
	for name, o := range map[string]reporttest.Options{"a": {VMs: 4, Length: 20 * time.Minute, TimeScale: 0.02, SizeScale: 0.002}, "b": {VMs: 50, Length: time.Hour}} {
		var b bytes.Buffer
		t0 := time.Now()
		doc := document(o)
		t1 := time.Now()
		if err := HTML(&b, doc); err != nil {
			t.Fatal(err)
		}
		t.Log(name, b.Len(), t1.Sub(t0), time.Since(t1))
		os.WriteFile("/tmp/r/"+name+".html", b.Bytes(), 0o644)
	}
}
