package fio

import "strings"

// action is what the adaptation does with an option of the author's file.
type action int

const (
	keep      action = iota // fio judges it
	drop                    // left out, with a note: the job means the same without it
	refuse                  // an objection: the job would mean something else without it, or reach outside its disks
	scaleSize               // an amount of data, multiplied by the size scale
	scaleArea               // like scaleSize, but zero is meaningful and stays
	scaleTime               // a duration, multiplied by the time scale
	force                   // ours to set; the author's value is left out
)

type rule struct {
	action action
	why    string // ends the sentence "dropped X: ..." or "X is refused: ..."
}

const (
	runsCommands = "it would run a command of the file's author on the host"
	writesFiles  = "it would write files of its own; the raw output already holds every report"
	otherFiles   = "it would open files other than the data disks"
	replays      = "it would replay a recorded file instead of the described load"
	hostSetting  = "it would change a setting of the host"
	ourReports   = "reports need it as it is"
)

// rules lists every option that reaches outside the job's own disks, or that the adaptation changes. Everything
// else passes as it is and fio judges it.
var rules = map[string]rule{
	"filename": {keep, ""}, // mapped and checked in job.go

	"directory":           {refuse, otherFiles},
	"filename_format":     {refuse, otherFiles},
	"opendir":             {refuse, otherFiles},
	"read_iolog":          {refuse, replays},
	"merge_blktrace_file": {refuse, replays},
	"replay_redirect":     {refuse, replays},
	"profile":             {refuse, "it would replace the job by one built into fio"},
	"fill_device":         {refuse, "it would write until the file system that holds the disks is full"},
	"file_append":         {refuse, "it would make the disk grow"},
	"include":             {refuse, "it would read another file of the host"},
	"dedupe_global":       {drop, "it shares state between jobs in a way no report shows"},

	"exec_prerun":          {drop, runsCommands},
	"exec_postrun":         {drop, runsCommands},
	"write_iolog":          {drop, writesFiles},
	"write_bw_log":         {drop, writesFiles},
	"write_lat_log":        {drop, writesFiles},
	"write_iops_log":       {drop, writesFiles},
	"write_hist_log":       {drop, writesFiles},
	"merge_blktrace_iters": {drop, replays},
	"verify_state_load":    {drop, otherFiles},
	"verify_state_save":    {drop, writesFiles},
	"unlink":               {drop, "the data disks stay until the run's clean-up"},
	"unlink_each_loop":     {drop, "the data disks stay until the run's clean-up"},
	"allow_mounted_write":  {drop, "a mounted device is never written"},
	"cgroup":               {drop, hostSetting},
	"cgroup_weight":        {drop, hostSetting},
	"cgroup_nodelete":      {drop, hostSetting},
	"ioscheduler":          {drop, hostSetting},
	"uid":                  {drop, hostSetting},
	"gid":                  {drop, hostSetting},
	"lockmem":              {drop, "it would take the host's memory"},
	"stats":                {drop, ourReports},
	"thread":               {drop, "all jobs are threads of one process, which can be killed as one"},

	"size":                    {scaleSize, ""},
	"io_size":                 {scaleSize, ""},
	"filesize":                {scaleSize, ""},
	"zonesize":                {scaleSize, ""},
	"zonerange":               {scaleSize, ""},
	"offset":                  {scaleArea, ""},
	"offset_increment":        {scaleArea, ""},
	"zoneskip":                {scaleArea, ""},
	"number_ios":              {scaleSize, ""},
	"runtime":                 {scaleTime, ""},
	"ramp_time":               {scaleTime, ""},
	"startdelay":              {scaleTime, ""},
	"steadystate_duration":    {scaleTime, ""},
	"steadystate_ramp_time":   {scaleTime, ""},
	"group_reporting":         {force, ""},
	"disk_util":               {force, ""},
	"continue_on_error":       {force, ""},
	"unified_rw_reporting":    {force, ""},
	"lat_percentiles":         {force, ""},
	"clat_percentiles":        {force, ""},
	"slat_percentiles":        {force, ""},
	"block_error_percentiles": {force, ""},
}

// aliases maps the second names fio knows to the first; from the help text of fio 3.33.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
	"blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
	"iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size", "fill_fs": "fill_device",
	"fileoffset": "offset", "nr_files": "nrfiles", "timeout": "runtime", "iomem": "mem", "ratemin": "rate_min",
	"ratecycle": "rate_cycle", "wait_for_previous": "stonewall", "ss": "steadystate", "ss_dur": "steadystate_duration",
	"ss_ramp": "steadystate_ramp_time",
}

func canonical(key string) string {
	if name, ok := aliases[key]; ok {
		return name
	}
	return key
}

// engines lists the I/O engines a job may name, and whether one process of it keeps more than one operation
// outstanding. The others talk to a network, run programs, delete files or need devices we do not hand out.
var engines = map[string]struct{ async bool }{
	"libaio": {true}, "io_uring": {true}, "posixaio": {true}, "null": {true},
	"sync": {}, "psync": {}, "vsync": {}, "pvsync": {}, "pvsync2": {}, "mmap": {}, "cpuio": {},
}

// substitutes replaces engines of other systems by the one of Linux that does the same.
var substitutes = map[string]string{"windowsaio": "libaio", "solarisaio": "libaio"}

// ruleFor returns the rule for an option as written.
func ruleFor(key string) rule {
	if r, ok := rules[canonical(key)]; ok {
		return r
	}
	word, _, _ := strings.Cut(key, " ")
	if word == "include" {
		return rules["include"]
	}
	if strings.HasPrefix(key, "trigger") {
		return rule{refuse, runsCommands}
	}
	return rule{}
}

// badValue refuses values that reach outside the disks although their option is harmless.
func badValue(key, value string) string {
	switch canonical(key) {
	case "mem":
		if strings.Contains(value, ":") {
			return "memory backed by a named file would open files other than the data disks; use mem=malloc or mem=mmap"
		}
	case "buffer_pattern", "verify_pattern":
		if strings.ContainsAny(value, "'") {
			return "a pattern read from a file would copy that file to the disks; write the pattern as text or number"
		}
	}
	if strings.ContainsRune(value, '$') || strings.ContainsRune(key, '$') {
		return "variables are not filled in; write the value"
	}
	return ""
}
