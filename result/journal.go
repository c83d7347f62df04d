package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"plimsoll/internal/kit/regular"
)

// What is read of a journal: longer lines are skipped and named, and what is beyond the end is left out, which is
// said. Ten thousand machines leave some 20 MB.
const (
	longestLine    = 4 << 20
	longestJournal = 128 << 20
	mostSkipped    = 20 // lines that are named
)

// AppendEvent writes one event as one line with one write, so that a reader or a crash sees whole lines but for the
// last one. The boundaries of the run, of phases and of steps are synced to the device before it returns.
//
// The event's time is placed by the monotonic clock relative to the manifest's Created where both carry a monotonic
// reading: a step of the wall clock during a run does not turn the journal's order round.
func (f *Folder) AppendEvent(e Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return errors.New("journal: the folder is open for reading only")
	}
	if f.journal == nil {
		resum, err := f.openSums()
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		f.resum = resum
		file, err := f.openJournal()
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		f.journal = file
	}
	if !f.base.IsZero() {
		e.Time = f.base.Add(e.Time.Sub(f.base))
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %s event: %w", e.Kind, err)
	}
	if err := regular.Append(f.journal, append(line, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	switch e.Kind {
	case KindRunStart, KindRunEnd, KindPhase, KindStepStart, KindStepEnd, KindFault:
		if err := f.disk.sync(f.journal); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return nil
}

// openJournal opens the journal for appending; a torn last line, left by a killed process, is ended first.
func (f *Folder) openJournal() (*os.File, error) {
	file, err := regular.Open(filepath.Join(f.dir, journalFile), os.O_CREATE|os.O_RDWR|os.O_APPEND|regular.NoLinks)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = f.disk.syncFolder(f.dir)
	}
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err = file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			_, err = file.WriteString("\n")
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Events reads the journal. Lines that cannot be read are left out and named in skipped; a last line without its end is
// the usual mark of a killed process. A journal that does not exist is empty.
func (f *Folder) Events() (events []Event, skipped []string, err error) {
	file, err := regular.Open(filepath.Join(f.dir, journalFile), os.O_RDONLY|regular.NoLinks)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("journal: %w", err)
	}
	defer file.Close()
	events, skipped, err = readJournal(file)
	if err != nil {
		return events, skipped, fmt.Errorf("journal: %w", err)
	}
	return events, skipped, nil
}

func readJournal(r io.Reader) (events []Event, skipped []string, err error) {
	bounded := &io.LimitedReader{R: r, N: longestJournal}
	br := bufio.NewReaderSize(bounded, 64<<10)
	unnamed := 0
	skip := func(n int, format string, args ...any) {
		if len(skipped) == mostSkipped {
			unnamed++
			return
		}
		skipped = append(skipped, fmt.Sprintf("journal line %d: ", n)+fmt.Sprintf(format, args...))
	}
	defer func() {
		if unnamed > 0 {
			skipped = append(skipped, fmt.Sprintf("journal: %d more lines like these", unnamed))
		}
		if bounded.N == 0 {
			const say = "journal: it is larger than %d MiB; the rest was not read"
			skipped = append(skipped, fmt.Sprintf(say, longestJournal>>20))
		}
	}()
	for n := 1; ; n++ {
		line, size, whole, err := readLine(br)
		if err != nil {
			return events, skipped, err
		}
		if size == 0 {
			return events, skipped, nil
		}
		var e Event
		switch {
		case size > longestLine:
			skip(n, "%d bytes are too long", size)
		case len(bytes.TrimSpace(line)) == 0:
		case json.Unmarshal(line, &e) != nil && !whole:
			skip(n, "torn (the process ended while writing it)")
		case json.Unmarshal(line, &e) != nil:
			skip(n, "not a journal event")
		case e.Kind == "":
			skip(n, "an event without a kind")
		default:
			e.fill()
			events = append(events, e)
		}
	}
}

// readLine returns the next line without keeping more than longestLine of it, its full size, and whether it ended in a
// newline.
func readLine(br *bufio.Reader) (line []byte, size int, whole bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		size += len(part)
		if size <= longestLine {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return line, size, true, nil
		case errors.Is(err, io.EOF):
			return line, size, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, false, err
		}
	}
}
