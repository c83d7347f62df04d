package storage

import (
	"fmt"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// AsAsked asks whether disks hold data that compress and repeat as the job files say: a load generator may ignore such
// an option in silence, or fill what compresses with zeros, which storage does not store.
var AsAsked = view.Check{Name: "data-as-asked", Rank: 265, Run: asAsked}

// zerosWithin is the share of zeros within blocks that are not all zeros from which they are told.
const zerosWithin = 0.05

func asAsked(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, s := range v.Data.Stored {
		f := result.Finding{
			Check: "data-as-asked", Subject: s.Workload, Severity: result.Passed, N: s.VMs,
			NoInterval: "of one sample; its own error is below a percentage point",
			Basis: fmt.Sprintf("%s of the disks of %s read after the %s, blocks of 4 KiB",
				view.SayBytes(float64(s.Bytes)), view.Plural(s.VMs, "VM"), s.After),
			Metric: "share that compressors save", Unit: "%", Value: view.Ptr(100 * s.CompressibleHigh),
			Limit: view.Ptr(100 * s.Compressible),
			Evidence: []result.Evidence{
				{Name: "asked: compressible", Value: 100 * s.Compressible, Unit: "%"},
				{Name: "found: compressible, at least", Value: 100 * s.CompressibleLow, Unit: "%"},
				{Name: "found: compressible, at most", Value: 100 * s.CompressibleHigh, Unit: "%"},
				{Name: "asked: repeating blocks", Value: 100 * s.Repeats, Unit: "%"},
				{Name: "found: repeating blocks, at least", Value: 100 * s.RepeatsAtLeast, Unit: "%"},
				{Name: "found: blocks of zeros", Value: 100 * s.Zeros, Unit: "%"},
				{Name: "found: zeros within blocks", Value: 100 * s.ZerosWithin, Unit: "%"},
				{Name: "looking took", Value: s.Seconds, Unit: "s"},
			},
		}
		asked := fmt.Sprintf("%s asks for data that are %s", s.Workload, s.Asked())
		switch {
		case s.Bytes <= 0:
			f.Severity, f.Value = result.Info, nil
			f.NoInterval = "nothing was read"
			f.Sentence = asked + ": whether they are could not be looked at."
		case len(s.Differs) > 0:
			f.Severity = result.Warning
			f.Sentence = fmt.Sprintf("%s, and its disks hold others after the %s: %s.", asked, s.After,
				strings.Join(s.Differs, "; "))
		case s.ZerosWithin > zerosWithin:
			f.Severity = result.Warning
			f.Sentence = fmt.Sprintf("%s: what compresses of them is zeros (%s of all bytes), which storage may suppress "+
				"instead of compressing. With fio, buffer_pattern puts something else in their place.", asked,
				view.Percent(s.ZerosWithin))
		case len(s.CannotTell) > 0:
			f.Severity = result.Info
			f.Sentence = fmt.Sprintf("%s, and a sample after the %s cannot show all of it: %s.", asked, s.After,
				strings.Join(s.CannotTell, "; "))
		default:
			f.Sentence = fmt.Sprintf("%s, and its disks hold such after the %s.", asked, s.After)
		}
		out = append(out, f)
	}
	return out
}
