package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/untyped"
	"plimsoll/result"
	"plimsoll/scenario"
)

// FormatVersion is the version of an experiment's folder.
const FormatVersion = 1

// RunsFolder is where the run folders lie inside an experiment's.
const RunsFolder = "runs"

const (
	recordFile  = result.ExperimentFile
	cellsFile   = result.CellsFile
	scenarioDir = "scenario"
	reportFile  = "report.html"
)

// Record tells what an experiment is. It is written once, but for that of a search, which grows by a cell and a run at
// a time; what has happened is in the events.
type Record struct {
	Version      int       `json:"version"`
	ID           string    `json:"experiment_id"`
	Program      string    `json:"program"`
	Operator     string    `json:"operator"`
	Created      time.Time `json:"created"`
	ScenarioName string    `json:"scenario_name"`
	DisplayName  string    `json:"display_name"`
	Summary      string    `json:"summary"`
	Source       string    `json:"source"`         // the scenario as the user named it
	File         string    `json:"file,omitempty"` // of the scenario inside scenario/; "" for its test.yml
	Factors      []Factor  `json:"factors"`
	Repeats      int       `json:"repeats"`
	Order        string    `json:"order"`
	Seed         int64     `json:"seed"`
	Cells        []Cell    `json:"cells"`
	Sequence     []Planned `json:"sequence"`
	Settings     Settings  `json:"settings"`
	Mark         *Mark     `json:"mark,omitempty"`
	Sum          string    `json:"sum,omitempty"` // of all this; see sealed
}

// Mark says what a search looks for: the highest rate at which limits hold. Each probe is a run of a cell of its own.
type Mark struct {
	Workload string   `json:"workload"`
	Variable string   `json:"variable"`          // of the scenario, that sets the rate
	Rated    bool     `json:"rated,omitempty"`   // no variable: the workload's jobs get the rate as an option
	VMs      bool     `json:"vms,omitempty"`     // no variable: the number of VMs of the workload's group
	Clients  bool     `json:"clients,omitempty"` // Variable is the number of clients of a database
	Unit     string   `json:"unit,omitempty"`    // of numbers: "VMs", "VMs per node", "users" and the like
	Limits   []string `json:"limits"`            // as asserts of a command line
	Start    float64  `json:"start"`             // first value of Variable; 0: a run without a rate says it
	Most     float64  `json:"most,omitempty"`
	Whole    bool     `json:"whole,omitempty"` // Variable takes whole numbers
	Within   float64  `json:"within"`
	Seconds  float64  `json:"probe_seconds,omitempty"` // for how long a rate is offered at least; 0: as the scenario says
	Probes   int      `json:"probes"`
	Least    float64  `json:"assert_least_ops,omitempty"` // the mark must be so high
	At       float64  `json:"at_ops,omitempty"`           // the user's own rate, which is held against the mark
	// Conditions are what the search is repeated under, a line each; none: the scenario as it is written.
	Conditions []Condition `json:"conditions,omitempty"`
}

// Counts reports whether a number is looked for, of VMs or clients, and no rate.
func (m *Mark) Counts() bool { return m.VMs || m.Clients }

// Factor is a factor as the record keeps it.
type Factor struct {
	Name   string `json:"name"`
	Levels []any  `json:"levels"`
}

// Settings are what the command line said, for a resume. Options of a target may hold secrets, which are not kept.
type Settings struct {
	Set               untyped.Object    `json:"set,omitempty"`
	Preset            string            `json:"preset,omitempty"`
	Nodes             int               `json:"nodes,omitempty"`
	Target            string            `json:"target"`
	TargetOptions     map[string]string `json:"target_options,omitempty"`
	TimeScale         float64           `json:"time_scale"`
	SizeScale         float64           `json:"size_scale"`
	AllowHostCommands bool              `json:"allow_host_commands,omitempty"`
	ComparePlain      int               `json:"compare_plain_turns,omitempty"`
	// OfOldPlain is of a build that knew no number of turns: there were six.
	OfOldPlain bool `json:"compare_plain,omitempty"`
}

// NewRecord fills in the design of an experiment.
func NewRecord(id string, sc *scenario.Scenario) Record {
	x := sc.Experiment
	r := Record{Version: FormatVersion, ID: id, ScenarioName: sc.Name, DisplayName: sc.DisplayName, Summary: sc.Summary,
		Repeats: x.Repeats, Order: x.Order, Seed: x.Seed, Cells: Cells(x), Sequence: Sequence(x)}
	for _, f := range x.Factors {
		r.Factors = append(r.Factors, Factor{f.Name, f.Levels})
	}
	return r
}

