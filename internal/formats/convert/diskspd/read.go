// Package diskspd reads and writes command lines of DISKSPD 2.2 as loads, all flags of its published documentation. It
// is a room of convert. A file holds one command line after the other, each a stage, as in a batch file: comments begin
// with rem, :: or #, and a line that begins with "start /b" runs together with the next. Nothing is run. What has no
// part in the load is noted, what cannot be had is refused by name.
package diskspd

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/formats/convert/load"
)

// Limits that keep a hostile file cheap.
const (
	maxBytes = 1 << 20
	maxLines = 5_000
)

// Read reads a file of command lines, or one command line. The error holds all objections at once.
func Read(name string, data []byte) (load.Load, error) {
	t := &load.Teller{}
	var l load.Load
	at := load.Place{File: name, Line: 1, Col: 1}
	text := strings.TrimPrefix(string(data), "\ufeff")
	switch {
	case len(data) > maxBytes:
		t.Object(at, "the file has %d bytes; one of command lines may have %d", len(data), maxBytes)
		return l, t.Err()
	case !utf8.ValidString(text):
		t.Object(at, "the file is no UTF-8 text; save it as UTF-8")
		return l, t.Err()
	}
	at.Line = 0
	together, continued := false, ""
	for raw := range strings.SplitSeq(text, "\n") {
		if at.Line++; at.Line > maxLines {
			t.Object(at, "more than %d lines", maxLines)
			break
		}
		line := strings.TrimRight(raw, " \t\r")
		if i := strings.IndexFunc(line, func(r rune) bool { return r != '\t' && !strconv.IsPrint(r) }); i >= 0 {
			t.Object(
				load.Place{File: name, Line: at.Line, Col: i + 1},
				"%q cannot be part of a command line; write plain text",
				line[i:i+1],
			)
			continue
		}
		if n := len(line); n > 0 && (line[n-1] == '^' || strings.IndexByte("\\`", line[n-1]) >= 0 &&
			(n == 1 || line[n-2] == ' ')) {
			continued += line[:n-1]
			continue
		}
		line, continued = continued+line, ""
		if first := strings.Fields(line); continued == "" && len(first) > 0 && comment(first[0]) {
			continue
		}
		words, shell, err := split(line, at)
		if err != nil {
			t.Object(at, "%v", err)
			continue
		}
		for _, w := range shell {
			t.Note(ask(w), "", "where the output goes is the shell's to say, and no part of the load")
		}
		if len(words) == 0 {
			continue
		}
		words, joined := start(words)
		if len(words) > 0 && program(words[0].text) {
			words = words[1:]
		} else if len(words) > 0 && !isFlag(words[0].text) {
			t.Object(words[0].at, "%.60q is not diskspd; leave out what is before it", words[0].text)
			continue
		}
		st := command(t, words, at, len(l.Stages)+1)
		if together && len(l.Stages) > 0 {
			last := &l.Stages[len(l.Stages)-1]
			if last.Runtime != st.Runtime || last.Warmup != st.Warmup {
				t.Object(at, "it runs for another time than the one it is started with; other tools end both together")
			}
			for i := range st.Streams {
				st.Streams[i].Name = fmt.Sprintf("%s.%d", last.Name, len(last.Streams)+1+i)
			}
			last.Streams = append(last.Streams, st.Streams...)
		} else {
			l.Stages = append(l.Stages, st)
		}
		together = joined
	}
	if continued != "" {
		t.Object(at, "the last line goes on, and there is none after it")
	}
	if len(l.Stages) == 0 && t.Err() == nil {
		t.Object(load.Place{File: name, Line: 1, Col: 1}, "no command line: nothing is to run")
	}
	l.Notes = t.Notes
	return l, t.Err()
}

func comment(first string) bool {
	return strings.EqualFold(first, "rem") || strings.HasPrefix(first, "::") || strings.HasPrefix(first, "#!") ||
		first == "#" || strings.EqualFold(first, "@echo") || strings.HasPrefix(first, "//")
}

// start takes off what starts a command beside others.
func start(words []word) (rest []word, joined bool) {
	if !strings.EqualFold(words[0].text, "start") {
		return words, false
	}
	rest = words[1:]
	for len(rest) > 0 && !program(rest[0].text) && !isFlag(rest[0].text) || len(rest) > 0 &&
		strings.HasPrefix(rest[0].text, "/") && !program(rest[0].text) && len(rest[0].text) < 5 {
		rest = rest[1:]
	}
	return rest, true
}

// program reports whether an argument is the name of the program, wherever it lies.
func program(text string) bool {
	name := strings.ToLower(text[strings.LastIndexAny(text, `/\`)+1:])
	return strings.TrimSuffix(name, ".exe") == "diskspd"
}

func isFlag(text string) bool {
	return len(text) > 1 && (text[0] == '-' || text[0] == '/' && len(text) < 40)
}

// line is a command line on its way to a stage.
type line struct {
	*load.Teller
	block   int64
	targets []load.Target
	stream  load.Stream
	runtime int64
	warmup  int64
	file    int64 // -c
	end     int64 // -f
	total   int   // -F
	perSet  int   // -O
	threads int   // -t
	share   float64
	strided bool
	random  bool
	shared  bool // -si
	cache   byte
	through bool
	flags   map[string]word
}

// command reads the arguments of one command line.
func command(t *load.Teller, words []word, at load.Place, number int) load.Stage {
	c := &line{Teller: t, block: 64 << 10, runtime: 10, warmup: 5, flags: map[string]word{}, stream: load.Stream{
		Reads: 100, Depth: 2, Even: true, At: at, Asks: map[string]load.Ask{}, Seed: 0,
		Data: load.Data{Kind: load.Repeated, Pattern: counting}}}
	for _, w := range words {
		switch {
		case strings.TrimSpace(w.text) == "":
			t.Object(w.at, "a target without a name")
		case !isFlag(w.text) || w.text[0] == '/' && strings.Contains(w.text[1:], "/"):
			c.targets = append(c.targets, load.Target{Name: targetName(w.text)})
		case len(c.targets) > 0:
			t.Object(w.at, "%.60s: flags come before targets", w.text)
		case w.text[1] == 'b': // other sizes may count in blocks
			c.block = c.size(w, w.text[2:], false)
			c.stream.Asks["Sizes"] = ask(w)
		}
	}
	for _, w := range words {
		if isFlag(w.text) && !(w.text[0] == '/' && strings.Contains(w.text[1:], "/")) {
			c.flag(w)
		}
	}
	if len(c.targets) == 0 {
		t.Object(at, "no target: a file, #1 for a disk, or a drive such as E:")
	}
	return load.Stage{Name: fmt.Sprintf("diskspd%d", number), Runtime: c.runtime, Warmup: c.warmup, At: at,
		Streams: c.streams(number)}
}

// counting holds the data that DISKSPD writes unless told otherwise: all bytes from 0 to 255, again and again.
var counting = func() string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%02x", i)
	}
	return b.String()
}()

// targetName is the name of a target elsewhere: a disk by its number, a drive by its letter.
func targetName(text string) string {
	if n, ok := strings.CutPrefix(text, "#"); ok {
		if _, err := strconv.ParseUint(n, 10, 16); err == nil {
			return `\\.\PhysicalDrive` + n
		}
	}
	if len(text) == 2 && text[1] == ':' {
		return `\\.\` + text
	}
	return text
}

func ask(w word) load.Ask { return load.Ask{Text: w.text, At: w.at} }
