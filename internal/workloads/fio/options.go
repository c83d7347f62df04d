package fio

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/workloads/fio/fiofile"
)

// action tells what the adaptation does with an option of the author's file.
type action int

const (
	keep      action = iota // written as it was read
	drop                    // left out, with a note: the job means the same without it
	refuse                  // an objection: the job would mean something else without it, or reach outside its disks
	scaleSize               // an amount of data, multiplied by the size scale
	scaleArea               // like scaleSize, but zero is meaningful and stays
	scaleTime               // a duration, multiplied by the time scale
	force                   // ours to set; the author's value is left out
	waitFor                 // names a section
)

// option is an entry of the table.
type option struct {
	action action
	why    string // ends the sentence "dropped X: ..." or "X is refused: ..."
	form   form   // how its value is written, for those that fio gets
	bare   bool   // it may stand without a value
}

const (
	runsCommands = "it would run a command of the file's author on the host"
	writesFiles  = "it would write files of its own; the raw output already holds every report"
	otherFiles   = "it would open files other than the data disks"
	replays      = "it would replay a recorded file instead of the described load"
	hostSetting  = "it would change a setting of the host"
	ourReports   = "reports need it as it is"
	commandsOnly = "only engines that send commands of their own to a device look at it, and none is allowed here"
	diskStays    = "the data disks stay until the run's clean-up"
	deprecated   = "no fio from 3.28 on does anything with it"
	ownTitle     = "a section goes by its name in brackets"
)

