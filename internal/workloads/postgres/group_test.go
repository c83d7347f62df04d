package postgres

import (
	"testing"
	"testing/fstest"
)

// TestGroupOf: a server's control group is told only of a process of this machine that works for the database.
func TestGroupOf(t *testing.T) {
	ours, v1, v2 := "postgres: app shop 127.0.0.1(5000) idle", "5:memory:/m\n4:cpu,cpuacct:/db\n0::/one\n", "0::/one\n"
	for name, c := range map[string]struct{ title, groups, want string }{
		"version 1":        {ours, v1, "/db"},
		"version 2":        {ours, v2, "/one"},
		"another database": {"postgres: app shops 127.0.0.1(5000) idle", v1, ""},
		"another program":  {"bash shop x", v1, ""},
		"no groups":        {ours, "", ""},
	} {
		proc := fstest.MapFS{"7/cmdline": {Data: []byte(c.title)}, "7/cgroup": {Data: []byte(c.groups)}}
		if got := groupOf(proc, "7", "shop"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := groupOf(proc, "8", "shop"); got != "" {
			t.Errorf("%s: a process that is not there is in %q", name, got)
		}
	}
}