// Event is one step of one run of an experiment.
type Event struct {
	Time     time.Time `json:"time"`
	Sequence int       `json:"sequence"`
	State    string    `json:"state"` // Started, Done or Failed
	RunID    string    `json:"run_id"`
	Error    string    `json:"error,omitempty"`
	NoRoom   bool      `json:"no_room,omitempty"` // the place lacks room for so much
	Sum      string    `json:"sum,omitempty"`
}

// States of a run. One that is started and neither done nor failed was interrupted.
const (
	Started = "started"
	Done    = "done"
	Failed  = "failed"
)

// ErrBusy says that another process works on the experiment.
var ErrBusy = errors.New("the experiment is going on in another process")

// Folder is an open experiment.
type Folder struct {
	dir    string
	record Record
	lock   *os.File
}

// Create makes the folder of an experiment under root, with a copy of its scenario, and takes its lock.
func Create(root string, r Record, files fs.FS) (*Folder, error) {
	dir, err := filepath.Abs(filepath.Join(root, r.ID))
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	f := &Folder{dir: dir, record: r}
	if err := f.Lock(); err != nil {
		return nil, err
	}
	data, err := r.text()
	err = errors.Join(err, os.Mkdir(f.RunsDir(), 0o755), os.CopyFS(filepath.Join(dir, scenarioDir), files))
	if err == nil {
		err = writeSynced(filepath.Join(dir, recordFile), data)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("experiment: %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// text is the record as its file has it.
func (r Record) text() ([]byte, error) {
	r.Sum = unsealed
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(sealed(data), '\n'), nil
}

// Extend adds a run with a value of every factor, in a cell of its own when they are new, and writes the record.
func (f *Folder) Extend(values ...any) (Planned, error) {
	r := f.record
	r.Cells, r.Sequence, r.Factors = slices.Clone(r.Cells), slices.Clone(r.Sequence), slices.Clone(r.Factors)
	cell := Cell{Number: len(r.Cells) + 1}
	for i, value := range values {
		factor := &r.Factors[i]
		cell.Levels = append(cell.Levels, Level{factor.Name, value})
		if !slices.ContainsFunc(factor.Levels, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(value) }) {
			factor.Levels = append(slices.Clone(factor.Levels), value)
		}
	}
	if i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Label() == cell.Label() }); i >= 0 {
		cell = r.Cells[i]
	} else {
		r.Cells = append(r.Cells, cell)
	}
	p := Planned{Sequence: len(r.Sequence) + 1, Cell: cell.Number, Repeat: 1}
	for _, other := range r.Sequence {
		if other.Cell == cell.Number {
			p.Repeat++
		}
	}
	r.Sequence = append(r.Sequence, p)
	r.Repeats = max(r.Repeats, p.Repeat)
	data, err := r.text()
	if err == nil {
		err = outfile.Replace(filepath.Join(f.dir, recordFile), func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	if err != nil {
		return Planned{}, fmt.Errorf("experiment: %w", err)
	}
	f.record = r
	return p, nil
}

// Is reports whether a folder holds an experiment.
func Is(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, recordFile))
	return err == nil && info.Mode().IsRegular()
}

// Open reads an experiment.
func Open(dir string) (*Folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	data, err := regular.Read(filepath.Join(abs, recordFile), regular.NoLinks, regular.Document)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	f := &Folder{dir: abs}
	// Levels keep their type: 4 stays a whole number.
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&f.record); err != nil {
		return nil, fmt.Errorf("experiment: %s is damaged: %w", recordFile, err)
	}
	f.record.Sum = ""
	if v := f.record.Version; v != FormatVersion {
		return nil, fmt.Errorf("experiment: %s: written in format version %d; this program reads version %d", abs, v,
			FormatVersion)
	}
	if s := &f.record.Settings; s.OfOldPlain && s.ComparePlain == 0 {
		s.ComparePlain, s.OfOldPlain = 6, false
	}
	if m := f.record.Mark; m != nil {
		for i, text := range m.Limits { // of a search by an earlier program
			m.Limits[i] = scenario.NoneAllowed(text)
		}
	}
	for i := range f.record.Cells {
		for j := range f.record.Cells[i].Levels {
			l := &f.record.Cells[i].Levels[j]
			l.Value = native(l.Value)
		}
	}
	for i := range f.record.Factors {
		for j, v := range f.record.Factors[i].Levels {
			f.record.Factors[i].Levels[j] = untyped.Each(v, native)
		}
	}
	for name, v := range f.record.Settings.Set {
		f.record.Settings.Set[name] = untyped.Each(v, native)
	}
	return f, nil
}

