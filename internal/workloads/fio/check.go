package fio

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/scenario"
	"plimsoll/unit"
)

var _ scenario.Generator = Engine{}

// codes are the kinds of objection to job files.
var codes = []scenario.Code{
	{Name: "fio-syntax", Tolerant: scenario.Error, Strict: scenario.Error, Doc: "a job file that cannot be read"},
	{Name: "fio-no-global", Tolerant: 0, Strict: scenario.Error, Doc: "a job file without a [global] section"},
	{Name: "fio-no-job", Tolerant: scenario.Error, Strict: scenario.Error, Doc: "a job file without a job"},
	{Name: "fio-prefill", Tolerant: scenario.Error, Strict: scenario.Error,
		Doc: "a job of a prefilled workload without its own filename and size"},
	{Name: "fio-disk", Tolerant: scenario.Error, Strict: scenario.Error,
		Doc: "a job on a disk that the VM group does not have"},
	{Name: "fio-file", Tolerant: scenario.Warning, Strict: scenario.Error,
		Doc: "a job on a file that is no data disk, which targets refuse"},
	{Name: "fio-extent", Tolerant: scenario.Error, Strict: scenario.Error,
		Doc: "a job that reaches beyond the end of its disk"},
	{Name: "fio-value", Tolerant: scenario.Warning, Strict: scenario.Error, Doc: "an option value that cannot be read"},
	{Name: "fio-runtime", Tolerant: scenario.Warning, Strict: scenario.Warning,
		Doc: "a runtime inside the job file, which wins over the step's"},
	{Name: "fio-variable", Tolerant: scenario.Warning, Strict: scenario.Warning,
		Doc: "an environment variable in a job file, which is not set when it runs"},
	{Name: "fio-include", Tolerant: scenario.Warning, Strict: scenario.Warning,
		Doc: "an include in a job file, which is not copied to the VMs"},
	{Name: "fio-not-timed", Tolerant: 0, Strict: scenario.Warning,
		Doc: "a runtime for a job without time_based: it ends with its size if that comes first"},
	{Name: "fio-timed", Tolerant: 0, Strict: scenario.Warning, Doc: "a time_based job started without a runtime: it " +
		"ends with its size"},
}

// Codes implements scenario.Generator.
func (Engine) Codes() []scenario.Code { return codes }

// ReadConfig implements scenario.Generator.
func (Engine) ReadConfig(name string, data []byte, settings []scenario.Setting) (scenario.Config,
	[]scenario.Objection) {
	c := &jobConfig{}
	file, err := fiofile.Parse(name, data)
	if bad := (fiofile.Errors)(nil); errors.As(err, &bad) {
		for _, e := range bad {
			c.say("fio-syntax", e.Line, e.Col, "job file: "+e.What, "")
		}
		return nil, c.objections
	}
	c.file = file
	for _, refused := range set(file, settings) {
		c.objections = append(c.objections, scenario.Objection{Code: "bounds", Setting: true, What: refused.Error(),
			Hint: "write the name of an option and its plain value"})
	}
	c.check()
	return c, c.objections
}

// set puts settings into every job of a file, and returns why some were left out.
func set(file *fiofile.File, settings []scenario.Setting) (refused []error) {
	mixed := false
	for _, s := range settings {
		if err := (fiofile.Option{Key: s.Key, Value: s.Value}).Check(); err != nil {
			refused = append(refused, fmt.Errorf("%q: %w", s.Key, err))
			continue
		}
		if mixed = mixed || s.Key == workload.KeepMix; s.Key != workload.KeepMix {
			file.SetEverywhere(s.Key, s.Value)
		}
	}
	for _, job := range file.Jobs() {
		reads, writes, _ := directions(job.Value("rw"))
		rates, err := fiofile.ParseRates(job.Value("rate_iops"))
		if mixed && err == nil && reads && writes && rates.Read > 0 && rates.Read == rates.Write {
			both := rates.Read + rates.Write
			read := min(max(int64(math.Round(mix(job)*float64(both))), 1), both-1)
			job.Set("rate_iops", fmt.Sprintf("%d,%d", read, both-read))
		}
	}
	return refused
}

// jobConfig is a job file that was read.
type jobConfig struct {
	file       *fiofile.File
	objections []scenario.Objection
}

func (c *jobConfig) say(code string, line, col int, what, hint string) {
	c.objections = append(c.objections, scenario.Objection{Code: code, Line: line, Col: col, What: what, Hint: hint})
}

// check looks at the job file by itself.
func (c *jobConfig) check() {
	if len(c.file.Jobs()) == 0 {
		c.say("fio-no-job", 1, 0, "job file: no job section", "add a [section] besides [global]")
	}
	if c.file.Global() == nil {
		c.say("fio-no-global", 1, 0, "job file: no [global] section", "add one at the top")
	}
	for _, v := range c.file.Variables() {
		c.say("fio-variable", 1, 0, fmt.Sprintf("job file: ${%s} is not set when the file runs", v), "write the value")
	}
	for _, s := range c.file.Sections {
		for _, o := range s.Options {
			switch {
			case o.Key == "runtime":
				c.say("fio-runtime", o.Line, 0, fmt.Sprintf("job file: runtime=%s wins over the step's runtime_secs",
					o.Value),
					"remove it and give runtime_secs")
			case o.Includes():
				c.say("fio-include", o.Line, 0, fmt.Sprintf("job file: %q is not followed", o.Key),
					"write the options out")
			case o.Key == "bssplit":
				_, err := fiofile.ParseBSSplit(o.Value)
				c.badValue(o, err)
			case o.Key == "rate_iops":
				_, err := fiofile.ParseRates(o.Value)
				c.badValue(o, err)
			case o.Key == "size", o.Key == "offset", o.Key == "filesize", o.Key == "io_size":
				_, err := fiofile.ParseSize(o.Value)
				c.badValue(o, err)
			}
		}
	}
}

