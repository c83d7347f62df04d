package diskspd

import (
	"fmt"
	"strings"

	"plimsoll/internal/convert/load"
)

// word is an argument of a command line.
type word struct {
	text string
	at   load.Place
}

// split cuts a line into arguments. Double quotes hold blanks together in both kinds of shell, single quotes and
// backslashes before quotes and blanks in POSIX shells; before all else a backslash is itself, as in Windows paths.
func split(line string, at load.Place) (words []word, err error) {
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
		return nil, fmt.Errorf("a quotation mark %c that is not closed", within)
	}
	end()
	return words, nil
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
