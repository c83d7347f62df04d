package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/kit/outfile"
	"plimsoll/result"
)

// File is one file to import. Its content is read more than once.
type File struct {
	Name     string
	Content  io.ReadSeeker
	Modified time.Time
	Reading  *Reading
}

// Folder makes a run folder of files that were prepared, below root. Its identity is made of the time at which they
// were measured and of their content, so that importing the same files once more finds the folder there. The caller
// collects it.
func Folder(root, program string, files []File) (*result.Folder, error) {
	m := result.Manifest{
		Program:     program,
		Target:      result.ImportTarget,
		Status:      result.StatusSucceeded,
		TimeScale:   1,
		SizeScale:   1,
		Nodes:       []result.Node{},
		Environment: []result.Fact{},
	}
	all := sha256.New()
	var by []string
	used := map[string]int{}
	hosts := map[string]int{} // counters of machines are no sum: each file is a workload of its own
	var machines []string
	apart(files)
	for i := range files {
		again := i > 0 && files[i-1].Content == files[i].Content // a further run of the same file
		f := &files[i]
		sum, size, err := hashed(f.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		fmt.Fprintf(all, "%s %s\n", sum, f.Reading.As)
		d := f.Reading
		name := machineAmong(f.Name, files)
		if again {
			name = machines[i-1]
		} else if used[name]++; used[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, used[name])
		}
		if d.Host {
			if hosts[d.Workload]++; hosts[d.Workload] > 1 {
				d.Workload = fmt.Sprintf("%s %d", d.Workload, hosts[d.Workload])
			}
		}
		machines = append(machines, name)
		m.Imported = append(
			m.Imported,
			result.Imported{File: filepath.Base(f.Name), SHA256: sum, Bytes: size, As: d.As, Tool: d.Tool,
				VM: name, Workload: d.Workload, Concurrency: d.Concurrency, Dated: d.Dated, Notes: d.Notes,
				Unseen: d.Unseen},
		)
		if !slices.Contains(by, d.Tool) {
			by = append(by, d.Tool)
		}
		m.Environment = withFacts(m.Environment, d)
		if m.Created.IsZero() || d.Start.Before(m.Created) {
			m.Created = d.Start
		}
		if d.End.After(m.Ended) {
			m.Ended = d.End
		}
	}
	tools := strings.Join(by, ", ")
	m.Scenario = result.ScenarioInfo{Name: "import", DisplayName: "Imported: " + m.Imported[0].File,
		Summary: "what " + tools + " measured and left in " + listed(m.Imported)}
	if n := len(distinct(m.Imported)); n > 1 {
		m.Scenario.DisplayName += fmt.Sprintf(" and %d more", n-1)
	}
	m.Measured = result.Verdict{State: "yes", Reason: "by " + tools + ", imported"}
	for _, f := range files {
		if why := cmp.Or(f.Reading.Failure, f.Reading.Lost); why != "" {
			m.Status, m.Measured.State = result.StatusFailed, "partly"
			m.Measured.Reason = oneLine(f.Name + ": " + why)
			break
		}
	}
	m.Cleaned = result.Verdict{State: "yes", Reason: "nothing was made"}
	for _, i := range distinct(m.Imported) {
		m.Notes = append(m.Notes,
			fmt.Sprintf("%s: %d bytes, sha256 %s, read as %s, dated by %s", i.File, i.Bytes, i.SHA256, i.As, i.Dated))
	}
	m.Notes = append(m.Notes, told(m.Imported, "", notesOf)...)
	m.Notes = append(m.Notes, told(m.Imported, "not looked at: ", unseenOf)...)
	digest := all.Sum(nil)
	m.RunID = result.NewRunID(m.Created, "import "+machines[0], uint16(digest[0])<<8|uint16(digest[1]))
	if there, err := result.Open(filepath.Join(root, m.RunID)); err == nil &&
		same(there.Manifest().Imported, m.Imported) {
		return nil, &ThereError{Dir: there.Dir(), RunID: m.RunID}
	}
	part, err := outfile.TemporaryFolder(root) // a process that is killed leaves no half of a run
	if err != nil {
		return nil, err
	}
	folder, err := result.Create(part, m)
	if err == nil {
		if err = fill(folder, m, files, machines); err == nil {
			err = folder.Move(filepath.Join(root, m.RunID))
		}
		if err != nil {
			err = errors.Join(fmt.Errorf("import: %w", err), folder.Close())
		}
	}
	if err = errors.Join(err, os.RemoveAll(part)); err != nil {
		return nil, err
	}
	return folder, nil
}

