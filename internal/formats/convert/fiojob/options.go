package fiojob

import (
	"strings"
)

// nothing are options that have no part in the load, with what they are about.
var nothing = func() map[string]string {
	all := map[string]string{}
	for about, names := range map[string]string{
		"how fio reports": "group_reporting disk_util unified_rw_reporting lat_percentiles " +
			"clat_percentiles percentile_list new_group write_bw_log write_lat_log " +
			"write_iops_log log_avg_msec per_job_logs write_hist_log log_hist_msec log_hist_coarseness log_offset " +
			"log_max_value log_window_value log_prio log_issue_time log_unix_epoch log_alternate_epoch",
		"a title":                              "name description",
		"how fio's processes run":              "thread threads",
		"what fio does before it begins":       "invalidate",
		"when fio ends":                        "exitall exitall_on_error continue_on_error",
		"how fio measures":                     "gtod_reduce",
		"whether a run is like the one before": "randrepeat allrandrepeat",
		"how files are made":                   "fallocate create_serialize overwrite",
		"what remains":                         "unlink",
		"what fio does at its end":             "end_fsync fsync_on_close",
		"which process runs where":             "cpus_allowed_policy",
		"which streams share":                  "flow_id",
		"how fio makes its data":               "scramble_buffers",
		"how fio counts":                       "softrandommap",
		"how fio draws its places":             "random_generator",
		"in which order files are used":        "file_service_type",
		"how streams share":                    "flow_sleep",
		"what the kernel is told":              "fadvise_hint",
		"how operations are handed over": "iodepth_batch iodepth_batch_complete iodepth_batch_submit " +
			"registerfiles",
		"how operations end": "hipri",
		"memory":             "iomem_align fixedbufs mem iomem",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = about
		}
	}
	return all
}()

// read are options that are read.
var read = []string{
	"rw",
	"bs",
	"bsrange",
	"bssplit",
	"ba",
	"rwmixread",
	"rwmixwrite",
	"percentage_random",
	"norandommap",
	"filename",
	"directory",
	"size",
	"offset",
	"offset_increment",
	"nrfiles",
	"numjobs",
	"iodepth",
	"ioengine",
	"direct",
	"buffered",
	"sync",
	"rate",
	"rate_iops",
	"rate_process",
	"thinktime",
	"thinktime_blocks",
	"random_distribution",
	"zero_buffers",
	"buffer_pattern",
	"buffer_compress_percentage",
	"dedupe_percentage",
	"runtime",
	"time_based",
	"ramp_time",
	"stonewall",
	"randseed",
	"cpus_allowed",
	"flow",
	"loops",
	"refill_buffers",
	"filesize",
}

// second are the second names of options that are read, by the first.
var second = map[string]string{"readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
	"fileoffset": "offset", "timeout": "runtime", "wait_for_previous": "stonewall"}
