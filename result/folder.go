package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll/internal/kit/regular"
)

// Names of the documents and folders inside a run folder.
const (
	manifestFile = "manifest.json"
	planFile     = "plan.json"
	journalFile  = "journal.jsonl"
	dataFile     = "data.json"
	findingsFile = "findings.json"
	reportFile   = "report.html"
	scenarioDir  = "scenario"
	rawDir       = "raw"
	metricsDir   = "metrics"
	stateDir     = "state"
	workDir      = "work"
	scenarioFile = "test.yml"
	renderedFile = "test-parsed.yml"
)

// Statuses of a run, as Manifest.Status holds them.
const (
	StatusExecuting   = "executing"
	StatusSucceeded   = "succeeded"
	StatusFailed      = "failed"
	StatusStopped     = "stopped"
	StatusInterrupted = "interrupted" // the folder says executing, but no process executes it
)

// Folder is one open run folder. A Folder from Create may be written until Close; one from Open is for reading, and for
// the documents that can be made again (data, findings, report, verdicts). It is safe for concurrent use.
type Folder struct {
	dir      string
	mu       sync.Mutex
	manifest Manifest
	problems []string
	journal  *os.File
	resum    bool     // the journal gets its sum again at Close
	lock     *os.File // nil when opened for reading
	base     time.Time
	timeless *zstd.Encoder // not nil after Timeless
	sums     sync.Map      // of files whose sum was taken while they were written, by their path in the folder
	disk     disk
}

// LockFile is the file in a run folder whose lock the process holds that executes the run.
const LockFile = "lock"

// OutputFile holds what a detached run prints, in its folder. It goes on after the sums are taken, so it has none.
const OutputFile = "output.log"

// NewRunID makes a run's identity: sortable by time, readable, unique by its random part, which the caller draws.
func NewRunID(now time.Time, scenarioName string, random uint16) string {
	slug := slugOf(scenarioName)
	return fmt.Sprintf("%s-%s-%04x", now.UTC().Format("20060102-150405"), slug, random)
}

func slugOf(name string) string {
	const longest = 40
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteRune(r)
			gap = false
			if b.Len() >= longest {
				break
			}
			continue
		}
		gap = true
	}
	if b.Len() == 0 {
		return "run"
	}
	return b.String()
}

// Create makes the folder root/m.RunID, takes its lock for this process and writes the first manifest. m.Version,
// m.Status and the verdicts are filled in where empty. A folder that exists already is an error.
func Create(root string, m Manifest) (*Folder, error) { return create(root, m, (*os.File).Sync) }

func create(root string, m Manifest, to disk) (*Folder, error) {
	if err := checkRunID(m.RunID); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	m.Version = FormatVersion
	if m.Status == "" {
		m.Status = StatusExecuting
	}
	for _, v := range []*Verdict{&m.Measured, &m.Collected, &m.Cleaned} {
		if v.State == "" {
			v.State = "pending"
		}
	}
	dir, err := filepath.Abs(filepath.Join(root, m.RunID))
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	switch made, err := to.folder(dir); {
	case err != nil:
		return nil, fmt.Errorf("run folder: %w", err)
	case !made:
		return nil, fmt.Errorf("run folder: %s exists already; choose another run id", dir)
	}
	f := &Folder{dir: dir, manifest: m, base: m.Created, disk: to}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("run folder: %s: %w", dir, err), f.Close(), os.RemoveAll(dir))
	}
	return f, nil
}

// Move puts the whole folder, nothing of which is being written, where nothing but an empty folder is.
func (f *Folder) Move(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.Rename(f.dir, dir); err != nil {
		return err
	}
	f.dir = dir
	return f.disk.syncFolder(filepath.Dir(dir))
}

func (f *Folder) prepare() error {
	lock, err := takeLock(filepath.Join(f.dir, LockFile))
	if err != nil {
		return err
	}
	f.lock = lock
	for _, d := range []string{scenarioDir, rawDir, metricsDir, stateDir} {
		if err := os.Mkdir(filepath.Join(f.dir, d), 0o755); err != nil { // the manifest has their names survive
			return err
		}
	}
	if err := f.takeRoom(); err != nil {
		return err
	}
	return f.writeManifest()
}

func checkRunID(id string) error {
	switch {
	case id == "":
		return errors.New("the manifest has no run id")
	case strings.ContainsAny(id, "/\\\x00") || strings.HasPrefix(id, "."):
		return fmt.Errorf("%q cannot be a run id: it must be a plain file name", id)
	}
	return nil
}

// Close flushes the journal, takes the sums of a run that has ended and gives up the lock. The folder can still be
// read.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	if f.journal != nil {
		errs = append(errs, f.disk.sync(f.journal), f.journal.Close())
		f.journal = nil
	}
	if f.resum {
		errs, f.resum = append(errs, f.closeSums()), false
	}
	if f.lock != nil {
		f.giveRoom()
		if f.manifest.Status != StatusExecuting {
			errs = append(errs, f.seal())
		}
		errs = append(errs, f.lock.Truncate(0), f.lock.Close())
		f.lock = nil
	}
	return errors.Join(errs...)
}