// table lists every option of fio 3.28 to 3.42, those of the engines below included; what is not in it is asked of the
// fio of this machine (installed.go). What is in neither never reaches fio, and what is gets there as its form writes
// it.
var table = func() map[string]option {
	t := map[string]option{
		"filename": {},                // mapped to the machine's disks (disks.go)
		"ioengine": {},                // one of engines
		"wait_for": {action: waitFor}, // a section of the file

		"exec_prerun":       {action: drop, why: runsCommands},
		"exec_postrun":      {action: drop, why: runsCommands},
		"verify_state_load": {action: drop, why: otherFiles},
		"dedupe_global":     {action: drop, why: "it shares state between jobs in a way no report shows"},
		"lockmem":           {action: drop, why: "it would take the host's memory"},
		"stats":             {action: drop, why: ourReports},
		"thread":            {action: drop, why: "all jobs are threads of one process, which can be killed as one"},
		"description":       {action: drop, why: "it changes nothing that fio does"},

		"comm":               {action: drop, why: "it changes nothing that fio measures"},
		"filetype":           {action: drop, why: "the data disks may be of another type"},
		"job_start_clock_id": {action: drop, why: ourReports},
		"dp_scheme":          {action: refuse, why: otherFiles},

		"allow_mounted_write": {action: drop, why: "a mounted device is never written"},

		"profile":     {action: refuse, why: "it would replace the job by one built into fio"},
		"fill_device": {action: refuse, why: "it would write until the file system that holds the disks is full"},
		"file_append": {action: refuse, why: "it would make the disk grow"},
		"include":     {action: refuse, why: "it would read another file of the host"},

		"size":     {action: scaleSize, form: size},
		"io_size":  {action: scaleSize, form: size},
		"filesize": {action: scaleSize, form: sizeSpan},
		"offset":   {action: scaleArea, form: size},

		"rw": {
			form: tagged(
				all(directionNames, anyOf("a whole number, with or without a unit such as k or m", amount, backwards))),
		},
		"bssplit":             {form: split},
		"cmdprio_bssplit":     {form: prioSplit},
		"random_distribution": {form: distribution},
		"random_generator":    {form: word("tausworthe lfsr tausworthe64")},
		"rw_sequencer":        {form: word("sequential identical")},
		"rate_process":        {form: word("linear poisson")},
		"ignore_error":        {form: errorNames},
		"file_service_type":   {form: tagged(all("random zipf pareto normal gauss roundrobin sequential", decimal))},
		"fallocate":           {form: word("none native posix keep truncate 0 1")},
		"fadvise_hint":        {form: word("0 1 random sequential noreuse")},
		"sync_file_range":     {form: list(",", 3, false, tagged(all("wait_before write wait_after", amount)))},
		"sync":                {form: word("none 0 sync 1 dsync")},
		"write_hint":          {form: word("none short medium long extreme")},
		"lockfile":            {form: word("none exclusive readwrite")},
		"io_submit_mode":      {form: word("inline offload")},
		"clocksource":         {form: word("gettimeofday clock_gettime cpu")},
		"mem":                 {form: word("malloc shm shmhuge mmap mmapshared mmaphuge")},
		"verify":              {form: word(checks)},
		"dedupe_mode":         {form: word("repeat working_set")},
		"zonemode":            {form: word("none strided zbd")},
		"exit_what":           {form: word("group stonewall all")},
		"kb_base":             {form: word("1000 1024")},
		"unit_base":           {form: word("0 1 8")},
		"cpumode":             {form: word("noop qsort")},
		"cpus_allowed_policy": {form: word("shared split")},
		"numa_cpu_nodes":      {form: nodes},
		"numa_mem_policy":     {form: memoryPolicy},
		"steadystate":         {form: tagged(all("iops iops_slope bw bw_slope lat lat_slope", deviation))},

		"thinktime_blocks_type": {form: word("complete issue")},
	}
	for _, group := range []struct {
		option option
		names  string
	}{
		{option{action: refuse, why: otherFiles}, "directory filename_format opendir"},
		{option{action: refuse, why: replays}, "read_iolog merge_blktrace_file replay_redirect"},
		{option{action: drop, why: replays}, "merge_blktrace_iters merge_blktrace_scalars read_iolog_chunked " +
			"replay_no_stall " +
			"replay_scale replay_align replay_time_scale replay_skip"},
		{option{action: drop, why: writesFiles},
			"write_iolog write_bw_log write_lat_log write_iops_log write_hist_log " +
				"verify_state_save"},
		{option{action: drop, why: diskStays}, "unlink unlink_each_loop"},
		{option{action: drop, why: hostSetting}, "cgroup cgroup_weight cgroup_nodelete ioscheduler uid gid"},
		{option{action: drop, why: deprecated}, "rwmixcycle flow_watermark verifysort verifysort_nr"},
		{option{action: drop, why: "fio writes no logs of its own here"}, "log_window_value log_issue_time"},
		{option{action: drop, why: commandsOnly}, "cmd_type md_per_io_size num_range pi_act pi_chk apptag apptag_mask " +
			"readfua writefua write_mode verify_mode deac fdp dataplacement plids plid_select"},
		{option{action: drop, why: ownTitle}, "name unique_filename"},
		{option{action: force}, "group_reporting disk_util continue_on_error unified_rw_reporting " +
			"lat_percentiles clat_percentiles slat_percentiles block_error_percentiles"},

		{option{action: scaleSize, form: amount}, "zonesize zonecapacity zonerange number_ios ramp_size"},
		{option{action: scaleArea, form: size}, "offset_increment zoneskip"},
		{option{action: scaleTime, form: duration}, "runtime ramp_time steadystate_duration " +
			"steadystate_ramp_time steadystate_check_interval"},
		{option{action: scaleTime, form: timeSpan}, "startdelay"},

		{option{form: blockSizes},
			"bs ba rate rate_min rate_iops rate_iops_min rwmixread rwmixwrite percentage_random " +
				"cmdprio_percentage cmdprio cmdprio_class"},
		{option{form: blockSpans}, "bsrange"},
		{option{form: duration}, "thinktime thinktime_spin thinktime_iotime max_latency latency_target latency_window"},
		{option{form: decimals3}, "percentile_list latency_percentile zone_reset_threshold zone_reset_frequency " +
			"spr_op"},
		{option{form: pattern}, "buffer_pattern verify_pattern"},
		{option{form: cpus}, "cpus_allowed verify_async_cpus log_compression_cpus"},
		{option{form: integer}, "nice randseed flow flow_id cpumask nonvectored"},
		{option{form: amount}, "iodepth iodepth_batch iodepth_batch_complete_min iodepth_batch_complete_max " +
			"iodepth_low " +
			"offset_align nrfiles openfiles fsync fdatasync write_barrier loops numjobs iomem_align hugepage-size " +
			"verify_interval verify_offset verify_async verify_backlog verify_backlog_batch " +
			"trim_percentage trim_backlog trim_backlog_batch max_open_zones job_max_open_zones prio prioclass " +
			"thinktime_blocks rate_cycle flow_sleep bwavgtime iopsavgtime log_entries log_avg_msec log_hist_msec " +
			"log_hist_coarseness log_compression log_alternate_epoch_clock_id significant_figures gtod_cpu " +
			"buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_working_set_percentage " +
			"thinkcycles priohint verify_pattern_interval spr_num_regions spr_cs " +
			"sqthread_poll_cpu uncached force_async hipri_percentage thp cpuload cpuchunks"},
		{option{form: toggle}, "randrepeat allrandrepeat softrandommap serialize_overlap direct atomic buffered " +
			"overwrite " +
			"do_verify verify_fatal verify_dump experimental_verify trim_verify_zero read_beyond_wp ignore_zone_limits " +
			"rate_ignore_thinktime latency_run invalidate create_serialize create_fsync create_on_open create_only " +
			"allow_file_create pre_read end_fsync fsync_on_close per_job_logs log_max_value log_offset log_prio " +
			"log_store_compressed log_unix_epoch log_alternate_epoch scramble_buffers gtod_reduce disable_lat " +
			"end_syncfs verify_write_sequence verify_header_seed libaio_vectored " +
			"recover_zbd_write_error write_zone_remainder sprandom " +
			"disable_clat disable_slat disable_bw_measurement error_dump nowait exit_on_io_done"},
		{option{form: toggle, bare: true}, "bs_unaligned norandommap time_based verify_only exitall exitall_on_error " +
			"stonewall new_group zero_buffers refill_buffers userspace_reap hipri fixedbufs registerfiles sqthread_poll"},
	} {
		for name := range strings.FieldsSeq(group.names) {
			t[name] = group.option
		}
	}
	return t
}()

