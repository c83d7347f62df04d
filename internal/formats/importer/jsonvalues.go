package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/untyped"
)

// mostJSON bounds a file of JSON, which is read as a whole.
const mostJSON = 64 << 20

// allJSON is a file of JSON as a whole; advice says what to do with one that is too large.
func allJSON(r io.Reader, advice string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostJSON+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > mostJSON:
		return nil, fmt.Errorf("more than %d MiB of JSON: %s", mostJSON>>20, advice)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// firstKey is how an object begins, up to its first key.
var firstKey = lazyregexp.New(`^\{\s*"[^"\n]*"\s*:`)

// nextLike is where another value that begins as the first of a text does begins a line: what follows one that was cut.
// It is -1 where there is none.
func nextLike(data []byte) int {
	m := firstKey.FindSubmatch(data)
	if m == nil {
		return -1
	}
	like := regexp.MustCompile(`\n` + regexp.MustCompile(`\s+`).ReplaceAllString(regexp.QuoteMeta(string(m[0])), `\s*`))
	if at := like.FindIndex(data); at != nil {
		return at[0] + 1
	}
	return -1
}

// jsonValues are the values in a file, each from the beginning of a line; lines between them are none. What follows a
// value that was cut is read, too.
func jsonValues(r io.Reader, take func(line int, v json.RawMessage) error) error {
	data, err := allJSON(r, "split the file")
	if err != nil {
		return err
	}
	line := 1
	var broken error
	for len(data) > 0 {
		if c := data[0]; c != '{' && c != '[' {
			_, rest, _ := bytes.Cut(data, []byte("\n"))
			data = rest
			line++
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			at := line + bytes.Count(data[:min(int(dec.InputOffset()), len(data))], []byte("\n"))
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				at = line + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
			}
			broken = errors.Join(broken, fmt.Errorf("line %d: its JSON ends early: %w", at, err))
			next := nextLike(data)
			if next < 0 {
				return broken
			}
			line += bytes.Count(data[:next], []byte("\n"))
			data = data[next:]
			continue
		}
		if err := take(line, v); err != nil {
			return errors.Join(broken, fmt.Errorf("line %d: %w", line, err))
		}
		line += bytes.Count(data[:dec.InputOffset()], []byte("\n"))
		data = data[dec.InputOffset():]
	}
	return broken
}

// numberIn is a number of an object, also one that stands there as text; 0 where there is none.
func numberIn(of untyped.Object, name string) float64 {
	v, _ := quantity(fmt.Sprint(of[name]))
	return v
}
