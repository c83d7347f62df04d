package ssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sshconfig "github.com/kevinburke/ssh_config"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/regular"
	"plimsoll/internal/remote"
	"plimsoll/internal/secret"
	"plimsoll/internal/target"
	"plimsoll/unit"
)

// given is an inventory as it is written.
type given struct {
	SSHConfig string    `yaml:"ssh_config"`
	Same      bool      `yaml:"same_machine"`
	Hosts     yaml.Node `yaml:"hosts"`
}

type givenHost struct {
	Address    string      `yaml:"address"`
	Port       int         `yaml:"port"`
	User       string      `yaml:"user"`
	Key        string      `yaml:"key"`
	Passphrase string      `yaml:"passphrase"`
	Jump       string      `yaml:"jump"`
	KnownHosts string      `yaml:"known_hosts"`
	Sudo       bool        `yaml:"sudo"`
	Folder     string      `yaml:"folder"`
	Network    string      `yaml:"network"`
	Role       string      `yaml:"role"`
	Disks      []givenDisk `yaml:"disks"`
	// Power is the kind of the power controller and its options.
	Power map[string]string `yaml:"power"`
}

type givenDisk struct {
	ID      string `yaml:"id"`
	Consent string `yaml:"consent"`
	File    string `yaml:"file"`
}

const (
	mostHosts = 1000
	mostDisks = 25 // /dev/sdb to /dev/sdz
	mostBytes = 4 << 20
)

// inventory is what a file of hosts says.
type inventory struct {
	machines []remote.Machine
	same     bool // the hosts may be one machine
}

// readInventory reads a file of hosts. All objections come at once, with the lines that they are about.
func readInventory(ctx context.Context, name string, kinds []target.PowerKind) (inventory, error) {
	data, err := regular.Read(name, os.O_RDONLY, mostBytes)
	if err != nil {
		return inventory{}, fmt.Errorf("inventory: %w", err)
	}
	var objections []error
	v, err := parseInventory(data, kinds, func(file, alias string) (settings, error) {
		return readSettings(ctx, file, alias)
	})
	for _, e := range unjoined(err) {
		objections = append(objections, fmt.Errorf("inventory %s: %w", name, e))
	}
	return v, errors.Join(objections...)
}

// unjoined are the errors that were joined.
func unjoined(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the outermost
		return many.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// parseInventory reads the text. settingsOf tells what ssh_config says of a host.
func parseInventory(data []byte, kinds []target.PowerKind,
	settingsOf func(file, alias string) (settings, error)) (inventory, error) {
	var g given
	if err := strictly(data, &g); err != nil {
		return inventory{}, err
	}
	v := inventory{same: g.Same}
	var objections []error
	object := func(line int, format string, args ...any) {
		objections = append(objections, fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...)))
	}
	if g.Hosts.Kind != yaml.MappingNode || len(g.Hosts.Content) == 0 {
		return v, errors.New("no hosts: give hosts: {NAME: {address: ..., disks: [...]}}")
	}
	if len(g.Hosts.Content)/2 > mostHosts {
		return v, fmt.Errorf("%d hosts: at most %d", len(g.Hosts.Content)/2, mostHosts)
	}
	names := map[string]int{}
	ids, controllers := map[string]string{}, map[string]string{}
	for i := 0; i < len(g.Hosts.Content); i += 2 {
		key, node := g.Hosts.Content[i], g.Hosts.Content[i+1]
		name, line := key.Value, key.Line
		if first, twice := names[name]; twice {
			object(line, "host %q is there twice: its first line is %d", name, first)
			continue
		}
		names[name] = line
		if !remote.Plain(name) {
			object(line, "host %q: a name is of letters, digits, . _ and -, and begins with a letter or digit", name)
			continue
		}
		text, err := yaml.Marshal(node)
		var h givenHost
		if err == nil {
			err = strictly(text, &h)
		}
		if err != nil {
			object(line, "host %q: %v", name, err)
			continue
		}
		m, problems := h.machine(name, g.SSHConfig, settingsOf)
		for _, p := range problems {
			object(line, "host %q: %v", name, p)
		}
		if m.Power != nil {
			if _, err := m.Power.Open(fmt.Sprintf("host %q", name), kinds); err != nil {
				object(line, "%v", err)
			}
			at := fmt.Sprintf("%s %q", m.Power.Kind, []string{m.Power.Options["address"], m.Power.Options["port"],
				m.Power.Options["system"]})
			if other := controllers[at]; other != "" {
				object(line, "host %q: its power controller is that of host %q: each needs its own", name, other)
			}
			controllers[at] = name
		}
		for _, d := range m.Disks {
			if where := name + " " + d.ID; d.ID != "" {
				if ids[where] != "" {
					object(line, "host %q: disk %q is there twice", name, d.ID)
				}
				ids[where] = name
			}
		}
		v.machines = append(v.machines, m)
	}
	return v, errors.Join(objections...)
}

// strictly decodes YAML, and objects to keys that nothing reads.
func strictly(data []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	err := d.Decode(into)
	if err != nil && err.Error() == "EOF" {
		return nil
	}
	return err
}

