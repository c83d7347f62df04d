package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"plimsoll/scenario/fiofile"
	"plimsoll/unit"
)

// checkJobFile looks at a job file by itself.
func (d *document) checkJobFile(name string, file *fiofile.File) {
	jobs := file.Jobs()
	if len(jobs) == 0 {
		d.say("fio-no-job", Pos{File: name, Line: 1}, "job file: no job section", "add a [section] besides [global]")
	}
	if file.Global() == nil {
		d.say("fio-no-global", Pos{File: name, Line: 1}, "job file: no [global] section", "add one at the top")
	}
	for _, v := range file.Variables() {
		d.say("fio-variable", Pos{File: name, Line: 1}, fmt.Sprintf("job file: ${%s} is not set when the file runs", v), "write the value")
	}
	for _, s := range file.Sections {
		for _, o := range s.Options {
			at := Pos{File: name, Line: o.Line}
			switch {
			case o.Key == "runtime":
				d.say("fio-runtime", at, fmt.Sprintf("job file: runtime=%s wins over the step's runtime_secs", o.Value), "remove it and give runtime_secs")
			case o.Includes():
				d.say("fio-include", at, fmt.Sprintf("job file: %q is not followed", o.Key), "write the options out")
			case o.Key == "bssplit":
				_, err := fiofile.ParseBSSplit(o.Value)
				d.badValue(at, o, err)
			case o.Key == "rate_iops":
				_, err := fiofile.ParseRates(o.Value)
				d.badValue(at, o, err)
			case o.Key == "size", o.Key == "offset", o.Key == "filesize", o.Key == "io_size":
				_, err := fiofile.ParseSize(o.Value)
				d.badValue(at, o, err)
			}
		}
	}
}

// badValue reports an option value we cannot read; one with a variable is left to fio.
func (d *document) badValue(at Pos, o fiofile.Option, err error) {
	if err != nil && !strings.Contains(o.Value, "${") && !strings.ContainsAny(o.Value, "-") {
		d.say("fio-value", at, "job file: "+err.Error(), "")
	}
}

// fit is what the check of a job file against a VM group depends on.
type fit struct {
	file      string
	disks     int
	diskBytes int64
	prefilled bool
}

// checkJobs compares the jobs of a workload that runs with the disks of its VM group. A file that fits is not looked at
// again for a like group.
func (d *document) checkJobs(w Workload, g Group, prefilled bool) {
	key := fit{file: w.ConfigFile, disks: len(g.DiskBytes), prefilled: prefilled}
	if key.disks > 0 {
		key.diskBytes = g.DiskBytes[0]
	}
	if d.overridden[w.Name] != nil {
		key.file = w.Name + " " + key.file // no path: its options are its own
	}
	if d.fits[key] {
		return
	}
	before := len(d.diags)
	defer func() { d.fits[key] = len(d.diags) == before && !d.unsureDisks[g.Name] }()
	for _, job := range d.jobFile(w).Jobs() {
		at := Pos{File: w.ConfigFile, Line: job.Line}
		if prefilled {
			for _, key := range []string{"filename", "size"} {
				if _, ok := job.Section.Get(key); !ok {
					d.say("fio-prefill", at, fmt.Sprintf("job file: [%s] lacks its own %s, and workload %q is prefilled", job.Name, key, w.Name),
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
			d.checkDisk(job, Pos{File: w.ConfigFile, Line: filename.Line}, f, len(files) == 1, g)
		}
	}
}

var guestDisk = regexp.MustCompile(`^/dev/sd([a-z]{1,2})$`)

// checkDisk checks one /dev/sdX of a job: sda is the system's, the data disks follow in order.
func (d *document) checkDisk(job fiofile.Job, at Pos, device string, alone bool, g Group) {
	device = strings.TrimSpace(device)
	m := guestDisk.FindStringSubmatch(device)
	if m == nil && device != "" && !strings.Contains(device, "$") { // a variable is remarked on by itself
		d.say("fio-file", at, fmt.Sprintf("job file: [%s] uses %s, which is no data disk of a VM", job.Name, device), "data disks are /dev/sdb, /dev/sdc and so on")
	}
	if m == nil || d.unsureDisks[g.Name] {
		return
	}
	index := 0
	for _, letter := range m[1] {
		index = index*26 + int(letter-'a') + 1
	}
	index -= 2 // sdb is the first data disk
	if index < 0 || index >= len(g.DiskBytes) {
		hint := fmt.Sprintf("the group has %d data disks, from /dev/sdb on", len(g.DiskBytes))
		if len(g.DiskBytes) == 1 {
			hint = "the group has one data disk, /dev/sdb"
		}
		if index < 0 {
			hint = "that is the system disk; data disks begin at /dev/sdb"
		}
		d.say("fio-disk", at, fmt.Sprintf("job file: [%s] uses %s, which vm group %q does not have", job.Name, device, g.Name), hint)
		return
	}
	size, offset, err := extent(job)
	if err != nil || !alone || size+offset <= g.DiskBytes[index] {
		return
	}
	end, has := unit.Bytes(size+offset).String(), unit.Bytes(g.DiskBytes[index]).String()
	if end == has { // a little too much
		end, has = fmt.Sprintf("%d bytes", size+offset), fmt.Sprintf("%d bytes", g.DiskBytes[index])
	}
	d.say("fio-extent", at, fmt.Sprintf("job file: [%s] reaches %s into %s, which has %s in vm group %q", job.Name, end, device, has, g.Name),
		"lower size or offset, or enlarge the disk")
}

// extent returns the size and offset in force for a job, in bytes; percentages and absent values are 0.
func extent(job fiofile.Job) (size, offset int64, err error) {
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
	if _, ok := addInt(size, offset); !ok && err == nil {
		err = errors.New("size and offset are too large")
	}
	return size, offset, err
}
