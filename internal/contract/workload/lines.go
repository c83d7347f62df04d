package workload

import "bytes"

// Lines cuts what a tool prints into its lines, however it arrives.
type Lines struct {
	Longest int // bytes that are kept of a line whose end has not come yet
	rest    []byte
}

// Feed takes the next bytes and hands on every line that is whole, without its end.
func (l *Lines) Feed(data []byte, line func([]byte)) {
	l.rest = append(l.rest, data...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			l.rest = l.rest[:min(len(l.rest), l.Longest)]
			return
		}
		line(l.rest[:i])
		l.rest = l.rest[i+1:]
	}
}

// End hands on what came after the last line's end, if there is anything.
func (l *Lines) End(line func([]byte)) {
	if rest := l.rest; len(rest) > 0 {
		l.rest = nil
		line(rest)
	}
}
