package prism

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// statistics is an object of counters, as v1 and v2.0 write it: values are numbers in quotes, or bare.
type statistics struct{ gathered }

// UnmarshalJSON implements json.Unmarshaler: one pass, for a page holds a hundred thousand counters.
func (s *statistics) UnmarshalJSON(data []byte) error {
	return eachMember(data, func(name, value []byte) { s.add(name, unquoted(value)) })
}

// unquoted is the text of a string without escapes, or another value as it is.
func unquoted(b []byte) []byte {
	if len(b) >= 2 && b[0] == '"' {
		return b[1 : len(b)-1]
	}
	return b
}

var errNoObject = errors.New("want an object of counters")

// eachMember calls f with every member of a valid JSON object; null has none. Values are as they are written.
func eachMember(data []byte, f func(name, value []byte)) error {
	i := blank(data, 0)
	if i < len(data) && data[i] == 'n' {
		return nil
	}
	if i >= len(data) || data[i] != '{' {
		return errNoObject
	}
	for i = blank(data, i+1); i < len(data) && data[i] == '"'; {
		end := after(data, i)
		name := data[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			var text string
			if err := json.Unmarshal(data[i:end], &text); err != nil {
				return err
			}
			name = []byte(text)
		}
		i = blank(data, end)
		i = blank(data, i+1) // the colon
		end = after(data, i)
		f(name, data[i:end])
		if i = blank(data, end); i < len(data) && data[i] == ',' {
			i = blank(data, i+1)
		}
	}
	return nil
}

func blank(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// after is where the value at i ends.
func after(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(data))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 { // the end of what holds a bare value
				return i
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(data)
}

// number reads a finite number.
func number(text []byte) (float64, bool) {
	if len(text) == 0 || len(text) > 40 || text[0] > '9' { // not Inf, NaN, true, ...
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}