// apart names the workloads of files of one tool by their files where these did not run at the same time: one after
// another they are a series of tests, and only those of clients that ran at once are added up. Where nothing dates
// them, files that were asked unlike things are taken for a series, and all others for clients.
func apart(files []File) {
	var order []string
	of := map[string][]int{} // by workload
	for i, f := range files {
		if f.Reading.Host || i > 0 && files[i-1].Content == f.Content && slices.Contains(of[f.Reading.Workload], i-1) {
			continue
		}
		if of[f.Reading.Workload] == nil {
			order = append(order, f.Reading.Workload)
		}
		of[f.Reading.Workload] = append(of[f.Reading.Workload], i)
	}
	for _, name := range order {
		all := of[name]
		slices.SortStableFunc(all, func(a, b int) int { return files[a].Reading.Start.Compare(files[b].Reading.Start) })
		var groups [][]int // that ran at once
		var end time.Time
		for n, i := range all {
			d := files[i].Reading
			unlike := n > 0 && d.Dated == noClock &&
				!slices.Equal(withFacts(nil, d), withFacts(nil, files[all[0]].Reading))
			if n == 0 || !d.Start.Before(end) || unlike {
				groups = append(groups, nil)
			}
			if d.End.After(end) {
				end = d.End
			}
			groups[len(groups)-1] = append(groups[len(groups)-1], i)
		}
		for _, g := range groups {
			first := files[g[0]].Reading
			for _, i := range g {
				d := files[i].Reading
				if len(groups) > 1 {
					d.Workload += " of " + machineAmong(files[g[0]].Name, files)
				} else if len(g) > 1 && i != g[0] && d.Dated == noClock && first.Dated == noClock {
					d.Notes = append(d.Notes, "nothing dates it: it is taken for a client that ran at the same time as the others, "+
						"and added to them")
				}
			}
		}
	}
}

// withFacts adds what was asked of a workload. Files of one workload that were asked unlike things say all of them.
func withFacts(all []result.Fact, d *Reading) []result.Fact {
	facts := slices.Clone(d.Facts)
	deep := slices.ContainsFunc(facts,
		func(f result.Fact) bool {
			return slices.Contains([]string{"iodepth", "outstanding", "threads of each SD"}, f.Name)
		})
	if d.Concurrency > 0 && !deep {
		facts = append(facts, asked("concurrency", strconv.FormatFloat(d.Concurrency, 'g', -1, 64)))
	}
	for _, f := range facts {
		if f.Value == "" {
			continue
		}
		f.Group, f.Value = d.Workload, oneLine(f.Value)
		i := slices.IndexFunc(all, func(o result.Fact) bool { return o.Group == f.Group && o.Name == f.Name })
		switch {
		case i < 0:
			all = append(all, f)
		case !slices.Contains(strings.Split(all[i].Value, " | "), f.Value):
			all[i].Value += " | " + f.Value
		}
	}
	return all
}

// ThereError says that these files were imported before.
type ThereError struct{ Dir, RunID string }

// Error implements error.
func (e *ThereError) Error() string {
	return "these files have been imported already, as run " + e.RunID
}

func same(a, b []result.Imported) bool {
	return slices.EqualFunc(a, b, func(x, y result.Imported) bool { return x.SHA256 == y.SHA256 && x.As == y.As })
}

// distinct leaves one of the runs of each file.
func distinct(all []result.Imported) []result.Imported {
	return slices.CompactFunc(slices.Clone(all), func(a, b result.Imported) bool { return a.VM == b.VM })
}

