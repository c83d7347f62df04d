package integrity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	needs.Print(os.Stderr)
	os.Exit(code)
}

// memory is a storage that keeps all it is given, and what it held at every flush.
type memory struct {
	mu      sync.Mutex
	b       []byte
	after   func(writes int) error // of every write; may be nil
	writes  int
	bad     map[int64]bool // addresses of pages that cannot be read
	flushes int
}

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.after != nil {
		if err := m.after(m.writes); err != nil {
			return 0, err
		}
	}
	m.writes++
	return copy(m.b[at:], b), nil
}

func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	for page := at &^ 4095; page < at+int64(len(b)); page += 4096 {
		if m.bad[page] {
			return 0, &os.PathError{Op: "read", Path: "memory", Err: syscall.EIO}
		}
	}
	n := copy(b, m.b[min(at, int64(len(m.b))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) Sync() error { m.flushes++; return nil }

var moment = time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)

func options() Options { return Options{Workers: 2, Now: func() time.Time { return moment }} }

func ledger(t rapid.TB, dir string, m Manifest) *Ledger {
	t.Helper()
	l, err := Create(dir, m, moment)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestBothWays: an order is one of all blocks, and turn undoes block.
func TestBothWays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5000).Draw(t, "blocks")
		o := mixed(n, rapid.Uint64().Draw(t, "seed"))
		seen := make([]bool, n)
		for turn := range n {
			b := o.block(turn)
			if b < 0 || b >= n || seen[b] || o.turn(b) != turn {
				t.Fatalf("turn %d of %d is block %d, whose turn is %d", turn, n, b, o.turn(b))
			}
			seen[b] = true
		}
	})
}

// wrong is damage as a test did it.
type wrong struct {
	kind     Kind
	from, to int64
}

// TestEveryDamageIsFound does damage of every kind, and finds just that, at just those addresses.
func TestEveryDamageIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{512, 1024, 4096, 65536}).Draw(t, "block")
		blocks := rapid.Int64Range(12, 60).Draw(t, "blocks")
		m := Manifest{BlockBytes: size, Bytes: int64(size) * blocks, Passes: rapid.IntRange(2, 3).Draw(t, "passes"),
			Order:      rapid.SampledFrom([]string{Sequential, Random}).Draw(t, "order"),
			FlushBytes: rapid.Int64Range(1, int64(size)*blocks).Draw(t, "flush")}
		l := ledger(t, dir, m)
		defer l.Close()
		s := &memory{b: make([]byte, m.Bytes), bad: map[int64]bool{}}
		var older []byte // as it was after the last but one pass
		s.after = func(int) error {
			if l.last.Pass == m.Passes-1 && l.last.Blocks == blocks && older == nil {
				older = bytes.Clone(s.b)
			}
			return nil
		}
		if err := Write(t.Context(), s, l, options()); err != nil {
			t.Fatal(err)
		}
		_, a, err := Read(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		if want := (Acknowledged{Sequence: a.Sequence, Pass: m.Passes, Blocks: blocks}); a != want {
			t.Fatalf("acknowledged %+v, want %+v", a, want)
		}

		sound := bytes.Clone(s.b)
		other := ledger(t, dir, m)
		defer other.Close()
		foreign := &memory{b: make([]byte, m.Bytes)}
		if err := Write(t.Context(), foreign, other, options()); err != nil {
			t.Fatal(err)
		}
		var done []wrong
		seed := rapid.Uint64().Draw(t, "seed")
		draw := rand.New(rand.NewPCG(seed, 1))
		places := draw.Perm(int(blocks))[:rapid.IntRange(0, 6).Draw(t, "damages")]
		for _, n := range places {
			from := int64(n) * int64(size)
			block := s.b[from : from+int64(size)]
			kinds := []Kind{Misdirected, Stale, Zeroed, Foreign, Corrupt}
			if size > Sector {
				kinds = append(kinds, Torn)
			}
			w := wrong{kinds[draw.IntN(len(kinds))], from, from + int64(size)}
			switch w.kind {
			case Misdirected: // of a block that is not a neighbour, so that ranges stay apart
				elsewhere := (int64(n) + 2 + draw.Int64N(blocks-3)) % blocks * int64(size)
				copy(block, sound[elsewhere:elsewhere+int64(size)])
			case Stale:
				copy(block, older[from:from+int64(size)])
			case Torn:
				half := int64(size / Sector / 2 * Sector)
				copy(block[:half], older[from:])
				w.to = from + half
			case Zeroed:
				clear(block)
			case Foreign:
				copy(block, foreign.b[from:from+int64(size)])
			case Corrupt:
				at := draw.IntN(size)
				block[at] ^= 1 << draw.IntN(8)
				w.from = from + int64(at/Sector*Sector)
				w.to = w.from + Sector
			}
			done = append(done, w)
		}
		r, err := Verify(t.Context(), s, m.Bytes, &l.Manifest, a, options())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(done, func(a, b wrong) int { return int(a.from - b.from) })
		var got []wrong
		for _, d := range r.Damages {
			// Of a misdirected or foreign range each block is looked at by itself here.
			for from := d.From; from < d.To; from += min(int64(size)-from%int64(size), d.To-from) {
				got = append(got, wrong{d.Kind, from, min(d.To, from+int64(size)-from%int64(size))})
			}
		}
		if diff := cmp.Diff(done, got, cmp.AllowUnexported(wrong{})); diff != "" {
			t.Fatalf("damage done (-) and found (+):\n%s", diff)
		}
		if r.Intact != blocks-int64(len(places)) {
			t.Fatalf("%d of %d blocks are intact, %d were damaged", r.Intact, blocks, len(places))
		}
	})
}

