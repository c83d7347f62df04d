package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/needs"
)

// fioTold is fio's JSON of a minute of so many reads by one job with these options.
func fioTold(stamp, reads int, options string) string {
	return fmt.Sprintf(`{"fio version":"fio-3.36","timestamp_ms":%d000,
"global options":{"ioengine":"libaio","direct":"1"},"jobs":[{"jobname":"a","groupid":0,"error":0,"eta":0,"elapsed":61,
"job options":{"rw":"randread",%s},"read":{"io_bytes":%d,"io_kbytes":%d,"iops":%d,"runtime":60000,"total_ios":%d,
"clat_ns":{"min":1000,"max":9000000,"mean":400000,"N":%d},"lat_ns":{"min":1000,"max":9000000,"mean":400000,"N":%d}},
"job_runtime":60000,"usr_cpu":10,"sys_cpu":5}]
}
`, stamp, options, reads*4096, reads*4, reads/60, reads, reads, reads)
}

// vdbenchTold holds vdbench's log of a run of three seconds, in which one read failed and its machine was busy to 60
// %.
const vdbenchTold = "14:00:01.000 Starting RD=rd1; I/O rate: 200; elapsed=3; For loops: None\n\n" +
	"Mar 02, 2021    interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp  " +
	"queue  cpu%  cpu%\n" +
	"                               rate  1024**2     i/o    pct     time     resp     resp      max      max   stddev  " +
	"depth sys+u   sys\n" +
	"14:00:02.000           1      200.0     0.78    4096 100.00    0.500    0.400    0.000     2.00     0.00    0.100    0.1 " +
	" 60.0   2.0\n" +
	"14:00:02.500 localhost-0: 14:00:02.499 op: read  lun: /dev/sdq lba: 4096 0x1000 xfer: 4096 errno: EIO: 'Input/output error'\n" +
	"14:00:03.000           2      200.0     0.78    4096 100.00    0.500    0.400    0.000     2.00     0.00    0.100    0.1 " +
	" 60.0   2.0\n" +
	"14:00:04.000           3      200.0     0.78    4096 100.00    0.500    0.400    0.000     2.00     0.00    0.100    0.1 " +
	" 60.0   2.0\n" +
	"14:00:04.100     avg_2-3      200.0     0.78    4096 100.00    0.500    0.400    0.000     2.00     0.00    0.100    0.1 " +
	" 60.0   2.0\n14:00:05.000 Vdbench execution completed successfully.\n"

// TestOutputsOfMachines: rates of machines are added, the CPU of each is averaged.
func TestOutputsOfMachines(t *testing.T) {
	t.Parallel()
	a, out, errs := quiet(t)
	var files []string
	for _, name := range []string{"vm1", "vm2", "vm3"} {
		files = append(files, filepath.Join(t.TempDir(), name+".txt"))
		write(t, files[len(files)-1], vdbenchTold)
	}
	dir := t.TempDir()
	if code := a.main(append([]string{"import", "--dir", dir}, files...)); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	out.Reset()
	if code := a.main([]string{"report", "latest", "-o", "text", "--dir", dir}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"600 IOPS", "cpu          60 %", "3 operations of vdbench rd1 failed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in it:\n%s", want, out)
		}
	}
}

// wide is a text as PowerShell's > writes it.
func wide(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
		out = append(out, byte(u), byte(u>>8))
	}
	return out
}

func packed(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a buffer takes all
	_ = z.Close()
	return b.Bytes()
}

// logged is a text as kubectl logs --timestamps gives it.
func logged(text string) []byte {
	const at = "2026-11-27T09:03:02.1Z "
	return []byte(at + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+at) + "\n")
}

