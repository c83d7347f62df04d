package unit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bytes is a size in bytes.
type Bytes int64

// Sizes.
const (
	KiB Bytes = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
	PiB
)

var binary = []struct {
	name string
	size Bytes
}{{"PiB", PiB}, {"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

// multiplier returns what a unit of size counts for.
func multiplier(suffix string) (float64, bool) {
	if suffix == "" || suffix == "B" {
		return 1, true
	}
	power := strings.IndexByte("KMGTP", suffix[0]&^0x20) + 1
	if power == 0 {
		return 0, false
	}
	switch suffix[1:] {
	case "", "iB":
		return math.Pow(1024, float64(power)), true
	case "B":
		return math.Pow(1000, float64(power)), true
	}
	return 0, false
}

// ParseBytes reads a size: "4096", "8KiB", "8k" (both 8192), "1.5 GB" (1,500,000,000). Sizes are not negative, and a
// fraction must come out as whole bytes or is rounded to the nearest.
func ParseBytes(text string) (Bytes, error) {
	v, digits, suffix, err := split("size", text)
	if err != nil {
		return 0, err
	}
	m, ok := multiplier(suffix)
	if !ok {
		return 0, fmt.Errorf("size %q: unknown unit %q (KiB, MiB, GiB, TiB, PiB are powers of 1024; KB, MB, GB, TB, "+
			"PB of 1000)", text, suffix)
	}
	if v < 0 {
		return 0, fmt.Errorf("size %q: must not be negative", text)
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n <= math.MaxInt64/int64(m) {
		return Bytes(n) * Bytes(m), nil // exact beyond the 53 bits of a float
	}
	if v *= m; v >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q: larger than %s", text, Bytes(math.MaxInt64))
	}
	return Bytes(math.Round(v)), nil
}

// String is for people: 1.5 GiB, 8 KiB, 512 B.
func (b Bytes) String() string {
	v := float64(b)
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	for _, u := range binary {
		// Rounding must not print 1,024 MiB: go up a unit from where three digits would.
		if v >= float64(u.size)*0.9995 && v >= 1023.5 {
			return sign + figures(v/float64(u.size)) + " " + u.name
		}
	}
	return sign + figures(v) + " B"
}

// Exact prints the size in the largest unit that divides it: 1536MiB, 1000. ParseBytes gives the same size back.
func (b Bytes) Exact() string {
	for _, u := range binary {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Scale multiplies a size by factor and rounds down to a multiple of step (1 when step is less), but not below one
// step unless the size itself is. It saturates at the largest size.
func (b Bytes) Scale(factor float64, step Bytes) Bytes {
	step = max(step, 1)
	if b <= 0 || factor == 1 {
		return b
	}
	v := float64(b) * factor
	if v >= math.MaxInt64 {
		return math.MaxInt64 / step * step
	}
	scaled := Bytes(v) / step * step
	return max(scaled, min(step, b))
}

// Sizes is a text with the sizes in it, as in "size 17179869184 bytes", in the units of String where that is exact, and
// else with the thousands apart.
func Sizes(text string) string {
	words := strings.Split(text, " ")
	for i := 1; i < len(words); i++ {
		n, err := strconv.ParseInt(words[i-1], 10, 64)
		end, is := strings.CutPrefix(words[i], "bytes")
		if !is && i > 2 && words[i-2] == "read," { // "4096 bytes read, 8192 written"
			end, is = strings.CutPrefix(words[i], "written")
			end = " written" + end
		}
		if err != nil || !is || n < int64(KiB) {
			continue
		}
		if exact, err := ParseBytes(Bytes(n).String()); err != nil || int64(exact) != n {
			words[i-1] = Thousands(n)
			continue
		}
		words[i-1] = Bytes(n).String() + end
		words = slices.Delete(words, i, i+1)
	}
	return strings.Join(words, " ")
}
