package command

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/workload"
	"plimsoll/unit"
)

// text is a text of the author's in which placeholders may stand, and where it is.
type text struct {
	of string
	at *yaml.Node
}

// placeholder is a word in braces. make gives the text in its place; an error is what is wrong with it.
type placeholder struct {
	argument string // what stands after the name, "" for nothing; in [] when it may be left out
	load     bool   // it means nothing to a server, which knows no runtime
	make     func(f *filling, argument string) (string, error)
}

var placeholders = map[string]placeholder{
	"runtime": {"", true, func(f *filling, _ string) (string, error) {
		if f.spec.Runtime <= 0 && !f.formOnly {
			return "", errors.New("the workload is started without a runtime; give workload.Start runtime_secs, " +
				"or write " +
				"the seconds here")
		}
		f.timed = true
		return seconds(f.spec.Runtime), nil
	}},
	"interval": {"", true, func(f *filling, _ string) (string, error) { return seconds(f.spec.Interval), nil }},
	"seed": {"", false, func(f *filling, _ string) (string, error) {
		if f.spec.Seed == 0 {
			return "0", nil
		}
		return strconv.FormatUint(f.spec.Seed%math.MaxInt32+1, 10), nil // what programs take for a seed is often an int
	}},
	"name":   {"", false, func(f *filling, _ string) (string, error) { return f.spec.Name, nil }},
	"output": {"", true, func(f *filling, _ string) (string, error) { return f.fileOf(outputFile), f.needs(fromFile) }},
	"file": {"NAME", false, func(f *filling, name string) (string, error) {
		if _, ok := f.of.files[name]; !ok {
			return "", fmt.Errorf("there is no %q under files:", name)
		}
		return f.fileOf(name), nil
	}},
	"option": {"NAME", false, func(f *filling, name string) (string, error) {
		value, ok := f.config.options[name]
		if !ok {
			return "", fmt.Errorf("there is no %q under options:", name)
		}
		return value, nil
	}},
	"folder": {"", false, func(f *filling, _ string) (string, error) { return f.folder, nil }},
	"address": {"", false, func(f *filling, _ string) (string, error) {
		return f.spec.Address, f.reached()
	}},
	"peer": {"[PORT]", false, func(f *filling, port string) (string, error) {
		if len(f.spec.Peers) == 0 {
			return "", f.reached()
		}
		return f.addresses([]workload.Peer{f.spec.Peers[f.spec.Peer%len(f.spec.Peers)]}, port)
	}},
	"peers": {
		"[PORT]",
		false,
		func(f *filling, port string) (string, error) { return f.addresses(f.spec.Peers, port) },
	},
	"disk": {"[/dev/sdX]", false, (*filling).disk},
	"size": {"1GiB", false, func(f *filling, argument string) (string, error) {
		size, err := unit.ParseBytes(argument)
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(int64(size.Scale(f.sizeScale(), 4096)), 10), nil
	}},
	"duration": {"30s", false, func(f *filling, argument string) (string, error) {
		d, err := unit.ParseDuration(argument)
		if err == nil && d <= 0 {
			err = fmt.Errorf("%q is not above 0", argument)
		}
		if err != nil {
			return "", err
		}
		return seconds(time.Duration(min(float64(d)*f.timeScale(), math.MaxInt64/2))), nil
	}},
}

// seconds are whole, for programs that know no others, and at least one.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(d.Seconds()))), 10)
}

// filling puts values in the place of placeholders. With formOnly it judges what can be judged without a machine.
type filling struct {
	config   *config
	of       *program
	folder   string // of its files, below the machine's working folder
	serves   bool   // it is the server
	spec     workload.Spec
	formOnly bool
	timed    bool // the runtime was asked for
	output   bool // the file of the output was
}

func (f *filling) sizeScale() float64 { return orOne(f.spec.SizeScale) }
func (f *filling) timeScale() float64 { return orOne(f.spec.TimeScale) }

