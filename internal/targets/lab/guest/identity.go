//go:build linux

package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"plimsoll/internal/targets/ssh/remote"
)

// Identity holds what no two machines may share.
type Identity struct {
	Name           string // host name
	MachineID      string // as /etc/machine-id has it
	Address        netip.Prefix
	Gateway        netip.Addr // zero for none
	HostKey        []byte     // of SSH: ed25519, OpenSSH's PEM; a secret
	AuthorizedKeys []string   // who may log in as root, lines as of authorized_keys
}

// NewIdentity makes an identity with a machine ID and a host key that nobody else has.
func NewIdentity(name string, address netip.Prefix, gateway netip.Addr, authorizedKeys ...string) (Identity, error) {
	key, _, err := remote.NewKey(name)
	if err != nil {
		return Identity{}, err
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return Identity{}, err
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // a UUID of version 4, as systemd makes them
	i := Identity{Name: name, MachineID: hex.EncodeToString(id[:]), Address: address, Gateway: gateway,
		HostKey: key, AuthorizedKeys: authorizedKeys}
	return i, i.Check()
}

// MAC is an address for the machine's network card that follows from its machine ID.
func (i Identity) MAC() net.HardwareAddr {
	h := sha256.Sum256([]byte(i.MachineID))
	return append(net.HardwareAddr{0x52, 0x54, 0x00}, h[:3]...)
}

// PublicKey is the host key as known_hosts and clients want it.
func (i Identity) PublicKey() (ssh.PublicKey, error) {
	key, err := i.key()
	if err != nil {
		return nil, err
	}
	return ssh.NewPublicKey(key.Public())
}

func (i Identity) key() (ed25519.PrivateKey, error) {
	key, err := ssh.ParseRawPrivateKey(i.HostKey)
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	switch k := key.(type) {
	case *ed25519.PrivateKey:
		return *k, nil
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, fmt.Errorf("host key: is a %T, want ed25519", key)
}

var (
	hostname  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	machineID = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// Check gives all objections to an identity at once.
func (i Identity) Check() error {
	var errs []error
	object := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("guest %q: "+format, append([]any{i.Name}, args...)...))
	}
	if !hostname.MatchString(i.Name) {
		object("no host name: want up to 63 of a-z, 0-9 and hyphens inside")
	}
	if !machineID.MatchString(i.MachineID) || i.MachineID == strings.Repeat("0", 32) {
		object("machine ID %q: want 32 digits of a-f and 0-9, not all zero", i.MachineID)
	}
	switch {
	case !i.Address.IsValid():
		object("no address: want one with the length of its network, as 192.0.2.100/24")
	case i.Gateway.IsValid() && (!i.Address.Contains(i.Gateway) || i.Gateway == i.Address.Addr()):
		object("gateway %s: not another machine of %s", i.Gateway, i.Address)
	}
	if _, err := i.key(); err != nil {
		object("%w", err)
	}
	if len(i.AuthorizedKeys) == 0 {
		object("no key may log in: give at least one line as of authorized_keys")
	}
	for _, line := range i.AuthorizedKeys {
		_, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil || strings.ContainsAny(strings.TrimSpace(line), "\r\n") {
			object("key %q: not a line as of authorized_keys", line)
		}
	}
	return errors.Join(errs...)
}

// Boot holds what the emulator needs to start a machine.
type Boot struct {
	Kernel, Initrd, Append string
	Drives                 []Drive  // before all others, in this order
	Args                   []string // more of the emulator's arguments; no secrets
}

// Drive is a disk of a machine. On "scsi" it is a scsi-hd of the first virtio-scsi-pci controller, on "virtio" a
// virtio-blk-pci.
type Drive struct {
	Path, Format, Serial, Bus string
	ReadOnly                  bool
}

// Names of what Boot writes.
const (
	SeedFile = "identity.raw" // the first SCSI disk; mode 0600
	RootFile = "root.qcow2"   // the machine's own layer above the root of its image
)

// Boot writes what is a machine's own into dir, which it makes if absent: its identity, and for an image with a root a
// layer above that, if there is none yet. It needs qemu-img for the latter.
func (i Image) Boot(ctx context.Context, dir string, id Identity) (Boot, error) {
	if err := id.Check(); err != nil {
		return Boot{}, err
	}
	fail := func(err error) (Boot, error) { return Boot{}, fmt.Errorf("guest %q: %w", id.Name, err) }
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fail(err)
	}
	seed, err := id.seed()
	if err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	disk := filepath.Join(dir, SeedFile)
	if err := replace(disk, seed); err != nil {
		return fail(err)
	}
	u := id.MachineID
	b := Boot{Kernel: i.Kernel, Initrd: i.Initrd, Append: i.Append,
		Drives: []Drive{{Path: disk, Format: "raw", ReadOnly: true, Serial: "identity", Bus: "scsi"}},
		Args: []string{"-uuid", strings.Join([]string{u[:8], u[8:12], u[12:16], u[16:20], u[20:]}, "-"), "-device",
			"virtio-rng-pci"}}
	if i.Root == "" {
		return b, nil
	}
	layer := filepath.Join(dir, RootFile)
	if _, err := os.Stat(layer); errors.Is(err, fs.ErrNotExist) {
		part := layer + ".part"
		_, err := command(ctx, "", nil, "qemu-img", "create", "-q", "-f", "qcow2", "-b", i.Root, "-F",
			i.RootFormat, part)
		if err = errors.Join(err, os.Rename(part, layer)); err != nil {
			return fail(err)
		}
	}
	b.Drives = append(b.Drives, Drive{Path: layer, Format: "qcow2", Serial: "root", Bus: "virtio"})
	return b, nil
}

// replace writes a secret file anew, or leaves the old one.
func replace(name string, data []byte) error {
	part := name + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, name)
}

// seed is an identity as a disk: a tar that the first program unpacks.
func (i Identity) seed() ([]byte, error) {
	key, err := i.key()
	if err != nil {
		return nil, err
	}
	gateway := ""
	if i.Gateway.IsValid() {
		gateway = i.Gateway.String() + "\n"
	}
	lines := slices.Clone(i.AuthorizedKeys)
	for n := range lines {
		lines[n] = strings.TrimSpace(lines[n]) + "\n"
	}
	const kind = "ssh-ed25519"
	dropbear := binary.BigEndian.AppendUint32(nil, uint32(len(kind)))
	dropbear = binary.BigEndian.AppendUint32(append(dropbear, kind...), uint32(len(key)))
	dropbear = append(dropbear, key...)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"hostname", []byte(i.Name + "\n")}, {"machine-id", []byte(i.MachineID + "\n")},
		{"address", []byte(i.Address.String() + "\n")}, {"gateway", []byte(gateway)},
		{"authorized_keys", []byte(strings.Join(lines, ""))}, {"openssh", i.HostKey}, {"dropbear", dropbear},
	} {
		h := &tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.data)), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	const step = 64 << 10 // whole sectors, and room for the reader's read-ahead
	return append(out.Bytes(), make([]byte, step-out.Len()%step)...), nil
}