// native brings a number of JSON to the types of the language.
func native(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64()
	return f
}

// List returns the folders of the experiments in root, newest first. A root that does not exist holds none.
func List(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var dirs []string
	for i := len(entries) - 1; i >= 0; i-- { // names begin with the time
		if dir := filepath.Join(root, entries[i].Name()); entries[i].IsDir() && Is(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// Touched is when the experiment in a folder last came on.
func Touched(dir string) time.Time {
	for _, name := range []string{cellsFile, recordFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}

// Dir is the folder's absolute path.
func (f *Folder) Dir() string { return f.dir }

// Record returns what the experiment is.
func (f *Folder) Record() Record { return f.record }

// RunsDir holds the run folders.
func (f *Folder) RunsDir() string { return filepath.Join(f.dir, RunsFolder) }

// ScenarioDir holds the copy of the scenario.
func (f *Folder) ScenarioDir() string { return filepath.Join(f.dir, scenarioDir) }

// ReportPath is where the result is written.
func (f *Folder) ReportPath() string { return filepath.Join(f.dir, reportFile) }

// LockFile is the file in an experiment's folder whose lock the process holds that makes it: a folder with a file
// "lock" would be taken for a run.
const LockFile = "lock.experiment"

// Lock takes the experiment for this process; ErrBusy when another has it. The lock ends with the process.
func (f *Folder) Lock() error {
	lock, err := regular.Open(filepath.Join(f.dir, LockFile), os.O_CREATE|os.O_RDWR|regular.NoLinks)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return fmt.Errorf("experiment: %s: %w", f.dir, err)
	}
	f.lock = lock
	return nil
}

// Close gives up the lock.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	lock := f.lock
	f.lock = nil
	return lock.Close()
}

// Append enters an event and waits until it is on disk.
func (f *Folder) Append(e Event) error {
	e.Sum = unsealed
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	line = sealed(line)
	name := filepath.Join(f.dir, cellsFile)
	file, err := regular.Open(name, os.O_APPEND|os.O_CREATE|os.O_RDWR|regular.NoLinks)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	// A line torn by a crash is ended, so that this one stands alone.
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if err = errors.Join(regular.Append(file, append(line, '\n')), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("experiment: %s: %w", name, err)
	}
	return nil
}

// Events returns what has happened, in order. Lines that cannot be read are left out.
func (f *Folder) Events() ([]Event, error) {
	data, err := regular.Read(filepath.Join(f.dir, cellsFile), regular.NoLinks, regular.Document)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	var out []Event
	for line := range bytes.Lines(data) {
		var e Event
		if json.Unmarshal(line, &e) == nil && e.Sequence > 0 && e.State != "" {
			e.Sum = ""
			out = append(out, e)
		}
	}
	return out, nil
}

// Progress is how far an experiment has come.
type Progress struct {
	Done        map[int]string // run by sequence number
	Interrupted []string       // runs started and never ended: to be cleaned up before they are made again
	Failed      map[int]string // reason by sequence number, of runs not made again since
	NoRoom      map[int]bool   // those of them for which there was no room
	Left        []Planned      // what is still to be made, in order: not begun, interrupted or failed
}

// Progress reads the events.
func (f *Folder) Progress() (Progress, error) {
	events, err := f.Events()
	p := Progress{Done: map[int]string{}, Failed: map[int]string{}, NoRoom: map[int]bool{}}
	started := map[int]string{}
	for _, e := range events {
		switch e.State {
		case Started:
			if run, open := started[e.Sequence]; open {
				p.Interrupted = append(p.Interrupted, run)
			}
			started[e.Sequence] = e.RunID
			delete(p.Failed, e.Sequence)
			delete(p.NoRoom, e.Sequence)
		case Done:
			delete(started, e.Sequence)
			p.Done[e.Sequence] = e.RunID
		case Failed:
			delete(started, e.Sequence)
			p.Failed[e.Sequence], p.NoRoom[e.Sequence] = e.Error, e.NoRoom
		}
	}
	for _, planned := range f.record.Sequence {
		if run, open := started[planned.Sequence]; open {
			p.Interrupted = append(p.Interrupted, run)
		}
		if _, done := p.Done[planned.Sequence]; !done {
			p.Left = append(p.Left, planned)
		}
	}
	return p, err
}

// Cell returns a cell by its number.
func (r Record) Cell(number int) Cell {
	for _, c := range r.Cells {
		if c.Number == number {
			return c
		}
	}
	return Cell{}
}

func writeSynced(name string, data []byte) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}
