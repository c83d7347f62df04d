package fio

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/unit"
)

var _ workload.OwnReader = Engine{}

// Suffixes implements workload.OwnReader.
func (Engine) Suffixes() []string { return []string{".fio", ".job"} }

// deviceSize is how large a disk is that stands for a whole device, when nobody says more.
const deviceSize = 1 << 30

// mostDisks is how many files one job file may work on. Real ones have a few dozen.
const mostDisks = 200

// ReadOwn implements workload.OwnReader: the jobs run on one VM. Every file or device that they name, and the files
// that fio would make for a job of its own, is a data disk there, as large as the jobs reach; what is read is written
// before. Options about where files lie are left out with a note; all others mean what they mean to fio.
func (e Engine) ReadOwn(r workload.OwnRequest) (workload.Own, error) {
	file, err := fiofile.Parse(r.Name, r.Data)
	if err == nil {
		err = file.Include(r.Include)
	}
	if err != nil {
		return workload.Own{}, err
	}
	o := &own{request: r, file: file, disks: map[string]*ownDisk{},
		adaptation: &adaptation{
			source:  file,
			out:     file,
			program: e.program(),
			spec:    workload.Spec{ConfigFile: r.Name, SizeScale: 1, TimeScale: 1},
		}}
	o.normalise()
	if o.foreign() {
		return workload.Own{}, errors.Join(o.objections...)
	}
	for _, what := range lacking(o.program, file) {
		o.note("%s: a run on this machine is refused", what)
	}
	o.variables()
	o.sweeps()
	o.runtime()
	readable := len(o.objections) == 0 // else some would be told twice
	for i, job := range o.file.Jobs() {
		if readable {
			o.place(i, job)
		}
	}
	o.strip()
	checked := *o.adaptation
	checked.objections = nil
	if len(o.objections) == 0 {
		_ = checked.adapt(o.file)
	} else { // of a file that has no disks yet, only the options can be judged one by one
		checked.filter()
	}
	for _, n := range checked.notes { // what a run would leave out of the load, and not only of fio's reports
		_, why, ok := strings.Cut(n, ": ")
		if ok && strings.HasPrefix(n, "dropped ") && !slices.Contains(o.notes, n) &&
			slices.Contains([]string{runsCommands, hostSetting, replays, commandsOnly, otherFiles}, why) {
			o.note("%s", n)
		}
	}
	o.objections = appendNew(o.objections, checked.objections)
	if len(o.objections) > 0 {
		return workload.Own{}, errors.Join(o.objections...)
	}
	o.turns()
	for _, n := range o.ofJobs {
		o.note("%s: %s", unit.List(n.jobs, 3), n.text)
	}
	files, err := o.write()
	var places []workload.Place
	for _, d := range o.order {
		p := d.place
		p.Device = d.device
		places = append(places, p)
	}
	return workload.Own{Files: files, Used: o.used, Notes: o.notes, Places: places}, err
}

// ofJobs is a note with the jobs it is of, as the file has them: "[name]".
type ofJobs struct {
	text string
	jobs []string
}

// noteOf notes something of a job. What is the same of several is one note.
func (o *own) noteOf(job fiofile.Job, text string) {
	i := slices.IndexFunc(o.ofJobs, func(n ofJobs) bool { return n.text == text })
	if i < 0 {
		i = len(o.ofJobs)
		o.ofJobs = append(o.ofJobs, ofJobs{text: text})
	}
	o.ofJobs[i].jobs = append(o.ofJobs[i].jobs, "["+job.Name+"]")
}

// appendNew appends the objections whose places have none yet: one place is told of once.
func appendNew(all, more []error) []error {
	place := func(err error) string {
		place, _, _ := strings.Cut(err.Error(), ": ")
		return place
	}
	told := map[string]bool{}
	for _, err := range all {
		told[place(err)] = true
		if o := (*objection)(nil); errors.As(err, &o) {
			for _, also := range o.places {
				told[also] = true
			}
		}
	}
	return append(all, slices.DeleteFunc(more, func(err error) bool { return told[place(err)] })...)
}

