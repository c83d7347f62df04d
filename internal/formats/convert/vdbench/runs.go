package vdbench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// loop is a parameter of a run definition that takes several values, one run for each.
type loop struct {
	name string // as vdbench prints it
	p    param
}

// choice is one value of every loop, by name.
type choice map[string]word

// stages are the runs of one definition.
func (f *reader) stages(rd *section) (all []load.Stage) {
	var loops []loop
	var rates []param
	for _, p := range rd.params {
		name, isLoop := loopName(p.key)
		switch {
		case p.key == "iorate" || p.key == "fwdrate" || name == "iorate":
			rates = []param{p}
		case isLoop:
			loops = slices.DeleteFunc(loops, func(l loop) bool { return l.name == name })
			loops = append(loops, loop{name, p})
		}
	}
	if len(rates) == 0 {
		f.Object(rd.at, "rd=%s: no iorate= (or fwdrate=) says how fast", rd.name)
		rates = []param{{words: []word{{text: "max"}}}} // the rest is looked at all the same
	}
	if f.varies(rd) {
		rates = []param{{words: []word{{text: "max"}}}}
	}
	if len(rates[0].words) > 1 { // after all others, as vdbench does it
		loops = append(loops, loop{"iorate", rates[0]})
	}
	runs := 1
	for _, l := range loops {
		if runs *= len(l.p.words); runs > maxStages {
			f.Refuse(l.p.ask(), "more than %d runs come of rd=%s", maxStages, rd.name)
			return nil
		}
	}
	for i := range runs {
		c, text, at := choice{}, "", i
		for j := len(loops) - 1; j >= 0; j-- {
			l := loops[j]
			w := l.p.words[at%len(l.p.words)]
			at /= len(l.p.words)
			c[l.name] = w
			text = l.name + "=" + shown(l.name, w) + " " + text
		}
		for _, sds := range f.single(rd) {
			name := strings.TrimSpace(rd.name + sds.suffix + " " + text)
			all = append(all, f.atRates(rd, sds.of, c, rates[0], name)...)
		}
	}
	if p, ok := rd.get("distribution"); ok {
		f.distribution(p, all)
	}
	return all
}

// shown is a value of a loop as vdbench prints it.
func shown(name string, w word) string {
	switch {
	case w.is && w.number < 0:
		return load.Number(-w.number) + "%"
	case w.is && name != "iorate" && w.number == math.Trunc(w.number) && w.number < 1<<62:
		return load.Size(int64(w.number))
	case w.is:
		return load.Number(w.number)
	}
	return w.text
}

// loopName is the name of a loop: those that begin with "for" and those that do not are the same.
func loopName(key string) (string, bool) {
	name := strings.TrimPrefix(key, "for")
	switch name {
	case "workingsetsize":
		name = "wss"
	case "fwdrate":
		name = "iorate"
	}
	return name, slices.Contains(loopNames, name)
}

var loopNames = strings.Fields("xfersize threads rdpct rhpct whpct seekpct hitarea compratio compression depth width " +
	"files sizes totalsize wss operations iorate")

// chosen are the SDs of one run; nil are those of the workloads.
type chosen struct {
	suffix string
	of     []*section
}

// single returns what sd= of a run definition asks for: its SDs, one after the other when it is "single".
func (f *reader) single(rd *section) []chosen {
	p, ok := rd.get("sd")
	if !ok {
		return []chosen{{}}
	}
	if p.words[0].text != "single" {
		return []chosen{{of: f.matching("sd", p)}}
	}
	var all []chosen
	for _, sd := range f.sections["sd"] {
		all = append(all, chosen{"_" + sd.name, []*section{sd}})
	}
	return all
}

// varies refuses a rate that changes within a run.
func (f *reader) varies(rd *section) bool {
	p, ok := rd.get("distribution")
	if !ok {
		return false
	}
	for _, w := range p.words {
		if w.text != "" && (strings.HasPrefix("variable", w.text) || strings.HasPrefix("spike", w.text)) {
			f.Refuse(
				p.ask(),
				"a rate that changes within a run is not known to fio; write one run definition for each rate",
			)
			return true
		}
	}
	return false
}

