package diskspd

import (
	"math"
	"strconv"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

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
	if f == 'r' && (strings.HasPrefix(rest, "s") || strings.HasPrefix(rest, "d")) ||
		f == 'f' && rest != "" && rest[0] > '9' {
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
		c.Note(
			ask(w),
			"random data made once, a little changed for each write",
			"DISKSPD writes from one buffer of %s, unchanged: storage that finds duplicates finds them there",
			load.Size(size),
		)
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
