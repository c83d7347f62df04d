package integrity

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/kit/regular"
)

// version is that of the manifest and of the stamps.
const version = 1

// The orders of a pass.
const (
	Sequential = "sequential"
	Random     = "random"
)

// Manifest says what was to be written, so that it can be verified without what wrote it. It is on its medium before
// the first block is.
type Manifest struct {
	Version    int       `json:"version"`
	Run        string    `json:"run"`  // 16 hexadecimal digits, in every stamp
	Path       string    `json:"path"` // where it was written; verify is told where it is now
	Made       time.Time `json:"made"`
	Bytes      int64     `json:"bytes"`
	BlockBytes int       `json:"block_bytes"`
	Passes     int       `json:"passes"` // pass n writes generation n of every block
	Order      string    `json:"order"`
	// FlushBytes is how much is written between two flushes; what was flushed is acknowledged.
	FlushBytes             int64  `json:"flush_bytes"`
	CompressibilityPercent int    `json:"compressibility_percent"` // of the payload
	Pattern                string `json:"pattern_hex,omitempty"`   // nothing but this, and no stamps
	run                    uint64 // Run
	pattern                []byte // Pattern
}

// Acknowledged is how far a write had come when it last flushed: all passes before Pass, and of that the first Blocks
// blocks in their order, had been taken by the storage for good.
type Acknowledged struct {
	Sequence uint64 `json:"sequence"`
	Pass     int    `json:"pass"`
	Blocks   int64  `json:"blocks"`
}

// check objects to what a manifest's write cannot have acknowledged.
func (a Acknowledged) check(m *Manifest) error {
	if a.Pass < 1 || a.Pass > m.Passes || a.Blocks < 0 || a.Blocks > m.blocks() {
		return fmt.Errorf("it acknowledges %d blocks of pass %d, and its manifest has %d of %d: they do not belong "+
			"together", a.Blocks, a.Pass, m.blocks(), m.Passes)
	}
	return nil
}

// Writes is how many blocks were acknowledged, each as often as it was written.
func (a Acknowledged) Writes(m *Manifest) int64 { return int64(a.Pass-1)*m.blocks() + a.Blocks }

// Claimed is how many of the blocks were ever acknowledged.
func (a Acknowledged) Claimed(m *Manifest) int64 {
	if a.Pass > 1 {
		return m.blocks()
	}
	return a.Blocks
}

// mostPasses is as many as a write that ends with its time is given.
const mostPasses = 1_000_000

// largest is far more than a manifest or what is acknowledged takes, in bytes.
const largest = 64 << 10

// check objects to what no manifest says.
func (m *Manifest) check() error {
	var wrong []error
	object := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if m.Version != version {
		return fmt.Errorf("version %d: this program knows %d", m.Version, version)
	}
	number, err := hex.DecodeString(m.Run)
	if err != nil || len(number) != 8 {
		object("run %q: want 16 hexadecimal digits", m.Run)
	} else {
		m.run = binary.BigEndian.Uint64(number)
	}
	if b := m.BlockBytes; b < Sector || b > chunk || b&(b-1) != 0 {
		object("block of %d bytes: want a power of two, %d to %d", b, Sector, chunk)
	} else if m.Bytes < int64(b) || m.Bytes%int64(b) != 0 || m.Bytes > 1<<50 {
		object("%d bytes: want whole blocks of %d bytes, one at least and 1 PiB at most", m.Bytes, b)
	}
	if m.Passes < 1 || m.Passes > mostPasses {
		object("%d passes: want 1 to %d", m.Passes, mostPasses)
	}
	if m.Order != Sequential && m.Order != Random {
		object("order %q: want %s or %s", m.Order, Sequential, Random)
	}
	if m.FlushBytes < 1 {
		object("a flush every %d bytes: want at least 1", m.FlushBytes)
	}
	if m.pattern, err = hex.DecodeString(m.Pattern); err != nil || len(m.pattern) > 64 {
		object("pattern %q: want at most 64 bytes as hexadecimal digits", m.Pattern)
	}
	if m.Pattern != "" && m.Passes > 1 {
		object("%d passes of one pattern are all alike, so there is nothing to tell them by: want 1", m.Passes)
	}
	if c := m.CompressibilityPercent; c < 0 || c > 95 {
		object("compressibility %d %%: want 0 to 95", c)
	}
	return errors.Join(wrong...)
}

// blocks is the number of blocks.
func (m *Manifest) blocks() int64 { return m.Bytes / int64(m.BlockBytes) }

// order is that of a pass.
func (m *Manifest) order(pass int) order {
	if m.Order == Sequential {
		return order{blocks: m.blocks()}
	}
	return mixed(m.blocks(), m.run+uint64(pass))
}