func (h givenHost) machine(
	name, config string,
	settingsOf func(file, alias string) (settings, error),
) (m remote.Machine,
	problems []error) {
	object := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	m = remote.Machine{Name: name, Sudo: h.Sudo, Role: h.Role, Network: h.Network,
		Folder: path.Clean(cmp.Or(h.Folder, "/var/tmp"))}
	if len(h.Power) > 0 {
		options := target.Options(maps.Clone(h.Power))
		delete(options, "kind")
		m.Power = &target.PowerSetting{Kind: h.Power["kind"], Options: options}
	}
	if !path.IsAbs(m.Folder) {
		object("folder %q: it begins with /", h.Folder)
	}
	hopOf := func(alias string) (remote.Hop, settings) {
		s, err := settingsOf(config, alias)
		if err != nil {
			object("%w", err)
		}
		if command := s.one("proxycommand"); command != "" && command != "none" {
			object("ssh_config gives it a ProxyCommand, which is not done here: give jump: or ProxyJump")
		}
		x := remote.Hop{Address: cmp.Or(strings.ReplaceAll(s.one("hostname"), "%h", alias), alias), User: s.one("user"),
			KnownHosts: strings.Fields(s.one("userknownhostsfile"))}
		if x.Port, err = strconv.Atoi(cmp.Or(s.one("port"), "22")); err != nil {
			object("ssh_config: port %q", s.one("port"))
		}
		x.Keys = slices.Clone(s["identityfile"])
		return x, s
	}
	var s settings
	m.Hop, s = hopOf(cmp.Or(h.Address, name))
	m.User, m.Port = cmp.Or(h.User, m.User, os.Getenv("USER"), "root"), cmp.Or(h.Port, m.Port)
	if h.Key != "" {
		m.Keys = []string{h.Key}
	}
	if h.KnownHosts != "" {
		m.KnownHosts = []string{h.KnownHosts}
	}
	if h.Passphrase != "" {
		source, err := secret.ParseSource(h.Passphrase)
		if err != nil {
			object("passphrase: %w", err)
		}
		m.Passphrase = source
	}
	if jump := cmp.Or(h.Jump, s.one("proxyjump")); jump != "" && jump != "none" {
		for at := range strings.SplitSeq(jump, ",") {
			user, address, found := strings.Cut(strings.TrimSpace(at), "@")
			if !found {
				user, address = "", user
			}
			alias, port, _ := strings.Cut(address, ":")
			x, _ := hopOf(alias)
			x.User = cmp.Or(user, x.User, m.User)
			if port != "" {
				n, err := strconv.Atoi(port)
				if err != nil {
					object("jump %q: %q is no port", at, port)
				}
				x.Port = n
			}
			if len(x.Keys) == 0 {
				x.Keys, x.Passphrase = m.Keys, m.Passphrase
			}
			if len(x.KnownHosts) == 0 {
				x.KnownHosts = m.KnownHosts
			}
			m.Jump = append(m.Jump, x)
		}
	}
	for _, x := range slices.Concat([]remote.Hop{m.Hop}, m.Jump) {
		if x.Port < 1 || x.Port > 65535 {
			object("port %d: 1 to 65535", x.Port)
		}
	}
	m.Hop.Settle()
	for i := range m.Jump {
		m.Jump[i].Settle()
	}
	if len(h.Disks) > mostDisks {
		object("%d disks: at most %d", len(h.Disks), mostDisks)
	}
	for i, d := range h.Disks {
		x := remote.DiskSpec{ID: d.ID, Consent: d.Consent}
		switch {
		case (d.ID == "") == (d.File == ""):
			object("disk %d: give either id (a name in /dev/disk/by-id) or file (a size)", i+1)
		case d.File != "":
			n, err := unit.ParseBytes(d.File)
			if err != nil || n < 4096 {
				object("disk %d: file %q is no size of 4KiB or more", i+1, d.File)
			}
			x.Bytes = int64(n)
		case path.Dir(path.Clean(d.ID)) == "/dev",
			!path.IsAbs(d.ID) && strings.Contains(d.ID, "/"):
			object("disk %q: such names may be another disk's after the next start: give its name in /dev/disk/by-id",
				d.ID)
		}
		m.Disks = append(m.Disks, x)
	}
	return m, problems
}

// settings are what ssh_config says of a host, by key in small letters.
type settings map[string][]string

func (s settings) one(key string) string {
	if len(s[key]) == 0 {
		return ""
	}
	return s[key][0]
}

// wanted are the keys of ssh_config that are honoured.
var wanted = []string{"HostName", "Port", "User", "IdentityFile", "ProxyJump", "ProxyCommand", "UserKnownHostsFile"}

// readSettings reads ssh_config; "" is the user's own, which may be absent. What the library cannot read, such as Match
// exec, is left to OpenSSH itself.
func readSettings(ctx context.Context, file, alias string) (settings, error) {
	name := file
	if file == "" {
		home, _ := os.UserHomeDir()
		if name = filepath.Join(home, ".ssh", "config"); !remote.Exists(name) {
			return settings{}, nil
		}
	}
	data, err := regular.Read(name, os.O_RDONLY, mostBytes)
	if err != nil {
		return nil, fmt.Errorf("ssh_config: %w", err)
	}
	s := settings{}
	config, err := sshconfig.DecodeBytes(data)
	if err == nil {
		for _, key := range wanted {
			values, getErr := config.GetAll(alias, key)
			if err = errors.Join(err, getErr); len(values) > 0 {
				s[strings.ToLower(key)] = values
			}
		}
	}
	if err == nil {
		return s, nil
	}
	out, second := exec.CommandContext(ctx, "ssh", "-G", "-F", name, "--", alias).Output()
	if second != nil {
		return nil, fmt.Errorf("ssh_config %s: %w; and ssh -G cannot read it either: %w", name, err, second)
	}
	s = settings{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, key) }) {
			s[key] = append(s[key], value)
		}
	}
	return s, nil
}