func orOne(scale float64) float64 {
	if scale == 0 {
		return 1
	}
	return scale
}

func (f *filling) fileOf(name string) string { return f.folder + "/" + name }

// addresses are those of peers, with a port where one is given.
func (f *filling) addresses(peers []workload.Peer, port string) (string, error) {
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return "", fmt.Errorf("%q is no port", port)
	}
	list := make([]string, len(peers))
	for i, p := range peers {
		if list[i] = p.Address; port != "" {
			list[i] = net.JoinHostPort(p.Address, port)
		}
	}
	return strings.Join(list, ","), f.reached()
}

// reached wants a server that is reached by address.
func (f *filling) reached() error {
	switch {
	case f.config.server == nil:
		return errors.New("the load stays on its machine; say where it goes under server:")
	case len(f.config.server.ports) == 0:
		return errors.New("nothing is reached by address; name the ports under server:")
	case len(f.spec.Peers) == 0 && !f.formOnly:
		return fmt.Errorf("there is no machine to go to in group %q", f.config.server.group)
	}
	return nil
}

// needs notes that the output is written by the program, which output: from must agree with.
func (f *filling) needs(from string) error {
	f.output = true
	if f.config.from != from {
		return fmt.Errorf("the program writes its output there only with output: {from: file}")
	}
	return nil
}

func (f *filling) disk(device string) (string, error) {
	if device != "" && !strings.HasPrefix(device, "/dev/") {
		return "", fmt.Errorf("%q is no device; write {disk} or {disk /dev/sdb}", device)
	}
	if len(f.spec.Disks) == 0 {
		if f.formOnly {
			return "", nil
		}
		return "", fmt.Errorf("the machine has no data disk")
	}
	if device == "" {
		return f.spec.Disks[0].Path, nil
	}
	var there []string
	for _, d := range f.spec.Disks {
		if d.Device == device {
			return d.Path, nil
		}
		there = append(there, d.Device)
	}
	return "", fmt.Errorf("the machine has no %s; it has %s", device, strings.Join(there, ", "))
}

// fill replaces the placeholders of a text. Every objection has the text's place.
func (f *filling) fill(t text) string {
	var b strings.Builder
	rest := t.of
	object := func(format string, args ...any) { f.config.object(t.at, format, args...) }
	for rest != "" {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		brace, after := rest[i], rest[i+1:]
		if strings.HasPrefix(after, string(brace)) { // {{ or }}
			b.WriteByte(brace)
			rest = after[1:]
			continue
		}
		end := strings.IndexByte(after, '}')
		if brace == '}' || end < 0 {
			object("a brace stands alone in %q; write {{ or }} where one is meant", clip(t.of))
			return b.String()
		}
		b.WriteString(f.one(after[:end], object))
		rest = after[end+1:]
	}
	return b.String()
}

func (f *filling) one(inside string, object func(string, ...any)) string {
	name, argument, _ := strings.Cut(strings.TrimSpace(inside), " ")
	argument = strings.TrimSpace(argument)
	p, ok := placeholders[name]
	switch {
	case !ok:
		var names []string
		for n := range placeholders {
			names = append(names, n)
		}
		slices.Sort(names)
		object("there is no placeholder {%s}; %s; write {{ where a brace is meant", clip(inside),
			suggestion(name, names))
		return ""
	case p.load && f.serves:
		object("{%s} means nothing to a server, which runs for as long as the workload does", clip(inside))
		return ""
	case argument == "" && p.argument != "" && p.argument[0] != '[', argument != "" && p.argument == "":
		object("write the placeholder %s, not {%s}", strings.TrimSuffix("{"+name+" "+p.argument, " ")+"}", clip(inside))
		return ""
	}
	value, err := p.make(f, argument)
	if err != nil {
		object("{%s}: %v", clip(inside), err)
	}
	return value
}
