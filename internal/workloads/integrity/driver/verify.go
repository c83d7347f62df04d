package integrity

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"plimsoll/internal/storage/content"
	"plimsoll/internal/storage/direct"
)

// Kind tells what has become of a range.
type Kind string

// The kinds of damage, the most telling first.
const (
	Misdirected Kind = "misdirected" // whole blocks of this run that belong elsewhere
	Stale       Kind = "stale"       // an older generation, though a later one was acknowledged: the later is lost
	Torn        Kind = "torn"        // a block in which an acknowledged generation is mixed with older ones
	Zeroed      Kind = "zeroed"      // zeros, though acknowledged: never written, or overwritten since
	Foreign     Kind = "foreign"     // sound, but of another run
	Corrupt     Kind = "corrupt"     // no sound stamp, or not the pattern
	Ahead       Kind = "ahead"       // a later generation than was ever begun: the manifest is an older copy
	Missing     Kind = "missing"     // behind the end of the file
	Unreadable  Kind = "unreadable"  // the storage gave an error in place of data
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{Misdirected, Stale, Torn, Zeroed, Foreign, Corrupt, Ahead, Missing, Unreadable}
}

// Damage is a range that is not what was acknowledged. Neighbours that are alike are one.
type Damage struct {
	Kind Kind  `json:"kind"`
	From int64 `json:"from"` // address of its first byte
	To   int64 `json:"to"`   // and of the first byte behind it
	// Expected is the generation that was acknowledged, Found the one that is there; 0 where that says nothing.
	Expected int `json:"expected_generation,omitempty"`
	Found    int `json:"found_generation,omitempty"`
	// BelongsAt is the address that the first of it belongs at, when it is misdirected or foreign.
	BelongsAt *int64 `json:"belongs_at,omitempty"`
	Run       string `json:"found_run,omitempty"` // when foreign
	Error     string `json:"error,omitempty"`     // when unreadable
}

// About returns what is known of the damage beside its kind and place, in words.
func (e Damage) About() string {
	switch e.Kind {
	case Misdirected:
		if e.BelongsAt == nil { // of a report that somebody else wrote
			return ""
		}
		return fmt.Sprintf("belongs at byte %d, generation %d", *e.BelongsAt, e.Found)
	case Stale, Torn, Ahead:
		return fmt.Sprintf("generation %d, %d was acknowledged", e.Found, e.Expected)
	case Foreign:
		return "of run " + e.Run
	case Unreadable:
		return e.Error
	}
	return ""
}

// String names the damage by its addresses.
func (e Damage) String() string {
	s := fmt.Sprintf("%s: byte %d to %d", e.Kind, e.From, e.To)
	if about := e.About(); about != "" {
		s += ": " + about
	}
	return s
}

// Report holds what a verification found.
type Report struct {
	Run          string       `json:"run"`
	Bytes        int64        `json:"bytes"`
	Acknowledged Acknowledged `json:"acknowledged"`
	Blocks       int64        `json:"blocks"`
	Intact       int64        `json:"intact_blocks"` // as acknowledged, or as far as was under way
	// Unclaimed are blocks of which no generation was ever acknowledged, so that they may hold anything.
	Unclaimed int64 `json:"unclaimed_blocks"`
	// UnderWay, of the intact, mix the generation acknowledged with the next, which was being written when the write
	// ended. Storage may do that.
	UnderWay int64          `json:"under_way_blocks"`
	Damaged  map[Kind]int64 `json:"damaged_bytes"`
	// Lost are the blocks that were acknowledged and of which a part at least is damaged, and DamagedBlocks those with
	// damage of a kind, acknowledged or not: a block may have several kinds.
	Lost          int64          `json:"lost_blocks"`
	DamagedBlocks map[Kind]int64 `json:"damaged_blocks"`
	Damages       []Damage       `json:"damages"`
	// Unlisted is the number of ranges beyond those that are listed.
	Unlisted int64 `json:"unlisted_damages"`
}

// mostListed bounds the list of damages.
const mostListed = 100_000

