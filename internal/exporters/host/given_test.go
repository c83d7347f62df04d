package host

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// In a container that was given block devices under other names these are its disks, by those names, and the machine's
// own are not; elsewhere all are what the kernel calls them.
func TestGivenDisks(t *testing.T) {
	const counted = "   7       3 loop3 5 0 8 0 7 0 8 0 0 0 0\n 254       0 vda 90 0 8 0 90 0 8 0 0 0 0\n"
	device := func(number string) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeDevice | 0o600, Sys: number}
	}
	for name, c := range map[string]struct {
		dev  fstest.MapFS
		want string
	}{
		"a pod": {fstest.MapFS{"dev/sdb": device("7:3"),
			"dev/null": {Mode: fs.ModeDevice | fs.ModeCharDevice, Sys: "1:3"}},
			"sdb 5"},
		"a machine":         {fstest.MapFS{"dev/loop3": device("7:3"), "dev/vda": device("254:0")}, "vda 90"},
		"of no such device": {fstest.MapFS{"dev/sdb": device("8:16")}, "vda 90"},
	} {
		number := func(info fs.FileInfo) (string, bool) { n, ok := info.Sys().(string); return n, ok }
		c.dev["proc/diskstats"] = &fstest.MapFile{Data: []byte(counted)}
		var got []string
		emit := func(metric string, v float64, labels ...string) {
			if metric == "node_disk_reads_completed_total" {
				got = append(got, fmt.Sprint(labels[1], " ", v))
			}
		}
		if err := disks([]byte(counted), givenDisks(c.dev, number), emit); err != nil {
			t.Error(err)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q: want %q", name, s, c.want)
		}
	}
}
