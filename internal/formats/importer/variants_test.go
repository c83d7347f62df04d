package importer

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// says holds of each run in a file what runsIn tells, how many were at work, and what went wrong.
func says(t *testing.T, name, text string) string {
	t.Helper()
	lines := strings.Split(runsIn(t, name, []byte(text)), "\n")
	all, err := Prepare(name, strings.NewReader(text), changed, Options{})
	if err != nil {
		return err.Error()
	}
	for i, d := range all {
		lines[i] += fmt.Sprintf(", %g at once", d.Concurrency)
		for _, why := range []string{d.Failure, d.Lost} {
			if why != "" {
				lines[i] += "; " + why
			}
		}
	}
	return strings.Join(lines, "\n")
}

// diskspdTwo is a time span of eight threads that each work on two targets of unlike block sizes. Of its rows of
// threads awk -F'|' '{ b[$8] += $2; n[$8] += $3; s[$8] += $3*$6/1000 } END { for (f in n) print f, n[f], b[f], s[f] }'
// prints 3000 12288000 1 of a.dat and 90 11796480 0.18 of b.dat.
const diskspdTwo = "Command Line: diskspd -Xtwo.xml\n\nInput parameters:\n\n\ttimespan:   1\n\ttotal threads: 8\n" +
	"\tpath: 'D:\\a.dat'\n\t\tperforming read test\n\t\tblock size: 4096\n" +
	"\t\tnumber of outstanding I/O operations per thread: 4\n\tpath: 'E:\\b.dat'\n\t\tperforming write test\n" +
	"\t\tblock size: 131072\n\t\tnumber of outstanding I/O operations per thread: 2\n\nResults for timespan 1:\n" +
	"actual test time:\t30.00s\n\nTotal IO\n" + diskspdHead + "Read IO\n" + diskspdHead +
	"     0 | 4096000 | 1000 | 0.13 | 33.33 | 0.500 | 0.1 | D:\\a.dat (10GiB)\n" +
	"     0 | 0 | 0 | 0.00 | 0.00 | 0.000 | N/A | E:\\b.dat (1GiB)\n" +
	"     1 | 8192000 | 2000 | 0.26 | 66.67 | 0.250 | 0.1 | D:\\a.dat (10GiB)\n" +
	"total:  12288000 | 3000 | 0.39 | 100.00 | 0.333 | 0.1\n\nWrite IO\n" + diskspdHead +
	"     0 | 0 | 0 | 0.00 | 0.00 | 0.000 | N/A | D:\\a.dat (10GiB)\n" +
	"     1 | 11796480 | 90 | 0.38 | 3.00 | 2.000 | 0.1 | E:\\b.dat (1GiB)\n" +
	"total:  11796480 | 90 | 0.38 | 3.00 | 2.000 | 0.1\n\n  %-ile |  Read (ms) | Write (ms) | Total (ms)\n" +
	"   50th |      0.400 |      1.900 |      0.400\n    max |      9.000 |      9.000 |      9.000\n"

const diskspdHead = "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file\n-----\n"

// diskspdAsTree is the same as XML, of one target where two is not set.
func diskspdAsTree(two bool, threads int) string {
	target := func(path, block string, writes int) string {
		return fmt.Sprintf("<Target><Path>%s</Path><BlockSize>%s</BlockSize><RequestCount>4</RequestCount><WriteRatio>%d"+
			"</WriteRatio><ThreadsPerFile>1</ThreadsPerFile></Target>", path, block, writes)
	}
	did := "<Target><Path>a</Path><ReadBytes>12288000</ReadBytes><ReadCount>3000</ReadCount><WriteBytes>0</WriteBytes>" +
		"<WriteCount>0</WriteCount></Target>"
	asks := target("a", "4096", 0)
	if two {
		asks += target("b", "131072", 100)
		did += "<Target><Path>b</Path><ReadBytes>0</ReadBytes><ReadCount>0</ReadCount><WriteBytes>11796480</WriteBytes>" +
			"<WriteCount>90</WriteCount></Target>"
	}
	bucket := func(p, ms string) string {
		return "<Bucket><Percentile>" + p + "</Percentile><ReadMilliseconds>" + ms + "</ReadMilliseconds></Bucket>"
	}
	return fmt.Sprintf("<Results>\n<System><Tool><Version>2.1.0</Version></Tool></System>\n<Profile><TimeSpans><TimeSpan>"+
		"<ThreadCount>%d</ThreadCount><RequestCount>0</RequestCount><Targets>%s</Targets></TimeSpan></TimeSpans></Profile>\n"+
		"<TimeSpan><TestTimeSeconds>30.00</TestTimeSeconds><CpuUtilization><Average><UsagePercent>12.5</UsagePercent>"+
		"</Average></CpuUtilization><Latency><AverageReadMilliseconds>0.5</AverageReadMilliseconds>%s</Latency><Thread>%s"+
		"</Thread></TimeSpan>\n</Results>\n", threads, asks,
		bucket("50", "0.4")+bucket("95", "0.9")+bucket("99.99", "5")+bucket("100", "9"), did)
}