// Dir is the folder's absolute path.
func (f *Folder) Dir() string { return f.dir }

// MetricsDir is where the embedded metrics database lives.
func (f *Folder) MetricsDir() string { return filepath.Join(f.dir, metricsDir) }

// StateDir is private to the target: what it made, for clean-up.
func (f *Folder) StateDir() string { return filepath.Join(f.dir, stateDir) }

// WorkDir holds disks and working folders of local machines; the target makes it.
func (f *Folder) WorkDir() string { return filepath.Join(f.dir, workDir) }

// ReportPath is where the report is written.
func (f *Folder) ReportPath() string { return filepath.Join(f.dir, reportFile) }

// The folders of what is kept beside the runs. A name that begins with a dot is no run. That of the catalogue may be a
// link to a shared folder, or a clone of a git repository.
const (
	BaselineDir  = ".baselines"
	CatalogueDir = ".catalogue"
	HistoryDir   = ".histories"
)

// The files of an experiment: what it is, and how far it came.
const (
	ExperimentFile = "experiment.json"
	CellsFile      = "cells.jsonl"
)

// RecordOf is the folder of a run, of an experiment or of what is kept beside them that a file is a part of, or would
// be; "" for none, for a report in one, and for what is new beside that.
func RecordOf(name string) string {
	parent, err := filepath.EvalSymlinks(filepath.Dir(name))
	real := filepath.Join(parent, filepath.Base(name))
	there, missing := filepath.EvalSymlinks(name)
	if missing == nil {
		real, err = there, nil
	}
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil || filepath.Base(real) == reportFile {
		return ""
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		holds := func(names ...string) bool {
			return !slices.ContainsFunc(names, func(name string) bool {
				_, err := os.Lstat(filepath.Join(dir, name))
				return err != nil
			})
		}
		switch base := filepath.Base(dir); {
		case base == BaselineDir, base == CatalogueDir, base == HistoryDir:
			return dir
		case holds(manifestFile, journalFile), holds(ExperimentFile, CellsFile):
			if missing != nil && dir == filepath.Dir(real) {
				return ""
			}
			return dir
		case dir == filepath.Dir(dir):
			return ""
		}
	}
}

// WriteReport stores the report.
func (f *Folder) WriteReport(write func(io.Writer) error) error {
	return f.WriteFile(reportFile, write)
}

// WriteFile stores a document beside those that this package knows.
func (f *Folder) WriteFile(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := replace(f.dir, name, b.Bytes(), false, f.disk); err != nil {
		return fmt.Errorf("run folder: %s: %w", name, err)
	}
	return nil
}

// ScenarioDir is where the copy of the scenario directory is.
func (f *Folder) ScenarioDir() string { return filepath.Join(f.dir, scenarioDir) }

// Manifest returns the manifest as last read or written. The status of a run that says executing, while no process
// holds its lock, is StatusInterrupted.
func (f *Folder) Manifest() Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.manifest
	m.Status = f.status()
	return m
}

// status is called with the mutex held.
func (f *Folder) status() string {
	s := f.manifest.Status
	if s != StatusExecuting || f.lock != nil {
		return s
	}
	if held, _ := lockHeld(filepath.Join(f.dir, LockFile)); !held {
		return StatusInterrupted
	}
	return s
}

// Problems lists what could not be read when the folder was opened, in words.
func (f *Folder) Problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.problems...)
}

// Update changes the manifest and writes it atomically. change runs under the folder's mutex and must not call it.
func (f *Folder) Update(change func(*Manifest)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.manifest)
	return f.writeManifest()
}

// WriteManifest replaces the manifest and writes it atomically.
func (f *Folder) WriteManifest(m Manifest) error { return f.Update(func(old *Manifest) { *old = m }) }

func (f *Folder) writeManifest() error {
	f.manifest.Version = FormatVersion
	return f.writeJSON(manifestFile, &f.manifest, true)
}

// WritePlan stores the plan, encoded as JSON, before anything is touched.
func (f *Folder) WritePlan(plan any) error { return f.writeJSON(planFile, plan, true) }

// Plan returns the stored plan as it was encoded.
func (f *Folder) Plan() (json.RawMessage, error) {
	b, err := readDocument(filepath.Join(f.dir, planFile))
	if err != nil {
		return nil, fmt.Errorf("run folder: plan: %w", err)
	}
	if !json.Valid(b) {
		return nil, fmt.Errorf("run folder: plan: %s is damaged: not valid JSON", planFile)
	}
	return b, nil
}

// WriteData stores the collected data.
func (f *Folder) WriteData(d *Data) error {
	d.Version = FormatVersion
	return f.writeJSON(dataFile, d, false)
}

