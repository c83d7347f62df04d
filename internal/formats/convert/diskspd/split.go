package diskspd

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// word is an argument of a command line.
type word struct {
	text string
	at   load.Place
}

// split cuts a line into arguments, and what is the shell's off them (shell): where output goes, and what reads it.
// Double quotes hold blanks together in both kinds of shell, single quotes and backslashes before quotes and blanks in
// POSIX shells; before all else a backslash is itself, as in Windows paths.
func split(line string, at load.Place) (words, shell []word, err error) {
	var b strings.Builder
	begin, within := -1, byte(0)
	end := func() {
		if begin >= 0 {
			place := at
			place.Col += begin
			words = append(words, word{b.String(), place})
		}
		begin = -1
		b.Reset()
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		blank := c == ' ' || c == '\t'
		if blank && within == 0 {
			end()
			continue
		}
		if within == 0 && strings.IndexByte("<>|&", c) >= 0 {
			if i > begin && begin >= 0 && strings.Contains("0123456789*", b.String()) { // as in 2>file
				i = begin
				b.Reset()
				begin = -1
			}
			end()
			place := at
			place.Col += i
			n, file := redirection(line[i:])
			if strings.TrimSpace(line[i:]) == "&" {
				return nil, nil, fmt.Errorf("with & it runs beside what follows: only a shell does that; what runs together is " +
					"given in one call")
			}
			if n == 0 {
				return nil, nil, fmt.Errorf("%.40q begins a further command: write it on a line of its own", line[i:])
			}
			if file {
				rest, more, err := split(line[i+n:], load.Place{File: at.File, Line: at.Line, Col: at.Col + i + n})
				if len(rest) == 0 || err != nil {
					return nil, nil, cmp.Or(err, fmt.Errorf("%.40q names no file", line[i:i+n]))
				}
				shell = append(shell, word{line[i:i+n] + " " + rest[0].text, place})
				return append(words, rest[1:]...), append(shell, more...), nil
			}
			shell = append(shell, word{strings.TrimSpace(line[i : i+n]), place})
			i += n - 1
			continue
		}
		if begin < 0 {
			begin = i
		}
		switch {
		case within != 0 && c == within:
			within = 0
		case within == 0 && (c == '"' || c == '\''):
			within = c
		case c == '\\' && within != '\'' && i+1 < len(line) && (line[i+1] == '"' && !closes(line[i+1:], within) ||
			line[i+1] == ' ' && within == 0 && b.Len() > 0 && !strings.ContainsAny(b.String(), `:\`)):
			b.WriteByte(line[i+1])
			i++
		case c == '^' && within == 0 && i+1 < len(line): // what cmd.exe protects with
			b.WriteByte(line[i+1])
			i++
		default:
			b.WriteByte(c)
		}
	}
	if within != 0 {
		return nil, nil, fmt.Errorf("a quotation mark %c that is not closed", within)
	}
	end()
	return words, shell, nil
}

// Words cuts a command line of any tool into arguments, and what is the shell's off them.
func Words(line string, at load.Place) (words, shell []string, err error) {
	all, off, err := split(line, at)
	for _, w := range all {
		words = append(words, w.text)
	}
	for _, w := range off {
		shell = append(shell, w.text)
	}
	return words, shell, err
}

var (
	toAnother = regexp.MustCompile(`^[0-9*]?>>?&[0-9-]`)
	toFile    = regexp.MustCompile(`^(?:[0-9*]?>>?|&>>?|[0-9]?<)`)
)

// redirection is how much of a text is a redirection, and whether the word after it is its file. What reads the output
// behind a | goes to the end of the line. It is 0 of what is none.
func redirection(text string) (n int, file bool) {
	if m := toAnother.FindString(text); m != "" {
		return len(m), false
	}
	if m := toFile.FindString(text); m != "" {
		return len(m), true
	}
	if strings.HasPrefix(text, "|") && !strings.HasPrefix(text, "||") {
		return len(text), false
	}
	return 0, false
}

// closes reports whether a quotation mark after a backslash is the end of its argument, as in "C:\some folder\".
func closes(rest string, within byte) bool {
	return within == '"' && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\t')
}

// Join makes one command line of arguments that a shell has already cut.
func Join(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t'^") {
			out[i] = `"` + w + `"`
		}
	}
	return strings.Join(out, " ")
}

// quoted is an argument as both kinds of shell take it.
func quoted(text string) string {
	if text == "" || strings.ContainsAny(text, " \t'^&|<>()%!#;*?~$`") {
		return `"` + text + `"`
	}
	return text
}
