package pgbench

import (
	"regexp"
	"strings"
)

// StatementWords are the first words, in small letters, of the SQL statements of a script: those that -r prints a time
// of besides commands of pgbench's own. A statement ends with ; or with \gset or \aset, quotes and comments as SQL has
// them.
func StatementWords(script string) (words []string) {
	word, inWord, rest := "", false, script
	end := func() {
		if word != "" {
			words = append(words, word)
		}
		word, inWord = "", false
	}
	skip := func(n int) { rest = rest[min(n, len(rest)):] }
	until := func(close string, from int) {
		if i := strings.Index(rest[from:], close); i >= 0 {
			skip(from + i + len(close))
		} else {
			rest = ""
		}
	}
	for rest != "" {
		ch := rest[0]
		letter := ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch == '_'
		switch {
		case strings.HasPrefix(rest, "--"):
			until("\n", 0)
			inWord = false
			continue
		case strings.HasPrefix(rest, "/*"):
			until("*/", 2)
			inWord = false
			continue
		case ch == '\'' || ch == '"':
			until(string(ch), 1)
			inWord = false
			continue
		case ch == '$':
			if tag := dollar.FindString(rest); tag != "" {
				until(tag, len(tag))
				continue
			}
		case strings.HasPrefix(rest, `\;`): // two queries of one statement
			skip(2)
			inWord = false
			continue
		case ch == '\\':
			end()
			line, _, _ := strings.Cut(rest, "\n")
			for strings.HasSuffix(strings.TrimSuffix(line, "\r"), `\`) && len(line) < len(rest) { // goes on
				next, _, _ := strings.Cut(rest[len(line)+1:], "\n")
				line = rest[:len(line)+1+len(next)]
			}
			skip(len(line))
			continue
		case ch == ';':
			end()
		case letter && (word == "" || inWord):
			inWord = true
			word += strings.ToLower(string(ch))
		default:
			inWord = false
		}
		skip(1)
	}
	end()
	return words
}

var dollar = regexp.MustCompile(`^\$[A-Za-z_]*\$`)
