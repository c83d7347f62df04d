package fio

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// scanner reads the JSON fio writes, once and without building values: encoding/json takes about five times as long
// and a run's status stream is the bulk of all we read. It is as strict as it needs to be to notice damage.
type scanner struct {
	b     []byte
	i     int
	depth int
}

const maxDepth = 32

var errCut = errors.New("it is cut short")

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// next skips blanks and returns the byte there, 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *scanner) expect(c byte) error {
	switch got := s.next(); got {
	case c:
		s.i++
		return nil
	case 0:
		return errCut
	default:
		return fmt.Errorf("%q stands where %q should at byte %d of it", got, c, s.i)
	}
}

// text reads a string and returns what stands between the quotes, escapes and all.
func (s *scanner) text() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start := s.i
	for {
		from := s.i
		j := bytes.IndexByte(s.b[from:], '"')
		if j < 0 {
			return nil, errCut
		}
		s.i += j + 1
		end := s.i - 1
		if bytes.IndexByte(s.b[from:end], '\n') >= 0 {
			return nil, fmt.Errorf("a string is broken by a line end at byte %d of it", start)
		}
		backslashes := 0
		for end-1-backslashes >= start && s.b[end-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return s.b[start:end], nil
		}
	}
}

// object calls field for every member; field must read its value.
func (s *scanner) object(field func(key []byte) error) error {
	return s.members('{', '}', func() error {
		key, err := s.text()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return field(key)
	})
}

// array calls element for every element; element must read it.
func (s *scanner) array(element func() error) error { return s.members('[', ']', element) }

func (s *scanner) members(open, end byte, member func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	defer func() { s.depth-- }()
	if s.next() == end {
		s.i++
		return nil
	}
	for {
		if err := member(); err != nil {
			return err
		}
		switch c := s.next(); c {
		case ',':
			s.i++
		case end:
			s.i++
			return nil
		case 0:
			return errCut
		default:
			return fmt.Errorf("%q stands where a comma or %q should at byte %d of it", c, end, s.i)
		}
	}
}

// literal reads a number or a word and returns its text.
func (s *scanner) literal() ([]byte, error) {
	s.space()
	start := s.i
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c != '+' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			break
		}
		s.i++
	}
	if s.i == len(s.b) {
		return nil, errCut
	}
	if s.i == start {
		return nil, fmt.Errorf("no value at byte %d of it", start)
	}
	return s.b[start:s.i], nil
}

// skip reads a value of any kind and drops it.
func (s *scanner) skip() error {
	switch s.next() {
	case 0:
		return errCut
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, err := s.text()
		return err
	}
	_, err := s.literal()
	return err
}

// whole reads a non-negative whole number. fio prints some of its counters as signed or as floats; what is negative
// or not a number counts as 0.
func (s *scanner) whole() (uint64, error) {
	t, err := s.literal()
	if err != nil {
		return 0, err
	}
	if n, ok := digits(t); ok {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(t), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", clip(t))
	}
	if !(f > 0) {
		return 0, nil
	}
	return uint64(min(f, math.MaxInt64)), nil
}

// float reads a number; "nan" and "inf", which fio prints when it has nothing to divide by, are 0.
func (s *scanner) float() (float64, error) {
	t, err := s.literal()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(t), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", clip(t))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, nil
	}
	return f, nil
}

func digits(t []byte) (uint64, bool) {
	if len(t) == 0 || len(t) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range t {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

func clip(t []byte) []byte { return t[:min(len(t), 40)] }
