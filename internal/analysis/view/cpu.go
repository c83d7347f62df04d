package view

import (
	"strings"
	"time"

	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// Place is the node whose CPUs a VM uses; the nodes of one host have them in common.
func (v *Run) Place(node int) int {
	if v.OneHost {
		return 0
	}
	return node
}

// CPU is the CPU use of one node, in per cent; or of a part of a machine, or of a device.
type CPU struct {
	Name          string
	Machine, Part string // part is "" for all of its CPUs
	Node          int    // index; -1 unknown
	Track         *Track
}

// CPUs are the CPU series of the run: those collected for every node, else those of a result of the scenario.
func (v *Run) CPUs() []CPU {
	var out []CPU
	if out = v.Percents(result.NodeCPU); out != nil {
		return out
	}
	for i := range v.Data.Panels {
		p := &v.Data.Panels[i]
		if p.Kind != "cluster" || p.Unit != "%" || !strings.HasPrefix(p.Type, "CpuUsage") {
			continue
		}
		for k := range p.Series {
			one, ok := v.percent(&p.Series[k])
			if !ok {
				continue
			}
			out = append(out, one)
			if n := len(out); len(p.Series) == len(v.Manifest.Nodes) && out[n-1].Node < 0 {
				out[n-1].Node = v.Manifest.Nodes[k].Index // results list nodes in their order
			}
		}
		return out
	}
	return nil
}

// Percents are the series of one name in per cent.
func (v *Run) Percents(metric string) (out []CPU) {
	for i := range v.Data.Series {
		if s := &v.Data.Series[i]; s.Measure == metric && s.Unit == "%" {
			if k, ok := v.percent(s); ok {
				out = append(out, k)
			}
		}
	}
	return out
}

func (v *Run) percent(s *result.Series) (CPU, bool) {
	if !(s.Step > 0) || !IsFinite(s.Step) || len(s.Values) == 0 {
		return CPU{}, false
	}
	c := &Track{Origin: v.Data.Start, Start: s.Start, Step: s.Step, Ops: Gaps(len(s.Values))}
	c.Add(c.Ops, s, nil)
	k := CPU{Name: s.Name, Machine: s.Machine, Part: s.Part, Node: -1, Track: c}
	for _, n := range v.Manifest.Nodes {
		if n.Name == s.Name {
			k.Node = n.Index
		}
	}
	return k, true
}

// Over is the mean CPU use while a workload ran.
func (k CPU) Over(l *Load) (serial.Mean, bool) {
	var values []float64
	for _, t := range l.Times() {
		values = append(values, k.Track.Between(t.Start, t.End).Ops...)
	}
	return meanUse(values)
}

// During is the use on average between two moments, in per cent; false without enough points.
func (k CPU) During(from, to time.Time) (serial.Mean, bool) {
	return meanUse(k.Track.Between(from, to).Ops)
}

func meanUse(use []float64) (serial.Mean, bool) {
	values, missing := FiniteOf(use)
	if len(values) < 5 || missing > MostGaps {
		return serial.Mean{}, false
	}
	m, err := serial.MeanOf(values, Confidence)
	return m, err == nil
}

// Settling is how many points at the beginning of a workload are left out where counters were turned into rates over
// several points.
const Settling = 4
