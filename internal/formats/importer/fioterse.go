package importer

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio"
)

const fioTerse = "fio-terse"

var fioTerseRow = lazyregexp.New(`(?m)^[3-5];fio-\d[^;\n]*;[^;\n]*;\d+;\d+;`)

// The columns of one direction of a terse row, from its first: sums, times of submission and of completion, fio's
// percentiles, times of the whole. What comes after is of bandwidth, and in version 5 of IOPS, too.
const (
	terseKiB, terseIOPS, terseTime    = 0, 2, 3
	terseClat, terseRanks, terseTotal = 8, 12, 32
	terseRankCount                    = 20
	terseWidth, terseWidth5           = 41, 47
)

// readFioTerse reads rows of fio's terse form. A row is a job, or several that were reported together; which of them
// ran at the same time no row says, so each stands by itself.
func readFioTerse(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "fio"}
	err := eachLine(r, func(n int, line []byte) error {
		if !fioTerseRow.Match(line) {
			return nil
		}
		cells := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(line), "?")), ";")
		width, sides := terseWidth, 3
		switch cells[0] {
		case "3":
			sides = 2
		case "5":
			width = terseWidth5
		}
		const head, cpu = 5, 2
		if len(cells) < head+width*sides+cpu {
			b.failure = "a row of it ends early: the file is cut short"
			b.skip(n, "%d values, and such a row has %d at least", len(cells), head+width*sides+cpu)
			return nil
		}
		b.tool = oneLine(cells[1])
		e := &fioTextEntry{name: cells[2], group: cells[3], jobs: 1, cpu: math.NaN()}
		e.code, _ = strconv.ParseUint(cells[4], 10, 32)
		for side := range sides {
			e.terseSide(side, cells[head+side*width:][:width])
		}
		after := cells[head+sides*width:]
		e.cpu = decimal(strings.TrimSuffix(after[0], "%"), "") + decimal(strings.TrimSuffix(after[1], "%"), "")
		p := fioTextParser{terse: true}
		s, ok := p.stretch([]*fioTextEntry{e}, false)
		switch {
		case ok && len(b.stretches) < mostStretches:
			b.stretches = append(b.stretches, s)
		case ok:
			b.failure = "it holds more rows than are read: split the file"
		case s.failure != "":
			b.failure = s.failure
		}
		return nil
	})
	return b, err
}

// terseSide takes the values of reads, writes or trims. Operations are not counted in such a row, but for their rate; a
// block size that fits it tells their number.
func (e *fioTextEntry) terseSide(side int, v []string) {
	e.bytes[side] = decimal(v[terseKiB], "") * 1024
	e.ms[side] = decimal(v[terseTime], "")
	n := decimal(v[terseIOPS], "") * e.ms[side] / 1e3
	if n > 0 {
		if block := math.Pow(2, math.Round(math.Log2(e.bytes[side]/n))); math.Abs(e.bytes[side]/block-n) < 0.02*n+1 {
			n = e.bytes[side] / block
		}
	}
	e.issued[side] = math.Round(n)
	times := func(at int) *fioTextTimes {
		t := &fioTextTimes{unit: 1, min: decimal(v[at], ""), max: decimal(v[at+1], ""), avg: decimal(v[at+2], "")}
		if t.max == 0 && t.avg == 0 {
			return nil
		}
		return t
	}
	e.clat[side], e.lat[side] = times(terseClat), times(terseTotal)
	if e.clat[side] == nil {
		return
	}
	for _, rank := range v[terseRanks:][:terseRankCount] {
		if of, value, ok := strings.Cut(rank, "%="); ok && decimal(of, "") > 0 {
			e.clat[side].ranks = append(e.clat[side].ranks, [2]string{of, value})
		}
	}
}

// terseNotes are of what a row does not say.
var terseNotes = []string{"it is fio's terse form: its JSON tells the course, depths and histograms",
	"percentiles are of completion, or of the whole with lat_percentiles: no row says which",
	"operations are counted by their bytes where a block size fits fio's whole IOPS, else by those IOPS",
	"which of its rows ran at the same time no row says: each stands by itself"}

// fioTerseAlone reports whether a file is of terse rows alone: with fio's text beside them that says more.
func fioTerseAlone(head []byte) bool {
	return fioTerseRow.Match(head) && !fioNormal.Match(head) && !bytes.Contains(head, []byte(`"fio version"`))
}

// notesOfForm are the notes of fio's text, or of its terse form.
func (p *fioTextParser) notesOfForm() []string {
	if p.terse {
		return terseNotes
	}
	return []string{"it is fio's text for people: its JSON tells the course, exact bytes and histograms"}
}

// errorOf returns what a job's error is told as, "" for none.
func (e *fioTextEntry) errorOf() string {
	if e.code == 0 {
		return ""
	}
	return "job " + oneLine(e.name) + " ended with error " + fio.ErrorText(e.code)
}