// Ledger is a manifest on its medium, with what was acknowledged beside it.
type Ledger struct {
	Manifest Manifest
	Name     string // of the manifest's file
	file     *os.File
	last     Acknowledged
}

// Create writes a manifest, and that nothing is acknowledged yet, into a folder. When it returns both are on their
// medium. Of the manifest, Version, Run and Made are filled in.
func Create(dir string, m Manifest, now time.Time) (*Ledger, error) {
	m, err := m.begun(now)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l := &Ledger{Manifest: m, Name: filepath.Join(dir, "integrity-"+m.Run+".json")}
	if err := l.create(append(data, '\n')); err != nil {
		return nil, errors.Join(err, l.Remove())
	}
	return l, nil
}

// begun is a manifest of a write that begins now, with a number of its own.
func (m Manifest) begun(now time.Time) (Manifest, error) {
	var number [8]byte
	_, _ = rand.Read(number[:]) // never fails
	m.Version, m.Run, m.Made = version, hex.EncodeToString(number[:]), now.UTC().Truncate(time.Second)
	err := m.check()
	return m, err
}

func (l *Ledger) create(data []byte) error {
	f, err := os.OpenFile(l.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if l.file, err = os.OpenFile(besides(l.Name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return err
	}
	for range slots {
		if err := l.Acknowledge(1, 0); err != nil {
			return err
		}
	}
	folder, err := os.Open(filepath.Dir(l.Name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// besides is the file of what is acknowledged.
func besides(name string) string { return strings.TrimSuffix(name, ".json") + ".acknowledged" }

// What is acknowledged is kept in two slots that are written by turns, so that one of them is whole at any moment, and
// the file never grows. A slot is a line: CRC-32C in hexadecimal digits, a blank, JSON, blanks.
const (
	slots     = 2
	slotBytes = 4096
)

// Acknowledge says that the first blocks of a pass were flushed. It is on its medium when this returns.
func (l *Ledger) Acknowledge(pass int, blocks int64) error {
	l.last = Acknowledged{Sequence: l.last.Sequence + 1, Pass: pass, Blocks: blocks}
	data, err := json.Marshal(l.last)
	if err != nil {
		return err
	}
	slot := bytes.Repeat([]byte{' '}, slotBytes)
	copy(slot, fmt.Sprintf("%08x %s", crc32.Checksum(data, castagnoli), data))
	slot[slotBytes-1] = '\n'
	if _, err := l.file.WriteAt(slot, int64(l.last.Sequence%slots)*slotBytes); err != nil {
		return err
	}
	return l.file.Sync()
}

// Close closes the files, which stay.
func (l *Ledger) Close() error { return l.file.Close() }

// Remove removes the files.
func (l *Ledger) Remove() error {
	var err error
	for _, name := range []string{l.Name, besides(l.Name)} {
		if e := os.Remove(name); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Read reads a manifest and what was acknowledged by the name of the former. Both were somewhere else meanwhile: what
// they say is checked.
func Read(name string) (*Manifest, Acknowledged, error) {
	data, err := regular.Read(name, 0, largest)
	if err != nil {
		return nil, Acknowledged{}, err
	}
	m, err := parseManifest(data)
	if err != nil {
		return nil, Acknowledged{}, fmt.Errorf("%s: %w", name, err)
	}
	if data, err = regular.Read(besides(name), 0, largest); err != nil {
		return nil, Acknowledged{}, fmt.Errorf("what was acknowledged, beside the manifest: %w", err)
	}
	a, err := parseAcknowledged(data, m)
	if err != nil {
		return nil, Acknowledged{}, fmt.Errorf("%s: %w", besides(name), err)
	}
	return m, a, nil
}

func parseManifest(data []byte) (*Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("it is no manifest of integrity write: %w", err)
	}
	if d.More() {
		return nil, errors.New("it is no manifest of integrity write: more follows it")
	}
	return &m, m.check()
}

// parseAcknowledged gives the newer of the slots that are whole.
func parseAcknowledged(data []byte, m *Manifest) (newest Acknowledged, err error) {
	found := false
	for ; len(data) >= slotBytes; data = data[slotBytes:] {
		sum, text, ok := strings.Cut(strings.TrimRight(string(data[:slotBytes]), " \n"), " ")
		var a Acknowledged
		if !ok || sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli)) ||
			json.Unmarshal([]byte(text), &a) != nil {
			continue
		}
		if err := a.check(m); err != nil {
			return newest, err
		}
		if !found || a.Sequence > newest.Sequence {
			newest, found = a, true
		}
	}
	if !found {
		return newest, errors.New("no part of it is whole, so nothing says what was acknowledged")
	}
	return newest, nil
}
