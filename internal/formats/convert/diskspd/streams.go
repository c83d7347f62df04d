package diskspd

import (
	"fmt"
	"slices"

	"plimsoll/internal/formats/convert/load"
)

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
			c.Note(
				ask(given("rs")),
				"reads and writes in any order",
				"sequential stretches of DISKSPD are all reads or all writes",
			)
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
		c.Note(
			a,
			"the same data",
			"bytes from 0 to 255 again and again, which storage makes nearly nothing of; -Zr writes unique "+
				"data",
		)
	} else if writes && s.Data.Kind == load.Zeros {
		c.Note(a, "the same data", "zeros, of which storage may store nothing; -Zr writes unique data")
	}
	a := s.Asked("Direct", "no -S")
	if !s.Direct && !s.Mapped {
		c.Note(
			a,
			"through the page cache",
			"what is read and written may never reach the device; -Su and -Sh go past the cache",
		)
	}
	if writes && s.Sync != "" {
		c.Note(
			a,
			"sync=dsync",
			"Windows tells the device not to keep the write in its cache; here the cache of the device is "+
				"flushed where it cannot be told so",
		)
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
	c.Refuse(
		s.Asked("Zones", "-rdabs"),
		"%s %% of operations go to what is left of the target: say its size with -c or -f",
		load.Number(s.Zones[n-1].Percent),
	)
	s.Zones = slices.Delete(s.Zones, n-1, n)
}
