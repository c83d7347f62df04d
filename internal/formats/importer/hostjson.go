package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/untyped"
)

// sysstatKeys are the members of sysstat's JSON that name what the others of an object are of.
var sysstatKeys = []string{"disk_device", "disk-device", "iface", "cpu", "number", "name", "device", "filesystem",
	"mountpoint", "intr", "line"}

// json takes sysstat's JSON, of iostat or sadf: samples in the order of time. What was read before a file breaks off
// counts.
func (p *hostParser) json(r io.Reader) error {
	data, err := allJSON(r, "give sadf a part of the time or fewer options")
	if err != nil {
		return err
	}
	if err = p.statistics(data); err == nil {
		return nil
	}
	next := nextLike(bytes.TrimLeft(data, " \t\r\n"))
	if next < 0 {
		return err
	}
	return errors.Join(err, p.json(bytes.NewReader(bytes.TrimLeft(data, " \t\r\n")[next:])))
}

// statistics takes one object of sysstat's after another.
func (p *hostParser) statistics(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	damaged := func(err error) error {
		at := dec.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		}
		return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(at, int64(len(data)))], []byte("\n")), err)
	}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		if token == "date" {
			if token, err = dec.Token(); err != nil {
				return damaged(err)
			}
			local := p.local
			p.dated(fmt.Sprint(token))
			p.local = local // where samples have times of their own, nothing is read by it
		}
		if token != "statistics" {
			continue
		}
		if token, err = dec.Token(); err != nil || token != json.Delim('[') {
			return damaged(errors.Join(err, errors.New(`"statistics" is no list`)))
		}
		p.calls++
		for dec.More() {
			var sample untyped.Object
			if err := dec.Decode(&sample); err != nil {
				return damaged(err)
			}
			if err := p.sample(sample); err != nil {
				return damaged(err)
			}
		}
	}
}

// sample takes one moment.
func (p *hostParser) sample(of untyped.Object) error {
	p.now.at = time.Time{}
	if text := of.Text("timestamp"); text != "" {
		var ok bool
		if p.now.at, ok = p.clock(text); !ok && !p.date.IsZero() { // mpstat's are within the day of the file
			if clock, err := clockTime(text); err == nil {
				p.now.at, p.local = p.on(clock), true
			}
		}
	} else if at := of.Object("timestamp"); at != nil {
		clock := at.Text("date") + " " + at.Text("time")
		utc, _ := at["utc"].(json.Number)
		if utc == "1" || at["utc"] == true {
			clock += " UTC"
		}
		p.now.at, _ = p.clock(clock)
	}
	for _, section := range slices.Sorted(maps.Keys(of)) {
		if section == "timestamp" {
			continue
		}
		if err := p.member(section, "", of[section], 0); err != nil {
			return err
		}
	}
	return p.flush()
}

// member takes a value of a sample, whatever it is. Figures are named as the tools' texts name them, where that can be
// told.
func (p *hostParser) member(section, prefix string, v any, depth int) error {
	const deepest = 8
	if depth > deepest {
		return errors.New("figures nested too deep")
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := p.member(section, prefix, one, depth+1); err != nil {
				return err
			}
		}
	case json.Number:
		return p.put(prefix+section, v.String())
	}
	of, _ := untyped.Of(v)
	key := ""
	for _, name := range sysstatKeys {
		if id, ok := of[name].(string); ok {
			key = oneLine(id) + "_"
			if name == "cpu" {
				if key = "cpu" + key; id == "all" || id == "-1" {
					key = "cpu_"
				}
			}
			break
		}
	}
	if section == "avg-cpu" {
		key = "cpu_"
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		var err error
		if n, ok := of[name].(json.Number); ok {
			err = p.put(prefix+key+sysstatName(section, name), n.String())
		} else if !untyped.Plain(of[name]) {
			err = p.member(name, prefix+key, of[name], depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sysstatName returns what the text of the tool calls a figure: JSON leaves out the sign of percent.
func sysstatName(section, name string) string {
	switch {
	case section == "avg-cpu" || strings.HasPrefix(section, "cpu-load"):
		return "%" + name
	case section == "disk" && slices.Contains([]string{"rrqm", "wrqm", "drqm", "util"}, name):
		return "%" + name
	case section == "disk" && name == "util-percent":
		return "%util"
	}
	return oneLine(name)
}