// badValue reports an option value we cannot read; one with a variable is remarked on by itself.
func (c *jobConfig) badValue(o fiofile.Option, err error) {
	if err != nil && !strings.Contains(o.Value, "${") && !strings.ContainsAny(o.Value, "-") {
		c.say("fio-value", o.Line, 0, "job file: "+err.Error(), "")
	}
}

// Fit implements scenario.Config: it compares the jobs with the disks of a VM group.
func (c *jobConfig) Fit(u scenario.Use) []scenario.Objection {
	fit := &jobConfig{file: c.file}
	for _, job := range c.file.Jobs() {
		if u.Prefilled {
			for _, key := range []string{"filename", "size"} {
				if _, ok := job.Section.Get(key); !ok {
					fit.say("fio-prefill", job.Line, 0,
						fmt.Sprintf("job file: [%s] lacks its own %s, and workload %q is prefilled", job.Name, key,
							u.Workload),
						fmt.Sprintf("write %s in the section; [global] does not count", key))
				}
			}
		}
		filename, ok := job.Get("filename")
		if !ok {
			continue
		}
		files := strings.Split(filename.Value, ":")
		for _, f := range files {
			fit.checkDisk(job, filename.Line, f, len(files) == 1, u)
		}
	}
	return fit.objections
}

var guestDisk = lazyregexp.New(`^/dev/sd([a-z]{1,2})$`)

// checkDisk checks one /dev/sdX of a job: sda is the system's, the data disks follow in order.
func (c *jobConfig) checkDisk(job fiofile.Job, line int, device string, alone bool, u scenario.Use) {
	device = strings.TrimSpace(device)
	m := guestDisk.FindStringSubmatch(device)
	if m == nil && device != "" && !strings.Contains(device, "$") { // a variable is remarked on by itself
		c.say("fio-file", line, 0, fmt.Sprintf("job file: [%s] uses %s, which is no data disk of a VM", job.Name,
			device),
			"data disks are /dev/sdb, /dev/sdc and so on")
	}
	if m == nil || u.Unsure {
		return
	}
	index := 0
	for _, letter := range m[1] {
		index = index*26 + int(letter-'a') + 1
	}
	index -= 2 // sdb is the first data disk
	if index < 0 || index >= len(u.DiskBytes) {
		hint := fmt.Sprintf("the group has %d data disks, from /dev/sdb on", len(u.DiskBytes))
		if len(u.DiskBytes) == 1 {
			hint = "the group has one data disk, /dev/sdb"
		}
		if index < 0 {
			hint = "that is the system disk; data disks begin at /dev/sdb"
		}
		c.say("fio-disk", line, 0, fmt.Sprintf("job file: [%s] uses %s, which vm group %q does not have", job.Name,
			device, u.Group), hint)
		return
	}
	size, offset, err := extentOf(job)
	if err != nil || !alone || size+offset <= u.DiskBytes[index] {
		return
	}
	end, has := unit.Bytes(size+offset).String(), unit.Bytes(u.DiskBytes[index]).String()
	if end == has { // a little too much
		end, has = fmt.Sprintf("%d bytes", size+offset), fmt.Sprintf("%d bytes", u.DiskBytes[index])
	}
	c.say("fio-extent", line, 0,
		fmt.Sprintf("job file: [%s] reaches %s into %s, which has %s in vm group %q", job.Name, end, device, has,
			u.Group),
		"lower size or offset, or enlarge the disk")
}

// extentOf returns the size and offset in force for a job, in bytes; percentages and absent values are 0.
func extentOf(job fiofile.Job) (size, offset int64, err error) {
	base := int64(1024)
	if v := job.Value("kb_base"); v != "" {
		if base, err = strconv.ParseInt(v, 10, 64); err != nil {
			return 0, 0, err
		}
	}
	read := func(key string) int64 {
		v, ok := job.Get(key)
		if !ok {
			return 0
		}
		s, sizeErr := fiofile.ParseSizeBase(v.Value, base)
		err = errors.Join(err, sizeErr)
		return s.Bytes
	}
	size, offset = read("size"), read("offset")
	if size > math.MaxInt64-max(offset, 0) && err == nil {
		err = errors.New("size and offset are too large")
	}
	return size, offset, err
}

// Start implements scenario.Config: it compares the jobs with the runtime of a step.
func (c *jobConfig) Start(s scenario.Start) []scenario.Objection {
	timed, untimed := false, false
	for _, job := range c.file.Jobs() {
		if job.Enabled("time_based") {
			timed = true
		} else {
			untimed = true
		}
	}
	at := &jobConfig{}
	switch {
	case s.Runtime && untimed:
		at.say("fio-not-timed", 0, 0, fmt.Sprintf("%s: workload %q has a runtime, and %s has jobs without time_based",
			s.Step, s.Workload, c.file.Name), "add time_based to [global]")
	case !s.Runtime && timed:
		at.say("fio-timed", 0, 0, fmt.Sprintf("%s: workload %q has no runtime, and %s is time_based", s.Step,
			s.Workload, c.file.Name),
			"add runtime_secs, or remove time_based")
	}
	return at.objections
}
