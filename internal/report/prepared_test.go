package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// prepared is a document of a run whose second pass was cut short and whose rounds were not steady.
func prepared() *Document {
	part, spread, slope := int64(3<<30), 0.25, 0.125
	doc := &Document{Title: "Prepared", Preconditioned: []result.Preconditioning{{
		Workload: "W", VMs: 2, Seconds: 700, Purged: "blocks discarded", DiskBytes: 4 << 30, WantPasses: 2,
		Passes: []result.Pass{{Bytes: 4 << 30, Seconds: 8}, {Bytes: 1 << 30, Seconds: 0, Errors: 3}}, MaxRounds: 6,
		State: result.PreconditionNotReached, Reason: "max_rounds is 6", Spread: &spread, Slope: &slope,
	}}, Written: []result.Written{
		{Workload: "W", VMs: 2, Ranges: result.WrittenByPrecondition, Bytes: 4 << 30, Mapped: &part, Blocks: 2048,
			Zero: 512, ZeroAtMost: 0.2662, Devices: []string{"a /dev/sdb"}},
		{Workload: "<W>", VMs: 1, Ranges: result.ReadByWorkload, Bytes: 1 << 20, Problem: "the disk is gone"},
	}}
	for _, rate := range []float64{300, 125, 100, 100, 100, 100} {
		p := &doc.Preconditioned[0]
		p.Rounds = append(p.Rounds, result.Round{Seconds: 60, OpsPerSecond: rate})
	}
	return doc
}

func TestPreparation(t *testing.T) {
	doc := prepared()
	want := []preparedTable{{
		Title: "Preconditioning for W",
		Note: "2 VMs, 11 min 40 s in all: purged; 2 of 2 passes, 5 GiB written; not steady after 6 rounds; max_rounds is 6. " +
			"Over the last 5 rounds (*) rates spread over 25 % of their mean (steady: at most 20 %) and a fitted line moves " +
			"by 12.5 % of it (at most 10 %). These are the numbers commonly given for the solid-state storage test " +
			"specification of the SNIA; conformance is not claimed.",
		Rows: []PreparedRow{
			{"purge", "blocks discarded", none, none, none},
			{"pass 1", "4 GiB", "8 s", "512 MiB/s", "0"},
			{"pass 2", "1 GiB of 4 GiB", "0 s", none, "3"},
			{"round 1", none, "1 min", "300 operations/s", "0"},
			{"round 2 *", none, "1 min", "125 operations/s", "0"},
			{"round 3 *", none, "1 min", "100 operations/s", "0"},
			{"round 4 *", none, "1 min", "100 operations/s", "0"},
			{"round 5 *", none, "1 min", "100 operations/s", "0"},
			{"round 6 *", none, "1 min", "100 operations/s", "0"},
		},
	}}
	if diff := cmp.Diff(want, doc.Preparations()); diff != "" {
		t.Error(diff)
	}
	looks := []string{
		"W: disks of 2 VMs, preconditioned: 3 GiB of 4 GiB allocated, 512 of 2,048 sampled blocks zero: a /dev/sdb (so at " +
			"most 26.6 % of all, with 95 % confidence).",
		"<W>: disks of 1 VM, to be read: 1 MiB, not all could be looked at: the disk is gone.",
	}
	if diff := cmp.Diff(looks, doc.Looks()); diff != "" {
		t.Error(diff)
	}
	for name, print := range map[string]func(*bytes.Buffer) error{
		"page":     func(b *bytes.Buffer) error { return HTML(b, doc) },
		"Markdown": func(b *bytes.Buffer) error { return Markdown(b, doc) },
		"text":     func(b *bytes.Buffer) error { return Text(b, doc) },
	} {
		var b bytes.Buffer
		if err := print(&b); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"Preconditioning for W", "1 GiB of 4 GiB", "What the disks hold", "26.6 %"} {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s: %q is missing", name, text)
			}
		}
		if name == "page" && strings.Contains(b.String(), "<W>") {
			t.Error("a name of the author stands in the page as it is")
		}
	}
}