// TestCutOff: a write that ends at any moment leaves what says how far it came; what was acknowledged is held to, and
// nothing else is.
func TestCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cut := errors.New("cut off")
	rapid.Check(t, func(t *rapid.T) {
		m := Manifest{BlockBytes: 1024, Bytes: 64 << 10, Passes: 3,
			Order:      rapid.SampledFrom([]string{Sequential, Random}).Draw(t, "order"),
			FlushBytes: rapid.Int64Range(1, 80<<10).Draw(t, "flush")}
		l := ledger(t, dir, m)
		defer l.Close()
		end := rapid.IntRange(0, 200).Draw(t, "writes")
		s := &memory{b: make([]byte, m.Bytes)}
		s.after = func(writes int) error {
			if writes >= end {
				return cut
			}
			return nil
		}
		err := Write(t.Context(), s, l, options())
		if err != nil && !errors.Is(err, cut) {
			t.Fatal(err)
		}
		_, a, err := Read(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Verify(t.Context(), s, m.Bytes, &l.Manifest, a, options())
		if err != nil || len(r.Damages) > 0 {
			t.Fatalf("a write that was cut off is damage: %v, %+v", err, r)
		}
		// A storage that loses all it had acknowledged is found out, wherever that was.
		lost := &memory{b: make([]byte, m.Bytes)}
		if r, err = Verify(t.Context(), lost, m.Bytes, &l.Manifest, a, options()); err != nil {
			t.Fatal(err)
		}
		claimed := m.Bytes
		if a.Pass == 1 {
			claimed = a.Blocks * int64(m.BlockBytes)
		}
		if r.Damaged[Zeroed] != claimed || r.Unclaimed*int64(m.BlockBytes) != m.Bytes-claimed {
			t.Fatalf("of %d bytes acknowledged %d are found lost, %d blocks are unclaimed", claimed, r.Damaged[Zeroed],
				r.Unclaimed)
		}
	})
}

