package fiojob

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// targets gives a stream its targets. Processes of a job that names none have a file each.
func (r *reader) targets(s load.Stream) []load.Stream {
	if n := r.count("nrfiles", 1, 1, 1<<31); n != 1 {
		_, a, _ := r.option("nrfiles")
		r.Refuse(a, "several files of a process: name them with filename=")
	}
	dir := r.job.Value("directory")
	names := split(r.job.Value("filename"))
	for i := range names {
		if dir != "" && !strings.HasPrefix(names[i], "/") {
			names[i] = path.Join(dir, names[i])
		}
	}
	end := int64(0)
	size := max(s.Span.Bytes, r.fileSize())
	if size > 0 && s.From.Percent == 0 {
		each := size / int64(max(len(names), 1))
		end = s.From.Bytes + s.Spread*int64(s.Threads-1) + each
		if s.Span.Bytes > 0 {
			s.Span.Bytes = each
		}
		if s.From.Zero() && s.Spread == 0 {
			s.Span = load.Extent{}
		}
	}
	if len(names) > 0 {
		for _, n := range names {
			s.Targets = append(s.Targets, load.Target{Name: n, Bytes: end})
		}
		return []load.Stream{s}
	}
	if size <= 0 {
		r.Object(r.at, "[%s] has no size=", r.job.Name)
		return nil
	}
	if s.Threads > 64 {
		r.Object(
			r.at,
			"[%s] has %d files of its own, one for each process; up to 64 are written out",
			r.job.Name,
			s.Threads,
		)
		return nil
	}
	var all []load.Stream
	for i := range s.Threads {
		c := s
		c.Threads, c.Rate, c.Bytes = 1, s.Rate/float64(s.Threads), s.Bytes/int64(s.Threads)
		if s.Threads > 1 {
			c.Name = fmt.Sprintf("%s.%d", s.Name, i)
		}
		c.Targets = []load.Target{{Name: path.Join(dir, fmt.Sprintf("%s.%d.0", s.Name, i)), Bytes: end}}
		all = append(all, c)
	}
	return all
}

func (r *reader) fileSize() int64 {
	if value, a, ok := r.option("filesize"); ok {
		if strings.Contains(value, "-") && r.job.Value("size") != "" {
			r.Note(a, "files of the same size, as large together", "their sizes vary in fio")
			return 0
		}
		if strings.Contains(value, "-") {
			r.Refuse(a, "files of several sizes: name each, in a job of its own")
			return 0
		}
		return r.size("filesize", 0)
	}
	return 0
}

// split splits a list of files at colons that no backslash protects.
func split(list string) (names []string) {
	var b strings.Builder
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '\\' && i+1 < len(list) && list[i+1] == ':':
			b.WriteByte(':')
			i++
		case list[i] == ':':
			names = append(names, b.String())
			b.Reset()
		default:
			b.WriteByte(list[i])
		}
	}
	if b.Len() > 0 {
		names = append(names, b.String())
	}
	return slices.DeleteFunc(names, func(n string) bool { return strings.TrimSpace(n) == "" })
}