// own is a job file on its way to a scenario.
type own struct {
	*adaptation
	request  workload.OwnRequest
	file     *fiofile.File
	used     []string
	ofJobs   []ofJobs
	swept    []ownFactor
	seconds  int64 // runtime of all jobs; 0 when they differ or have none
	disks    map[string]*ownDisk
	order    []*ownDisk
	vcpus    int
	bufferMB int64
	sized    bool // filesize is the size of a disk
}

// ownDisk stands for a file or device of the author.
type ownDisk struct {
	name   string // as the author calls it
	device string // in the VM
	bytes  int64
	read   bool
	place  workload.Place
}

// ownFactor is a swept option.
type ownFactor struct {
	key, variable string
	values        []string
}

// normalise gives every option the first of its names.
func (o *own) normalise() {
	for i := range o.file.Sections {
		for j := range o.file.Sections[i].Options {
			option := &o.file.Sections[i].Options[j]
			option.Key = canonical(option.Key)
		}
	}
}

// foreign objects to generators of load that are no I/O on disks, and to what cannot be had here: what else such jobs
// say does not matter then.
func (o *own) foreign() bool {
	for i := range o.file.Sections {
		s := &o.file.Sections[i]
		if option, ok := s.Get("ioengine"); ok && !strings.Contains(option.Value, "$") {
			o.engine(s, option)
		}
		for _, option := range s.Options {
			if known, _ := optionFor(option); known.action == refuse && !slices.Contains(aboutFiles, option.Key) {
				o.object(s, option, "refused: "+known.why+"; take it out")
			}
		}
	}
	o.notes = nil
	return len(o.objections) > 0
}

var ownVariable = lazyregexp.New(`\$\{([^}]*)\}|\$(\w+)`)

// variables fills in what the file expects of its environment.
func (o *own) variables() {
	for i := range o.file.Sections {
		s := &o.file.Sections[i]
		for j := range s.Options {
			option := &s.Options[j]
			if slices.Contains(aboutFiles, option.Key) {
				continue // left out
			}
			option.Value = ownVariable.ReplaceAllStringFunc(option.Value, func(text string) string {
				m := ownVariable.FindStringSubmatch(text)
				value, given := o.request.Set[m[1]]
				switch {
				case m[1] == "":
					o.object(s, *option, "the keyword "+text+" is not filled in; write the value")
				case !given:
					same := fmt.Sprintf(": %s has no value; give one with --set %s=VALUE", text, m[1])
					o.objectOf("", s.Name, option.Line, max(option.ValueCol, option.Col),
						" "+option.Key+"="+shortened(option.Value)+same, same)
				default:
					o.used = append(o.used, m[1])
					return value
				}
				return text
			})
			if err := option.Check(); err != nil && len(o.objections) == 0 {
				o.object(s, *option, err.Error())
			}
		}
	}
	slices.Sort(o.used)
	o.used = slices.Compact(o.used)
}

// notSwept are options that sweeps cannot change, and why.
var notSwept = map[string]string{
	"filename": "it says which disk; give every disk a job of its own", "directory": "it says where files lie",
	"runtime":  "the length of a run is --runtime",
	"ioengine": "write one job file for each engine and compare the runs",
	"nrfiles":  "files become disks", "filesize": "sweep size", "offset_increment": "sweep size or numjobs",
}

var plainValue = lazyregexp.New(`^[A-Za-z0-9_.:/%+-]{1,100}$`)