// distribution says how far apart operations are, of runs with a rate.
func (f *reader) distribution(p param, stages []load.Stage) {
	kind := p.words[0].text
	for i := range stages {
		for j := range stages[i].Streams {
			s := &stages[i].Streams[j]
			s.Asks["Even"] = p.ask()
			switch {
			case strings.HasPrefix("exponential", kind):
			case strings.HasPrefix("deterministic", kind):
				s.Even = true
			case strings.HasPrefix("uniform", kind):
				s.Even = true
				if s.Rate > 0 {
					f.Note(
						p.ask(),
						"evenly spaced operations",
						"moments between operations do not vary between none and twice "+
							"their mean",
					)
				}
			default:
				f.Refuse(p.ask(), "it is exponential, uniform or deterministic")
				return
			}
		}
	}
}

// rate is how fast a run goes.
type rate struct {
	value float64 // operations a second; 0: as many as can be
	label string  // to tell points of a curve apart
}

// atRates makes a run at its rate, or at all points of its curve.
func (f *reader) atRates(rd *section, sds []*section, c choice, p param, name string) (all []load.Stage) {
	w := p.words[0]
	if chosen, ok := c["iorate"]; ok {
		w = chosen
	}
	rates := []rate{{}}
	switch {
	case strings.EqualFold(w.text, "max"):
	case w.text == "curve":
		rates = f.curve(rd, p)
	case !w.is || w.number == 0:
		f.Refuse(p.ask(), "it is a number of operations a second, max or curve")
	case w.number < 0 && f.request.Max < 0: // after the largest rate is known
		rates = nil
	case w.number < 0:
		if f.request.Max == 0 {
			f.Refuse(
				p.ask(),
				"it is a share of the largest rate, which must be measured first: say it with --curve-max",
			)
			break
		}
		rates = []rate{{value: rounded(f.request.Max, -w.number)}}
	default:
		rates = []rate{{value: w.number}}
	}
	for _, r := range rates {
		if st, ok := f.stage(rd, sds, c, r.value, p.ask(), strings.TrimSpace(name+r.label)); ok {
			all = append(all, st)
		}
	}
	return all
}

// curve are the rates of a performance curve: the largest that there is, then shares of it.
func (f *reader) curve(rd *section, p param) []rate {
	if f.request.Max < 0 {
		return []rate{{}}
	}
	curves := 0
	for _, other := range f.sections["rd"] {
		if o, ok := other.get("iorate", "fwdrate"); ok && o.words[0].text == "curve" {
			curves++
		}
	}
	if f.request.Max == 0 {
		advice := "run it with iorate=max, then give the rate that it reached with --curve-max"
		if curves > 1 {
			advice = fmt.Sprintf("the file has %d curves with a largest rate each: leave one run definition in it, and give the "+
				"others as files of their own", curves)
		}
		f.Refuse(p.ask(), "its points are shares of the largest rate, which must be measured first: %s", advice)
		return []rate{{}}
	}
	if curves > 1 {
		f.Note(p.ask(), "the same largest rate for each of its curves", "vdbench measures that of each")
	}
	f.Note(
		p.ask(),
		fmt.Sprintf("shares of %s operations a second", load.Number(f.request.Max)),
		"the largest rate is the one given, not the one that the first run reaches, and the share of each workload is the "+
			"same, not as that run had it",
	)
	points := []float64{10, 50, 70, 80, 90, 100}
	if c, ok := rd.get("curve"); ok {
		if points, ok = f.numbers(c); !ok {
			return []rate{{}}
		}
	}
	rates := []rate{{}}
	for _, share := range points {
		if v := rounded(f.request.Max, share); v >= 10 {
			rates = append(rates, rate{v, fmt.Sprintf(" iorate=%s%%", load.Number(share))})
		}
	}
	return rates
}

// rounded is a share of a rate, as vdbench rounds it: upwards to tens, above 1000 to hundreds.
func rounded(most, percent float64) float64 {
	v := math.Floor(most * percent / 100)
	if v > 1000 {
		return math.Ceil(v/100) * 100
	}
	return math.Ceil(v/10) * 10
}