// TestWhatIsReported holds a report against one written by hand: an error of reading, the end of the file come too
// soon, blocks gone astray that are neighbours, and a pattern.
func TestWhatIsReported(t *testing.T) {
	t.Parallel()
	m := Manifest{BlockBytes: 4096, Bytes: 4 << 20, Passes: 1, Order: Sequential, FlushBytes: 1 << 20}
	l := ledger(t, t.TempDir(), m)
	defer l.Close()
	s := &memory{b: make([]byte, m.Bytes), bad: map[int64]bool{8192: true, 12288: true}}
	if err := Write(t.Context(), s, l, options()); err != nil {
		t.Fatal(err)
	}
	if s.flushes != 4 {
		t.Errorf("%d flushes", s.flushes)
	}
	copy(s.b[1<<20-4096:], s.b[2<<20:2<<20+3*4096])
	s.b = s.b[:3<<20+100]
	r, err := Verify(t.Context(), s, int64(len(s.b)), &l.Manifest, l.last, options())
	if err != nil {
		t.Fatal(err)
	}
	belongs := int64(2 << 20)
	want := &Report{Run: l.Manifest.Run, Bytes: 4 << 20, Acknowledged: l.last, Blocks: 1024, Intact: 768 - 2 - 3,
		Damaged: map[Kind]int64{Unreadable: 8192, Misdirected: 3 * 4096, Missing: 1 << 20}, Lost: 2 + 3 + 256,
		DamagedBlocks: map[Kind]int64{Unreadable: 2, Misdirected: 3, Missing: 256},
		Damages: []Damage{
			{Kind: Unreadable, From: 8192, To: 16384, Error: "input/output error"},
			{Kind: Misdirected, From: 1<<20 - 4096, To: 1<<20 + 8192, Expected: 1, Found: 1, BelongsAt: &belongs},
			{Kind: Missing, From: 3 << 20, To: 4 << 20, Expected: 1},
		}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	m.Pattern = "deadbeef"
	p := ledger(t, t.TempDir(), m)
	defer p.Close()
	s = &memory{b: make([]byte, m.Bytes)}
	if err := Write(t.Context(), s, p, options()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.b, bytes.Repeat([]byte("\xde\xad\xbe\xef"), 1<<20)) {
		t.Error("the pattern is not what was written")
	}
	s.b[5000]++
	clear(s.b[8192:8704])
	if r, err = Verify(t.Context(), s, m.Bytes, &p.Manifest, p.last, options()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Damage{{Kind: Corrupt, From: 4608, To: 5120, Expected: 1},
		{Kind: Zeroed, From: 8192, To: 8704, Expected: 1}}, r.Damages); diff != "" {
		t.Errorf("pattern (-want +got):\n%s", diff)
	}
}

// TestManyDamages: the list is bounded, the sums are not.
func TestManyDamages(t *testing.T) {
	t.Parallel()
	m := Manifest{BlockBytes: 512, Bytes: 512 * (2*mostListed + 1000), Passes: 1, Order: Sequential,
		FlushBytes: 1 << 30}
	l := ledger(t, t.TempDir(), m)
	defer l.Close()
	s := &memory{b: make([]byte, m.Bytes)}
	if err := Write(t.Context(), s, l, options()); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(s.b); at += 1024 {
		s.b[at]++
	}
	r, err := Verify(t.Context(), s, m.Bytes, &l.Manifest, l.last, options())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Damages) != mostListed || r.Unlisted != 500 || r.Damaged[Corrupt] != m.Bytes/2 {
		t.Errorf("%d listed, %d not, %d bytes", len(r.Damages), r.Unlisted, r.Damaged[Corrupt])
	}
}

// TestStopped: both end when they are told to.
func TestStopped(t *testing.T) {
	t.Parallel()
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	m := Manifest{BlockBytes: 4096, Bytes: 4 << 20, Passes: 1, Order: Sequential, FlushBytes: 1 << 20}
	l := ledger(t, t.TempDir(), m)
	defer l.Close()
	s := &memory{b: make([]byte, m.Bytes)}
	if err := Write(ctx, s, l, options()); !errors.Is(err, stop) || s.writes > 0 {
		t.Error(err, s.writes)
	}
	if _, err := Verify(ctx, s, m.Bytes, &l.Manifest, l.last, options()); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestManifestsOfStrangers: what does not fit is refused, all of it at once.
func TestManifestsOfStrangers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := ledger(t, dir, Manifest{BlockBytes: 512, Bytes: 1024, Passes: 1, Order: Random, FlushBytes: 1})
	defer l.Close()
	read := func(name string) []byte {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	manifest, claims := read(l.Name), read(besides(l.Name))
	name := filepath.Join(dir, "x.json")
	for _, c := range []struct {
		manifest, claims []byte
		want             string
	}{
		{bytes.Replace(manifest, []byte(`"version": 1`), []byte(`"version": 2`), 1), claims,
			name + ": version 2: this program knows 1"},
		{bytes.Replace(manifest, []byte(`"passes": 1`), []byte(`"posses": 1`), 1), claims,
			name + `: it is no manifest of integrity write: json: unknown field "posses"`},
		{bytes.Replace(bytes.Replace(manifest, []byte(`"passes": 1`), []byte(`"passes": 0`), 1), []byte(`"bytes": 1024`),
			[]byte(`"bytes": 1000`), 1), claims, name + ": 1000 bytes: want whole blocks of 512 bytes, one at least " +
			"and 1 PiB at most\n0 passes: want 1 to 1000000"},
		{manifest, nil, besides(name) + ": no part of it is whole, so nothing says what was acknowledged"},
		{manifest, bytes.ReplaceAll(claims, []byte("pass"), []byte("posse")),
			besides(name) + ": no part of it is whole, so nothing says what was acknowledged"},
	} {
		for file, b := range map[string][]byte{name: c.manifest, besides(name): c.claims} {
			if err := os.WriteFile(file, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := Read(name); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant\n%s", err, c.want)
		}
	}
	// Half of the claims are enough: they are written by turns.
	if _, err := parseAcknowledged(claims[:slotBytes], &l.Manifest); err != nil {
		t.Error(err)
	}
	if _, err := parseAcknowledged(claims[slotBytes:], &l.Manifest); err != nil {
		t.Error(err)
	}
}

func FuzzManifest(f *testing.F) {
	l := ledger(f, f.TempDir(), Manifest{BlockBytes: 512, Bytes: 1024, Passes: 1, Order: Random, FlushBytes: 1})
	defer l.Close()
	for _, name := range []string{l.Name, besides(l.Name)} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseManifest(b); err == nil {
			if m.blocks() < 1 || m.check() != nil {
				t.Errorf("taken: %+v", m)
			}
			if m.Bytes <= 1<<20 { // it can be verified, whatever it says
				a := Acknowledged{Pass: 1}
				if _, err := Verify(t.Context(), &memory{}, 0, m, a, options()); err != nil {
					t.Error(err)
				}
			}
		}
		if a, err := parseAcknowledged(b, &l.Manifest); err == nil && (a.Pass != 1 || a.Blocks < 0 || a.Blocks > 2) {
			t.Errorf("taken: %+v", a)
		}
	})
}