// hammerUsers are two tests of HammerDB, one after another, of 8 and 16 virtual users: early fail in the ramp-up of the
// first, late after its result.
func hammerUsers(early, late bool) string {
	failed := "Error in Virtual User 3: ERROR:  canceling statement\nVuser 3:FINISHED FAILED\n"
	one := func(users, nopm int, early, late bool) string {
		text := "Vuser 1 created - WAIT IDLE\nVuser 1:RUNNING\nVuser 1:Beginning rampup time of 2 minutes\nVuser 2:RUNNING\n"
		if early {
			text += failed
		}
		text += fmt.Sprintf("Vuser 1:Rampup complete\nVuser 1:Timing test period of 5 in minutes\n"+
			"Vuser 1:%d Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved %d NOPM from %d PostgreSQL "+
			"TPM\nVuser 1:FINISHED SUCCESS\n", users, nopm, 2*nopm)
		if late {
			text += failed
		}
		return text + "ALL VIRTUAL USERS COMPLETE\n"
	}
	return "HammerDB CLI v5.0\n" + one(8, 100, early, late) + one(16, 180, false, false)
}

// Forms that a tool writes as well as those of testdata, made for this test. Totals of DISKSPD are those of awk above,
// the others are figures that stand in the text.
func TestVariants(t *testing.T) {
	t.Parallel()
	failed := "; 1 of 8 virtual users FINISHED FAILED: Error in Virtual User 3: ERROR: canceling statement"
	first, second := "TPROC-C 8 VU: 1 reports, [100 200], %d errors, 5m0s, 8 at once",
		"TPROC-C 16 VU: 1 reports, [180 360], 0 errors, 5m0s, 16 at once"
	elbencho, err := os.ReadFile("testdata/outputs/elbencho-new.txt")
	if err != nil {
		t.Fatal(err)
	}
	asks := strings.Replace(string(elbencho), `"-w" "-r"`, `"-w" "-t" "16" "--iodepth=8" "-b" "4k"`, 1)
	asks = asks[:strings.Index(asks, "---")+4]
	for _, c := range []struct{ name, text, want string }{
		{"diskspd, unlike targets", diskspdTwo,
			`diskspd D:\a.dat: read 3000/1/12288000, 0 errors, 30s, 0 at once` + "\n" +
				`diskspd E:\b.dat: write 90/0.18/11796480, 0 errors, 30s, 0 at once`},
		{"diskspd, threads for all targets", strings.Replace(diskspdTwo, "131072", "4096", 1),
			"diskspd: read 3000/0.999/12288000 write 90/0.18/11796480, 0 errors, 30s, 48 at once"}, // 8 times 4 + 2
		{"diskspd, cut within percentiles", diskspdTwo[:strings.Index(diskspdTwo, "    max")],
			`diskspd D:\a.dat: read 3000/1/12288000, 0 errors, 30s, 0 at once; the file ends within the results of DISKSPD` +
				"\n" + `diskspd E:\b.dat: write 90/0.18/11796480, 0 errors, 30s, 0 at once; the file ends within the results of ` +
				"DISKSPD"},
		{"diskspd, that did nothing", "Command Line: c:\\diskspd.exe -b4K d:\\a\n\nError opening file: d:\\a [5]\n",
			"diskspd, that did nothing: diskspd: Error opening file: d:\\a [5]"},
		{"diskspd XML, unlike targets", diskspdAsTree(true, 8), "diskspd a: read 3000/0/12288000, 0 errors, 30s, 0 at once\n" +
			"diskspd b: write 90/0/11796480, 0 errors, 30s, 0 at once"},
		{"diskspd XML, threads for all targets", strings.Replace(diskspdAsTree(true, 8), "131072", "4096", 1),
			"diskspd: read 3000/1.5/12288000 write 90/0/11796480, 0 errors, 30s, 64 at once"},
		{"hammerdb, failed before the test", hammerUsers(true, false),
			fmt.Sprintf(first, 1) + failed + "\n" + second},
		{"hammerdb, failed after the result", hammerUsers(false, true),
			fmt.Sprintf(first, 1) + failed + "\n" + second},
		{"elbencho, by its call", asks, "elbencho mkdirs: entry 8/0, 0 errors, 5.457ms, 128 at once"},
		{"pgbench 19, aggregated", "1699999999 7 1 0 1 9 0 0 0 0 0 0 0 0 0 0\n1700000000 100 500000 0 1 9 0 0 0 0 0 4 5 1 2 3\n",
			"pgbench: transaction 100/0.5, 6 errors, 1s, 0 at once"},
		{"pgbench 19, each", "0 1 other 0 1700000000 0\n0 2 4000 0 1700000001 4000\n",
			"pgbench: transaction 1/0.004, 1 errors, 1.004s, 0 at once"},
	} {
		if got := says(t, c.name, c.text); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// What DISKSPD's XML states is all told: percentiles, the largest time, its processors.
func TestDiskspdTreeFigures(t *testing.T) {
	t.Parallel()
	all, err := Prepare("x.xml", strings.NewReader(diskspdAsTree(false, 0)), changed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := parse(t, all[0], strings.NewReader(diskspdAsTree(false, 0)))
	got := ""
	for i, m := range all[0].Declared.Measures {
		got += fmt.Sprintf("%s=%g ", m.Name, r.Reports[len(r.Reports)-1].Values[i])
	}
	if want := "read_p50=0.4 read_p95=0.9 read_p99.99=5 read_max=9 cpu=12.5 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
