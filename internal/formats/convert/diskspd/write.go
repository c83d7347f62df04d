package diskspd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// writer is a load on its way to command lines.
type writer struct {
	*load.Teller
	words []string
}

// Write writes a load as command lines, one for each stream. The error holds all objections at once; the notes say what
// DISKSPD does differently.
func Write(l load.Load) (string, []load.Note, error) {
	w := &writer{Teller: &load.Teller{}}
	var b strings.Builder
	for i := range l.Stages {
		st := &l.Stages[i]
		if st.Runtime == 0 {
			w.Object(st.At, "%s: DISKSPD ends by time only; give it a runtime", st.Name)
		}
		if st.Pause > 0 && i < len(l.Stages)-1 {
			w.Note(load.Ask{Text: fmt.Sprintf("a pause of %d s after %s", st.Pause, st.Name), At: st.At}, "",
				"the next command begins at once")
		}
		if n := len(st.Streams); n > 1 {
			w.Note(
				load.Ask{Text: fmt.Sprintf("%s: %d streams together", st.Name, n), At: st.At},
				"commands started one after the other with start /b",
				"they begin and end moments apart, and each reports for itself",
			)
		}
		for j := range st.Streams {
			if j < len(st.Streams)-1 {
				b.WriteString("start /b ")
			}
			w.words = []string{"diskspd"}
			w.stream(&st.Streams[j], st)
			b.WriteString(strings.Join(w.words, " ") + "\n")
		}
	}
	return b.String(), w.Notes, w.Err()
}

func (w *writer) add(format string, args ...any) {
	w.words = append(w.words, fmt.Sprintf(format, args...))
}

// size is bytes as DISKSPD reads them.
func size(bytes int64) string { return strings.ToUpper(load.Size(bytes)) }