// sweeps checks the options that take several values.
func (o *own) sweeps() {
	seen := map[string]bool{}
	for _, s := range o.request.Sweeps {
		key := canonical(s.Key)
		bad := func(format string, args ...any) {
			o.objections = append(o.objections, fmt.Errorf("--sweep %s: %s", s.Key, fmt.Sprintf(format, args...)))
		}
		known, ok := o.option(fiofile.Option{Key: key})
		switch {
		case !ok:
			bad("%s", o.unknown(key))
			continue
		case notSwept[key] != "":
			bad("it cannot be swept: %s", notSwept[key])
			continue
		case known.form == nil:
			bad("it cannot be swept: it takes no plain value, or is ours to set")
			continue
		case seen[key]:
			bad("it is swept twice")
			continue
		}
		seen[key] = true
		f := ownFactor{key: key, variable: strings.ReplaceAll(key, "-", "_")}
		for _, v := range s.Values {
			v = strings.TrimSpace(v)
			_, err := known.form(v)
			switch {
			case err != nil:
				bad("%v", err)
			case !plainValue.MatchString(v):
				bad("%q: letters, digits and _ . : / %% + - only", shortened(v))
			case slices.Contains(f.values, v):
				bad("%q stands there twice; --repeat makes more runs of each", v)
			}
			f.values = append(f.values, v)
		}
		if len(f.values) < 2 {
			bad("a sweep takes two values or more, like --sweep %s=1,2,4", s.Key)
		}
		o.swept = append(o.swept, f)
	}
}

// runtime takes the runtime of all jobs out of the file, where it is one, so that it is the scenario's to say.
func (o *own) runtime() {
	var lengths []time.Duration
	same := true
	for _, job := range o.file.Jobs() {
		d, err := parseTime(cmp.Or(job.Value("runtime"), "0"))
		same = same && err == nil && d%time.Second == 0 && job.Enabled("time_based")
		lengths = append(lengths, d)
	}
	if given := o.request.Runtime; given > 0 {
		if given%time.Second != 0 {
			o.objections = append(o.objections, fmt.Errorf("--runtime %s: whole seconds, please", given))
			return
		}
		lengths, same = []time.Duration{given}, true
		for _, job := range o.file.Jobs() {
			job.Delete("time_based")
			job.SetFlag("time_based")
		}
	}
	if lengths = slices.Compact(lengths); !same || len(lengths) != 1 || lengths[0] <= 0 {
		return
	}
	o.seconds = int64(lengths[0] / time.Second)
	for i := range o.file.Sections {
		o.file.Sections[i].Delete("runtime")
	}
}

// most is the largest value that a job's option takes, sweeps included; missing when it has none, and not ok when only
// fio could read it.
func (o *own) most(job fiofile.Job, key string, missing int64) (int64, bool) {
	values := []string{job.Value(key)}
	for _, f := range o.swept {
		if f.key == key {
			values = f.values
		}
	}
	var largest int64
	for _, v := range values {
		if v == "" {
			v = strconv.FormatInt(missing, 10)
		}
		if _, upper, isRange := strings.Cut(v, "-"); isRange {
			v = upper
		}
		size, err := o.parseSize(job.Section, v)
		if err != nil || size.Percent > 0 {
			return 0, false
		}
		largest = max(largest, size.Bytes)
	}
	return largest, true
}

