package fiofile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is the value of an option such as size: either bytes or a percentage of the file.
type Size struct {
	Bytes   int64
	Percent float64 // 0 unless the size was written as a percentage above 0
}

// ParseSize reads a size by fio's rules with kb_base=1024, its default: k, m, g, t, p (any case, optionally followed
// by b or i) are powers of 1024; kib, mib, ... are powers of 1000, because fio swaps the standard prefixes unless
// kb_base=1000; 0x starts a hexadecimal number; % is a part of the file.
func ParseSize(text string) (Size, error) { return ParseSizeBase(text, 1024) }

// ParseSizeBase is ParseSize with the job's kb_base, 1024 or 1000.
func ParseSizeBase(text string, kbBase int64) (Size, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	bad := func(why string) (Size, error) {
		return Size{}, fmt.Errorf("size %q: %s", text, why)
	}
	if kbBase != 1000 && kbBase != 1024 {
		return bad(fmt.Sprintf("kb_base %d is neither 1000 nor 1024", kbBase))
	}
	if number, ok := strings.CutSuffix(s, "%"); ok {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return bad("a percentage is a number from 0 to 100")
		}
		return Size{Percent: p}, nil
	}
	digits, base := s, 10
	if rest, ok := strings.CutPrefix(s, "0x"); ok {
		digits, base = rest, 16
	}
	end := strings.IndexFunc(digits, func(r rune) bool {
		return !(r >= '0' && r <= '9' || base == 16 && r >= 'a' && r <= 'f')
	})
	if end < 0 {
		end = len(digits)
	}
	n, err := strconv.ParseInt(digits[:end], base, 64)
	if err != nil {
		return bad("needs a whole number first")
	}
	multiplier, err := unit(strings.TrimSpace(digits[end:]), kbBase)
	if err != nil {
		return bad(err.Error())
	}
	if n > math.MaxInt64/multiplier {
		return bad("too large")
	}
	return Size{Bytes: n * multiplier}, nil
}

func unit(suffix string, kbBase int64) (int64, error) {
	if suffix == "" || suffix == "b" {
		return 1, nil
	}
	power := strings.IndexByte("kmgtp", suffix[0]) + 1
	base := kbBase
	switch suffix[1:] {
	case "", "b", "i":
	case "ib":
		base = 2024 - kbBase // the other of 1000 and 1024
	default:
		power = 0
	}
	if power == 0 {
		return 0, fmt.Errorf("unknown unit %q; known are k m g t p, optionally with b, i or ib", suffix)
	}
	multiplier := int64(1)
	for range power {
		multiplier *= base
	}
	return multiplier, nil
}

// Share is one block size of a bssplit with the percentage of I/Os that have it.
type Share struct {
	Bytes   int64
	Percent float64
}

// ParseBSSplit reads "4k/50:8k/50" or the same for reads and writes (and trims) apart, with commas. Missing percentages
// share what is left. One list is returned per direction written.
func ParseBSSplit(text string) ([][]Share, error) {
	var directions [][]Share
	for direction := range strings.SplitSeq(text, ",") {
		var shares []Share
		missing, sum := 0, 0.0
		for entry := range strings.SplitSeq(direction, ":") {
			sizeText, percentText, given := strings.Cut(entry, "/")
			size, err := ParseSize(sizeText)
			if err != nil || size.Bytes <= 0 {
				return nil, fmt.Errorf("bssplit %q: %q is not a block size", text, sizeText)
			}
			share := Share{Bytes: size.Bytes, Percent: -1}
			if given && percentText != "" {
				p, err := strconv.ParseFloat(percentText, 64)
				if err != nil || !(p >= 0 && p <= 100) {
					return nil, fmt.Errorf("bssplit %q: %q is not a percentage", text, percentText)
				}
				share.Percent, sum = p, sum+p
			} else {
				missing++
			}
			shares = append(shares, share)
		}
		if sum > 100 || missing == 0 && sum != 100 {
			return nil, fmt.Errorf("bssplit %q: the percentages add up to %g, not 100", text, sum)
		}
		for i := range shares {
			if shares[i].Percent < 0 {
				shares[i].Percent = (100 - sum) / float64(missing)
			}
		}
		directions = append(directions, shares)
	}
	return directions, nil
}

// Rates is the value of rate_iops, per direction, in operations per second; 0 is unlimited.
type Rates struct {
	Read, Write, Trim int64
}

// ParseRates reads "500" (each direction) or "500,200" or "500,200,100"; an empty place is unlimited.
func ParseRates(text string) (Rates, error) {
	parts := strings.Split(text, ",")
	if len(parts) > 3 {
		return Rates{}, fmt.Errorf("rate %q: at most three values, for reads, writes and trims", text)
	}
	values := make([]int64, 3)
	for i, part := range parts {
		if part = strings.TrimSpace(part); part == "" && len(parts) > 1 {
			continue
		}
		size, err := ParseSize(part)
		if err != nil || strings.HasSuffix(part, "%") {
			return Rates{}, fmt.Errorf("rate %q: %q is not a whole number of operations per second", text, part)
		}
		values[i] = size.Bytes
	}
	if len(parts) == 1 {
		values[1], values[2] = values[0], values[0]
	}
	return Rates{Read: values[0], Write: values[1], Trim: values[2]}, nil
}