func (w *writer) stream(s *load.Stream, st *load.Stage) {
	if len(s.Sizes) != 1 {
		w.Refuse(
			s.Asked("Sizes", "several sizes"),
			"a command of DISKSPD has one block size; split the stream into one for each",
		)
		return
	}
	w.add("-b%s", size(s.Sizes[0].Bytes))
	w.add("-d%d", st.Runtime)
	w.add("-W%d", st.Warmup)
	w.threads(s)
	if math.Abs(s.Reads-math.Round(s.Reads)) > 1e-9 {
		w.Note(
			s.Asked("Reads", "a share of reads"),
			fmt.Sprintf("-w%.0f", 100-s.Reads),
			"DISKSPD takes whole percentages",
		)
	}
	w.add("-w%.0f", 100-math.Round(s.Reads))
	w.places(s)
	w.where(s)
	w.caching(s)
	w.rates(s)
	w.rest(s)
	w.add("-L")
	for _, t := range s.Targets {
		name := t.Name
		if n, ok := strings.CutPrefix(name, `\\.\PhysicalDrive`); ok {
			if _, err := strconv.ParseUint(n, 10, 16); err == nil {
				name = "#" + n
			}
		} else if drive, ok := strings.CutPrefix(name, `\\.\`); ok && len(drive) == 2 && drive[1] == ':' {
			name = drive
		}
		if strings.ContainsAny(name, "\"\n") || isFlag(name) && !strings.Contains(name[1:], "/") {
			w.Object(s.At, "%.80q cannot stand in a command line", name)
		}
		if name[0] == '#' {
			w.words = append(w.words, name)
		} else {
			w.words = append(w.words, quoted(name))
		}
		if strings.HasPrefix(t.Name, "/dev/") {
			w.Note(s.Asked("Targets", t.Name), t.Name, "a device of Linux; on Windows name the disk, as #1")
		}
	}
}

func (w *writer) threads(s *load.Stream) {
	if s.Targets[0].Files != nil {
		w.Refuse(s.Asked("Targets", "files of a folder"), "name the files, each as a target")
	}
	if len(s.Targets) > 1 {
		w.add("-F%d", s.Threads)
		w.add("-O%d", s.Depth)
		return
	}
	w.add("-t%d", s.Threads)
	w.add("-o%d", s.Depth)
	if s.Threads > 1 && s.Spread > 0 {
		w.add("-T%s", size(s.Spread))
		w.Note(s.Asked("Spread", "threads that begin apart"), "-T"+size(s.Spread),
			"each thread goes on to the end of the target, then from its beginning")
	}
}

func (w *writer) places(s *load.Stream) {
	if s.Once && s.Random > 0 {
		w.Note(
			s.Asked("Random", "each random place once"),
			"-r",
			"a place may come again before all were used, and some never come",
		)
	}
	random := math.Round(s.Random)
	switch {
	case s.Random == 0 && s.Align > 0:
		w.Refuse(s.Asked("Align", "an alignment"), "of sequential operations DISKSPD takes a stride only")
	case s.Random == 0 && s.Skip > 0:
		w.add("-s%d", s.Sizes[0].Bytes+s.Skip)
		return
	case s.Random == 0:
		return
	case random < 100:
		w.add("-rs%.0f", math.Max(random, 1))
		if random != s.Random {
			w.Note(s.Asked("Random", "a share of random places"), fmt.Sprintf("-rs%.0f", math.Max(random, 1)),
				"DISKSPD takes whole percentages from 1")
		}
		if s.Reads > 0 && s.Reads < 100 {
			w.Note(s.Asked("Random", "a share of random places"), fmt.Sprintf("-rs%.0f", random),
				"sequential stretches of DISKSPD are all reads or all writes")
		}
	}
	if s.Align > 0 {
		w.add("-r%s", size(s.Align))
	} else if random == 100 {
		w.add("-r")
	}
	if s.Skew != "" {
		w.Refuse(
			s.Asked("Skew", s.Skew),
			"DISKSPD has zones only: give zones, as random_distribution=zoned:80/20:20/80",
		)
	}
	w.zones(s)
}

func (w *writer) zones(s *load.Stream) {
	if len(s.Zones) == 0 {
		return
	}
	percentages := make([]float64, len(s.Zones))
	for i, z := range s.Zones {
		percentages[i] = z.Percent
	}
	whole := load.Whole(percentages)
	kind, parts := "abs", make([]string, len(s.Zones))
	for i, z := range s.Zones {
		parts[i] = fmt.Sprintf("%d/%s", whole[i], size(z.Span.Bytes))
		if z.Span.Percent > 0 {
			kind, parts[i] = "pct", fmt.Sprintf("%d/%.0f", whole[i], z.Span.Percent)
		}
		if math.Abs(z.Percent-float64(whole[i])) > 1e-9 || z.Span.Percent != math.Round(z.Span.Percent) {
			w.Note(s.Asked("Zones", "zones"), parts[i], "DISKSPD takes whole percentages")
		}
	}
	w.add("-rd%s%s", kind, strings.Join(parts, ":"))
}

func (w *writer) where(s *load.Stream) {
	t := s.Targets[0]
	if s.From.Percent > 0 || s.Span.Percent > 0 {
		if t.Bytes == 0 {
			w.Refuse(s.Asked("From", "a part of the target"), "DISKSPD takes bytes; say the size of the target")
			return
		}
		w.Note(
			s.Asked("From", "a part of the target"),
			"in bytes",
			"DISKSPD takes no percentages; the size said is that of the "+
				"target",
		)
	}
	bytes := func(e load.Extent) int64 { return e.Bytes + int64(float64(t.Bytes)*e.Percent/100) }
	from, span := bytes(s.From), bytes(s.Span)
	if from > 0 {
		w.add("-B%s", size(from))
	}
	if span > 0 {
		w.add("-f%s", size(from+span+s.Spread*int64(s.Threads-1)))
	} else if t.Bytes > 0 && t.Raw() {
		w.add("-f%s", size(t.Bytes))
	}
	if t.Bytes > 0 && !t.Raw() {
		w.add("-c%s", size(t.Bytes))
	}
}

func (w *writer) caching(s *load.Stream) {
	if s.Sync == "sync" {
		w.Note(s.Asked("Sync", "sync=sync"), "write-through", "the metadata of a file are written as Windows sees fit")
	}
	switch {
	case s.Mapped && s.Sync != "":
		w.add("-Smw")
	case s.Mapped:
		w.add("-Sm")
	case s.Direct && s.Sync != "":
		w.add("-Sh")
	case s.Direct:
		w.add("-Su")
	case s.Sync != "":
		w.add("-Sbw")
	default:
		w.add("-Sb")
	}
}

// rates are by thread and target.
func (w *writer) rates(s *load.Stream) {
	each := float64(s.Threads * len(s.Targets))
	if s.Weight > 0 {
		w.Refuse(
			s.Asked("Weight", "a share of all streams"),
			"commands of DISKSPD know nothing of each other; give rates",
		)
	}
	if s.Rate > 0 && s.Bytes > 0 {
		w.Refuse(s.Asked("Bytes", "a rate in bytes"), "DISKSPD takes one rate, in operations or in bytes")
		return
	}
	note := func(field string, asked, got float64, flag string) {
		if math.Abs(asked-got) > asked*0.005 {
			w.Note(s.Asked(field, "a rate"), flag, "a whole number for each thread and target: %s a second, not %s",
				load.Number(got), load.Number(math.Round(asked*1000)/1000))
		}
	}
	if s.Rate > 0 {
		per := math.Max(math.Round(s.Rate/each), 1)
		flag := fmt.Sprintf("-g%.0fi", per)
		w.add("%s", flag)
		note("Rate", s.Rate, per*each, flag)
		if !s.Even {
			w.Note(s.Asked("Even", "operations at random moments"), flag, "DISKSPD spaces operations evenly")
		}
	}
	if s.Bytes > 0 {
		per := math.Max(math.Round(float64(s.Bytes)/each/1000), 1)
		flag := fmt.Sprintf("-g%.0f", per)
		w.add("%s", flag)
		note("Bytes", float64(s.Bytes), per*each*1000, flag)
	}
}

func (w *writer) rest(s *load.Stream) {
	if s.Think > 0 {
		pause := max((s.Think+999)/1000, 1)
		if pause*1000 != s.Think {
			w.Note(s.Asked("Think", "pauses"), fmt.Sprintf("-j%d", pause), "DISKSPD takes whole milliseconds")
		}
		w.add("-i%d", max(s.Burst, 1))
		w.add("-j%d", pause)
	}
	if s.Reads < 100 {
		w.data(s)
	}
	if s.Seed != 0 {
		if s.Seed > math.MaxUint32 || s.Seed < 0 {
			w.Refuse(s.Asked("Seed", "a seed"), "DISKSPD takes one of 32 bits")
		}
		w.add("-z%d", s.Seed)
	}
	if len(s.CPUs) > 0 {
		texts := make([]string, len(s.CPUs))
		for i, c := range s.CPUs {
			texts[i] = strconv.Itoa(c)
		}
		if slices.Max(s.CPUs) > 63 {
			w.Refuse(s.Asked("CPUs", "processors"), "a group of Windows has processors up to 63")
		}
		w.add("-a%s", strings.Join(texts, ","))
	}
}

func (w *writer) data(s *load.Stream) {
	if s.Data.Compressed > 0 || s.Data.Duplicate > 0 {
		w.Refuse(
			s.Asked("Compressed", "compressible or duplicate data"),
			"DISKSPD makes none; give a file of such data with "+
				"-Z<size>,<file>",
		)
		return
	}
	switch s.Data.Kind {
	case load.Zeros:
		w.add("-Z")
	case load.Repeated:
		if s.Data.Pattern != counting {
			w.Refuse(
				s.Asked("Data", "a pattern"),
				"DISKSPD's own is bytes from 0 to 255; give another as a file with -Z<size>,<file>",
			)
		}
	case load.Unique:
		w.add("-Zr")
	case load.Reused:
		w.add("-Zr")
		w.Note(
			s.Asked("Data", "random data changed a little for each write"),
			"-Zr",
			"made anew for every write, which costs more "+
				"processor time",
		)
	}
}