// place gives a job its disks.
func (o *own) place(number int, job fiofile.Job) {
	names := splitFilename(job.Value("filename"))
	private := len(names) == 0 || strings.Contains(job.Value("filename"), "$")
	if private {
		names = []string{fmt.Sprintf("files of [%s] (%d)", job.Name, number+1)}
	}
	whole := !private && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "/dev/") })
	all := int64(0) // of the smallest device that the job names, where that is known
	if whole {
		all = o.deviceBytes(names)
	}
	reach, ok := o.reach(job, len(names), private, whole, all)
	if !ok {
		return
	}
	reads, writes, trims := directions(job.Value("rw"))
	var devices []string
	for _, name := range names {
		place := o.placeOf(job, name, private)
		if !private && place.Name != "" {
			name = place.Name
		}
		d := o.disks[name]
		if d == nil {
			d = &ownDisk{name: name, device: deviceName(len(o.order)), place: place}
			o.disks[name], o.order = d, append(o.order, d)
		}
		d.bytes, d.read = max(d.bytes, reach), d.read || reads || o.request.Fill
		d.place.Writes = d.place.Writes || writes || trims
		devices = append(devices, d.device)
	}
	if len(o.order) == mostDisks+1 {
		o.objectAt(job.Line, job.Col, "more than %d files and devices", mostDisks)
	}
	old, _ := job.Get("filename")
	job.Set("filename", strings.Join(devices, ":"))
	if own, _ := job.Section.Get("filename"); own.Line == 0 { // objections point to where the author wrote it
		for i := range job.Options {
			if job.Options[i].Key == "filename" {
				job.Options[i].Line, job.Options[i].Col = cmp.Or(old.Line, job.Line), cmp.Or(old.Col, job.Col)
			}
		}
	}
	processes, _ := o.most(job, "numjobs", 1)
	depth, _ := o.most(job, "iodepth", 1)
	o.vcpus = int(min(int64(o.vcpus)+max(processes, 1), 16))
	block := largestBlock(job)
	o.bufferMB = min(o.bufferMB+mul63(mul63(max(processes, 1), max(depth, 1)), max(block, 4096))>>20, 64<<10)
}

// placeOf is where the author wants a file of a job: by opendir, directory, filename_format or filename.
func (o *own) placeOf(job fiofile.Job, name string, private bool) workload.Place {
	p := workload.Place{}
	say := func(key, name string, folder bool) {
		at, _ := job.Get(key)
		p.Name, p.Folder = name, folder
		p.Where = fmt.Sprintf("%s:%d:%d", o.spec.ConfigFile, cmp.Or(at.Line, job.Line),
			cmp.Or(at.ValueCol, at.Col, job.Col))
		p.Job, p.Says = job.Name, key+"="+shortened(at.Value)
	}
	if dir := job.Value("directory"); dir != "" {
		dirs := splitFilename(dir)
		say("directory", strings.Join(dirs[:min(1, len(dirs))], ""), true)
		if many, _ := o.most(job, "numjobs", 1); len(dirs) > 1 && many > 1 {
			p.Unclear = "its processes are spread over several folders: give each a job of its own"
		}
	}
	format := job.Value("filename_format")
	switch {
	case job.Value("opendir") != "":
		say("opendir", job.Value("opendir"), true)
		p.Unclear = "all files that are in it would be used"
	case !private && (p.Name == "" || strings.HasPrefix(name, "/")):
		say("filename", name, false)
	case !private: // fio puts the folder before the name
		p.Name, p.Folder = filepath.Join(p.Name, name), false
	case strings.Contains(format, "/"):
		say("filename_format", filepath.Join(p.Name, filepath.Dir(format)), true)
	}
	if strings.Contains(p.Name, "$") {
		p.Unclear = "variables in it are not filled in"
	}
	return p
}

// deviceBytes is how large the smallest of some devices is, in whole MiB; 0 where that is not known.
func (o *own) deviceBytes(names []string) (least int64) {
	if o.request.Size > 0 || o.request.DeviceBytes == nil {
		return 0
	}
	for i, name := range names {
		if n := o.request.DeviceBytes(name) >> 20 << 20; i == 0 || n < least {
			least = n
		}
	}
	return least
}

