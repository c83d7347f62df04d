// Package diskspd reads and writes command lines of DISKSPD 2.2 as loads, all flags of its published documentation. It is
// a room of convert. A file holds one command line after the other, each a stage, as in a batch file: comments begin with
// rem, :: or #, and a line that begins with "start /b" runs together with the next. Nothing is run. What has no part in
// the load is noted, what cannot be had is refused by name.
package diskspd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/convert/load"
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
			t.Object(load.Place{File: name, Line: at.Line, Col: i + 1}, "%q cannot be part of a command line; write plain text",
				line[i:i+1])
			continue
		}
		if n := len(line); n > 0 && (line[n-1] == '^' || line[n-1] == '\\' && (n == 1 || line[n-2] == ' ')) {
			continued += line[:n-1]
			continue
		}
		line, continued = continued+line, ""
		if first := strings.Fields(line); continued == "" && len(first) > 0 && comment(first[0]) {
			continue
		}
		words, err := split(line, at)
		if err != nil {
			t.Object(at, "%v", err)
			continue
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
	block    int64
	targets  []load.Target
	stream   load.Stream
	runtime  int64
	warmup   int64
	file     int64 // -c
	end      int64 // -f
	total    int   // -F
	perSet   int   // -O
	threads  int   // -t
	share    float64
	hasAlign bool
	strided  bool
	random   bool
	shared   bool // -si
	cache    byte
	through  bool
	flags    map[string]word
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

// counting is what DISKSPD writes unless told otherwise: all bytes from 0 to 255, again and again.
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

// size reads bytes, or with b blocks.
func (c *line) size(w word, text string, blocks bool) int64 {
	digits, unit := text, int64(1)
	if n := len(text); n > 0 {
		if i := strings.IndexByte("KMGT", text[n-1]&^0x20); i >= 0 && text[n-1] >= 'A' {
			digits, unit = text[:n-1], 1<<(10*(i+1))
		} else if text[n-1]|0x20 == 'b' && blocks {
			digits, unit = text[:n-1], c.block
		}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v < 0 || v > math.MaxInt64/4/max(unit, 1) {
		c.Refuse(ask(w), "%.40q is no size, like 64K, 1G or 4096", text)
		return max(c.block, 512)
	}
	return v * unit
}

// count reads a whole number.
func (c *line) count(w word, low, high int64) int64 {
	v, err := strconv.ParseInt(w.text[2:], 10, 64)
	if err != nil || v < low || v > high {
		c.Refuse(ask(w), "-%c takes a whole number from %d to %d, without a blank before it", w.text[1], low, high)
		return low
	}
	return v
}

// idle are flags that have no part in the load.
var idle = map[byte]string{
	'D': "how DISKSPD reports", 'L': "how DISKSPD reports", 'P': "how DISKSPD reports", 'R': "how DISKSPD reports",
	'v': "how DISKSPD reports", 'e': "how DISKSPD reports", 'l': "what memory it takes", 'x': "how it waits",
	'n': "which processors it runs on", 'I': "which priority Windows gives",
}

// refused are flags of what cannot be had.
var refused = map[byte]string{
	'p': "several operations at the same place at once cannot be had",
	'N': "flushing of mapped memory cannot be had", 'X': "a profile in XML is not read; write its command lines",
	'y': "events of Windows cannot be had", '?': "it asks for help, not for a load",
}

// flag reads one flag.
func (c *line) flag(w word) {
	s, f, rest := &c.stream, w.text[1], w.text[2:]
	id := string(f)
	if f == 'r' && (strings.HasPrefix(rest, "s") || strings.HasPrefix(rest, "d")) || f == 'f' && rest != "" && rest[0] > '9' {
		id += rest[:1]
	}
	if before, ok := c.flags[id]; ok && !strings.Contains("Say", id) {
		c.Refuse(ask(w), "given twice; %s says it already", before.text)
		return
	}
	c.flags[id] = w
	switch {
	case idle[f] != "":
		c.Note(ask(w), "", "%s has no part in the load", idle[f])
		return
	case refused[f] != "":
		c.Refuse(ask(w), "%s", refused[f])
		return
	}
	switch f {
	case 'b':
		if c.block < 1 || c.block >= 1<<32 {
			c.Refuse(ask(w), "a block has 1 byte to 4 GiB")
		}
	case 'B':
		s.From.Bytes, s.Asks["From"] = c.size(w, rest, true), ask(w)
	case 'c':
		if c.file = c.size(w, rest, true); c.file == 0 {
			c.Refuse(ask(w), "a file of no bytes")
		}
		s.Asks["Bytes of the file"] = ask(w)
	case 'C':
		if c.count(w, 0, 1e6) > 0 {
			c.Note(ask(w), "", "the load ends with what is measured")
		}
	case 'd':
		if c.runtime = c.count(w, 0, 1e9); c.runtime == 0 {
			c.Refuse(ask(w), "nothing is measured in no time")
		}
	case 'W':
		c.warmup = c.count(w, 0, 1e6)
	case 'f':
		c.limit(w, rest)
	case 'F':
		c.total = int(c.count(w, 1, 4096))
		s.Asks["Threads"] = ask(w)
	case 't':
		c.threads = int(c.count(w, 1, 4096))
		s.Asks["Threads"] = ask(w)
	case 'o':
		s.Depth, s.Asks["Depth"] = int(c.count(w, 1, 1<<16)), ask(w)
	case 'O':
		c.perSet = int(c.count(w, 1, 1<<16))
		s.Asks["Depth"] = ask(w)
	case 'g':
		if text, ok := strings.CutSuffix(w.text, "i"); ok {
			s.Rate = float64(c.count(word{text, w.at}, 1, 1e9))
			s.Asks["Rate"] = ask(w)
		} else {
			s.Bytes = c.count(w, 1, 1e12) * 1000
			s.Asks["Bytes"], s.Asks["Rate"] = ask(w), ask(w)
		}
	case 'i':
		s.Burst, s.Asks["Burst"] = c.count(w, 1, 1<<31), ask(w)
	case 'j':
		s.Think, s.Asks["Think"] = c.count(w, 1, 1e6)*1000, ask(w)
	case 'r':
		c.randomness(w, rest)
	case 's':
		c.stride(w, rest)
	case 'h', 'S':
		c.caching(w, f, rest)
	case 'T':
		s.Spread, s.Asks["Spread"] = c.size(w, rest, true), ask(w)
	case 'w':
		if rest == "" {
			c.Refuse(ask(w), "say the percentage of writes, like -w30")
			return
		}
		s.Reads, s.Asks["Reads"] = 100-float64(c.count(w, 0, 100)), ask(w)
	case 'z':
		if rest != "" {
			s.Seed = c.count(w, 0, math.MaxUint32)
		}
		s.Asks["Seed"] = ask(w)
	case 'Z':
		c.content(w, rest)
	case 'a':
		c.affinity(w, rest)
	default:
		c.Refuse(ask(w), "DISKSPD has no flag -%c; flags are one letter, and tell upper from lower case", f)
	}
}

// limit reads -f: the end of what is used, or hints to Windows.
func (c *line) limit(w word, rest string) {
	if rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		if c.end = c.size(w, rest, true); c.end == 0 {
			c.Refuse(ask(w), "nothing of the target would be used")
		}
		c.stream.Asks["Span"] = ask(w)
		return
	}
	if rest == "" || strings.Trim(rest, "rst") != "" {
		c.Refuse(ask(w), "-f takes a size, or hints of the letters r, s and t")
		return
	}
	c.Note(ask(w), "", "a hint to the cache of Windows")
}

func (c *line) randomness(w word, rest string) {
	s := &c.stream
	s.Asks["Random"] = ask(w)
	switch {
	case strings.HasPrefix(rest, "s"):
		v, err := strconv.ParseUint(rest[1:], 10, 8)
		if err != nil || v < 1 || v > 100 {
			c.Refuse(ask(w), "-rs takes a whole percentage from 1 to 100")
			return
		}
		c.share = float64(v)
	case strings.HasPrefix(rest, "d"):
		s.Asks["Zones"] = ask(w)
		c.zones(w, rest[1:])
	default:
		c.random = true
		if rest != "" {
			if s.Align = c.size(w, rest, true); s.Align == 0 {
				c.Refuse(ask(w), "places that are multiples of nothing")
			}
			s.Asks["Align"] = ask(w)
		}
	}
}

func (c *line) zones(w word, text string) {
	kind := ""
	if len(text) > 3 {
		kind, text = text[:3], text[3:]
	}
	if kind != "pct" && kind != "abs" {
		c.Refuse(ask(w), "-rd takes pct or abs with its zones, like -rdpct90/10:5/20")
		return
	}
	var sum, span float64
	for part := range strings.SplitSeq(text, ":") {
		percentText, extent, ok := strings.Cut(part, "/")
		percent, err := strconv.ParseUint(percentText, 10, 8)
		z := load.Zone{Percent: float64(percent)}
		if ok && kind == "abs" {
			z.Span.Bytes = c.size(w, extent, true)
		} else if n, err := strconv.ParseUint(extent, 10, 8); err == nil {
			z.Span.Percent = float64(n)
		}
		sum, span = sum+z.Percent, span+z.Span.Percent
		if err != nil || z.Span.Zero() || sum > 100 || span > 100 {
			c.Refuse(ask(w), "%.40q is no zone: percentages of operations and of the target, up to 100 together", part)
			return
		}
		c.stream.Zones = append(c.stream.Zones, z)
	}
	switch rest := 100 - sum; {
	case rest > 0 && kind == "pct" && span < 100:
		c.stream.Zones = append(c.stream.Zones, load.Zone{Percent: rest, Span: load.Extent{Percent: 100 - span}})
	case rest > 0 && kind == "pct":
		c.Refuse(ask(w), "%s %% of operations are left, and nothing of the target", load.Number(rest))
	case kind == "pct" && span < 100:
		c.stream.Zones = append(c.stream.Zones, load.Zone{Span: load.Extent{Percent: 100 - span}})
	case rest > 0: // what remains of the target is known with its size
		c.stream.Zones = append(c.stream.Zones, load.Zone{Percent: rest})
	}
}

func (c *line) stride(w word, rest string) {
	c.strided = true
	if cut, ok := strings.CutPrefix(rest, "i"); ok {
		c.shared, rest = true, cut
		c.stream.Asks["Threads"] = ask(w)
	}
	if rest == "" {
		return
	}
	stride := c.size(w, rest, true)
	c.stream.Asks["Skip"] = ask(w)
	if stride < c.block {
		c.Refuse(ask(w), "operations that overlap the one before cannot be had")
		return
	}
	c.stream.Skip = stride - c.block
}

func (c *line) caching(w word, f byte, rest string) {
	s := &c.stream
	s.Asks["Direct"], s.Asks["Sync"], s.Asks["Mapped"] = ask(w), ask(w), ask(w)
	if f == 'h' {
		if rest != "" {
			c.Refuse(ask(w), "-h takes nothing; -Sh is the same")
		}
		rest = "h"
	}
	if rest == "" {
		rest = "u"
	}
	for _, r := range rest {
		mode := byte(0)
		switch r {
		case 'b', 'u':
			mode = byte(r)
		case 'h':
			mode = 'u'
			if c.through {
				c.Refuse(ask(w), "it asks for write-through twice")
			}
			c.through = true
		case 'w':
			if c.through {
				c.Refuse(ask(w), "it asks for write-through twice")
			}
			c.through = true
		case 'm':
			s.Mapped = true
		case 'r':
			c.Refuse(ask(w), "the cache of a file server alone cannot be asked for")
		default:
			c.Refuse(ask(w), "-S takes letters of b, h, m, r, u and w")
			return
		}
		if mode != 0 && c.cache != 0 {
			c.Refuse(ask(w), "it asks for two ways of caching")
		}
		if mode != 0 {
			c.cache = mode
		}
	}
	if s.Mapped && c.cache == 'u' {
		c.Refuse(ask(w), "mapped memory is in the cache; -Su and -Sm exclude each other")
	}
	s.Direct = c.cache == 'u'
	if c.through {
		s.Sync = "dsync"
	}
}

func (c *line) content(w word, rest string) {
	s := &c.stream
	s.Asks["Data"] = ask(w)
	switch {
	case rest == "":
		s.Data = load.Data{Kind: load.Zeros}
	case rest == "r":
		s.Data = load.Data{Kind: load.Unique}
	case strings.Contains(rest, ","):
		c.Refuse(ask(w), "it would read another file; give its content in the tool converted to")
	default:
		size := c.size(w, rest, true)
		s.Data = load.Data{Kind: load.Reused}
		c.Note(ask(w), "random data made once, a little changed for each write",
			"DISKSPD writes from one buffer of %s, unchanged: storage that finds duplicates finds them there", load.Size(size))
	}
}

func (c *line) affinity(w word, rest string) {
	c.stream.Asks["CPUs"] = ask(w)
	rest, grouped := strings.CutPrefix(rest, "g")
	if rest == "" {
		return // the default
	}
	parts := strings.Split(rest, ",")
	if grouped {
		if parts[0] != "0" {
			c.Refuse(ask(w), "only processors of group 0 can be named")
			return
		}
		parts = parts[1:]
	}
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			c.Refuse(ask(w), "%.20q is no processor of group 0", part)
			return
		}
		c.stream.CPUs = append(c.stream.CPUs, int(n))
	}
}

