package console

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/kit/exit"
	"plimsoll/unit"
)

// SizeFlag is a number of bytes.
type SizeFlag unit.Bytes

// String implements pflag.Value.
func (s *SizeFlag) String() string { return unit.Bytes(*s).Exact() }

// Type implements pflag.Value.
func (s *SizeFlag) Type() string { return "size" }

// Set implements pflag.Value.
func (s *SizeFlag) Set(text string) error {
	b, err := unit.ParseBytes(text)
	if err == nil && b < 1 {
		err = errors.New("want at least 1 byte")
	}
	*s = SizeFlag(b)
	return err
}

// SpanFlag is a length of time above 0.
type SpanFlag time.Duration

// String implements pflag.Value.
func (s *SpanFlag) String() string { return unit.Duration(*s).String() }

// Type implements pflag.Value.
func (s *SpanFlag) Type() string { return "time" }

// Set implements pflag.Value.
func (s *SpanFlag) Set(text string) error {
	d, err := unit.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q is not a length of time above 0, like 90s or 2m", text)
	}
	*s = SpanFlag(d)
	return err
}

// TimeLimit reads --time-limit; empty is none.
func TimeLimit(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	limit, err := unit.ParseDuration(text)
	if err != nil || limit <= 0 {
		return 0, exit.Usagef("", "--time-limit: %w",
			cmp.Or(err, fmt.Errorf("%q is not a length of time above 0", text)))
	}
	return time.Duration(limit), nil
}

// Pairs reads NAME=VALUE texts, as --target-opt gives them.
func Pairs(flag string, given []string) (map[string]string, error) {
	m := map[string]string{}
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, exit.Usagef("", "%s: %q: want NAME=VALUE", flag, pair)
		}
		m[name] = value
	}
	return m, nil
}