// reach is how far a job goes into each of its disks, in bytes. It writes the size of a job that left it to its files.
// With all, each of its devices holds so much.
func (o *own) reach(job fiofile.Job, files int, private, whole bool, all int64) (int64, bool) {
	option, _ := job.Get("size")
	unreadable := func(key string) (int64, bool) {
		at, _ := job.Get(key)
		o.object(job.Section, at, "cannot be read before the run; write a plain number with a unit")
		return 0, false
	}
	processes, ok := o.most(job, "numjobs", 1)
	if !ok || processes < 1 || processes > 4096 {
		return unreadable("numjobs")
	}
	offset, ok := o.most(job, "offset", 0)
	if !ok {
		offset = 0 // a share of the disk, which lies within it
	}
	increment, ok := o.most(job, "offset_increment", 0)
	if !ok {
		return unreadable("offset_increment")
	}
	size, plain := o.most(job, "size", 0)
	share := !plain && strings.HasSuffix(strings.TrimSpace(option.Value), "%")
	if !plain && !share {
		return unreadable("size")
	}
	if size == 0 && job.Value("ioengine") == "cpuio" { // it does no I/O, and fio wants a file all the same
		job.Set("size", "1m")
		return 1 << 20, true
	}
	if size == 0 && !share && all > 0 && job.Value("filesize") == "" {
		start := add63(offset, mul63(increment, processes-1))
		if share, err := o.parseSize(job.Section, job.Value("offset")); err == nil && share.Percent > 0 {
			start = add63(start, (int64(float64(all)*share.Percent/100)+1<<20-1)>>20<<20)
		}
		if start >= all {
			at, _ := job.Get("offset")
			o.object(job.Section, at, "leaves nothing of a device of "+unit.Bytes(all).String())
			return 0, false
		}
		size = (all - start) >> 20 << 20
		job.Set("size", strconv.FormatInt(mul63(size, int64(files)), 10))
		o.noteOf(job, fmt.Sprintf("no size is given: to the end of the device are %s; --job-size takes less",
			unit.Bytes(size)))
		return start + size, true
	}
	if size == 0 && !share {
		if size, ok = o.sizeOfFiles(job, whole); !ok {
			return 0, false
		}
		job.Set("size", strconv.FormatInt(size, 10))
	}
	if share {
		if all = cmp.Or(all, o.request.Size); all == 0 {
			all = deviceSize
			o.noteOf(job, fmt.Sprintf("size=%s is a share of a disk of %s; --job-size changes that", option.Value,
				unit.Bytes(all)))
		}
		return all, true
	}
	each := (size + int64(files) - 1) / int64(files)
	if private && processes > 1 {
		// fio gives every process files of its own; here each has its own part of the disk.
		increment = add63(each, offset)
		job.Set("offset_increment", strconv.FormatInt(increment, 10))
		o.noteOf(job, "processes have files of their own in fio; here each has its own part of one disk")
	}
	end := add63(add63(offset, mul63(increment, processes-1)), each)
	if end > math.MaxInt64/4 {
		return unreadable("size")
	}
	return max(end, 1), true
}

// sizeOfFiles is the size of a job that has none of its own: that of its files, or of a device.
func (o *own) sizeOfFiles(job fiofile.Job, whole bool) (int64, bool) {
	each, ok := o.most(job, "filesize", 0)
	files, _ := o.most(job, "nrfiles", 1)
	switch {
	case ok && each > 0:
		o.sized = true
		return mul63(each, max(files, 1)), true
	case o.request.Size > 0:
		return o.request.Size, true
	case whole:
		o.noteOf(job, fmt.Sprintf("no size is given, which to fio means all of the device: %s are taken; --job-size changes it",
			unit.Bytes(deviceSize)))
		return deviceSize, true
	}
	o.objectOf("no size is given for ", job.Name, job.Line, job.Col, ": write size=, or give --job-size", "")
	return 0, false
}

// saysPlace are options that say where a disk lies, which is told of the disk.
var saysPlace = []string{"directory", "opendir", "filename_format"}

// aboutFiles are options that say where files lie and how they are made, which a data disk has no part in.
var aboutFiles = []string{
	"directory",
	"opendir",
	"filename_format",
	"nrfiles",
	"openfiles",
	"filesize",
	"file_service_type",
	"unique_filename",
	"fallocate",
	"create_serialize",
	"create_fsync",
	"create_on_open",
	"allow_file_create",
	"unlink",
	"unlink_each_loop",
	"fadvise_hint",
	"overwrite",
}

