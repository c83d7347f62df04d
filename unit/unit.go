// Package unit parses and prints the quantities of storage tests: bytes, bandwidth, operation rates, durations,
// percentages. It stands at the edges, where people type and read; inside, everything is in base units (bytes, seconds,
// ratios) in plain Go numbers.
//
// KiB, MiB, GiB, TiB, PiB and the bare letters K, M, G, T, P, as fio and dd write them, are powers of 1024. KB, MB, GB,
// TB, PB are powers of 1000, as disk vendors write them. Which of the two is meant is always in the printed text. Bits
// are refused: "Mb" and "Mbit" are errors, not guesses.
//
// String is for people: rounded to three significant digits or to the digit shown, and it parses back to the value
// shown. Exact, where a type has it, loses nothing: parsing it gives the same value. Parsing refuses what is not a
// number, negative where the quantity cannot be, or too large for its type.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// split cuts "12.5 MiB/s" into its number and its unit.
func split(kind, text string) (float64, string, string, error) {
	s := strings.TrimSpace(text)
	end := strings.LastIndexAny(s, "0123456789.") + 1
	number, suffix := s[:end], strings.TrimSpace(s[end:])
	clean, err := ungroup(number)
	if err != nil {
		return 0, "", "", fmt.Errorf("%s %q: %w", kind, text, err)
	}
	v, err := strconv.ParseFloat(clean, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(clean, "xXpP_") {
		return 0, "", "", fmt.Errorf("%s %q: want a number and a unit, like %s", kind, text, examples[kind])
	}
	return v, clean, suffix, nil
}

var examples = map[string]string{
	"size": `"8KiB" or "1.5 GB"`, "bandwidth": `"200 MiB/s"`, "rate": `"4000" or "4,000 IOPS"`,
	"percentage": `"12.5 %"`,
}

// ungroup drops commas that stand where thousands are cut.
func ungroup(number string) (string, error) {
	whole, _, _ := strings.Cut(number, ".")
	groups := strings.Split(whole, ",")
	for i, g := range groups {
		if i > 0 && (len(g) != 3 || len(strings.TrimLeft(groups[0], "+-")) == 0 || len(groups[0]) > 4) {
			return "", fmt.Errorf("a comma cuts thousands here, as in 4,000; decimals take a point")
		}
	}
	if rest := number[len(whole):]; strings.Contains(rest, ",") {
		return "", fmt.Errorf("a comma after the decimal point")
	}
	return strings.ReplaceAll(number, ",", ""), nil
}

// Apart prints numbers without a unit, with three significant digits, or with as many more, up to six, as tell
// different ones apart: ends of an interval that read the same would say that there is no doubt.
func Apart(values ...float64) []string {
	out := make([]string, len(values))
	for digits := 3; digits <= 6; digits++ {
		same := false
		for i, v := range values {
			if out[i] = number(v); digits > 3 && math.Abs(v) < 1000 {
				rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
				out[i] = strconv.FormatFloat(rounded, 'f', -1, 64)
			}
			for j, other := range values[:i] {
				same = same || out[i] == out[j] && math.Abs(v-other) > 1e-6*math.Abs(v)
			}
		}
		if !same {
			break
		}
	}
	return out
}

// figures prints v >= 0 with three significant digits, from 100 on as a whole number with its thousands cut.
func figures(v float64) string {
	if v >= 99.95 {
		return Thousands(int64(math.RoundToEven(v)))
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		rounded = v
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Thousands prints a whole number with its thousands cut by commas: 1,234,567.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Plural counts things in words: "1 node", "2 nodes".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// List joins the first few of a list of names: "a, b, c and 7 more".
func List(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// jobRate is an option of fio's jobs, whose name has its unit.
const jobRate = "rate_iops"

// Setting is a variable with its value, for people: "block size 4k" of block_size. A condition is called what it is:
// "with Batch".
func Setting(name, value string) string {
	switch n, err := strconv.ParseInt(value, 10, 64); {
	case name == "condition":
		return value
	case name == jobRate && err == nil && n == 0:
		return "no rate"
	case name == jobRate && err == nil: // its load may have many jobs
		return "rate " + Thousands(n) + " IOPS per job"
	}
	return Words(name) + " " + value
}

// Words is the name of a variable for people: "block size" of block_size. What is no name stays.
func Words(name string) string {
	if name == jobRate {
		return "rate"
	}
	strange := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	if strings.ContainsFunc(name, strange) {
		return name
	}
	return strings.ReplaceAll(name, "_", " ")
}