// TestOutputsAsGiven runs commands on files of other tools, and states the exit code and words of what they print. Two
// machines that began a second apart did 120,000 reads in 61 s, which bc makes 1,967 a second.
func TestOutputsAsGiven(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	dir := t.TempDir()
	put := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		write(t, path, string(data))
		return path
	}
	base := fioTold(1_700_000_000, 60_000, `"bs":"4k","iodepth":"4"`)
	plain := put("plain.json", []byte(base))
	other := func(name, options string) string {
		return put(name, []byte(fioTold(1_700_000_000, 66_000, options)))
	}
	sweep := func(name, bs, more string) string {
		var all strings.Builder
		for i, depth := range []int{1, 2, 4, 8, 16, 32} {
			size := "4k"
			if depth == 8 {
				size = bs
			}
			all.WriteString(fioTold(1_700_000_000+100*i, 60_000*depth*40/(40+depth),
				fmt.Sprintf(`"bs":%q,"iodepth":"%d"%s`, size, depth, more)))
		}
		return put(name, []byte(all.String()))
	}
	logs := filepath.Dir(put("logs/x_iops.1.log", []byte("1000, 100, 0, 0, 0\n2000, 120, 0, 0, 0\n3000, 110, 0, 0, 0\n")))
	put("logs/x_slat.1.log", nil)
	put("logs/notes.md", []byte("mine\n"))
	vm := func(n int) []byte { return []byte(fioTold(1_700_000_000+n, 60_000, `"bs":"4k"`)) }
	machines := filepath.Dir(filepath.Dir(put("machines/vm1/out.json", vm(1))))
	put("machines/vm2/out.json", vm(2))
	vdbench := filepath.Dir(put("vdbench/logfile.html", []byte(vdbenchTold)))
	flat := " tod timestamp Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp resp_max cpu_used\n"
	for n := 1; n <= 3; n++ {
		flat += fmt.Sprintf("14:00:0%d.000 03/02/2021-14:00:0%d-UTC rd1 %d 200 200.0 0.78 4096 100 0.5 0.4 0.0 2.0 60.0\n",
			n, n, n)
	}
	put("vdbench/flatfile.html", []byte(flat))
	put("vdbench/errorlog.html", []byte("14:00:02.500 op: read  lun: /dev/sdq errno: EIO: 'Input/output error'\n"))
	var vms []string
	for _, name := range []string{"vm1", "vm2", "vm3"} {
		vms = append(vms, put(name+".txt", []byte(vdbenchTold)))
	}
	tasks, processes := "", ""
	for n := 1; n <= 16; n *= 2 {
		tasks += fmt.Sprintf("IOR-4.0.0: MPI Coordinated Test of Parallel I/O\nCommand line : ior -b 1g -t 1m -w -r\ntasks : %d\n"+
			"nodes : %d\nxfersize : 1 MiB\nblocksize : 1 GiB\naggregate filesize : %d GiB\nResults:\n"+
			"access bw(MiB/s) IOPS Latency(s) block(KiB) xfer(KiB) open(s) wr/rd(s) close(s) total(s) iter\n"+
			"write %d.00 %[4]d.00 0.01 1048576 1024.00 0.1 10.24 0.1 10.24 0\nread %d.00 %[5]d.00 0.01 1048576 1024.00 0.1 5.12 0.1 "+
			"5.12 0\nFinished : Tue Feb  3 08:00:00 2026\n", n, 1+n/4, n, 100*n, 200*n)
	}
	for n := 1; n <= 8; n *= 2 {
		processes += fmt.Sprintf("t: (g=0): rw=randread, bs=4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\nStarting %d processes\n\n"+
			"t: (groupid=0, jobs=%[1]d): err= 0: pid=7: Tue Feb  3 08:0%[1]d:00 2026\n  read: IOPS=%d, BW=4MiB/s (4MB/s)(40MiB/10000msec)\n"+
			"    clat (usec): min=1, max=9, avg= 5.00, stdev= 1.00\n     issued rwts: total=%d,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\n"+
			"Run status group 0 (all jobs):\n", n, 1000*n, 10000*n)
	}
	table := "system,clients,tps\nold,1,100\nold,2,190\nold,4,350\nold,8,500\nnew,1,200\nnew,2,390\nnew,4,700\nnew,8,1100\n"
	pooled := put("pooled.csv", []byte(table))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"compare", plain, other("like.json", `"iodepth":"4","bs":"4096"`)}, 0, "+10 %"},
		{[]string{"compare", plain, other("bs.json", `"bs":"128k","iodepth":"4"`)}, exit.Refused, "block size"},
		{[]string{"compare", plain, other("depth.json", `"bs":"4k","iodepth":"32"`)}, exit.Refused, "iodepth"},
		{[]string{"compare", plain, other("mix.json", `"bs":"4k","iodepth":"4","rw":"randrw"`)}, exit.Refused, "pattern"},
		{[]string{"compare", plain, other("rate.json", `"bs":"4k","iodepth":"4","rate_iops":"100"`)}, exit.Refused, "rate"},
		{[]string{"compare", plain, other("size.json", `"bs":"4k","iodepth":"4","size":"1g"`)}, exit.Refused, "size"},
		{[]string{"compare", plain, other("engine.json", `"bs":"4k","iodepth":"4","ioengine":"io_uring"`)}, exit.Refused,
			"ioengine"},
		{[]string{"compare", plain, other("direct.json", `"bs":"4k","iodepth":"4","direct":"0"`)}, exit.Refused, "direct"},
		{[]string{"compare", plain, other("span.json", `"bs":"4k","iodepth":"4","runtime":"9"`)}, exit.Refused, "runtime"},
		{[]string{"compare", plain, other("think.json", `"bs":"4k","iodepth":"4","thinktime":"9"`)}, exit.Refused,
			"thinktime"},
		{[]string{"compare", plain, other("dev.json", `"bs":"4k","iodepth":"4","filename":"/dev/b"`)}, 0, "filename"},
		{[]string{"compare", plain, filepath.Join(dir, "bs.json"), "--vary", "block size"}, 0, "+10 %"},
		{[]string{"compare", plain, filepath.Join(dir, "bs.json"), "--anyway"}, 0, "+10 %"},
		{[]string{"report", put("wide.json", wide(base)), "-o", "text"}, 0, "read 1,000 IOPS"},
		{[]string{"report", put("plain.json.gz", packed(base)), "-o", "text"}, 0, "read 1,000 IOPS"},
		{[]string{"import", put("cut.json.gz", packed(base)[:200])}, 1, "unexpected EOF"},
		{[]string{"report", put("k8s.txt", logged(base)), "-o", "text"}, 0, "read 1,000 IOPS"},
		{[]string{"import", put("wide2.json", wide(base))}, 0, "turned from UTF-16, little endian into UTF-8"},
		{[]string{"usl", sweep("sweep.json", "4k", "")}, 0, "6 imported tests"},
		{[]string{"usl", sweep("unlike.json", "1m", "")}, exit.Failed, "block size"},
		{[]string{"usl", sweep("paused.json", "4k", `,"thinktime":"2ms"`)}, 0, "held back, for the thinktime of a is 2ms"},
		{[]string{"usl", sweep("held.json", "4k", `,"rate_iops":"100"`)}, 0, "held back, for the rate of a is 100/s"},
		{[]string{"usl", put("tasks.txt", []byte(tasks))}, exit.Failed, "ior write did write, and ior read read"},
		{[]string{"usl", filepath.Join(dir, "tasks.txt"), "--columns", "write_iops"}, 0, "5 imported tests"},
		{[]string{"usl", put("processes.txt", []byte(processes))}, 0, "4 imported tests"},
		{[]string{"import", logs}, 0, "fio-iops by fio"},
		{[]string{"report", machines, "-o", "text"}, 0, "1,967 IOPS"},
		{[]string{"report", vdbench, "-o", "text"}, 0, "1 operation of vdbench rd1 failed"},
		{append([]string{"import"}, vms...), 0, "vm3.txt: vdbench by vdbench"},
		{[]string{"usl", pooled}, exit.Failed, `"system" is "old", "new"`},
		{[]string{"analyze", pooled}, exit.Failed, `"system" is "old", "new"`},
		{[]string{"usl", pooled, "--where", "system=new"}, 0, "4 points"},
		{[]string{"analyze", pooled, "--where", "system=new"}, 0, "from 200 to 1,100"},
		{[]string{"usl", pooled, "--where", "system=none"}, exit.Usage, `there are "old", "new"`},
		{[]string{"usl", pooled, "--where", "system"}, exit.Usage, "want COLUMN=VALUE"},
		{[]string{"usl", put("wide.csv", wide("clients,tps\n1,100\n2,190\n4,350\n8,500\n"))}, 0, "4 points"},
	} {
		a, out, errs := quiet(t)
		a.RunsDir = t.TempDir()
		code := a.main(append(c.args, "--dir", t.TempDir()))
		if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%q: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.want,
				bytes.TrimSpace([]byte(said)))
		}
	}
}