// told are the texts of all, each once with the files that it is of, and of which of their runs it is where it is not
// of all of them.
func told(all []result.Imported, what string, texts func(result.Imported) []string) (out []string) {
	var order []string
	files := map[string][]string{} // by what is said of them
	for _, one := range distinct(all) {
		var here []string
		by := map[string][]string{}
		n := 0
		for _, i := range all {
			if i.VM != one.VM {
				continue
			}
			n++
			for _, t := range texts(i) {
				if by[t] == nil {
					here = append(here, t)
				}
				by[t] = append(by[t], i.Workload)
			}
		}
		for _, t := range here {
			of := ""
			if k := len(by[t]); k < n {
				of = by[t][0] + ": "
				if k > 1 {
					of = fmt.Sprintf("%s and %d more: ", by[t][0], k-1)
				}
			}
			said := what + of + t
			if files[said] == nil {
				order = append(order, said)
			}
			files[said] = append(files[said], one.File)
		}
	}
	for _, said := range order {
		out = append(out, Several(files[said])+": "+said)
	}
	return out
}

// Several names files of which the same is said: all of a few, or the first and how many more.
func Several(files []string) string {
	const most = 3
	if n := len(files); n > most {
		return fmt.Sprintf("%s and %d more", files[0], n-1)
	}
	return strings.Join(files, ", ")
}

// Told are the notes of the imported files for people: what to mind, and what was not looked at.
func Told(all []result.Imported) (notes, unseen []string) {
	return told(all, "", notesOf), told(all, "", unseenOf)
}

func notesOf(i result.Imported) []string  { return i.Notes }
func unseenOf(i result.Imported) []string { return i.Unseen }

func listed(files []result.Imported) string {
	var out []string
	for i, f := range distinct(files) {
		if i == 5 {
			out = append(out, fmt.Sprintf("%d more", len(distinct(files))-5))
			break
		}
		out = append(out, f.File)
	}
	return strings.Join(out, ", ")
}

// fill writes journal and raw output.
func fill(folder *result.Folder, m result.Manifest, files []File, machines []string) error {
	events := []result.Event{
		{Time: m.Created, Kind: result.KindRunStart},
		{Time: m.Created, Kind: result.KindPhase, Phase: "run"},
		{Time: m.Ended, Kind: result.KindRunEnd},
	}
	for _, e := range events {
		if err := folder.AppendEvent(e); err != nil {
			return err
		}
	}
	for i, f := range files {
		d := f.Reading
		job := result.RawJob{
			VM:         machines[i],
			Group:      d.Workload,
			Workload:   d.Workload,
			Attempt:    1,
			Phase:      "run",
			Engine:     d.Engine,
			Tool:       d.Tool,
			Latency:    d.Latency,
			Operations: d.Declared.Operations,
			Measures:   d.Declared.Measures,
			Format:     d.Declared.Format,
			Streams:    d.Streams,
			Apart:      d.Apart,
			Notes:      d.Notes,

			FailuresUnknown: d.Unfailing,
			Again:           d.Again,
			Start:           d.Start,
			End:             d.End,
			Ended:           result.Finished,
		}
		if d.Failure != "" {
			job.Ended, job.Message = result.Failed, d.Failure
		}
		if job.Operations == nil {
			job.Operations = []result.Operation{}
		}
		if err := folder.WriteRawJob(job); err != nil {
			return err
		}
		if _, err := f.Content.Seek(0, io.SeekStart); err != nil {
			return err
		}
		raw, err := folder.RawWriter(job)
		if err != nil {
			return err
		}
		_, err = io.Copy(raw, f.Content)
		if err := errors.Join(err, raw.Close()); err != nil {
			return err
		}
	}
	return nil
}

func hashed(r io.ReadSeeker) (sum string, size int64, err error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// machineAmong is the name under which a file's figures stand: where files of several folders are called alike, with
// that of its folder.
func machineAmong(name string, files []File) string {
	own := machine(name)
	if slices.ContainsFunc(files, func(f File) bool {
		return machine(f.Name) == own && filepath.Dir(f.Name) != filepath.Dir(name)
	}) {
		return filepath.Base(filepath.Dir(name)) + "-" + own
	}
	return own
}

// machine is the name under which a file's figures stand: the file's, without its folder and ending.
func machine(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if name == "" || name == "-" || name == "." {
		return "imported"
	}
	return name
}
