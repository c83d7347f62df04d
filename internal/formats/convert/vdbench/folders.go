package vdbench

import (
	"math"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// files are what workloads do on folders of files.
func (f *reader) files(rd *section, fwds []*section, c choice, rate float64, rateAsk load.Ask) (all []load.Stream) {
	shares, ok := f.skews(fwds, rd)
	if !ok {
		return nil
	}
	for i, fwd := range fwds {
		p, ok := fwd.get("fsd")
		if q, over := rd.get("fsd"); over {
			p, ok = q, true
		}
		if !ok {
			f.Object(fwd.at, "fwd=%s: no fsd= says where it works", fwd.name)
			return nil
		}
		fsds := f.matching("fsd", p)
		for _, fsd := range fsds {
			s, ok := f.folder(rd, fwd, fsd, c)
			if !ok {
				continue
			}
			if s.Name = fwd.name; len(fsds) > 1 {
				s.Name = fwd.name + "." + fsd.name
			}
			s.Asks["Rate"] = rateAsk
			s.Rate = rate * shares[i] / 100 / float64(len(fsds))
			all = append(all, s)
		}
	}
	return all
}

// folder returns what one workload does on one FSD.
func (f *reader) folder(rd, fwd, fsd *section, c choice) (load.Stream, bool) {
	before := f.Err()
	fwd = merged(fwd, rd, c, map[string]string{"xfersize": "xfersizes", "rdpct": "rdpct", "threads": "threads",
		"operations": "operations"})
	fsd = merged(fsd, rd, c, map[string]string{"depth": "depth", "width": "width", "files": "files", "sizes": "sizes",
		"totalsize": "totalsize", "wss": "wss"})
	s := load.Stream{Depth: 1, Reads: 100, At: fwd.at, Asks: map[string]load.Ask{}, Data: load.Data{Kind: load.Unique}}
	if p, ok := rd.get("operations"); ok {
		fwd.params = append(fwd.params, p)
	}
	if p, ok := fwd.get("operations"); ok {
		switch op := p.words[0].text; {
		case len(p.words) == 1 && op == "read":
		case len(p.words) == 1 && op == "write":
			s.Reads = 0
		default:
			f.Refuse(p.ask(), "only read and write are I/O on files as fio does it")
		}
		s.Asks["Reads"] = p.ask()
	}
	f.mix(&s, fwd)
	threads, ask := f.number(fwd, 1, 1, 4096, "threads")
	s.Threads, s.Asks["Depth"] = int(threads), ask
	s.Sizes, s.Asks["Sizes"] = f.sizes(&s, fwd, "xfersizes")
	if p, ok := fwd.get("fileio"); ok {
		switch io := p.words[0].text; {
		case len(p.words) == 1 && io != "" && strings.HasPrefix("sequential", io):
		case len(p.words) == 1 && io != "" && strings.HasPrefix("random", io):
			s.Random = 100
		default:
			f.Refuse(p.ask(), "it is sequential or random; other ways cannot be had")
		}
		s.Asks["Random"] = p.ask()
	}
	files := &load.Files{Order: "random"}
	if p, ok := fwd.get("fileselect"); ok {
		switch pick := p.words[0].text; {
		case len(p.words) == 1 && pick != "" && strings.HasPrefix("sequential", pick):
			files.Order = "sequential"
		case len(p.words) == 1 && pick != "" && strings.HasPrefix("random", pick):
		default:
			f.Refuse(p.ask(), "it is sequential or random; other ways cannot be had")
		}
	}
	f.open(&s, fsd, fwd, rd)
	anchor, ok := fsd.get("anchor")
	if !ok {
		f.Object(fsd.at, "fsd=%s: no anchor= says which folder", fsd.name)
		return s, false
	}
	width, _ := f.number(fsd, 1, 1, 1e6, "width")
	depth, _ := f.number(fsd, 1, 1, 100, "depth")
	count, ask := f.number(fsd, 10, 1, 1e7, "files")
	folders := math.Pow(width, depth)
	if p, ok := fsd.get("distribution"); ok && p.words[0].text == "all" {
		folders = 0
		for d := range int(depth) {
			folders += math.Pow(width, float64(d+1))
		}
	}
	s.Asks["Count"] = ask
	if count *= folders; count > 1e7 {
		f.Refuse(ask, "%s files are more than 10 million", load.Number(count))
		return s, false
	}
	files.Count = int64(count)
	if folders > 1 {
		f.Note(ask, load.Number(count)+" files in one folder", "vdbench spreads them over a tree of folders")
	}
	files.Sizes = []load.Share{{Bytes: 4096, Percent: 100}}
	if p, ok := fsd.get("sizes"); ok {
		if n, ok := f.numbers(p); ok {
			switch {
			case len(n) == 1 && n[0] >= 1 && n[0] < 1<<62:
				files.Sizes[0].Bytes = int64(n[0])
			case len(n)%2 == 0:
				files.Sizes = f.shares(p.ask(), n)
			default:
				f.Refuse(p.ask(), "it takes one size, or sizes each with its percentage")
			}
		}
		s.Asks["Files"] = p.ask()
	}
	for _, name := range []string{"totalsize", "total_size", "wss", "workingsetsize"} {
		if p, ok := fsd.get(name); ok {
			f.Refuse(p.ask(), "the files used are all that there are; say files= and sizes=")
		}
	}
	f.data(&s, fsd, rd, c)
	s.Targets = []load.Target{{Name: anchor.words[0].text, Alias: fsd.name, Files: files}}
	return s, before == nil && f.Err() == nil
}
