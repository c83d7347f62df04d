package guest

import (
	"os"
	"testing"
	"time"
)

// A Debian takes minutes to build and to boot: only where PLIMSOLL_GUEST_DEBIAN=1 asks for it.
func TestDebianBoots(t *testing.T) {
	if os.Getenv("PLIMSOLL_GUEST_DEBIAN") != "1" {
		t.Skip("PLIMSOLL_GUEST_DEBIAN=1 builds and boots a Debian: minutes")
	}
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
