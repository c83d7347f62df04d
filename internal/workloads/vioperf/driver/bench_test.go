package vioperf

import "testing"

// BenchmarkFill measures what a block of 1 MiB costs before it is written: its data, its checksum, and both.
func BenchmarkFill(b *testing.B) {
	for name, o := range map[string]Options{
		"stamps and checksum": {Checksum: true}, "stamps": {}, "checksum": {Checksum: true, Same: true},
	} {
		b.Run(name, func(b *testing.B) {
			m, err := newMaker(o)
			if err != nil {
				b.Fatal(err)
			}
			buffer := make([]byte, 1<<20)
			b.SetBytes(int64(len(buffer)))
			for n := int64(0); b.Loop(); n++ {
				m.stamp(buffer, 0, 0, n)
			}
		})
	}
}
