package fio

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
)

func TestParseLog(t *testing.T) {
	t.Parallel()
	got, err := ParseLog(strings.NewReader("1000, 250, 0, 4096\n\n2000, 7, 1, 0, 8192, 0x8001\n2500,9,2,512,0\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []LogPoint{
		{Elapsed: time.Second, Value: 250, Direction: LogRead, Block: 4096, Offset: -1},
		{Elapsed: 2 * time.Second, Value: 7, Direction: LogWrite, Offset: 8192},
		{Elapsed: 2500 * time.Millisecond, Value: 9, Direction: LogTrim, Block: 512},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseLogRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "it is empty",
		"1, 2, 3\n":                 "line 1: direction 3",
		"1, 2\n":                    "line 1: 2 values",
		"1, 2, 0, 0\n-1, 2, 0, 0\n": "line 2: time -1",
		"1, 2, 0, x\n":              `line 1: "x" is not a number`,
		"1, -2, 0, 0\n":             "negative",
		"1, 2, 0, 0, 0xzz\n":        "0xzz",
		"1, 2, 0, 4, 5, 6, 7, 8\n":  "8 values",
		strings.Repeat("1", 2<<20):  "too long",
		"99999999999999, 2, 0, 4\n": "out of range",
	} {
		if _, err := ParseLog(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func histLine(bins int, set map[int]string) string {
	fields := []string{"1000", "1", "4096"}
	for i := range bins {
		if n, ok := set[i]; ok {
			fields = append(fields, n)
		} else {
			fields = append(fields, "0")
		}
	}
	return strings.Join(fields, ", ") + "\n"
}

func TestParseHistLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line string
		unit LogUnit
		want uint64 // where the value lies
	}{
		"nanoseconds":            {histLine(1856, map[int]string{900: "5"}), Nanoseconds, hist.Middle(900)},
		"coarse":                 {histLine(464, map[int]string{225: "5"}), Nanoseconds, hist.Middle(902)},
		"microseconds":           {histLine(1216, map[int]string{100: "5"}), Microseconds, 100_500},
		"microseconds above 128": {histLine(1216, map[int]string{130: "5"}), Microseconds, 133_000},
	} {
		points, err := ParseHistLog(strings.NewReader(c.line+c.line), c.unit)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := points[1]
		if len(points) != 2 || p.Hist.Count() != 5 || p.Direction != LogWrite || p.Block != 4096 ||
			p.Elapsed != time.Second {
			t.Errorf("%s: %+v", name, p)
		}
		if hist.Index(p.Hist.Min()) > hist.Index(c.want) || hist.Index(p.Hist.Max()) < hist.Index(c.want) {
			t.Errorf("%s: counted within [%d, %d], want at %d", name, p.Hist.Min(), p.Hist.Max(), c.want)
		}
	}
}

func TestParseHistLogRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "it is empty",
		histLine(100, nil):                      "100 bins",
		"1, 2\n":                                "2 values",
		histLine(1856, map[int]string{3: "-1"}): "bin 3 holds -1",
		histLine(1856, map[int]string{3: "288230376923725848"}): "bin 3 holds 288230376923725848",
	} {
		if _, err := ParseHistLog(strings.NewReader(text), Nanoseconds); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseHistLog(strings.NewReader(histLine(1856, nil)), 7); err == nil {
		t.Error("a unit of 7 ns passes")
	}
}

func FuzzParseLogs(f *testing.F) {
	f.Add([]byte("1000, 250, 0, 4096\n2000, 7, 1, 0, 8192, 0x8001\n"))
	f.Add([]byte("1000, 0, 4096" + strings.Repeat(", 1", 29) + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if points, err := ParseLog(bytes.NewReader(data)); err == nil && len(points) == 0 {
			t.Fatal("neither points nor an error")
		}
		points, err := ParseHistLog(bytes.NewReader(data), Microseconds)
		if err == nil && len(points) == 0 {
			t.Fatal("neither points nor an error")
		}
		for _, p := range points {
			var total uint64
			for _, b := range p.Hist.Buckets() {
				total += b.Count
			}
			if total != p.Hist.Count() {
				t.Fatalf("counts add up to %d of %d", total, p.Hist.Count())
			}
		}
	})
}

// ParseLog reads a bw, iops, lat, slat or clat log: lines of time in ms, value, direction, block size and, from newer
// versions, offset and priority. The first line that is none of these ends it with an error naming the line.
func ParseLog(r io.Reader) ([]LogPoint, error) {
	var points []LogPoint
	err := EachLog(r, func(p LogPoint) error {
		points = append(points, p)
		return nil
	})
	return points, err
}
