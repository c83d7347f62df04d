package fio

import "hash/fnv"

// Seed derives the seed of the VM at position index of a start from a seed text: the same text and index give
// the same sequence of offsets in every run, on every cluster. It is FNV-1a over "text_index", mixed so that
// neighbouring indices differ in all bits, cut to 63 bits. It is never 0, which means "do not fix the sequence".
func Seed(text string, index int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	h.Write([]byte{'_'})
	for shift := 0; shift < 64; shift += 8 {
		h.Write([]byte{byte(uint64(index) >> shift)})
	}
	x := h.Sum64()
	// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return max(x>>1, 1)
}
