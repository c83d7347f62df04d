package trace

import (
	"fmt"
	"strings"

	"plimsoll/unit"
)

// Verdict says in words what a stream of I/O is, as a storage controller would sort it.
type Verdict struct {
	Sentence string   `json:"sentence"`
	Sure     string   `json:"sure"` // clear, likely, weak
	Because  []string `json:"because"`
	Parts    []Part   `json:"parts"`
}

// Part is requests of one kind.
type Part struct {
	What     string  `json:"what"` // data file, log, bulk writes, scan, ...
	Words    string  `json:"words"`
	Requests uint64  `json:"requests"`
	Share    float64 `json:"share"`       // of requests
	OfBytes  float64 `json:"bytes_share"` // of bytes
	reads    uint64
	writes   uint64
	bytes    uint64
	sizes    [Ops][]Size
	ordered  bool
}

const (
	leastPart = 0.05 // of requests or of bytes; less is not told in words
	logBytes  = 64 << 10
	// shortStreams is the mean number of requests of a stream below which the verdict takes them for chance: where few
	// places are chosen at random, three in a row come by themselves.
	shortStreams = 5
)

// parts are what is told apart: what is at random, sequential writes, sequential reads.
func parts(r *Result) (list []Part) {
	random := Part{What: "data file"}
	var ordered [Ops]Part
	requests, bytes := uint64(0), uint64(0)
	for _, o := range r.Operations {
		op := opOf(o.Op)
		if op != Read && op != Write {
			continue
		}
		for _, k := range o.Kinds {
			p := &random
			switch {
			case k.Kind != Random.String() && !(o.chance && k.Kind != Strided.String()):
				p = &ordered[op]
				p.sizes[op], p.ordered = o.ordered, true
			case o.chance:
				p.sizes[op] = o.Sizes
			default:
				p.sizes[op] = o.unordered
			}
			p.Requests += k.Requests
			p.bytes += k.Bytes
			if op == Read {
				p.reads += k.Requests
			} else {
				p.writes += k.Requests
			}
			requests += k.Requests
			bytes += k.Bytes
		}
	}
	for _, p := range []Part{random, ordered[Write], ordered[Read]} {
		if p.Requests == 0 {
			continue
		}
		p.Share, p.OfBytes = float64(p.Requests)/float64(requests), float64(p.bytes)/float64(max(bytes, 1))
		if p.Share < leastPart && p.OfBytes < leastPart {
			continue
		}
		p.describe(r)
		list = append(list, p)
	}
	return list
}

func opOf(name string) Op {
	for op := range Ops {
		if op.String() == name {
			return op
		}
	}
	return None
}

func (p *Part) describe(r *Result) {
	if !p.ordered {
		size := sizeWords(append(append([]Size{}, p.sizes[Read]...), p.sizes[Write]...))
		p.Words = fmt.Sprintf("%s random, %s", size, mixWords(p.reads, p.writes))
		return
	}
	op := Write
	if p.reads > 0 {
		op = Read
	}
	size, middle := sizeWords(p.sizes[op]), middleOf(p.sizes[op], 0.5)
	kind, how := mainKind(r, op)
	switch {
	case op == Write && middle <= logBytes && kind == Sequential:
		p.What = "log"
	case op == Write:
		p.What = "bulk writes"
	case middle >= logBytes:
		p.What = "scan"
	default:
		p.What = "small scan"
	}
	p.Words = fmt.Sprintf("%s %s %ss", how, size, op)
}

// mainKind is the commonest kind of order of an operation's requests.
func mainKind(r *Result, op Op) (kind Kind, words string) {
	kind, most := Sequential, uint64(0)
	for _, o := range r.Operations {
		for _, k := range o.Kinds {
			for i := Sequential; i < Kinds; i++ {
				if o.Op == op.String() && k.Kind == i.String() && k.Requests > most {
					kind, most = i, k.Requests
				}
			}
		}
	}
	return kind, [...]string{"", "sequential", "nearly sequential", "backward", "strided"}[kind]
}

func mixWords(reads, writes uint64) string {
	switch share := float64(reads) / float64(reads+writes); {
	case writes == 0:
		return "only reads"
	case reads == 0:
		return "only writes"
	default:
		return fmt.Sprintf("%.0f %% reads", 100*share)
	}
}

// sizeWords is one size where at least four of five requests have it, else the sizes that four of five lie between.
func sizeWords(sizes []Size) string {
	low, high := middleOf(sizes, 0.1), middleOf(sizes, 0.9)
	total, by := uint64(0), map[uint64]uint64{}
	for _, s := range sizes {
		total += s.Requests
		by[s.Bytes] += s.Requests
	}
	for bytes, n := range by {
		if 5*n >= 4*total {
			return unit.Bytes(bytes).String()
		}
	}
	return unit.Bytes(low).String() + " to " + unit.Bytes(high).String()
}

// middleOf is the size that a share of the requests is at most as large as.
func middleOf(sizes []Size, share float64) uint64 {
	by, total := sortedSizes(sizes)
	sum := uint64(0)
	for _, s := range by {
		if sum += s.Requests; float64(sum) >= share*float64(total) {
			return s.Bytes
		}
	}
	return 0
}

func verdict(r *Result) Verdict {
	v := Verdict{Parts: parts(r), Because: []string{}, Sure: "clear"}
	if len(v.Parts) == 0 {
		return Verdict{Sentence: "No reads and no writes.", Sure: "weak", Because: v.Because, Parts: []Part{}}
	}
	var words []string
	requests, told := uint64(0), 0.0
	for i, p := range v.Parts {
		text := p.What + ": " + p.Words
		if len(v.Parts) > 1 {
			text += fmt.Sprintf(" (%.0f %% of requests, %.0f %% of bytes)", 100*p.Share, 100*p.OfBytes)
		}
		if i == 0 {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		words = append(words, text)
		told += p.Share
	}
	for _, o := range r.Operations {
		requests += o.Requests
	}
	v.Sentence = strings.Join(words, "; ") + "."
	lower := func(to, why string) {
		if v.Sure == "clear" || to == "weak" {
			v.Sure = to
		}
		v.Because = append(v.Because, why)
	}
	switch {
	case requests < 200:
		lower("weak", "fewer than 200 requests")
	case requests < 2000:
		lower("likely", "fewer than 2,000 requests")
	}
	if r.Seconds < 1 {
		lower("likely", "less than a second")
	}
	if len(v.Parts) > 1 {
		lower("likely", "several kinds share the device")
	}
	for _, p := range v.Parts {
		if op := Write; p.What == "log" && p.writes > 0 {
			if middle := middleOf(p.sizes[op], 0.5); middle > 32<<10 {
				lower("likely", "writes of "+unit.Bytes(middle).String()+" are large for a log")
			}
		}
	}
	if r.Partial {
		lower("likely", "a part of the trace could not be read")
	}
	if r.Level == "queued" {
		lower("likely", "requests as they were asked for, before any were merged")
	}
	return v
}
