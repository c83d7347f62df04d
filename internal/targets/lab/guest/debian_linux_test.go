package guest

import (
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// A Debian is built in a minute where there are four processors, and boots in half of one.
func TestDebianBoots(t *testing.T) {
	needs.Long(t, "an image of a whole Debian is built; a worker boots in every run of tests")
	needs.Debian(t)
	i := built(t, Debian, cacheOfUser(t))
	signer, authorized := user(t)
	m := start(t, i, identity(t, 7, authorized), signer, 2, sizes...)
	c := m.login(t, 6*time.Minute)
	expect(t, c, m.id)
	for command, want := range map[string]string{
		"python3 -c 'print(6*7)'":                                    "42",
		"ls /dev/vda":                                                "/dev/vda",
		"ls /usr/lib/postgresql/*/bin/initdb | wc -l":                "1",
		"systemctl --failed --no-legend --plain | cut -d' ' -f1":     "",
		"pg_lsclusters -h | wc -l; ls /etc/ssh/ssh_host_*key":        "0\n/etc/ssh/ssh_host_ed25519_key",
		"ls /sys/class/block/sdb/device/scsi_disk | wc -l; uname -o": "1\nGNU/Linux",
	} {
		if got := say(t, c, command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	m.ask(t, `{"execute":"system_powerdown"}`)
	m.off(t)
}
