// Package load describes what a parameter file of a load generator asks for, in words of none of them: stages one after
// the other, in each of which streams of operations run together. It sits between the rooms of convert, of which each
// reads and writes the files of one tool. It reads and writes nothing itself, and refuses nothing: what a tool cannot
// say is the business of the room that writes for it.
package load

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/unit"
)

// Load is a whole file.
type Load struct {
	Stages []Stage
	Notes  []Note // what reading has already made something else of
}

// Stage holds what runs at one time. The next begins when it is over.
type Stage struct {
	Name    string
	Warmup  int64 // seconds before anything counts
	Runtime int64 // seconds that count; 0: until every stream has gone through its part of its target once
	Pause   int64 // seconds of rest after it
	Streams []Stream
	At      Place
}

// Stream is a stream of operations of one kind on one target, or on several in turn.
type Stream struct {
	Name    string
	Targets []Target
	Threads int // each of them has a position of its own, and Depth operations in flight
	Depth   int
	Spread  int64 // bytes between the first positions of one thread and the next

	Reads  float64 // percentage of operations that read; the others write
	Random float64 // percentage of operations that begin at a random place; the others follow the one before
	Sizes  []Share // of operations; one, or several that add up to 100 %
	Align  int64   // bytes of which every place is a multiple; 0: the operation's size
	Once   bool    // a random place is not used again before all were
	Skip   int64   // bytes left out between one operation and the next that follows it

	From Extent // where in the target it begins
	Span Extent // how much of the target it uses; none: what is left

	Skew   string  // random places by fio's zipf:, pareto:, normal:; "": all alike
	Zones  []Zone  // random places by zones, for reads and writes alike
	Rate   float64 // operations a second of all threads together; 0: as many as can be
	Bytes  int64   // bytes a second of all threads together; 0: as many as can be
	Weight float64 // share of all streams' operations where there is no rate; 0: none asked
	Even   bool    // operations of a rate are equally far apart; else at random moments
	Burst  int64   // operations before each pause; 0: no pauses
	Think  int64   // microseconds of each pause

	Direct bool
	Sync   string // "", "dsync" or "sync": each write is on the medium before it counts
	Mapped bool   // through memory mapped from the file
	Data   Data
	Seed   int64 // of random places; 0: the tool's own
	CPUs   []int // the processors it may use; none: any

	At   Place
	Asks map[string]Ask // how the author put it, by the name of a field here
}

// Target is a file or a device.
type Target struct {
	Name  string
	Alias string // what the tool calls it beside its name, as vdbench's sd1; "" when it does not
	Bytes int64  // 0: what there is
	Files *Files // the target is a folder of files rather than one
}

// Files are the files of a folder, all of which a stream uses.
type Files struct {
	Count int64   // 1 or more
	Sizes []Share // of files
	Order string  // in which they are used: "sequential" or "random"
}

// Bytes is about how much all files are.
func (f *Files) Bytes() int64 {
	var mean float64
	for _, s := range f.Sizes {
		mean += float64(s.Bytes) * s.Percent / 100
	}
	return int64(math.Min(mean*float64(f.Count), 1<<62))
}

// Raw reports whether the target is a device rather than a file.
func (t Target) Raw() bool {
	return strings.HasPrefix(t.Name, "/dev/") || strings.HasPrefix(t.Name, `\\`)
}

// Extent is a place or a length in a target: bytes, or a percentage of the target.
type Extent struct {
	Bytes   int64
	Percent float64
}

// Zero reports whether nothing is asked.
func (e Extent) Zero() bool { return e == Extent{} }

// Share is a size of operations and the percentage of operations that have it.
type Share struct {
	Bytes   int64
	Percent float64
}

// Zone is a part of the target, next to the one before, and the percentage of operations that go there.
type Zone struct {
	Percent float64
	Span    Extent
}

// Data holds what is written.
type Data struct {
	Kind       Kind
	Pattern    string  // hexadecimal bytes, of Repeated
	Compressed float64 // percentage by which it can be made smaller
	Duplicate  float64 // percentage of blocks that are there already
	Unit       int64   // bytes of a block that can be a duplicate; 0: the operation's size
}

// Kind is a kind of data.
type Kind string

// Kinds of data.
const (
	Unique   Kind = "unique"   // made anew for every write
	Reused   Kind = "reused"   // random data made once, of which each write is a slightly changed copy
	Zeros    Kind = "zeros"    // storage may store nothing of it
	Repeated Kind = "repeated" // a pattern again and again
)