// Data reads the collected data; errors.Is(err, fs.ErrNotExist) when nothing was collected yet.
func (f *Folder) Data() (*Data, error) {
	d := new(Data)
	doc, err := f.readJSON(dataFile, d)
	if err != nil {
		return nil, err
	}
	if err := d.upgrade(doc); err != nil {
		return nil, fmt.Errorf("run folder: %s: %w", dataFile, err)
	}
	d.tellWindows()
	d.judgeByWindows()
	return d, nil
}

// Workloads reads the workloads of the collected data alone, for lists of many runs.
func (f *Folder) Workloads() ([]Workload, error) {
	var part struct {
		Version   int        `json:"version"`
		Workloads []Workload `json:"workloads"`
	}
	if _, err := f.readJSON(dataFile, &part); err != nil {
		return nil, err
	}
	d := Data{Version: part.Version, Workloads: part.Workloads}
	if err := d.upgrade([]byte("{}")); err != nil { // there are no series to upgrade
		return nil, fmt.Errorf("run folder: %s: %w", dataFile, err)
	}
	d.tellWindows()
	d.judgeByWindows()
	return d.Workloads, nil
}

// findingsDoc is findings.json.
type findingsDoc struct {
	Version  int       `json:"version"`
	Findings []Finding `json:"findings"`
}

// WriteFindings stores the findings.
func (f *Folder) WriteFindings(list []Finding) error {
	return f.writeJSON(findingsFile, findingsDoc{FormatVersion, list}, true)
}

// Findings reads the findings; errors.Is(err, fs.ErrNotExist) when there are none yet.
func (f *Folder) Findings() ([]Finding, error) {
	var doc findingsDoc
	if _, err := f.readJSON(findingsFile, &doc); err != nil {
		return nil, err
	}
	rankOld(doc.Findings)
	return doc.Findings, nil
}

// oldRanks are of the checks that told what a run was made to find out when findings did not carry their ranks yet.
var oldRanks = map[string]int{"scalability": 110, "load-curve": 110, "recovery": 120, "windows": 130,
	"latency-cost": 130, "ingest": 140, "residency": 150, "cache-steps": 160}

// rankOld gives findings that were kept before they carried the rank of their check that of then.
func rankOld(list []Finding) {
	if slices.ContainsFunc(list, func(f Finding) bool { return f.Rank != 0 }) {
		return
	}
	for i := range list {
		list[i].Rank = oldRanks[list[i].Check]
		if list[i].Check == "windows" {
			list[i].Harm = new(float64)
		}
	}
}

// roomFile keeps room on the disk for the last manifest of a run: how it ended is told also when the disk is full.
const (
	roomFile  = "room"
	roomBytes = 256 << 10
)

// takeRoom fills the room, with bytes that no file system makes less of.
func (f *Folder) takeRoom() error {
	b := make([]byte, roomBytes)
	rand.NewChaCha8([32]byte{}).Read(b) //nolint:errcheck // it never fails
	return os.WriteFile(filepath.Join(f.dir, roomFile), b, 0o600)
}

// giveRoom gives the room back, and says whether there was any.
func (f *Folder) giveRoom() bool { return os.Remove(filepath.Join(f.dir, roomFile)) == nil }

func (f *Folder) writeJSON(name string, v any, indent bool) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("run folder: %s: %w", name, err)
	}
	err := replace(f.dir, name, buf.Bytes(), name == manifestFile, f.disk)
	if regular.Full(err) && name == manifestFile && f.giveRoom() {
		err = replace(f.dir, name, buf.Bytes(), true, f.disk)
	}
	if err != nil {
		return fmt.Errorf("run folder: %s: %w", name, err)
	}
	return nil
}

// readJSON reads a versioned document, and gives its bytes as well.
func (f *Folder) readJSON(name string, v any) ([]byte, error) {
	b, err := readDocument(filepath.Join(f.dir, name))
	if err != nil {
		return nil, fmt.Errorf("run folder: %s: %w", name, err)
	}
	if err := checkVersion(b); err != nil {
		return nil, fmt.Errorf("run folder: %s: %w", name, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("run folder: %s is damaged: %w", name, err)
	}
	return b, nil
}

// NewerError says that a folder was written by a newer program than this one.
type NewerError struct {
	Have, Supported int
}

// Error implements error.
func (e *NewerError) Error() string {
	return fmt.Sprintf("written in format version %d; this program reads up to version %d: use a newer plimsoll",
		e.Have, e.Supported)
}

func checkVersion(doc []byte) error {
	var v struct {
		Version *int `json:"version"`
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	begin, _ := d.Token()
	name, _ := d.Token()
	if begin != json.Delim('{') || name != "version" || d.Decode(&v.Version) != nil { // it is written first
		if err := json.Unmarshal(doc, &v); err != nil {
			return fmt.Errorf("damaged: %w", err)
		}
	}
	switch {
	case v.Version == nil || *v.Version < 1:
		return errors.New("damaged: no format version")
	case *v.Version > FormatVersion:
		return &NewerError{Have: *v.Version, Supported: FormatVersion}
	}
	return nil
}
