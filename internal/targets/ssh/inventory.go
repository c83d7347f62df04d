package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sshconfig "github.com/kevinburke/ssh_config"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/kit/tagged"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/unit"
)

// given is an inventory as it is written.
type given struct {
	SSHConfig string               `yaml:"ssh_config"`
	Same      bool                 `yaml:"same_machine"`
	Hosts     map[string]givenHost `yaml:"hosts"`
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
	mostJumps = 16
	mostBytes = 4 << 20
)

// inventory holds what a file of hosts says.
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
	if many, ok := err.(interface{ Unwrap() []error }); ok { // the outermost
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
	wrong, err := tagged.Decode(data, &g)
	if err != nil {
		return inventory{}, err
	}
	var objections []error
	for _, o := range wrong {
		objections = append(objections, o)
	}
	v := inventory{same: g.Same}
	object := func(line int, format string, args ...any) {
		objections = append(objections, fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...)))
	}
	var tree struct{ Hosts yaml.Node } // the hosts in their order, with their lines
	_ = yaml.Unmarshal(data, &tree)    // as before
	if len(objections) == 0 && (len(g.Hosts) == 0 || len(tree.Hosts.Content) == 0) {
		return v, errors.New("no hosts: give hosts: {NAME: {address: ..., disks: [...]}}")
	}
	if len(g.Hosts) > mostHosts {
		return v, fmt.Errorf("%d hosts: at most %d", len(g.Hosts), mostHosts)
	}
	ids, controllers := map[string]string{}, map[string]string{}
	for i := 0; i+1 < len(tree.Hosts.Content); i += 2 {
		name, line := tree.Hosts.Content[i].Value, tree.Hosts.Content[i].Line
		h, once := g.Hosts[name]
		if delete(g.Hosts, name); !once {
			continue // it is there twice, which is said
		}
		if !remote.Plain(name) {
			object(line, "host %q: a name is of letters, digits, . _ and -, and begins with a letter or digit", name)
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

// splitHop takes [USER@]HOST[:PORT] apart. Addresses of IPv6 with a port are in brackets.
func splitHop(at string) (user, host, port string) {
	if i := strings.LastIndex(at, "@"); i >= 0 {
		user, at = at[:i], at[i+1:]
	}
	host = at
	if name, number, err := net.SplitHostPort(at); err == nil {
		host, port = name, number
	}
	return user, bare(host), port
}

// bare is an address without the brackets of IPv6.
func bare(address string) string {
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}

// isAddress reports whether a text is a name or an address, and nothing else.
func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || text != "" && !strings.HasPrefix(text, "-") && !strings.ContainsAny(text, "@:/[]\\\"' \t\n")
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
		x := remote.Hop{Address: bare(cmp.Or(strings.ReplaceAll(s.one("hostname"), "%h", alias), alias)),
			User: s.one("user"), KnownHosts: strings.Fields(s.one("userknownhostsfile"))}
		if !isAddress(x.Address) {
			object("address %q: give a name or an address alone; user and port have keys of their own", x.Address)
		}
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
	alias := cmp.Or(h.Address, name)
	for jump := cmp.Or(h.Jump, s.one("proxyjump")); jump != "" && jump != "none"; {
		if _, host, _ := splitHop(jump); host == alias {
			break // to itself, as of Host *
		}
		var hops []remote.Hop
		next := ""
		for at := range strings.SplitSeq(jump, ",") {
			user, host, port := splitHop(strings.TrimSpace(at))
			x, s := hopOf(host)
			if len(hops) == 0 { // the others are reached through it
				alias, next = host, s.one("proxyjump")
			}
			x.User = cmp.Or(user, x.User, m.User)
			if port != "" {
				n, err := strconv.Atoi(port)
				if err != nil {
					object("jump %q: %q is no port", at, port)
				}
				x.Port = n
			}
			if len(x.Keys) == 0 {
				x.Keys, x.Passphrase = slices.Clone(m.Keys), m.Passphrase
			}
			if len(x.KnownHosts) == 0 {
				x.KnownHosts = slices.Clone(m.KnownHosts)
			}
			hops = append(hops, x)
		}
		m.Jump = slices.Concat(hops, m.Jump)
		if jump = next; len(m.Jump) > mostJumps {
			object("jump: more than %d hosts are on the way: one leads back to itself", mostJumps)
			break
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
	if h.Key != "" && !remote.Exists(m.Keys[0]) {
		object("key %q: there is no such file", m.Keys[0])
	}
	if h.KnownHosts != "" && !remote.Exists(m.KnownHosts[0]) {
		object("known_hosts %q: there is no such file: make it with ssh-keyscan, and compare the keys", m.KnownHosts[0])
	}
	if m.Network = bare(m.Network); h.Network != "" && !isAddress(m.Network) {
		object("network %q: give a name or an address alone", h.Network)
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