const (
	directionNames = "read write trim randread randwrite randtrim rw readwrite randrw trimwrite randtrimwrite"
	checks         = "0 md5 crc64 crc32 crc32c-intel crc32c crc16 crc7 sha1 sha256 sha512 " +
		"sha3-224 sha3-256 sha3-384 sha3-512 xxhash meta pattern pattern_hdr null"
)

// aliases maps the second names fio knows to the first; from the help texts of fio 3.33 and 3.42.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
	"blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
	"iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size", "fill_fs": "fill_device",
	"fileoffset": "offset", "nr_files": "nrfiles", "timeout": "runtime", "iomem": "mem", "ratemin": "rate_min",
	"ratecycle": "rate_cycle", "wait_for_previous": "stonewall", "ss": "steadystate", "ss_dur": "steadystate_duration",
	"ss_ramp": "steadystate_ramp_time", "disable_bw": "disable_bw_measurement", "mem_align": "iomem_align",
	"ss_interval": "steadystate_check_interval", "data_placement": "dataplacement", "fdp_pli": "plids",
	"fdp_pli_select": "plid_select",
	"threads":        "thread", // in no help text
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

// optionFor returns the entry of an option as written.
func optionFor(o fiofile.Option) (option, bool) {
	if strings.HasPrefix(o.Key, "trigger") {
		return option{action: refuse, why: runsCommands}, true
	}
	if o.Includes() {
		return table["include"], true
	}
	known, ok := table[canonical(o.Key)]
	return known, ok
}

// longestName is no shorter than the name of any option.
const longestName = 40

// didYouMean is the option of the table that an unknown one resembles, as advice.
func didYouMean(key string) string {
	if len(key) > longestName {
		return ""
	}
	var names []string
	for name, o := range table {
		if o.action != drop && o.action != refuse {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if name := nearest.Of(key, names); name != "" {
		return fmt.Sprintf("; did you mean %s?", name)
	}
	return ""
}