// Place is where in a file something stands, counted from 1; columns in bytes.
type Place struct {
	File      string
	Line, Col int
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Ask is how an author asked for something.
type Ask struct {
	Text string
	At   Place
}

// Asked returns how the author asked for a field, or what stands for it where nobody wrote it.
func (s *Stream) Asked(field, missing string) Ask {
	if a, ok := s.Asks[field]; ok {
		return a
	}
	return Ask{missing, s.At}
}

// Note is one approximation: something is not what was asked for, and how it differs.
type Note struct {
	At      Place
	Asked   string
	Instead string // what there is in its place; "" for nothing
	Differs string
}

func (n Note) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", n.At, n.Asked, cmp.Or(n.Instead, "left out"), n.Differs)
}

// Objection is something that cannot be read, or cannot be said.
type Objection struct {
	At    Place
	What  string
	cause string // What, or of an option what is the same whatever its value
}

func (o *Objection) Error() string { return o.At.String() + ": " + o.What }

// Teller collects what there is to say about a file, each thing once.
type Teller struct {
	Notes      []Note
	objections []*Objection
}

// Note tells of an approximation.
func (t *Teller) Note(a Ask, instead, format string, args ...any) {
	n := Note{At: a.At, Asked: a.Text, Instead: instead, Differs: fmt.Sprintf(format, args...)}
	if !slices.Contains(t.Notes, n) {
		t.Notes = append(t.Notes, n)
	}
}

// Object tells why a file cannot be taken.
func (t *Teller) Object(at Place, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	t.object(&Objection{at, what, what})
}

func (t *Teller) object(o *Objection) {
	if !slices.ContainsFunc(t.objections, func(p *Objection) bool { return *p == *o }) {
		t.objections = append(t.objections, o)
	}
}

// Refuse objects to what an author asked for.
func (t *Teller) Refuse(a Ask, format string, args ...any) {
	key, _, _ := strings.Cut(a.Text, "=")
	why := fmt.Sprintf(format, args...)
	t.object(&Objection{a.At, a.Text + ": " + why, key + ": " + why})
}

// Err is all objections, in the order of their places, those of one cause as one; nil when there are none.
func (t *Teller) Err() error {
	slices.SortStableFunc(t.objections, func(a, b *Objection) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Col, b.At.Col))
	})
	var errs []error
	for i, o := range t.objections {
		same := func(p *Objection) bool { return p.At.File == o.At.File && p.cause == o.cause }
		if slices.ContainsFunc(t.objections[:i], same) {
			continue
		}
		var lines []string
		for _, p := range t.objections[i+1:] {
			if line := strconv.Itoa(p.At.Line); same(p) && p.At.Line != o.At.Line && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		told := *o
		if len(lines) > 0 {
			told.What += " (also in line " + unit.List(lines, 10) + ")"
		}
		errs = append(errs, &told)
	}
	return errors.Join(errs...)
}

// Largest is the largest size of the stream's operations.
func (s *Stream) Largest() int64 {
	largest := int64(0)
	for _, share := range s.Sizes {
		largest = max(largest, share.Bytes)
	}
	return largest
}

// Mean is the mean size of the stream's operations.
func (s *Stream) Mean() float64 {
	var sum float64
	for _, share := range s.Sizes {
		sum += float64(share.Bytes) * share.Percent / 100
	}
	return sum
}

// Uneven is how many times the mean size of the stream's operations is the smallest.
func (s *Stream) Uneven() float64 {
	least := int64(0)
	for i, share := range s.Sizes {
		if i == 0 || share.Bytes < least {
			least = share.Bytes
		}
	}
	if least == 0 {
		return 1
	}
	return s.Mean() / float64(least)
}

// Number writes a number as short as it can be.
func Number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Size writes bytes with the largest of the units k, m, g and t, powers of 1024, that leaves a whole number. All tools
// here read it.
func Size(bytes int64) string {
	units := []string{"", "k", "m", "g", "t"}
	i := 0
	for bytes != 0 && bytes%1024 == 0 && i < len(units)-1 {
		bytes, i = bytes/1024, i+1
	}
	return strconv.FormatInt(bytes, 10) + units[i]
}

// Whole rounds percentages to whole ones that still add up to what they did, by the largest remainders.
func Whole(percentages []float64) []int64 {
	out := make([]int64, len(percentages))
	order := make([]int, len(percentages))
	var sum float64
	var given int64
	for i, p := range percentages {
		out[i], order[i] = int64(math.Floor(p)), i
		sum, given = sum+p, given+out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(percentages[b]-math.Floor(percentages[b]), percentages[a]-math.Floor(percentages[a]))
	})
	for i := 0; i < len(order) && given < int64(math.Round(sum)); i++ {
		out[order[i]]++
		given++
	}
	return out
}