// Verify reads size bytes of what was written by a manifest's write and says what of it is not as acknowledged. Errors
// of reading are damage of their addresses, and the rest is read. It keeps a chunk per worker, and the list of damages.
func Verify(ctx context.Context, r io.ReaderAt, size int64, m *Manifest, a Acknowledged, o Options) (*Report, error) {
	o.fillIn()
	v := &verifier{r: r, m: m, a: a, behind: o.Behind, size: min(size, m.Bytes), order: m.order(a.Pass),
		report: Report{Run: m.Run, Bytes: m.Bytes, Acknowledged: a, Blocks: m.blocks(), Damaged: map[Kind]int64{},
			DamagedBlocks: map[Kind]int64{},
			Damages:       []Damage{}}}
	if m.Pattern != "" {
		g, err := content.New(content.Options{CompressibilityPercent: 100, Pattern: m.pattern})
		if err != nil {
			return nil, err
		}
		v.pattern = g
	}
	buffers := make([][]byte, o.Workers)
	for i := range buffers {
		buffers[i] = direct.Buffer(chunk)
	}
	err := direct.Each(ctx, o.Workers, (m.Bytes+chunk-1)/chunk, func(worker int, i int64) error {
		found := v.chunk(buffers[worker], i*chunk)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.add(found)
		v.done = min(v.done+chunk, m.Bytes)
		o.Progress(v.done, m.Bytes)
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.tidy()
	return &v.report, nil
}

type verifier struct {
	r       io.ReaderAt
	m       *Manifest
	a       Acknowledged
	behind  bool
	size    int64 // of what is there
	order   order // of the pass that was last acknowledged
	pattern *content.Generator

	mu     sync.Mutex
	done   int64
	report Report
}

// found holds what one chunk adds to the report.
type found struct {
	intact, unclaimed, underWay, lost int64
	blocks                            map[Kind]int64 // with damage
	damages                           []Damage
}

// count counts a block that has damage of these kinds.
func (f *found) count(claimed bool, kinds ...Kind) {
	if claimed {
		f.lost++
	}
	if f.blocks == nil {
		f.blocks = map[Kind]int64{}
	}
	for i, k := range kinds {
		if !slices.Contains(kinds[:i], k) {
			f.blocks[k]++
		}
	}
}

func (f *found) damage(d Damage) {
	if n := len(f.damages); n > 0 && f.damages[n-1].joins(d) {
		f.damages[n-1].To = d.To
		return
	}
	f.damages = append(f.damages, d)
}

// joins reports whether d goes on where e ends, and is the same.
func (e Damage) joins(d Damage) bool {
	strays := (e.BelongsAt == nil) == (d.BelongsAt == nil) &&
		(e.BelongsAt == nil || *e.BelongsAt-e.From == *d.BelongsAt-d.From)
	return e.To == d.From && e.Kind == d.Kind && e.Expected == d.Expected && e.Found == d.Found && e.Run == d.Run &&
		e.Error == d.Error && strays
}

// chunk reads and judges the blocks from an address on.
func (v *verifier) chunk(buf []byte, from int64) (f found) {
	end := min(from+chunk, v.m.Bytes)
	n, err := v.read(buf[:end-from], from)
	if err == nil {
		v.judgeAll(&f, buf[:n], from, end)
		return f
	}
	// Once more in small parts, to tell which of them it is.
	for step := max(int64(v.m.BlockBytes), direct.Align); from < end; from += step {
		to := min(from+step, end)
		if n, err = v.read(buf[:to-from], from); err != nil {
			f.damage(Damage{Kind: Unreadable, From: from, To: to, Error: cause(err)})
			for at := from; at < to; at += int64(v.m.BlockBytes) {
				least, _ := v.claims(at / int64(v.m.BlockBytes))
				f.count(least > 0, Unreadable)
			}
			continue
		}
		v.judgeAll(&f, buf[:n], from, to)
	}
	return f
}

// judgeAll judges the blocks of a range, of which b is what there is.
func (v *verifier) judgeAll(f *found, b []byte, from, to int64) {
	size := v.m.BlockBytes
	for ; from < to; from += int64(size) {
		n := min(size, len(b))
		v.judge(f, b[:n], from)
		b = b[n:]
	}
}

// cause is an error without the address and name that are said beside it.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// read fills b, or as much of it as there is.
func (v *verifier) read(b []byte, at int64) (int, error) {
	want := max(0, min(int64(len(b)), v.size-at))
	if want == 0 {
		return 0, nil
	}
	// Direct I/O wants whole sectors, also of the largest kind, and behind the end nothing comes.
	n, err := v.r.ReadAt(b[:min(cap(b), (len(b)+direct.Align-1)/direct.Align*direct.Align)], at)
	if int64(n) >= want {
		return int(want), nil
	}
	return n, cmp.Or(err, io.ErrUnexpectedEOF)
}

// claims are the generations that a block may be of: at least what was acknowledged, at most what was begun.
func (v *verifier) claims(block int64) (least, most int) {
	switch {
	case v.behind && v.order.turn(block) >= v.a.Blocks:
		return v.a.Pass - 1, v.m.Passes
	case v.behind:
		return v.a.Pass, v.m.Passes
	case v.order.turn(block) >= v.a.Blocks:
		return v.a.Pass - 1, v.a.Pass
	case v.a.Blocks == v.m.blocks(): // the next pass may have begun
		return v.a.Pass, min(v.a.Pass+1, v.m.Passes)
	}
	return v.a.Pass, v.a.Pass
}

// judge says what has become of the block that belongs at an address; b is shorter than a block where the file ends.
func (v *verifier) judge(f *found, b []byte, at int64) {
	size := int64(v.m.BlockBytes)
	least, most := v.claims(at / size)
	var of found
	lowest, highest := 0, 0 // generations among the sound sectors that belong here
	for from := 0; from+Sector <= len(b); from += Sector {
		place := at + int64(from)
		d, generation := v.sector(b[from:from+Sector], place, least, most)
		if generation > 0 {
			if lowest == 0 || generation < lowest {
				lowest = generation
			}
			highest = max(highest, generation)
		}
		if d.Kind != "" {
			d.From, d.To = place, place+Sector
			of.damage(d)
		}
	}
	if there := int64(len(b) / Sector * Sector); there < size && least > 0 {
		of.damage(Damage{Kind: Missing, From: at + there, To: at + size, Expected: least})
	}
	var kinds []Kind
	for _, d := range of.damages {
		if d.Kind == Stale && lowest != highest {
			d.Kind = Torn
		}
		kinds = append(kinds, d.Kind)
		f.damage(d)
	}
	if len(kinds) > 0 {
		f.count(least > 0, kinds...)
	}
	switch {
	case len(of.damages) > 0:
	case least == 0 && lowest == 0:
		f.unclaimed++
	case lowest != highest:
		f.underWay++
		f.intact++
	default:
		f.intact++
	}
}

var zeros [Sector]byte

// sector says what is wrong with a sector, if anything, and of which generation it is when it belongs where it is.
func (v *verifier) sector(b []byte, place int64, least, most int) (d Damage, generation int) {
	if v.pattern != nil {
		var want [Sector]byte
		if v.pattern.Fill(want[:], place); bytes.Equal(b, want[:]) {
			return Damage{}, 1
		}
	}
	s, stamped := stampOf(b)
	switch {
	case stamped && v.pattern == nil && s.run == v.m.run && s.address == place:
		generation = int(s.generation)
		switch {
		case generation < least:
			return Damage{Kind: Stale, Expected: least, Found: generation}, generation
		case generation > most:
			return Damage{Kind: Ahead, Expected: least, Found: generation}, generation
		}
		return Damage{}, generation
	case stamped && v.pattern == nil && s.run == v.m.run: // wherever it is, it should not be there
		return Damage{Kind: Misdirected, Expected: least, Found: int(s.generation), BelongsAt: &s.address}, 0
	case least == 0:
		return Damage{}, 0
	case bytes.Equal(b, zeros[:]):
		return Damage{Kind: Zeroed, Expected: least}, 0
	case stamped:
		return Damage{Kind: Foreign, Expected: least, Found: int(s.generation), BelongsAt: &s.address,
			Run: fmt.Sprintf("%016x", s.run)}, 0
	}
	return Damage{Kind: Corrupt, Expected: least}, 0
}

// add takes over what a chunk adds.
func (v *verifier) add(f found) {
	r := &v.report
	r.Intact, r.Unclaimed, r.UnderWay = r.Intact+f.intact, r.Unclaimed+f.unclaimed, r.UnderWay+f.underWay
	r.Lost += f.lost
	for k, n := range f.blocks {
		r.DamagedBlocks[k] += n
	}
	for _, d := range f.damages {
		r.Damaged[d.Kind] += d.To - d.From
	}
	r.Damages = append(r.Damages, f.damages...)
	if len(r.Damages) > 2*mostListed {
		v.tidy()
	}
}

// tidy puts damages in the order of their addresses, together where they are one, and bounds their number.
func (v *verifier) tidy() {
	r := &v.report
	slices.SortFunc(r.Damages, func(a, b Damage) int { return cmp.Compare(a.From, b.From) })
	var all found
	for _, d := range r.Damages {
		all.damage(d)
	}
	r.Damages = all.damages
	if n := len(r.Damages) - mostListed; n > 0 {
		r.Damages, r.Unlisted = r.Damages[:mostListed], r.Unlisted+int64(n)
	}
	if r.Damages == nil {
		r.Damages = []Damage{}
	}
}