// streams are what the command line does: a stream for each target, or one for all where threads are shared.
func (c *line) streams(number int) []load.Stream {
	s := &c.stream
	s.Sizes = []load.Share{{Bytes: c.block, Percent: 100}}
	given := func(flag string) word { return c.flags[flag] }
	conflict := func(is bool, a, b string) {
		if is {
			c.Refuse(ask(given(b)), "it excludes %s", given(a).text)
		}
	}
	_, F := c.flags["F"]
	_, O := c.flags["O"]
	conflict(F && c.threads > 0, "F", "t")
	conflict(c.random && c.strided, "r", "s")
	conflict(c.share > 0 && c.strided, "rs", "s")
	conflict(len(s.Zones) > 0 && !c.random && c.share == 0 && c.strided, "rd", "s")
	conflict(c.shared && s.Spread > 0, "s", "T")
	_, o := c.flags["o"]
	conflict(O && o, "O", "o")
	if O && !F {
		c.Refuse(ask(given("O")), "it goes with -F, threads that work on all targets")
	}
	if len(s.Zones) > 0 && !c.random && c.share == 0 {
		c.Refuse(ask(given("rd")), "zones are for random places: say -r or -rs too")
	}
	if _, ok := c.flags["i"]; ok != (s.Think > 0) {
		w := given("i")
		if !ok {
			w = given("j")
		}
		c.Refuse(ask(w), "-i and -j go together")
	}
	switch {
	case c.share > 0:
		s.Random = c.share
		if s.Reads > 0 && s.Reads < 100 && c.share < 100 {
			c.Note(ask(given("rs")), "reads and writes in any order", "sequential stretches of DISKSPD are all reads or all writes")
		}
	case c.random:
		s.Random = 100
	}
	if s.Align == c.block {
		s.Align = 0
	}
	if s.Random == 100 {
		s.Spread = 0 // where a thread begins means nothing then
	}
	if c.end > 0 {
		if s.Span.Bytes = c.end - s.From.Bytes; s.Span.Bytes <= 0 {
			c.Refuse(ask(given("f")), "the end lies before the begin, %s", given("B").text)
		}
	}
	if c.file > 0 && s.From.Bytes >= c.file {
		c.Refuse(ask(given("B")), "it lies behind the end of the file, %s", given("c").text)
	}
	c.lastZone()
	s.Threads = max(c.threads, 1)
	for i := range c.targets {
		if t := &c.targets[i]; !t.Raw() {
			t.Bytes = max(c.file, c.end)
			if c.file > 0 {
				t.Bytes = c.file
			}
		} else if c.file > 0 {
			c.Refuse(ask(given("c")), "%s is no file", t.Name)
		}
	}
	c.pitfalls()
	name := fmt.Sprintf("diskspd%d", number)
	if F {
		each := *s
		each.Name, each.Targets, each.Threads = name, c.targets, c.total
		if each.Depth *= max(len(c.targets), 1); O {
			each.Depth = c.perSet
		}
		n := float64(c.total * max(len(c.targets), 1))
		each.Rate, each.Bytes = s.Rate*n, int64(float64(s.Bytes)*n)
		return []load.Stream{c.position(each)}
	}
	var all []load.Stream
	for i, t := range c.targets {
		each := *s
		each.Targets = []load.Target{t}
		if each.Name = name; len(c.targets) > 1 {
			each.Name = fmt.Sprintf("%s.%d", name, i+1)
		}
		each.Rate, each.Bytes = s.Rate*float64(s.Threads), s.Bytes*int64(s.Threads)
		all = append(all, c.position(each))
	}
	return all
}