// TestCallsOfTools: the command line of a tool stands for a job file, in quotes, behind -- and in a script.
func TestCallsOfTools(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "bench.sh")
	write(t, script, "#!/bin/sh\nfio --name=t --rw=randread --bs=4k --size=16m --iodepth=8 --ioengine=libaio --runtime=5\n")
	empty := filepath.Join(t.TempDir(), "notes")
	write(t, empty, "mine\n")
	call := []string{"fio", "--name=t", "--rw=randread", "--bs=4k", "--size=16m", "--iodepth=8",
		"--ioengine=libaio", "--runtime=5"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"plan", strings.Join(call, " ")}, 0, "up to 8 operations"},
		{append([]string{"plan", "--"}, call...), 0, "up to 8 operations"},
		{append([]string{"check", "--"}, call...), 0, "good"},
		{[]string{"plan", script}, 0, "up to 8 operations"},
		{append([]string{"convert", "--from", "fio", "--to", "diskspd", "--"}, call...), 0, "-b4K"},
		{[]string{"plan", "diskspd -b8K -d5 -o4 -c16M x.dat > out.txt"}, 0, "up to 4 operations"},
		{[]string{"plan", "fio --name=t --rw=$rw"}, exit.Scenario, "for a shell to fill in"},
		{[]string{"plan", empty}, exit.Scenario, "nor does it hold a job"},
		{[]string{"plan", "--", "a", "b"}, exit.Usage, "too many"},
	} {
		a, out, errs := quiet(t)
		code := a.main(c.args)
		said := out.String() + errs.String()
		if code != c.code || !strings.Contains(strings.Join(strings.Fields(said), " "), c.want) {
			t.Errorf("%q: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.want, said)
		}
	}
}
