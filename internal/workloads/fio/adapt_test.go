package fio

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
	"plimsoll/scenario"
)

var disks = []target.Disk{
	{Device: "/dev/sdb", Path: "/run/1/b.img", Bytes: 16 << 30, File: true},
	{Device: "/dev/sdc", Path: "/run/1/with:colon.img", Bytes: 16 << 30, File: true},
}

func spec(config string) workload.Spec {
	return workload.Spec{Name: "w", VM: "vm", ConfigFile: "w.fio", Config: []byte(config), Disks: disks,
		Interval: 5 * time.Second}
}

func adapted(t *testing.T, s workload.Spec) (string, workload.Job) {
	t.Helper()
	job, err := Engine{}.Command(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(job.Files) != 1 {
		t.Fatalf("%d files", len(job.Files))
	}
	for _, data := range job.Files {
		return string(data), job
	}
	return "", job
}

const forcedLines = "group_reporting\ndisk_util=0\ncontinue_on_error=all\n"

func TestAdapt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		scale  float64
		time   float64
		want   string
		notes  []string
	}{
		"disks are mapped, global is completed": {
			config: "[global]\nioengine=libaio ; the usual\ndirect=1\n[a]\nfilename=/dev/sdb\nsize=8G\nrw=randread\n",
			want: "[global]\nioengine=libaio\ndirect=1\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img" +
				"\nsize=8g\nrw=randread\n",
		},
		"global comes first": {
			config: "[a]\nfilename=/dev/sdb\nsize=1m\n",
			want:   "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\nsize=1m\n",
		},
		"global below the first job stays there": {
			config: "[a]\nfilename=/dev/sdb\n[global]\nbs=8k\ngroup_reporting=0\n[b]\nfilename=/dev/sdb\n",
			want: "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\n\n[global]\nbs=8k\n" +
				"\n[section-2]\nfilename=/run/1/b.img\n",
			notes: []string{"dropped group_reporting=0: reads and writes of all sections are reported apart, and " +
				"together with those of the others",
				"a [global] section after the first job applies only to the jobs below it"},
		},
		"forced keys win": {
			config: "[global]\ngroup_reporting\ndisk_util=1\ncontinue_on_error=none\nlat_percentiles=0\n" +
				"clat_percentiles=1\n[a]\nfilename=/dev/sdb\ncontinue_on_error=read\n",
			want: "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\n",
			notes: []string{"dropped continue_on_error=none: errors are counted and never end the job",
				"dropped lat_percentiles=0: histograms hold total latency",
				"dropped continue_on_error=read: errors are counted and never end the job"},
		},
		"several disks, colons in paths": {
			config: "[a]\nfilename=/dev/sdb:/dev/sdc\nsize=2g\n",
			want: "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img:/run/1/with\\:colon.img" +
				"\nsize=2g\n",
		},
		"second names become first ones": {
			config: "[a]\nfilename=/dev/sdb\nreadwrite=write\nblocksize=8k\nfileoffset=1m\nio_limit=2m\ntimeout=5\n",
			want: "[global]\n" + forcedLines + "\n[section-1]" +
				"\nfilename=/run/1/b.img\nrw=write\nbs=8k\noffset=1m\nio_size=2m\nruntime=5\n",
		},
		"commands and files of the author's are dropped": {
			config: "[global]\nexec_prerun=rm -rf " +
				"/\nwrite_lat_log=/etc/x\ncgroup=x\nunlink=1\nverify_state_save=1\n[a]\nfilename=/dev/sdb\n" +
				"exec_postrun=id\n",
			want: "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\n",
			notes: []string{"dropped exec_prerun: " + runsCommands, "dropped write_lat_log: " + writesFiles,
				"dropped cgroup: " + hostSetting,
				"dropped unlink: the data disks stay until the run's clean-up", "dropped verify_state_save: " +
					writesFiles, "dropped exec_postrun: " + runsCommands},
		},
		"other systems' engines": {
			config: "[a]\nfilename=/dev/sdb\nioengine=windowsaio\niodepth=4\n",
			want:   "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\nioengine=libaio\niodepth=4\n",
			notes:  []string{"ioengine windowsaio does not exist on Linux, libaio does the same"},
		},
		"sizes are scaled": {
			config: "[global]\nbs=8k\nzonesize=1g\nzonemode=strided\n[a]\nfilename=/dev/sdb\nsize=8G\noffset=1001m\n" +
				"io_size=100%\nfilesize=1g-2g\nzoneskip=0\nnumber_ios=150\n[b]\nfilename=/dev/sdc\nsize=10m\n" +
				"offset=100k\n",
			scale: 0.01,
			want: "[global]\nbs=8k\nzonesize=10485760\nzonemode=strided\n" + forcedLines + "\n[section-1]" +
				"\nfilename=/run/1/b.img\nsize=84934656\noffset=10485760\nio_size=100%\nfilesize=10485760-20971520\n" +
				"zoneskip=0\nnumber_ios=1\n" +
				"\n[section-2]\nfilename=/run/1/with\\:colon.img\nsize=98304\noffset=0\n",
		},
		"zones without a mode": {
			config: "[global]\nbs=8k\n[a]\nfilename=/dev/sdb\nsize=8g\nzonesize=1g\nzoneskip=1g\n[b]\n" +
				"filename=/dev/sdc\nsize=8g\n[c]\nfilename=/dev/sdc\nsize=8g\nzonesize=1g\nzonemode=none\n",
			want: "[global]\nbs=8k\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img" +
				"\nsize=8g\nzonesize=1g\nzoneskip=1g\nzonemode=strided\n" +
				"\n[section-2]\nfilename=/run/1/with\\:colon.img\nsize=8g\n\n[section-3]" +
				"\nfilename=/run/1/with\\:colon.img\nsize=8g\nzonesize=1g\nzonemode=none\n",
			notes: []string{"zonesize without zonemode: zonemode=strided is added, as old versions of fio take it"},
		},
		"neighbours still meet": {
			config: "[a]\nfilename=/dev/sdb\nsize=8G\nbs=4k\n[b]\nfilename=/dev/sdb\noffset=8G\nsize=8G\nbs=256k\n",
			scale:  0.0037,
			want: "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\nsize=31457280\nbs=4k\n" +
				"\n[section-2]\nfilename=/run/1/b.img\noffset=31457280\nsize=31457280\nbs=256k\n",
		},
		"times are scaled, think times are not": {
			config: "[a]\nfilename=/dev/sdb\nruntime=1h\nramp_time=90\nstartdelay=10s-1m\nthinktime=100ms\ntime_based\n",
			time:   0.01,
			want: "[global]\n" + forcedLines + "\n[section-1]" +
				"\nfilename=/run/1/b.img\nruntime=36\nramp_time=900000us\nstartdelay=100000us-600000us\n" +
				"thinktime=100ms\ntime_based\n",
			notes: []string{"[a] pauses between its operations (thinktime=100ms): its rate is of that, too"},
		},
		"engines that do no I/O": {
			config: "[a]\nfilename=/dev/sdb\nioengine=cpuio\ncpuload=20\n",
			want:   "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\nioengine=cpuio\ncpuload=20\n",
			notes:  []string{"[a] ioengine=cpuio does no I/O: its operations and times are of no storage"},
		},
		"sections that begin later": {
			config: "[a]\nfilename=/dev/sdb\n[b]\nfilename=/dev/sdb\nstartdelay=2\n[c]\nfilename=/dev/sdb\nstonewall\n",
			want: "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\n\n[section-2]" +
				"\nfilename=/run/1/b.img\nstartdelay=2\n" +
				"\n[section-3]\nfilename=/run/1/b.img\nstonewall\n",
			notes: []string{"jobs do not begin together (startdelay): all of the load is offered only while all of them run"},
		},
		"sections that wait, of one name": {
			config: "[x y]\nfilename=/dev/sdb\n[ü]\nfilename=/dev/sdb\nwait_for=x y\n[x " +
				"y]\nfilename=/dev/sdb\nwait_for=ü\n",
			want: "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\n\n[section-2]" +
				"\nfilename=/run/1/b.img\nwait_for=section-1\n" +
				"\n[section-1]\nfilename=/run/1/b.img\nwait_for=section-2\n",
		},
		"a mark, returns and no offset": {
			config: "\ufeff[global]\r\nbs=4k\r\n[a]\r\nfilename=/dev/sdb\r\noffset=0%\r\nsize=50%\r\n",
			scale:  0.5,
			want:   "[global]\nbs=4k\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\noffset=0\nsize=50%\n",
		},
		"decimal units": {
			config: "[a]\nfilename=/dev/sdb\nkb_base=1000\nsize=2g\n",
			scale:  0.5,
			want:   "[global]\n" + forcedLines + "\n[section-1]\nfilename=/run/1/b.img\nkb_base=1000\nsize=999292928\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec(c.config)
			s.SizeScale, s.TimeScale = c.scale, c.time
			got, job := adapted(t, s)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.notes, job.Notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAdaptRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		scale  float64
		want   []string
	}{
		"everything at once": {"[a]\nfilename=/etc/shadow\ndirectory=/\nioengine=net\nread_iolog=x\n", 1, []string{
			`w.fio:2:10: [a] filename=/etc/shadow: "/etc/shadow" is not a data disk of this machine; it has /dev/sdb, /dev/sdc`,
			"w.fio:3:11: [a] directory=/: refused", "w.fio:4:10: [a] ioengine=net", "w.fio:5:12: [a] read_iolog=x"}},
		"a disk among others": {"[a]\nfilename=/dev/sdb:/dev/sda\n", 1, []string{`"/dev/sda" is not`}},
		"relative path":       {"[a]\nfilename=../x\n", 1, []string{`"../x" is not`}},
		"escaped colon":       {"[a]\nfilename=/dev/sdb\\:x\n", 1, []string{"is not a data disk"}},
		"empty filename":      {"[a]\nfilename=:\n", 1, []string{"names no data disk"}},
		"no filename":         {"[global]\nbs=4k\n[a]\nsize=1m\n", 1, []string{"w.fio:3:1: [a] has no filename"}},
		"external engine":     {"[a]\nfilename=/dev/sdb\nioengine=external:/tmp/x.so\n", 1, []string{"not allowed"}},
		"memory in a file": {"[a]\nfilename=/dev/sdb\niomem=mmap:/etc/passwd\n", 1,
			[]string{"memory backed by a named file"}},
		"pattern from a file": {"[a]\nfilename=/dev/sdb\nbuffer_pattern='/etc/passwd'\n", 1,
			[]string{"pattern read from a file"}},
		"variables": {"[a]\nfilename=/dev/sdb\nsize=${SIZE}\nbs=$pagesize\n", 1,
			[]string{"w.fio:3:", "w.fio:4:", "variables"}},
		"include": {"[a]\nfilename=/dev/sdb\ninclude /etc/fio.conf\n", 1, []string{"another file"}},
		"hidden global": {"[globals]\nexec_prerun=x\n[a]\nfilename=/dev/sdb\n", 1,
			[]string{"w.fio:1:", "[globals]"}},
		"no dollar in a name": {"[$jobname]\nfilename=/dev/sdb\n", 1,
			[]string{`w.fio:1:1: section name "$jobname": brackets and $ are not allowed in it`}},
		"no brackets either": {"[a]b]\nfilename=/dev/sdb\n", 1, []string{`w.fio:1:1: section name "a]b": brackets`}},
		"a name fio cuts": {"[" + strings.Repeat("n", 256) + "]\nfilename=/dev/sdb\n", 1,
			[]string{"w.fio:1:1: a section name of 256 bytes; at most 200"}},
		"include with a tab": {"[a]\nfilename=/dev/sdb\ninclude\t/etc/fio.conf\n", 1,
			[]string{"w.fio:3:1: [a] include\t/etc/fio.conf: refused: it would read another file"}},
		"unknown option": {"[a]\nfilename=/dev/sdb\n iodeepth=3\n", 1,
			[]string{"w.fio:3:11: [a] iodeepth=3: no option of fio 3.28 to 3.42 has this name, and there is no fio here to ask; did you mean iodepth?"}},
		"no value": {"[a]\nfilename=/dev/sdb\ndirect\nbs=\n", 1,
			[]string{"w.fio:3:1: [a] direct: it needs a value", "w.fio:4:4: [a] bs=: it needs a value"}},
		"sleeps beside another": {"[a]\nfilename=/dev/sdb\nrate=300\n[b]\nfilename=/dev/sdb\n", 1,
			[]string{"w.fio:3:6: [a] rate=300: that is one operation each 13.7 s, and beside other jobs"}},
		"waits for nobody": {"[a]\nfilename=/dev/sdb\nwait_for=b\n", 1,
			[]string{"w.fio:3:10: [a] wait_for=b: no section of the file has this name"}},
		"line of two options": {"[a]\nfilename=/dev/sdb\ndescription=" + strings.Repeat("x", 8179) +
			"exec_prerun=touch x\n", 1,
			[]string{"w.fio:3:1: the line has 8210 bytes"}},
		"too many disks": {"[a]\nfilename=" + strings.Repeat("/dev/sdb:", 440) + "\n", 1,
			[]string{"w.fio:2:10: [a] filename=", "the line it makes for fio is too long"}},
		"only global": {"[global]\nbs=4k\n", 1, []string{"nothing to run"}},
		"beyond the disk": {"[a]\nfilename=/dev/sdb\noffset=12g\nsize=8g\n", 1,
			[]string{"ends at byte 21474836480, beyond /dev/sdb, which has 17179869184 bytes"}},
		"far beyond, scaled": {"[a]\nfilename=/dev/sdb\noffset=12g\nsize=8g\n", 2,
			[]string{"beyond", "all scaled by 2"}},
		"filesize beyond": {"[a]\nfilename=/dev/sdb\nfilesize=1g-17g\n", 1, []string{"beyond /dev/sdb"}},
		"processes beyond": {"[a]\nfilename=/dev/sdb\nsize=4g\noffset_increment=4g\nnumjobs=5\n", 1,
			[]string{"beyond /dev/sdb"}},
		"size only fio reads": {"[a]\nfilename=/dev/sdb\nsize=(1+2)t\n", 1,
			[]string{`w.fio:3:6: [a] size=(1+2)t: "(1+2)t" is not a size such as 8g`}},
		"until it is full": {"[a]\nfilename=/dev/sdb\nfill_fs=1\n", 1, []string{"until the file system"}},
		"unscalable": {"[a]\nfilename=/dev/sdb\nsize=(1+2)g\nruntime=soon\n", 0.5,
			[]string{"w.fio:3:6:", "w.fio:4:9:", `"soon" is not a time`}},
		"not a job file": {"size=1\n", 1, []string{"w.fio:1:"}},
		"absurd scale":   {"[a]\nfilename=/dev/sdb\n", -1, []string{"size scale -1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec(c.config)
			s.SizeScale = c.scale
			err := nowhere.Validate(s)
			if err == nil {
				t.Fatal("it passes")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

// What could touch anything but the disks never gets to fio, whatever its value looks like and wherever it stands.
func TestNeverReachesFio(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for _, key := range strings.Fields("directory filename_format opendir read_iolog merge_blktrace_file " +
		"replay_redirect replay_scale " +
		"profile fill_device fill_fs file_append include trigger trigger_file exec_prerun exec_postrun " +
		"write_iolog write_bw_log write_lat_log write_iops_log write_hist_log verify_state_load " +
		"verify_state_save cgroup cgroup_weight cgroup_nodelete ioscheduler uid gid lockmem unlink " +
		"unlink_each_loop allow_mounted_write stats thread name description dedupe_global " +
		"merge_blktrace_iters server client remote-config aux-path output plugin http_host nfs_url " +
		"hdfsdirectory hostname port program script donorname rbdname") {
		for _, value := range []string{"", "=", "=1", "=/tmp/x", "=a", "\t=1", " 1"} {
			for _, config := range []string{"[global]\n%s%s\n[a]\nfilename=/dev/sdb\n",
				"[a]\n%s%s\nfilename=/dev/sdb\n"} {
				job, err := Engine{}.Command(spec(fmt.Sprintf(config, key, value)))
				text := string(job.Files["w/job.fio"])
				if err == nil && text != "[global]\n"+forcedLines+"\n[section-1]\nfilename=/run/1/b.img\n" {
					t.Errorf("%s%s: fio gets\n%s", key, value, text)
				}
			}
		}
	}
	for _, engine := range strings.Fields("net netsplice rdma http libhdfs exec external:/x.so external sg splice " +
		"falloc e4defrag " +
		"filecreate filestat filedelete ftruncate rbd rados gfapi gfapi_async nbd libiscsi nfs mtd " +
		"libpmem dev-dax pmemblk libzbc io_uring_cmd libcufile dfs xnvme guasi libaio,exec libaio:x " +
		"LIBAIO") {
		if err := (Engine{}).Validate(spec("[a]\nfilename=/dev/sdb\nioengine=" + engine + "\n")); err == nil {
			t.Errorf("ioengine %s passes", engine)
		}
	}
}

// Values are read and written anew: in one spelling, or not at all.
func TestValues(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"size=8G": "size=8g", "size=0x10K": "size=16k", "size=4KiB": "size=4kib", "size=4kb": "size=4kb",
		"size=007": "size=7", "size=50%": "size=50%", "size=12.5%": "", "size=101%": "", "size=(1+2)g": "",
		"size=1.5g": "", "size=8 g": "", "size=-1": "", "size=9223372036854775808": "", "size=1gx": "",
		"filesize=1G-2G": "filesize=1g-2g", "filesize=1g-": "", "bs=4K, 8k": "bs=4k,8k", "bs=,8k": "bs=,8k",
		"bs=4k,8k,16k,32k": "", "bs=,": "", "blocksize=4k": "bs=4k", "bs=4k:8k": "", "bs=4*1k": "",
		"bsrange=1k-4k,2k:8k": "bsrange=1k-4k,2k-8k", "bsrange=4k": "",
		"bssplit=4K/50:8k,64k/100": "bssplit=4k/50:8k,64k/100", "bssplit=4k/50:8k/": "bssplit=4k/50:8k/",
		"bssplit=4k/x": "", "bssplit=4k/50/1": "", "rate_iops=500,": "rate_iops=500,",
		"iodepth=0x10": "iodepth=16", "iodepth=a": "", "nice=-3": "nice=-3", "nice=--3": "",
		"iodepth=-3": "", "rw=randrw:8K": "rw=randrw:8k", "readwrite=READ": "", "rw=read:x": "",
		"rw=read,write": "", "direct=1": "direct=1", "direct=yes": "", "direct=2": "",
		"time_based": "time_based", "time_based=0": "time_based=0", "time_based=": "",
		"wait_for_previous": "stonewall", "runtime=1H": "runtime=1h", "runtime=0.5": "",
		"startdelay=1-2M": "startdelay=1-2m", "thinktime=100ms": "thinktime=100ms", "runtime=1y": "",
		"random_distribution=zipf:1.20": "random_distribution=zipf:1.2", "random_distribution=random:1": "",
		"random_distribution=normal:30:0.5":           "random_distribution=normal:30:0.5",
		"random_distribution=zoned:60/10:30/20:10/70": "random_distribution=zoned:60/10:30/20:10/70",
		"random_distribution=zoned_abs:60/20G:40/":    "random_distribution=zoned_abs:60/20g:40/",
		"random_distribution=zipf:1e3":                "",
		"file_service_type=roundrobin:4":              "file_service_type=roundrobin:4",
		"percentile_list=50:99.90":                    "percentile_list=50:99.9",
		"steadystate=iops:5%":                         "steadystate=iops:5%",
		"ss=bw_slope:0.3":                             "steadystate=bw_slope:0.3", "steadystate=iops:%": "",
		"ignore_error=EIO,5:ENOSPC": "ignore_error=EIO,5:ENOSPC", "ignore_error=EIO;x": "ignore_error=EIO",
		"ignore_error=eio": "", "cpus_allowed=0-3, 7": "cpus_allowed=0-3,7",
		"numa_cpu_nodes=all": "numa_cpu_nodes=all", "numa_mem_policy=bind:0-1": "numa_mem_policy=bind:0-1",
		"numa_mem_policy=local:1": "", "buffer_pattern=0xDEADbeef": "buffer_pattern=0xdeadbeef",
		"buffer_pattern=\"a b\"-012": "buffer_pattern=\"a b\"-12", "verify_pattern=%o": "verify_pattern=%o",
		"buffer_pattern='/etc/passwd'": "", "buffer_pattern=\"": "", "buffer_pattern=deadbeef": "",
		"buffer_pattern=\"abcd\"-120xdeadFACE": "buffer_pattern=\"abcd\"-120xdeadface",
		"verify_pattern=100xff\"z\"":           "verify_pattern=100xff\"z\"",
		"buffer_pattern=120x":                  "",
		"buffer_pattern=0x":                    "",
		"buffer_pattern=\"`id`\"":              "",
		"buffer_pattern=9999999999":            "",
		"sync_file_range=wait_before:8,write":  "sync_file_range=wait_before:8,write",
		"verify=crc32c":                        "verify=crc32c", "verify=0": "verify=0", "mem=mmap": "mem=mmap",
		"mem=mmap:/x":                   "",
		"cmdprio_bssplit=4k/10/3/0:8k/": "cmdprio_bssplit=4k/10/3/0:8k/", "sync=dsync": "sync=dsync",
		"kb_base=1001": "",
	} {
		job, err := Engine{}.Command(spec("[a]\nfilename=/dev/sdb\n" + line + "\n"))
		got, _ := strings.CutPrefix(string(job.Files["w/job.fio"]), "[global]\n"+forcedLines+"\n[section-1]"+
			"\nfilename=/run/1/b.img\n")
		if got = strings.TrimSuffix(got, "\n"); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: fio gets %q, want %q (%v)", line, got, want, err)
		}
	}
}

func TestValidateWithoutDisks(t *testing.T) {
	t.Parallel()
	s := spec("[a]\nfilename=/dev/sdb:/dev/sdaa\nsize=1g\n")
	s.Disks = nil
	if err := (Engine{}).Validate(s); err != nil {
		t.Error(err)
	}
	if _, err := (Engine{}).Command(s); err == nil || !strings.Contains(err.Error(), "no data disk") {
		t.Errorf("Command: %v", err)
	}
	s.Config = []byte("[a]\nfilename=/dev/sdb1\n")
	if err := (Engine{}).Validate(s); err == nil {
		t.Error("/dev/sdb1 passes")
	}
}

// What only rounding pushed over the end of a disk is cut; the file must not grow.
func TestSizeIsCutToTheDisk(t *testing.T) {
	t.Parallel()
	s := spec("[a]\nfilename=/dev/sdb\nsize=16g\n")
	s.SizeScale = 0.001
	s.Disks = []target.Disk{{Device: "/dev/sdb", Path: "/d", Bytes: 15<<20 + 5000}}
	got, job := adapted(t, s)
	if want := "[global]\n" + forcedLines + "\n[section-1]\nfilename=/d\nsize=15732736\n"; got != want {
		t.Errorf("got %s", got)
	}
	if len(job.Notes) != 1 || job.Streams[0].Bytes != 15732736 {
		t.Errorf("notes %q, lanes %+v", job.Notes, job.Streams)
	}
}

// Appendix A of the scenario language's reference.
func TestPrefill(t *testing.T) {
	t.Parallel()
	s := spec("[global]\nioengine=psync\nzero_buffers\n[vdi-read]\nfilename=/dev/sdb\nsize=8G\nbs=4k\nrw=randread\n" +
		"rate_iops=10\n" +
		"[vdi-write]\nfilename=/dev/sdb\nsize=2G\noffset=8G\nrw=randwrite\nbuffer_compress_percentage=100\n")
	s.Prefill, s.Depth, s.Runtime = true, 4, time.Hour
	got, job := adapted(t, s)
	want := "[global]\nioengine=libaio\ndirect=1\nbs=1048576\niodepth=4\nrw=write\n" + forcedLines +
		"\n[section-1]\nfilename=/run/1/b.img\nsize=8g\n\n[section-2]\nfilename=/run/1/b.img\nsize=2g\noffset=8g\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	streams := []result.Stream{
		{Name: "vdi-read", Noun: "fio job", Device: "/dev/sdb", Depth: 4, Writes: true, Bytes: 8 << 30, Direct: true,
			WriteBytes: 1 << 20, Work: 8 << 30, Also: "ioengine=libaio"},
		{Name: "vdi-write", Noun: "fio job", Device: "/dev/sdb", Depth: 4, Writes: true, Bytes: 2 << 30, Direct: true,
			Offset: 8 << 30, WriteBytes: 1 << 20, Work: 2 << 30, Also: "ioengine=libaio"},
	}
	if diff := cmp.Diff(streams, job.Streams); diff != "" {
		t.Error(diff)
	}
	if job.Output != "w_prefill/fio.out" {
		t.Errorf("output %q", job.Output)
	}
	if job.Limit != 0 || strings.Contains(strings.Join(job.Command.Argv, " "), "--runtime") {
		t.Errorf("a prefill has no runtime: %v %q", job.Limit, job.Command.Argv)
	}
}

// Sections are told apart up to the number allowed, and never where that would change what the job does.
func TestTellApart(t *testing.T) {
	t.Parallel()
	three := "[a]\nfilename=/dev/sdb\n[b]\nfilename=/dev/sdb\nstonewall\n[c]\nfilename=/dev/sdb\n"
	why := func(key string) []string {
		return []string{key + " acts on fio's groups of jobs, so the sections are reported in sum only"}
	}
	for name, c := range map[string]struct {
		config  string
		allowed int
		prefill bool
		want    bool
		notes   []string
	}{
		"allowed":         {config: three, allowed: 3, want: true},
		"not asked for":   {config: three},
		"too many":        {config: three, allowed: 2},
		"one section":     {config: "[a]\nfilename=/dev/sdb\n", allowed: 9},
		"never so many":   {config: strings.Repeat(three, 6), allowed: 100},
		"prefill":         {config: strings.ReplaceAll(three, "sdb", "sdb\nsize=1m"), allowed: 9, prefill: true},
		"exitall":         {config: "[global]\nexitall\n" + three, allowed: 9, notes: why("exitall")},
		"exitall off":     {config: "[global]\nexitall=0\n" + three, allowed: 9, want: true},
		"exits on errors": {config: three + "exitall_on_error=1\n", allowed: 9, notes: why("exitall_on_error")},
		"steady state":    {config: three + "ss=iops:5%\n", allowed: 9, want: true},
		"of a group": {config: three + "ss=iops:5%\ngroup_reporting\n", allowed: 9,
			notes: why("steadystate")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec(c.config)
			s.Sections, s.Prefill = c.allowed, c.prefill
			text, job := adapted(t, s)
			if got := strings.Contains(text, forcedLines+"new_group\n"); job.Apart != c.want || got != c.want {
				t.Errorf("told apart: %t, want %t: %s", job.Apart, c.want, text)
			}
			if diff := cmp.Diff(c.notes, job.Notes); !c.prefill && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrefillRefuses(t *testing.T) {
	t.Parallel()
	s := spec("[global]\nsize=1g\n[a]\nfilename=/dev/sdb\n[b]\nsize=1g\nfilesize=1g\n")
	s.Prefill = true
	err := Engine{}.Validate(s)
	for _, want := range []string{"w.fio:3:1: [a] prefill needs size", "w.fio:5:1: [b] prefill needs filename"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestPrefillOfLessThanABlock(t *testing.T) {
	t.Parallel()
	s := spec("[a]\nfilename=/dev/sdb\nsize=1g\nbs=8k\n")
	s.Prefill, s.SizeScale = true, 0.0001
	got, _ := adapted(t, s)
	if !strings.Contains(got, "[section-1]\nfilename=/run/1/b.img"+
		"\nsize=106496\nbs=106496\n") || !strings.Contains(got, "iodepth=1\n") {
		t.Errorf("got %s", got)
	}
}

// A prefill writes all of what is read: fio leaves out what is less than a block at the end of a section.
func TestPrefillOfNoWholeBlocks(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{
		"size=20000":                   "size=1048576\nbs=1048576\n",
		"size=1500000":                 "size=2097152\nbs=1048576\n",
		"size=1g\noffset=1049600":      "size=1g\noffset=1049600\n",
		"size=1500000\noffset=9g":      "size=2097152\noffset=9g\nbs=1048576\n",
		"size=1536k\noffset=16775680k": "size=1572864\noffset=16775680k\nbs=524288\n",
	} {
		s := spec("[a]\nfilename=/dev/sdb\n" + options + "\n")
		s.Prefill = true
		if got, _ := adapted(t, s); !strings.Contains(got, want) {
			t.Errorf("%q: %q is not in %s", options, want, got)
		}
	}
}

func TestOfferedRate(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]float64{
		"rw=read\nrate_iops=100":                      100,
		"rw=randrw\nrate_iops=100,50":                 150,
		"rw=read\nbs=64k\nrate=640k":                  10,
		"rw=randrw\nbs=4k,16k\nrate=2m,1m":            512 + 64, // each direction by its own block size
		"rw=randrw\nbs=4k,16k\nrate=2m,1m\nnumjobs=2": 2 * (512 + 64),
		"rw=randrw\nrate_iops=100,":                   0, // writes have no limit
		"rw=read\nbssplit=4k/50:12k/50\nrate=1m":      128,
	} {
		_, job := adapted(t, spec("[a]\nfilename=/dev/sdb\nsize=1g\n"+options+"\n"))
		if got := job.Streams[0].Rate; got != want {
			t.Errorf("%q: offered %v, want %v", options, got, want)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	s := spec(`[global]
direct=1
rate_process=poisson
[oltp]
filename=/dev/sdb
size=8g
rw=randrw
ioengine=libaio
iodepth=8
numjobs=2
rate_iops=500,300
time_based
[log]
filename=/dev/sdb:/dev/sdc
size=25%
rw=write
iodepth=4
bs=64k
rate=640k
zero_buffers
direct=0
[scan]
filename=/dev/sdc
offset=6g
ioengine=io_uring
iodepth=32
rw=read
stonewall
runtime=10
startdelay=5
`)
	s.Runtime = 30*time.Second + 900*time.Millisecond
	_, job := adapted(t, s)
	want := []result.Stream{
		{Name: "oltp", Noun: "fio job", Device: "/dev/sdb", Depth: 16, Processes: 2, Rate: 1600,
			Reads: true, Writes: true,
			Bytes: 8 << 30, OpenLoop: true, Direct: true, TimeBased: true,
			ReadShare: 0.625, ReadBytes: 4096, WriteBytes: 4096, Random: 1, Runtime: 30 * time.Second,
			Also: "ioengine=libaio, rate_process=poisson"},
		{Name: "log", Noun: "fio job", Device: "/dev/sdb:/dev/sdc", Depth: 1, Rate: 10, Writes: true,
			Bytes: 8 << 30, OpenLoop: true, ZeroData: true, Reducible: 1, WriteBytes: 65536,
			Work: 8 << 30, Runtime: 30 * time.Second, Also: "rate_process=poisson"},
		{Name: "scan", Noun: "fio job", Device: "/dev/sdc", Depth: 32, Reads: true, Bytes: 10 << 30, Offset: 6 << 30,
			Direct:    true,
			ReadShare: 1, ReadBytes: 4096, Work: 10 << 30, Runtime: 10 * time.Second, Delay: 5 * time.Second, Stage: 1,
			Also: "ioengine=io_uring, rate_process=poisson"},
	}
	if diff := cmp.Diff(want, job.Streams); diff != "" {
		t.Error(diff)
	}
	if job.Limit != 45*time.Second {
		t.Errorf("limit %v, want 30 s and then 15 s", job.Limit)
	}
	notes := []string{"[log] iodepth has no effect: ioengine psync keeps one operation outstanding per process",
		"[scan] has a runtime of its own (10s), which wins over the step's"}
	if diff := cmp.Diff(notes, job.Notes); diff != "" {
		t.Error(diff)
	}
}

// TestThink: how long a place among the outstanding operations of a process is empty. Of four blocks after a pause with
// eight outstanding, eleven end before the next.
func TestThink(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]time.Duration{
		"":                                   0,
		"thinktime=1ms":                      time.Millisecond,
		"thinktime=1000":                     time.Millisecond,
		"thinktime=8000\nthinktime_blocks=4": 2 * time.Millisecond,
		"thinktime=1ms\niodepth=8\nioengine=libaio\nnumjobs=2":           8 * time.Millisecond,
		"thinktime=12ms\niodepth=8\nioengine=libaio\nthinktime_blocks=4": 16 * time.Millisecond,
		"thinktime=2ms\niodepth=8\nioengine=libaio\nthinktime_blocks=16": time.Millisecond,
		"thinktime=1ms\nthinktime_iotime=5ms":                            0,
		"thinktime=1ms\niodepth=0":                                       time.Millisecond,
	} {
		_, job := adapted(t, spec("[a]\nfilename=/dev/sdb\nsize=1g\nrw=randread\n"+lines+"\n"))
		if got := job.Streams[0].Think; got != want {
			t.Errorf("%q: %s, want %s", lines, got, want)
		}
	}
}

// TestShape: what a model of the load takes from a section.
func TestShape(t *testing.T) {
	t.Parallel()
	type shape struct {
		Reads, Trims, ReadBytes, WriteBytes, Random float64
		Skew                                        result.Skew
		Work                                        int64
	}
	const gib = int64(1) << 30
	for lines, want := range map[string]shape{
		"rw=randrw\nrwmixread=70\nbssplit=8k/50:16k/50,64k/100": {0.7, 0, 12288, 65536, 1, result.Skew{}, gib},
		"rw=randrw\nrwmixwrite=70\nbs=4k,8k":                    {0.3, 0, 4096, 8192, 1, result.Skew{}, gib},
		"rw=rw\nbsrange=4k-12k":                                 {0.5, 0, 8192, 8192, 0, result.Skew{}, gib},
		"rw=randtrim\nbs=1m":                                    {0, 1, 0, 1 << 20, 1, result.Skew{}, gib},
		"rw=randread\npercentage_random=20":                     {1, 0, 4096, 0, 0.2, result.Skew{}, gib},
		"rw=randread\nrandom_distribution=zipf:1.2": {1, 0, 4096, 0, 1,
			result.Skew{Kind: result.Zipf, Value: 1.2}, gib},
		"rw=randread\nrandom_distribution=pareto:0.8": {1, 0, 4096, 0, 1,
			result.Skew{Kind: result.Pareto, Value: 0.8}, gib},
		"rw=randread\nrandom_distribution=normal:30": {1, 0, 4096, 0, 1, result.Skew{}, gib},
		"rw=write\nnumjobs=3\nloops=2":               {0, 0, 0, 4096, 0, result.Skew{}, 6 * gib},
		"rw=write\nio_size=5g":                       {0, 0, 0, 4096, 0, result.Skew{}, 5 * gib},
		"rw=write\nbs=1m\nnumber_ios=10":             {0, 0, 0, 1 << 20, 0, result.Skew{}, 10 << 20},
		"rw=write\ntime_based\nruntime=5":            {0, 0, 0, 4096, 0, result.Skew{}, 0},
	} {
		_, job := adapted(t, spec("[a]\nfilename=/dev/sdb\nsize=1g\n"+lines+"\n"))
		l := job.Streams[0]
		got := shape{l.ReadShare, l.TrimShare, l.ReadBytes, l.WriteBytes, l.Random, l.Skew, l.Work}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", lines, diff)
		}
	}
}

func TestZeroData(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"zero_buffers": true, "zero_buffers=0": false, "buffer_pattern=0x00": true, "buffer_pattern=0": true,
		"buffer_pattern=0xdeadbeef":      false,
		"buffer_compress_percentage=100": true, "buffer_compress_percentage=50": false, "dedupe_percentage=100": true,
		"bs=4k": false,
	} {
		if _, job := adapted(t, spec("[a]\nfilename=/dev/sdb\n"+line+"\n")); job.Streams[0].ZeroData != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
}

// TestPrefillOfSuchData: what is read is as reducible as what is written.
func TestPrefillOfSuchData(t *testing.T) {
	t.Parallel()
	s := spec("[global]\ndedupe_percentage=20\n[a]\nfilename=/dev/sdb\nsize=1g\nbuffer_compress_percentage=50\n" +
		"buffer_pattern=0xdeadbeef\n[b]\nfilename=/dev/sdb\nsize=1g\noffset=1g\ndedupe_percentage=0\n")
	s.Prefill, s.Depth = true, 1
	got, job := adapted(t, s)
	want := "[global]\nioengine=libaio\ndirect=1\nbs=1048576\niodepth=1\nrw=write\n" + forcedLines +
		"\n[section-1]\nfilename=/run/1/b.img\nsize=1g\nbuffer_compress_percentage=50\ndedupe_percentage=20\n" +
		"buffer_pattern=0xdeadbeef\n\n[section-2]\nfilename=/run/1/b.img\nsize=1g\noffset=1g\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a, b := job.Streams[0], job.Streams[1]; math.Abs(a.Reducible-0.6) > 1e-12 || a.Repeats != 0.2 ||
		b.Reducible != 0 {
		t.Errorf("lanes %+v", job.Streams)
	}
}

func TestReducible(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]float64{
		"": 0, "zero_buffers": 1, "buffer_pattern=0xdeadbeef": 1, "buffer_compress_percentage=50": 0.5,
		"dedupe_percentage=30": 0.3,
		"buffer_compress_percentage=50\nbuffer_pattern=0xdeadbeef": 0.5,
		"buffer_compress_percentage=50\ndedupe_percentage=50":      0.75, "dedupe_percentage=250": 1,
	} {
		if _, job := adapted(t,
			spec("[a]\nfilename=/dev/sdb\n"+lines+"\n")); math.Abs(job.Streams[0].Reducible-want) > 1e-12 {
			t.Errorf("%q: %v, want %v", lines, job.Streams[0].Reducible, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	s := spec("[a]\nfilename=/dev/sdb\ntime_based\n")
	s.Name, s.Runtime, s.Seed = "OLTP 1", 2500*time.Millisecond, 99
	_, job := adapted(t, s)
	want := target.Command{
		Argv: []string{"fio", "--output-format=json+", "--status-interval=1", "--output=OLTP_1-3be5e5f5/fio.out",
			"--eta=never",
			"--lat_percentiles=1", "--clat_percentiles=0", "--thread", "--runtime=2", "--randrepeat=0", "--randseed=99",
			"--readonly",
			"OLTP_1-3be5e5f5/job.fio"},
		Stderr: "OLTP_1-3be5e5f5/fio.err", Label: "OLTP 1", ReadOnly: true,
	}
	if diff := cmp.Diff(want, job.Command); diff != "" {
		t.Error(diff)
	}
	s.Runtime, s.Seed = 300*time.Millisecond, 0
	_, job = adapted(t, s)
	if line := strings.Join(job.Command.Argv, " "); !strings.Contains(line, "--runtime=1 ") ||
		strings.Contains(line, "--randseed") || !strings.Contains(line, "--randrepeat=0") {
		t.Errorf("a short run without a seed: %s", line)
	}
	if job.Output != "OLTP_1-3be5e5f5/fio.out" {
		t.Errorf("output %q", job.Output)
	}
}

// What fio is given for reading only: jobs none of which can write or trim, whatever options say it.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"[a]\nfilename=/dev/sdb\n": true,
		"[global]\nrw=randread\n[a]\nfilename=/dev/sdb\n[b]\nfilename=/dev/sdb\nrw=read:8\n":      true,
		"[a]\nfilename=/dev/sdb\nrw=randread\nverify=crc32c\nrwmixwrite=50\n":                     true,
		"[a]\nfilename=/dev/sdb\nrw=randread\ntrim_percentage=10\n":                               false,
		"[a]\nfilename=/dev/sdb\nrw=randread\n[b]\nfilename=/dev/sdb\nrw=randrw\nrwmixread=100\n": false,
		"[global]\nrw=randwrite\n[a]\nfilename=/dev/sdb\nrw=read\n[b]\nfilename=/dev/sdb\n":       false,
		"[a]\nfilename=/dev/sdb\nrw=trim\n":                                                       false,
		"[a]\nfilename=/dev/sdb\nrw=randtrimwrite\n":                                              false,
		"[a]\nfilename=/dev/sdb\nrw=write\nverify=crc32c\nverify_only\n":                          false,
		"[a]\nfilename=/dev/sdb\nrw=randread\n[b]\nfilename=/dev/sdb\nreadwrite=readwrite:16\n":   false,
	} {
		_, job := adapted(t, spec(text))
		if got := slices.Contains(job.Command.Argv, "--readonly"); got != want || job.Command.ReadOnly != want {
			t.Errorf("%q: --readonly %t, ReadOnly %t, want %t", text, got, job.Command.ReadOnly, want)
		}
	}
	text, job := adapted(t, spec("[global]\nrw=randwrite\n[a]\nfilename=/dev/sdb\nrw=trim\nrw=read:8\n"))
	if !job.Command.ReadOnly || strings.Contains(text, "rw=randwrite") || strings.Contains(text, "rw=trim") ||
		!strings.Contains(text, "rw=read:8\n") {
		t.Errorf("fio refuses lines that write with --readonly, though they are not in force: %s", text)
	}
	s := spec("[a]\nfilename=/dev/sdb\nsize=1m\nrw=randread\n")
	s.Prefill = true
	if _, job := adapted(t, s); job.Command.ReadOnly || slices.Contains(job.Command.Argv, "--readonly") {
		t.Errorf("a prefill of a job that reads cannot write: %q", job.Command.Argv)
	}
	s = spec("[a]\nfilename=/dev/sdb\nrw=randread\n")
	s.Settings = []scenario.Setting{{Key: "rw", Value: "randrw"}}
	if _, job := adapted(t, s); job.Command.ReadOnly {
		t.Error("a setting of the workload that writes was not seen")
	}
}

func TestFoldersDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, name := range []string{"A B", "A_B", "A-B", "../x", "x", "..", "", "-x", "a/b", strings.Repeat("n", 300),
		"Ä", "Ö"} {
		folder := workload.FolderName(name)
		if strings.ContainsAny(folder, "/ ") || strings.ContainsAny(folder[:1], ".-") || len(folder) > 150 ||
			folder == "" {
			t.Errorf("%q gives %q", name, folder)
		}
		if other, ok := seen[folder]; ok {
			t.Errorf("%q and %q share %q", name, other, folder)
		}
		seen[folder] = name
	}
}

func TestScaledSizes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<45).Draw(t, "bytes")
		scale := rapid.Float64Range(1e-6, 1).Draw(t, "scale")
		block := int64(512) << rapid.IntRange(0, 12).Draw(t, "block")
		got := scaled(n, scale, block)
		if got < block || got%block != 0 || got > max(block, int64(float64(n)*scale)) {
			t.Fatalf("scaled(%d, %g, %d) = %d", n, scale, block, got)
		}
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"fio-3.33": {3, 33}, "fio-3.28-dirty": {3, 28}, "fio-3.36-44-g9bc9\n": {3, 36}, "fio-2.2.10": {2, 2},
		"3.41": {3, 41},
	} {
		if got, ok := parseVersion(text); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "fio", "fio-git", "version 3.33", "fio-3", "fio-99999999999.1"} {
		if got, ok := parseVersion(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Only what reads alone, with a checksum to hold the data to, says by itself whether what it reads had been written.
func TestVerifyingStreams(t *testing.T) {
	for text, want := range map[string]bool{
		"rw=read\nverify=crc32c": true, "rw=randread\nverify=md5": true, "rw=read": false, "rw=read\nverify=0": false,
		"rw=read\nverify=null": false, "rw=write\nverify=crc32c": false, "rw=randrw\nverify=crc32c": false,
	} {
		_, job := adapted(t, spec("[j]\nfilename=/dev/sdb\nsize=1g\n"+text+"\n"))
		if got := job.Streams[0].Verifies; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
