package web

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"plimsoll/internal/kit/outfile"
	"plimsoll/result"
)

const (
	// worthKeeping is how many runs are read anew before what is known of all is written down again.
	worthKeeping = 200
	largestIndex = 256 << 20 // bytes
	// indexForm changes when what is kept does: builds in the making are all of one version.
	indexForm = "2 "
)

// remembered is a run that has ended, as a file keeps it from one server to the next: what lists show of it, and the
// mark of the files that it was read from. A run whose mark is another one is read anew.
type remembered struct {
	Dir, Metrics, Mark string
	Manifest           result.Manifest
	Labels             result.Labels
	ID, Above          string
	Made               int64 // Unix nanoseconds
}

// recall returns the runs that a file keeps, by their folders; none when it is of another version, or damaged.
func recall(file, version string) map[string]*book {
	if file == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	in := gob.NewDecoder(io.LimitReader(f, largestIndex))
	var of string
	if in.Decode(&of) != nil || of != version {
		return nil
	}
	books := map[string]*book{}
	for {
		var k remembered
		if err := in.Decode(&k); err != nil {
			if errors.Is(err, io.EOF) {
				return books
			}
			return nil // all is read anew
		}
		books[k.Dir] = &book{id: k.ID, dir: k.Dir, above: k.Above, metrics: k.Metrics, manifest: k.Manifest,
			labels: k.Labels, readable: true, made: time.Unix(0, k.Made).UTC(), mark: k.Mark}
	}
}

// keepBooks writes down what is known of the runs that have ended and can be read in full.
func keepBooks(file, version string, books []*book) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return outfile.Replace(file, func(w io.Writer) error {
		out := gob.NewEncoder(w)
		if err := out.Encode(version); err != nil {
			return err
		}
		for _, b := range books {
			if b.manifest.Ended.IsZero() || !b.readable || b.problem != "" {
				continue
			}
			k := remembered{Dir: b.dir, Metrics: b.metrics, Mark: b.mark, Manifest: b.manifest, Labels: b.labels,
				Made: b.made.UnixNano()}
			k.ID, k.Above = b.id, b.above
			if err := out.Encode(k); err != nil {
				return err
			}
		}
		return nil
	})
}
