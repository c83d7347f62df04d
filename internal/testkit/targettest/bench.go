package targettest

import (
	"testing"

	"plimsoll/internal/contract/target"
)

// Benchmark measures what a run does over and over: following a file and starting a command.
func Benchmark(b *testing.B, factory Factory) {
	b.Run("ReadFile", func(b *testing.B) {
		s := open(b, factory)
		s.running(1)
		h := s.host("a-0")
		s.must(target.WriteFile(s.ctx, h, "log", make([]byte, 64<<10)))
		b.SetBytes(64 << 10)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := target.ReadFile(s.ctx, h, "log", 0, 64<<10); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Start", func(b *testing.B) {
		s := open(b, factory)
		s.running(1)
		h := s.host("a-0")
		b.ReportAllocs()
		for b.Loop() {
			p, err := h.Start(s.ctx, target.Command{Argv: s.place.Commands.Print("x"), Stdout: "out"})
			if err != nil {
				b.Fatal(err)
			}
			s.wait(p)
		}
	})
}
