// Package integrity writes blocks that say what they are, and reads them again to say which of them are not what the
// storage had promised to keep: gone back to an older state, never written or zeroed, torn, gone astray, changed, of
// somebody else.
//
// Every sector of 512 bytes carries the number of the run, its address, its generation and a checksum. What has been
// written is in a manifest, and how much of that the storage has acknowledged as safe, by a flush, beside it; both are
// kept elsewhere than on what is tested, and are on their medium before the claim is made. So what was lost can be told
// from what was only under way, also when the write was cut off.
//
// It stands above content, which makes the payload, and below the command. It opens nothing for testing by itself: it
// is handed what was opened, by those who know whether that may be written.
package integrity

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"plimsoll/internal/storage/content"
	"plimsoll/internal/storage/direct"
)

// chunk is how much is written or read at once where blocks lie together, in bytes.
const chunk = 1 << 20

// Storage is written to. Sync returns when what was written before is safe.
type Storage interface {
	io.WriterAt
	Sync() error
}

// Options say how to go about it.
type Options struct {
	Workers int              // writes or reads at once; 0: one a processor, at most 8
	Now     func() time.Time // for stamps
	// Progress is told how many bytes are done of how many; one call at a time. May be nil.
	Progress func(done, of int64)
	// Behind, to verify: what is known of acknowledgements may be older than the end of the write, for they travelled.
	// A later generation than they tell of is no damage then.
	Behind bool
}

func (o *Options) fillIn() {
	if o.Workers == 0 {
		o.Workers = min(8, runtime.GOMAXPROCS(0))
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
}

// Write writes what a ledger's manifest says and acknowledges it there, flush by flush. After an error, or when ctx has
// ended, the ledger says how far it came.
func Write(ctx context.Context, s Storage, l *Ledger, o Options) error {
	return write(ctx, s, &l.Manifest, l.Acknowledge, o)
}

func write(ctx context.Context, s Storage, m *Manifest, acknowledge func(pass int, blocks int64) error,
	o Options) error {
	o.fillIn()
	options := content.Options{Seed: m.run, CompressibilityPercent: m.CompressibilityPercent}
	if m.Pattern != "" {
		options = content.Options{CompressibilityPercent: 100, Pattern: m.pattern}
	}
	g, err := content.New(options)
	if err != nil {
		return err
	}
	w := &writer{s: s, m: m, g: g, o: o}
	for range o.Workers {
		w.buffers = append(w.buffers, direct.Buffer(chunk))
	}
	flush := max(1, m.FlushBytes/int64(m.BlockBytes))
	for pass := 1; pass <= m.Passes; pass++ {
		for from := int64(0); from < m.blocks(); from += flush {
			to := min(from+flush, m.blocks())
			if err := w.turns(ctx, pass, from, to); err != nil {
				return err
			}
			if err := s.Sync(); err != nil {
				return fmt.Errorf("flush: %w", err)
			}
			if err := acknowledge(pass, to); err != nil {
				return fmt.Errorf("acknowledge: %w", err)
			}
			o.Progress(int64(pass-1)*m.Bytes+to*int64(m.BlockBytes), int64(m.Passes)*m.Bytes)
		}
	}
	return nil
}

type writer struct {
	s       Storage
	m       *Manifest
	g       *content.Generator
	o       Options
	buffers [][]byte
}

// turns writes those blocks of a pass whose turn it is, several at once.
func (w *writer) turns(ctx context.Context, pass int, from, to int64) error {
	size := int64(w.m.BlockBytes)
	order := w.m.order(pass)
	together := int64(1)
	if w.m.Order == Sequential {
		together = chunk / size
	}
	return direct.Each(ctx, w.o.Workers, (to-from+together-1)/together, func(worker int, i int64) error {
		turn := from + i*together
		at := order.block(turn) * size
		b := w.buffers[worker][:min(together, to-turn)*size]
		w.g.Fill(b, int64(pass-1)*w.m.Bytes+at) // a pattern has one pass only
		if w.m.Pattern == "" {
			stampAll(b, at, w.m, pass, w.o.Now())
		}
		if _, err := w.s.WriteAt(b, at); err != nil {
			return fmt.Errorf("write at byte %d: %w", at, err)
		}
		return nil
	})
}
