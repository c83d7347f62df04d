package convert

import (
	"errors"
	"strings"

	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/lazyregexp"
)

var (
	// diskspdCall is DISKSPD with what can only be an argument of it behind, wherever in a line.
	diskspdCall = lazyregexp.New(`(?i)(?:^|[\s;&|/\\('"])diskspd(?:64)?(?:\.exe)?["']?\s+["']?[-/]\w|` +
		`^\s*(?:[^\s"]*[\\/])?diskspd(?:64)?(?:\.exe)?\s+\S`)
)

// readDiskspd reads command lines of DISKSPD, those of a script as a shell would come to them.
func readDiskspd(r Request) (load.Load, []string, error) {
	text := strings.TrimPrefix(string(r.Data), "\ufeff")
	if !isDiskspdScript(text) {
		l, err := diskspd.Read(r.Name, r.Data)
		return l, nil, err
	}
	t := &load.Teller{}
	s := newScript(t, r.Set, nil)
	s.program, s.called = "diskspd", diskspdCall
	var out []string // each call where it stands, or behind the one before it where a loop has taken its place
	s.take = func(st statement, args, shell, _ []string) {
		words := append([]string{"diskspd"}, args...)
		if s.beside {
			words = append([]string{"start", "/b"}, words...)
		}
		for _, w := range words {
			if m := mark.FindString(w); m != "" {
				s.Object(st.at, "%s: %s", s.shown(w), s.unknown(m))
			}
		}
		s.calls = append(s.calls, call{at: st.at})
		for len(out) < st.at.Line-1 {
			out = append(out, "")
		}
		out = append(out, diskspd.Join(words))
	}
	if list := s.statements(text, load.Place{File: r.Name, Line: 1, Col: 1}); t.Err() == nil {
		s.run(list, nil)
	}
	if len(s.calls) == 0 && t.Err() == nil {
		t.Object(load.Place{File: r.Name, Line: 1, Col: 1}, "no command line of DISKSPD that can be read")
	}
	s.tellOthers("DISKSPD")
	l, err := diskspd.Read(r.Name, []byte(strings.Join(out, "\n")))
	l.Notes = append(t.Notes, l.Notes...)
	return l, s.taken(), errors.Join(err, t.Err())
}

// isDiskspdScript reports whether a text has more than calls and comments, with a call among it.
func isDiskspdScript(text string) bool {
	more, calls := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		calls = calls || diskspdCall.MatchString(line)
		more = more || scripted.MatchString(line) || prompt.MatchString(line)
	}
	return more && calls
}

// scripted is a line that is for a shell.
var scripted = lazyregexp.New(`(?i)^\s*(?:set\s+\w+=|\$\w+\s*=|&\s|for\b|foreach\b|cd\b|md\b|mkdir\b|del\b|rd\b|` +
	`timeout\b|sleep\b|start-sleep\b|ping\b|pause\b|echo\b|remove-item\b|new-item\b|if\b|while\b|exit\b|setlocal\b|` +
	`call\b|copy\b|type\b|invoke-command\b|\w+=)`)