// stage is one run at one rate.
func (f *reader) stage(rd *section, sds []*section, c choice, rate float64, rateAsk load.Ask, name string) (load.Stage,
	bool) {
	elapsed, elapsedAsk := f.number(rd, 30, 1, 1e8, "elapsed")
	warmup, _ := f.number(rd, 0, 0, 1e8, "warmup")
	pause, _ := f.number(rd, 0, 0, 1e8, "pause")
	st := load.Stage{Name: name, Runtime: int64(elapsed), Warmup: int64(warmup), Pause: int64(pause), At: rd.at}
	if warmup == 0 {
		f.Note(elapsedAsk, "all of the time counts", "vdbench leaves the first interval of a run out of its totals")
	}
	if p, ok := rd.get("maxdata", "maxdataread", "maxdatawritten", "maxdata_read", "maxdata_written"); ok {
		f.Refuse(p.ask(), "the amount of all streams together ends no fio job; say elapsed=")
	}
	if p, ok := rd.get("fwd"); ok {
		st.Streams = f.files(rd, f.matching("fwd", p), c, rate, rateAsk)
		return st, len(st.Streams) > 0
	}
	var wds []*section
	if p, ok := rd.get("wd"); ok {
		wds = f.matching("wd", p)
	} else {
		d := f.defaults["wd"]
		if d == nil {
			d = &section{kind: "wd"}
		}
		wds = []*section{{kind: "wd", name: rd.name, at: rd.at, params: d.params}}
	}
	shares, ok := f.skews(wds, rd)
	if !ok {
		return st, false
	}
	used := map[string]int{} // workloads on each SD
	on := make([][]*section, len(wds))
	for i, wd := range wds {
		if on[i] = sds; sds == nil {
			p, ok := wd.get("sd")
			if !ok {
				f.Object(wd.at, "wd=%s: no sd= says where it works", wd.name)
				return st, false
			}
			on[i] = f.matching("sd", p)
		}
		for _, sd := range on[i] {
			used[sd.name]++
		}
	}
	served := map[string]int{} // workloads on each SD that have their threads
	anySkew := slices.ContainsFunc(wds, func(wd *section) bool { _, ok := wd.get("skew"); return ok })
	for i, wd := range wds {
		for _, sd := range on[i] {
			s, ok := f.stream(rd, wd, sd, c)
			if !ok {
				continue
			}
			if s.Name = wd.name; len(on[i]) > 1 || len(wds) == 1 && sds != nil && len(sds) > 1 {
				s.Name = wd.name + "." + sd.name
			}
			if n := used[sd.name]; n > 1 {
				ask := s.Asked("Depth", fmt.Sprintf("threads=%d (the default)", s.Depth))
				all, at := s.Depth, served[sd.name]
				served[sd.name]++
				s.Depth = max((at+1)*all/n-at*all/n, 1) // what does not divide goes to some of them
				each := strconv.Itoa(max(all/n, 1))
				if all > n && all%n != 0 {
					each += " or " + strconv.Itoa(all/n+1)
				}
				differs := "vdbench's threads serve whichever workload has work"
				if all < n {
					differs += fmt.Sprintf("; together they are %d, not %d", n, all)
				}
				f.Note(ask, fmt.Sprintf("%s operations in flight for each of the %d workloads on sd=%s", each, n, sd.name),
					"%s", differs)
			}
			s.Asks["Rate"] = rateAsk
			own, ownAsk := f.number(wd, 0, 0, 1e8, "iorate")
			switch {
			case own > 0:
				s.Rate, s.Asks["Rate"] = own/float64(len(on[i])), ownAsk
			case rate > 0:
				s.Rate = rate * shares[i] / 100 / float64(len(on[i]))
			case anySkew:
				p, ok := wd.get("skew")
				if ok {
					s.Asks["Weight"] = p.ask()
				} else {
					s.Asks["Weight"] = load.Ask{Text: "skew= of the others", At: wd.at}
				}
				s.Weight = shares[i] / float64(len(on[i]))
			}
			st.Streams = append(st.Streams, s)
		}
	}
	return st, len(st.Streams) > 0
}

// skews divides the rate between workloads: what has no skew shares what is left.
func (f *reader) skews(wds []*section, rd *section) ([]float64, bool) {
	shares := make([]float64, len(wds))
	left, without := 100.0, 0
	for i, wd := range wds {
		if _, ok := wd.get("iorate"); ok {
			if p, ok := wd.get("skew"); ok {
				f.Refuse(p.ask(), "a workload has a skew or an iorate, not both")
			}
			continue
		}
		shares[i], _ = f.number(wd, 0, 0, 100, "skew")
		if left -= shares[i]; shares[i] == 0 {
			without++
		}
	}
	for i, wd := range wds {
		if _, ok := wd.get("iorate"); !ok && shares[i] == 0 {
			shares[i] = left / float64(without)
		}
	}
	if left < -0.001 || without == 0 && left > 0.001 && left < 100 || without > 0 && left < 0.001 {
		f.Object(rd.at, "rd=%s: the skew of its workloads comes to %s %%, not 100", rd.name, load.Number(100-left))
		return nil, false
	}
	return shares, true
}