func FuzzStamp(f *testing.F) {
	b := make([]byte, Sector)
	stamp{run: 1, address: 512, generation: 2, block: 4096, at: 3}.put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := stampOf(b)
		if !ok {
			return
		}
		again := bytes.Clone(b)
		if s.put(again); !bytes.Equal(again, b) {
			t.Errorf("%x is taken for %+v, which is %x", b, s, again)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	m := Manifest{BlockBytes: 4096, Bytes: 64 << 20, Passes: 1, Order: Sequential, FlushBytes: 64 << 20}
	l, err := Create(b.TempDir(), m, moment)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	s := &memory{b: make([]byte, m.Bytes)}
	o := options()
	o.Workers = 1
	b.Run("write", func(b *testing.B) {
		b.SetBytes(m.Bytes)
		for b.Loop() {
			if err := Write(b.Context(), s, l, o); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.SetBytes(m.Bytes)
		for b.Loop() {
			if _, err := Verify(b.Context(), s, m.Bytes, &l.Manifest, l.last, o); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// FuzzRecord: no output of a stranger has a reader fail, and what is taken can be held to.
func FuzzRecord(f *testing.F) {
	m, err := Manifest{BlockBytes: 512, Bytes: 2048, Passes: 3, Order: Random, FlushBytes: 512}.begun(moment)
	if err != nil {
		f.Fatal(err)
	}
	var record []byte
	for _, l := range []struct {
		word string
		what any
	}{{manifestWord, m}, {acknowledgedWord, Acknowledged{1, 1, 2}}, {acknowledgedWord, Acknowledged{2, 2, 0}}} {
		line, err := sayLine(l.word, l.what)
		if err != nil {
			f.Fatal(err)
		}
		record = append(record, line...)
		record = append(record, "{\"elapsed_ns\": 1}\n"...)
	}
	f.Add(record)
	f.Add(record[:len(record)-30])
	f.Add(append(bytes.Clone(record), record...))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := ReadRecord(bytes.NewReader(b))
		if err != nil {
			return
		}
		m, a := &rec.Manifest, rec.Acknowledged
		if n := a.Writes(m); n < 0 || a.Claimed(m) > n || a.Claimed(m) > m.blocks() {
			t.Fatalf("%+v of %+v", a, m)
		}
		if m.Bytes > 1<<20 {
			return
		}
		none := &memory{b: make([]byte, m.Bytes)}
		r, err := Verify(t.Context(), none, m.Bytes, m, a, Options{Workers: 1, Behind: true})
		if err != nil || m.Pattern == "" && r.Lost != a.Claimed(m) {
			t.Fatalf("of %d blocks that were acknowledged and are not there %d are missed: %v", a.Claimed(m), r.Lost, err)
		}
	})
}
