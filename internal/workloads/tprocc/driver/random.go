package tprocc

import (
	"math/bits"
	"math/rand/v2"
)

// source is a stream of random numbers. It is a rand.Source.
type source struct{ rand.PCG }

func newSource(seed, stream uint64) (s source) {
	s.Seed(seed, stream)
	return s
}

// between is evenly spread from low to high, both included.
func (s *source) between(low, high int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(high-low+1)) // off by less than 2^-40 of evenness: ranges are small
	return low + int(hi)
}

// nonUniform is TPC-C's NURand(a, low, high) with the constant c: some values come more often.
func (s *source) nonUniform(a, c, low, high int) int {
	return ((s.between(0, a)|s.between(low, high))+c)%(high-low+1) + low
}

// Constants of the uneven draws. Those of last names at load and in runs differ by 90: TPC-C wants 65 to 119, and
// neither 96 nor 112.
const (
	nameLoad     = 119
	nameRun      = 209
	customerDraw = 487
	itemDraw     = 3_911
)

func (s *source) name(c int) int { return s.nonUniform(255, c, 0, 999) }
func (s *source) customer() int  { return s.nonUniform(1023, customerDraw, 1, Customers) }
func (s *source) item() int      { return s.nonUniform(8191, itemDraw, 1, Items) }

// lastNames are the thousand last names: three syllables, one for each digit.
var lastNames = func() (names [1000]string) {
	syllables := [10]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
	for i := range names {
		names[i] = syllables[i/100] + syllables[i/10%10] + syllables[i%10]
	}
	return names
}()

// letters are 64, so that six bits make one: two of the 62 letters and digits come twice as often.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678901"

// text adds low to high letters.
func (s *source) text(to []byte, low, high int) []byte {
	n := low
	if high > low {
		n = s.between(low, high)
	}
	var word uint64
	for i := range n {
		if i%10 == 0 {
			word = s.Uint64()
		}
		to = append(to, letters[word&63])
		word >>= 6
	}
	return to
}

// digits adds n digits.
func (s *source) digits(to []byte, n int) []byte {
	for range n {
		to = append(to, byte('0'+s.between(0, 9)))
	}
	return to
}

// data adds low to high letters, which in one of ten cases have the word ORIGINAL somewhere.
func (s *source) data(to []byte, low, high int) []byte {
	begin := len(to)
	to = s.text(to, low, high)
	if s.between(1, 10) == 1 {
		const word = "ORIGINAL"
		copy(to[s.between(begin, len(to)-len(word)):], word)
	}
	return to
}