// strip leaves such options out, and those whose disks are given to the jobs.
func (o *own) strip() {
	for i := range o.file.Sections {
		s := &o.file.Sections[i]
		for _, key := range aboutFiles {
			if option, ok := s.Get(key); ok {
				s.Delete(key)
				if !slices.Contains(saysPlace, key) && !(key == "filesize" && o.sized) {
					o.note("%s=%s is left out: the job works on data disks instead of files", key, shortened(option.Value))
				}
			}
		}
		if s.Name == fiofile.Global {
			s.Delete("filename")
		}
	}
}

// splitFilename splits a list of files at colons that no backslash protects.
func splitFilename(list string) (names []string) {
	for _, name := range splitEscaped(list) {
		if name = strings.TrimSpace(strings.ReplaceAll(name, `\:`, ":")); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// deviceName is the name of a data disk in a VM: /dev/sdb is the first.
func deviceName(i int) string {
	letters := ""
	for n := i + 2; n > 0; n = (n - 1) / 26 {
		letters = string(rune('a'+(n-1)%26)) + letters
	}
	return "/dev/sd" + letters
}

var (
	notInNames    = lazyregexp.New(`[^\pL\pN_.-]+`)
	notInStages   = lazyregexp.New(`[^\pL\pN_.=% -]+`)
	notInIdentity = lazyregexp.New(`[^a-z0-9_]+`)
	notHarmless   = lazyregexp.New(`[^\pL\pN /_.,:()\[\]-]`)
)

// sameContent returns what all jobs of a file ask of their data, nothing where they ask for different ones.
func sameContent(stages []ownStage) []fiofile.Option {
	var same []fiofile.Option
	for i, s := range stages {
		for k := range s.loads {
			for j, job := range s.loads[k].jobs.Jobs() {
				if of := contentOptions(job); i+j+k == 0 {
					same = of
				} else if !slices.Equal(same, of) {
					return nil
				}
			}
		}
	}
	return same
}

// write makes the scenario directory.
func (o *own) write() (fs.FS, error) {
	title := filepath.Base(o.request.Name)
	title = strings.TrimSuffix(title, filepath.Ext(title))
	title = cmp.Or(strings.Trim(notInNames.ReplaceAllString(title, "-"), "-."), "job")
	if r := []rune(title); len(r) > 60 {
		title = string(r[:60])
	}
	stages := o.stages(title)
	prefill := fiofile.File{Sections: []fiofile.Section{{Name: fiofile.Global, Options: []fiofile.Option{
		{Key: "rw", Value: "write"}, {Key: "bs", Value: "1m"}}}}}
	largest, content := int64(1), sameContent(stages)
	for i, d := range o.order {
		largest = max(largest, d.bytes)
		if d.read && !o.request.ReadOnly {
			prefill.Sections = append(prefill.Sections, fiofile.Section{Name: fmt.Sprintf("disk-%d", i+1),
				Options: append([]fiofile.Option{
					{Key: "filename", Value: d.device},
					{Key: "size", Value: strconv.FormatInt(d.bytes, 10)},
				}, content...)})
		}
	}
	filled := len(prefill.Sections) > 1 && !o.request.Precondition // which writes all of every disk
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	put := func(name, text string) error {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		return err
	}
	err := errors.Join(
		put("test.yml", o.scenario(title, stages, (largest+1<<30-1)>>30, filled)))
	for _, s := range stages {
		for _, l := range s.loads {
			err = errors.Join(err, put(l.file, "; with files mapped to the data disks of a VM\n"+l.jobs.String()))
		}
	}
	if filled {
		err = errors.Join(err, put("prefill.fio", prefill.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(o.request.Beside)) {
		err = errors.Join(err, put(name, string(o.request.Beside[name])))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
}
