package integrity

import "math/bits"

// order is in which order the blocks of a pass are written: as they lie, or all mixed up in a way that can be computed
// both ways, so that nothing has to be remembered of it.
type order struct {
	blocks int64
	keys   []uint64 // of the rounds; none: as they lie
	half   uint     // bits
}

// mixed is an order of a seed: a Feistel network over the next power of four, walked until it comes back below the
// number of blocks (Black and Rogaway, 2002).
func mixed(blocks int64, seed uint64) order {
	o := order{blocks: blocks, half: uint(bits.Len64(uint64(max(blocks-1, 1)))+1) / 2}
	for i := range uint64(4) {
		o.keys = append(o.keys, spread(seed+i*0x9e3779b97f4a7c15))
	}
	return o
}

// spread is the finalizer of splitmix64.
func spread(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// block is the number of the block that is written as number turn.
func (o order) block(turn int64) int64 {
	return o.walk(turn, func(l, r uint64) (uint64, uint64) {
		for _, k := range o.keys {
			l, r = r, l^spread(r^k)&(1<<o.half-1)
		}
		return l, r
	})
}

// turn is as which number a block is written.
func (o order) turn(block int64) int64 {
	return o.walk(block, func(l, r uint64) (uint64, uint64) {
		for i := len(o.keys) - 1; i >= 0; i-- {
			l, r = r^spread(l^o.keys[i])&(1<<o.half-1), l
		}
		return l, r
	})
}

func (o order) walk(x int64, step func(l, r uint64) (uint64, uint64)) int64 {
	if o.keys == nil {
		return x
	}
	for {
		l, r := step(uint64(x)>>o.half, uint64(x)&(1<<o.half-1))
		if x = int64(l<<o.half | r); x < o.blocks {
			return x
		}
	}
}
