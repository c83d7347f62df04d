package remote

import (
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/secret"
)

// Machine is a host of the inventory with all that leads to it, settings of ssh_config included: a clean-up has nothing
// but this. Nothing in it is secret.
type Machine struct {
	Name string `json:"name"`
	Hop
	Jump    []Hop      `json:"jump,omitempty"` // machines to go through, in order
	Sudo    bool       `json:"sudo,omitempty"`
	Folder  string     `json:"folder"` // of the run, or in which one is made
	Network string     `json:"network,omitempty"`
	Role    string     `json:"role,omitempty"`
	Disks   []DiskSpec `json:"disks,omitempty"`
	// Power is how its power controller is reached; nil where it has none.
	Power *target.PowerSetting `json:"power,omitempty"`
	// Agent is the agent's program on a machine that has it from the start, as an image of ours does; "" puts it there.
	Agent string `json:"agent,omitempty"`
	// Own are the data disks of a machine that the run itself has made: nobody else's data are on them, and no consent
	// is asked for.
	Own []target.Disk `json:"own,omitempty"`
	// Way leads to it where SSH does not; its Hop is then of no use.
	Way Dialer `json:"-"`
}

// Hop is one connection of SSH.
type Hop struct {
	Address    string        `json:"address"`
	Port       int           `json:"port"`
	User       string        `json:"user"`
	Keys       []string      `json:"keys,omitempty"` // files
	Passphrase secret.Source `json:"passphrase,omitzero"`
	KnownHosts []string      `json:"known_hosts"` // files
	// Dial reaches the first machine on the way; nil is the network of this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`
}

// DiskSpec is a data disk: a device by a name that stays, or a file that is made for the run.
type DiskSpec struct {
	ID      string `json:"id,omitempty"` // as in /dev/disk/by-id
	Consent string `json:"consent,omitempty"`
	Bytes   int64  `json:"file_bytes,omitempty"` // of a file
}

// Path is where the machine has the device.
func (d DiskSpec) Path() string {
	if path.IsAbs(d.ID) {
		return d.ID
	}
	return "/dev/disk/by-id/" + d.ID
}

// DataDisks are the data disks of a machine, given the sizes and identities of its devices.
func (m Machine) DataDisks(sizes map[string]target.Disk) (list []target.Disk) {
	for i, d := range m.Disks {
		disk := target.Disk{Device: "/dev/sd" + string(rune('b'+i))}
		if d.ID == "" {
			name := fmt.Sprintf("disks/%d.img", i+1)
			disk.Path, disk.ID = path.Join(m.Folder, "work", name), m.Name+":"+name
			disk.Bytes, disk.File = d.Bytes, true
		} else {
			disk.Path, disk.ID, disk.Bytes = d.Path(), m.Name+":"+d.ID, sizes[d.Path()].Bytes
		}
		list = append(list, disk)
	}
	return list
}

// Plain reports whether a text can be a name of a machine.
func Plain(s string) bool {
	ok := s != "" && len(s) <= 100
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		ok = ok && (letter || i > 0 && strings.ContainsRune("._-", r))
	}
	return ok
}

// Settle fills in what nobody gave, as OpenSSH does, and makes the paths absolute: a clean-up may run elsewhere.
func (x *Hop) Settle() {
	home, _ := os.UserHomeDir()
	whole := func(name string) string {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "%d", home), "%h", x.Address)
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			return filepath.Join(home, rest)
		}
		if abs, err := filepath.Abs(name); err == nil {
			return abs
		}
		return name
	}
	if len(x.Keys) == 0 {
		for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
			if name := filepath.Join(home, ".ssh", "id_"+kind); Exists(name) {
				x.Keys = append(x.Keys, name)
			}
		}
	}
	if len(x.KnownHosts) == 0 {
		x.KnownHosts = []string{"~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"}
	}
	for _, list := range [][]string{x.Keys, x.KnownHosts} {
		for i := range list {
			list[i] = whole(list[i])
		}
	}
}

func Exists(name string) bool { _, err := os.Stat(name); return err == nil }