// pitfalls are what DISKSPD does unless told otherwise, and what surprises in a comparison.
func (c *line) pitfalls() {
	s := &c.stream
	writes := s.Reads < 100
	if a := s.Asked("Data", "no -Z"); writes && s.Data.Kind == load.Repeated {
		c.Note(a, "the same data", "bytes from 0 to 255 again and again, which storage makes nearly nothing of; -Zr writes unique "+
			"data")
	} else if writes && s.Data.Kind == load.Zeros {
		c.Note(a, "the same data", "zeros, of which storage may store nothing; -Zr writes unique data")
	}
	a := s.Asked("Direct", "no -S")
	if !s.Direct && !s.Mapped {
		c.Note(a, "through the page cache", "what is read and written may never reach the device; -Su and -Sh go past the cache")
	}
	if writes && s.Sync != "" {
		c.Note(a, "sync=dsync", "Windows tells the device not to keep the write in its cache; here the cache of the device is "+
			"flushed where it cannot be told so")
	}
}

// position makes one stream of threads that share a position.
func (c *line) position(s load.Stream) load.Stream {
	s.Asks = cloned(s.Asks)
	if c.shared && s.Threads > 1 {
		c.Note(ask(c.flags["s"]), fmt.Sprintf("one thread with %d operations in flight", s.Threads*s.Depth),
			"DISKSPD's threads go on from one position together")
		s.Depth, s.Threads = s.Depth*s.Threads, 1
	}
	return s
}

func cloned(m map[string]load.Ask) map[string]load.Ask {
	out := make(map[string]load.Ask, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// lastZone gives the rest of operations the rest of the target, of zones in bytes.
func (c *line) lastZone() {
	s := &c.stream
	n := len(s.Zones)
	if n == 0 || !s.Zones[n-1].Span.Zero() {
		return
	}
	var used int64
	for _, z := range s.Zones {
		used += z.Span.Bytes
	}
	end := c.end
	if end == 0 {
		end = c.file
	}
	if left := end - s.From.Bytes - used; left > 0 {
		s.Zones[n-1].Span.Bytes = left
		return
	}
	c.Refuse(s.Asked("Zones", "-rdabs"), "%s %% of operations go to what is left of the target: say its size with -c or -f",
		load.Number(s.Zones[n-1].Percent))
	s.Zones = slices.Delete(s.Zones, n-1, n)
}
