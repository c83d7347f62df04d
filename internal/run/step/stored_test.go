package step

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/storage/content"
	"plimsoll/result"
)

// made is a disk that holds what a generator makes.
type made struct{ *content.Generator }

func (m made) ReadAt(b []byte, at int64) (int, error) { m.Fill(b, at); return len(b), nil }

// TestTell: data as asked are told as such, whatever else they are; an option that did nothing is found.
func TestTell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		holds   content.Options
		asked   asked
		differs []string
		untold  int
	}{
		{"as asked", content.Options{CompressibilityPercent: 50}, asked{compressible: 0.5}, nil, 0},
		{"ignored", content.Options{}, asked{compressible: 0.5},
			[]string{"compressors save 0.0 % at most, 50 % was asked for"}, 0},
		{"a pattern in its place", content.Options{CompressibilityPercent: 95}, asked{compressible: 0.5},
			[]string{"compressors save 94.5 % at least, 50 % was asked for"}, 0},
		{"repeats", content.Options{DedupePercent: 30}, asked{repeats: 0.3}, nil, 0},
		{"repeats that are not seen", content.Options{}, asked{repeats: 0.3}, nil, 1},
	} {
		g, err := content.New(c.holds)
		if err != nil {
			t.Fatal(err)
		}
		var all content.Report
		for range 2 { // two disks
			one, err := content.Check(t.Context(), io.NewSectionReader(made{g}, 0, 4<<20), 4<<20,
				content.CheckOptions{DedupeBlockBytes: []int{4096}, ChunkBytes: []int{4096}})
			if err != nil {
				t.Fatal(err)
			}
			all.Add(one)
		}
		out := result.Stored{Compressible: c.asked.compressible, Repeats: c.asked.repeats}
		tell(&out, all)
		diff := cmp.Diff(c.differs, out.Differs)
		if diff != "" || len(out.CannotTell) != c.untold || out.Bytes != 8<<20 {
			t.Errorf("%s: differs (-want +got):\n%s\n%+v", c.name, diff, out)
		}
	}
}

// TestAskedOf takes the shares apart that a stream gives as one.
func TestAskedOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stream result.Stream
		want   asked
	}{
		{result.Stream{Writes: true, Reducible: 0.5}, asked{compressible: 0.5}},
		{result.Stream{Writes: true, Reducible: 0.75, Repeats: 0.5}, asked{0.5, 0.5}},
		{result.Stream{Writes: true, Reducible: 0.25, Repeats: 0.25}, asked{repeats: 0.25}},
		{result.Stream{Reducible: 0.5}, asked{}},
		{result.Stream{Writes: true, Reducible: 1}, asked{}},
		{result.Stream{Writes: true, Reducible: 0.5, ZeroData: true}, asked{}},
	} {
		if got := askedOf(c.stream); got != c.want {
			t.Errorf("%+v: %v, want %v", c.stream, got, c.want)
		}
	}
}
