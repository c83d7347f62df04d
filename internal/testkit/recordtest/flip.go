package recordtest

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Flip writes what a file holds with one bit turned round, and tells which.
func Flip(t testing.TB, random *rand.Rand, name string, data []byte) (bit int) {
	t.Helper()
	bit = random.IntN(8 * len(data))
	data[bit/8] ^= 1 << (bit % 8)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return bit
}
