package failover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
)

// What is wrong with a file is said at its place, all at once.
func TestObjections(t *testing.T) {
	t.Parallel()
	const config = "server: {vm_group: Databases}\nclient: 4\nclients: 0\nreplication: both\ngive_up: 1ms\n" +
		"distance: far\nrow_bytes: -1\n"
	err := Engine{}.Validate(workload.Spec{Config: []byte(config), ConfigFile: "l.yml"})
	want := []string{
		`l.yml:2:1: unknown key "client"; did you mean "clients"?`,
		`l.yml:3:10: clients: "0" is no whole number from 1 to 1000`,
		`l.yml:4:14: replication: "both" is none of asynchronous, synchronous`,
		`l.yml:5:10: give_up: "1ms" is no time from 100ms to 1h`,
		`l.yml:6:11: distance: duration "far": want something like 90s, 1h30m, 250ms, or a number of seconds`,
		`l.yml:7:12: row_bytes: "-1" is no whole number from 0 to 1048576`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), fmt.Sprint(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The second server follows the first, over the client machine where it is far away, with a password that no other file
// has. The first waits for it where replication is synchronous.
func TestServers(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]struct {
		dials []int
		waits bool
	}{
		"server: {vm_group: D}\n": {dials: []int{5432}},
		"server: {vm_group: D}\nreplication: synchronous\ndistance: 1ms\n": {dials: []int{5432, 5433}, waits: true},
	} {
		spec := workload.Spec{Name: "Ledger", ConfigFile: "l.yml", Config: []byte(config), Runtime: time.Minute,
			Peers: []workload.Peer{{VM: "a", Address: "192.0.2.1"}, {VM: "b", Address: "192.0.2.2"}}}
		first, err := Engine{}.Server(spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.Peer = 1
		second, err := Engine{}.Server(spec)
		if err != nil {
			t.Fatal(err)
		}
		settings := string(first.Files["postgresql/settings.conf"])
		if waits := strings.Contains(settings, "synchronous_standby_names = '*'"); waits != want.waits {
			t.Errorf("%s: settings of the first server are %q", config, settings)
		}
		if argv := first.Service.Command.Argv; argv[len(argv)-1] != "" || first.Private != nil {
			t.Errorf("%s: the first server follows %q", config, argv)
		}
		argv := second.Service.Command.Argv
		if argv[len(argv)-1] != "192.0.2.1" || !slices.Equal(second.Service.Command.Dials, want.dials) ||
			len(second.Private) != 1 {
			t.Errorf("%s: the second server is %q, dials %v, %d private files", config, argv,
				second.Service.Command.Dials, len(second.Private))
		}
	}
	spec := workload.Spec{Name: "Ledger", ConfigFile: "l.yml", Config: []byte("server: {vm_group: D}\n"),
		Peers: make([]workload.Peer, 3)}
	if _, err := (Engine{}).Server(spec); err == nil ||
		!strings.Contains(err.Error(), "give it two VMs, a server and its standby") {
		t.Errorf("three servers: %v", err)
	}
	const pair = "want {vm_group: NAME}, a group of two VMs"
	for config, want := range map[string]string{
		"clients: 2\n": pair,
		"server: {url: \"postgresql://a@192.0.2.1/b\"}\n":                   pair,
		"server: {vm_group: D, settings: {synchronous_standby_names: x}}\n": "follows from replication: leave it out",
	} {
		if err := (Engine{}).Validate(workload.Spec{Config: []byte(config), ConfigFile: "l.yml"}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", config, err, want)
		}
	}
}
