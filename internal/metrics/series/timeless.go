package series

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/tsdb"
)

// seal turns everything into blocks whose files depend on the points alone: not on when they were compacted, and
// without the log, whose order of series does. It closes the database.
func (s *Store) seal() error {
	dir, head := s.db.Dir(), s.db.Head()
	var err error
	if head.NumSeries() > 0 {
		err = errors.Join(s.db.CompactOOOHead(context.Background()),
			s.db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())))
	}
	if err := errors.Join(err, s.db.Close()); err != nil {
		return err // the log still has the histograms
	}
	if err := s.blocks.close(); err != nil {
		return err
	}
	for _, name := range []string{"wal", "wbl", "chunks_head"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return s.blocks.rename()
}

// Sums are the sums of files of a Timeless database that was closed, by their paths in it: of those that are large.
func (s *Store) Sums() map[string]string {
	if s.blocks == nil {
		return nil
	}
	return s.blocks.sums
}

// rename gives the blocks, whose names are drawn at random, names by their order in time.
func (w *blockWriter) rename() error {
	dir, sums := w.dir, map[string]string{}
	found, err := fs.Glob(os.DirFS(dir), "*/"+metaFile)
	if err != nil {
		return err
	}
	type block struct {
		dir  string
		meta tsdb.BlockMeta
	}
	var blocks []block
	for _, name := range found {
		b := block{dir: filepath.Join(dir, filepath.Dir(name))}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(data, &b.meta)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return bytes.Compare(fmt.Appendf(nil, "%020d %d", a.meta.MinTime, a.meta.Stats.NumSamples),
			fmt.Appendf(nil, "%020d %d", b.meta.MinTime, b.meta.Stats.NumSamples))
	})
	for i, b := range blocks {
		name := fmt.Sprintf("%026d", i+1) // digits are letters of a ULID, too
		if err := b.meta.ULID.UnmarshalText([]byte(name)); err != nil {
			return err
		}
		b.meta.Compaction.Sources = append(b.meta.Compaction.Sources[:0], b.meta.ULID)
		data, err := json.MarshalIndent(b.meta, "", "\t")
		if err == nil {
			err = os.WriteFile(filepath.Join(b.dir, metaFile), data, 0o644)
		}
		if err == nil {
			err = os.Rename(b.dir, filepath.Join(dir, name))
		}
		if err != nil {
			return err
		}
		for file, sum := range w.sums {
			if block, rest, _ := strings.Cut(file, "/"); block == filepath.Base(b.dir) {
				sums[name+"/"+rest] = sum
			}
		}
	}
	w.sums = sums
	return nil
}

const metaFile = "meta.json"
