package integrity

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// Record holds what a write has told while it went on: what it set out to write, and the last that it was told is safe.
type Record struct {
	Manifest     Manifest     `json:"manifest"`
	Acknowledged Acknowledged `json:"acknowledged"`
}

// The lines of a record, among the others that a worker prints: a word, the CRC-32C of the rest in hexadecimal digits,
// JSON. What was damaged on its way is told from what was said.
const (
	manifestWord     = "integrity-write"
	acknowledgedWord = "integrity-acknowledged"
	verifiedWord     = "integrity-verified"
)

// Words are what the lines of a record begin with.
func Words() []string { return []string{manifestWord, acknowledgedWord, verifiedWord} }

// sayLine makes a line.
func sayLine(word string, what any) ([]byte, error) {
	data, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %08x %s\n", word, crc32.Checksum(data, castagnoli), data), nil
}

// lineOf reads what a line of that word says into what; whole is false when the line was damaged or cut off.
func lineOf(line, word string, what any) (is, whole bool) {
	rest, is := strings.CutPrefix(line, word+" ")
	if !is {
		return false, false
	}
	sum, text, ok := strings.Cut(rest, " ")
	whole = ok && sum == fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli))
	if whole {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		whole = d.Decode(what) == nil && !d.More()
	}
	return true, whole
}

// longestLine is far more than any of a record's lines but the last of a verification is, in bytes; others are cut.
const longestLine = 1 << 20

// ReadRecord reads the record in the output of a write. It may end anywhere: what was said until then counts. Lines
// that are damaged say nothing; one that is lost takes nothing from those after it, for each says all.
func ReadRecord(r io.Reader) (*Record, error) {
	var rec Record
	begun, damaged := false, 0
	in := bufio.NewReaderSize(r, longestLine)
	for {
		line, err := in.ReadSlice('\n')
		text := string(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			text = "" // the end of it may not have come
		}
		var m Manifest
		var a Acknowledged
		if is, whole := lineOf(text, manifestWord, &m); is && whole {
			if begun {
				return nil, errors.New("it is the record of two writes: which of them is meant cannot be told")
			}
			if err := m.check(); err != nil {
				return nil, fmt.Errorf("what was to be written: %w", err)
			}
			rec.Manifest, rec.Acknowledged, begun = m, Acknowledged{Pass: 1}, true
		} else if is {
			damaged++
		}
		if is, whole := lineOf(text, acknowledgedWord, &a); is && whole && begun {
			if err := a.check(&rec.Manifest); err != nil {
				return nil, err
			}
			was := rec.Acknowledged
			if a.Sequence <= was.Sequence || a.Writes(&rec.Manifest) < was.Writes(&rec.Manifest) {
				return nil, fmt.Errorf("acknowledgement %d comes after %d and goes back: it is no record of one write",
					a.Sequence, was.Sequence)
			}
			rec.Acknowledged = a
		}
		switch {
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
		case !errors.Is(err, io.EOF):
			return nil, err
		case begun:
			return &rec, nil
		case damaged > 0:
			return nil, errors.New("the line that says what was to be written is damaged, so nothing can be held to it")
		default:
			return nil, errors.New("it holds no record of a write: none had begun; let the writing run for longer")
		}
	}
}

// parseRecord reads a record that was put on a machine.
func parseRecord(data []byte) (*Record, error) {
	var rec Record
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, fmt.Errorf("it is no record: %w", err)
	}
	if err := rec.Manifest.check(); err != nil {
		return nil, err
	}
	return &rec, rec.Acknowledged.check(&rec.Manifest)
}
