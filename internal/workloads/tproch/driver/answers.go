package tproch

import (
	"context"
	"crypto/sha256"
	_ "embed" // the answers
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"plimsoll/unit"
)

// answerText has a line for each query: its number, how many rows the answer has, and a SHA-256 of them all; under it,
// further to the right, rows with their indexes. The rows and their numbers are those of the answer set that comes with
// TPC-H for scale 1, as public copies of it have them (duckdb/duckdb, bayandin/tpc-h); the hash is of a whole answer
// that had them. Numbers with a point are rounded to hundredths.
//
//go:embed answers.txt
var answerText string

// ErrNoAnswers says that there is nothing to compare with.
var ErrNoAnswers = errors.New("answers are not compared: they are published for scale 1 before its first refresh")

type answer struct {
	rows  int
	hash  string
	known map[int]string
}

var answers = func() (all [Queries + 1]answer) {
	var now *answer
	for line := range strings.Lines(answerText) {
		first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.Atoi(first) // a file of this package
		if line[0] == ' ' {
			now.known[n] = rest
			continue
		}
		count, hash, _ := strings.Cut(rest, " ")
		now = &all[n]
		now.rows, _ = strconv.Atoi(count)
		now.hash, now.known = hash, map[int]string{}
	}
	return all
}()

var decimal = regexp.MustCompile(`^-?[0-9]+\.[0-9]+$`)

// plain is a row of an answer as it is compared.
func plain(row []string) string {
	fields := make([]string, len(row))
	for i, f := range row {
		fields[i] = strings.TrimRight(f, " ")
		if decimal.MatchString(f) {
			number, _ := new(big.Rat).SetString(f) // it is a number
			fields[i] = number.FloatString(2)
		}
	}
	return strings.Join(fields, "|")
}

// wrong says what is wrong with an answer.
func (a answer) wrong(rows [][]string) error {
	if len(rows) != a.rows {
		return fmt.Errorf("%s instead of %d", unit.Plural(len(rows), "row"), a.rows)
	}
	hash := sha256.New()
	for i, row := range rows {
		text := plain(row)
		if want, ok := a.known[i]; ok && want != text {
			return fmt.Errorf("row %d is %q instead of %q", i+1, text, want)
		}
		fmt.Fprintln(hash, text)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != a.hash {
		return fmt.Errorf("%d rows whose SHA-256 is %s instead of %s", len(rows), got, a.hash)
	}
	return nil
}

// CheckAnswers asks all queries with the parameters of which the answers are published, and holds the answers against
// those; wrong has an error for each that is another one. Told is told how long each took.
func (s *Store) CheckAnswers(ctx context.Context, told func(query int, took time.Duration)) (wrong []error, err error) {
	if s.state.Scale != 1 || s.state.Refreshes > 0 {
		return nil, ErrNoAnswers
	}
	for n := 1; n <= Queries; n++ {
		sql, err := ValidationQuery(n, s.state.Scale)
		if err != nil {
			return wrong, err
		}
		begin := time.Now()
		rows, err := s.rows(ctx, sql)
		if err != nil {
			return wrong, fmt.Errorf("query %d: %w", n, err)
		}
		told(n, time.Since(begin))
		if err := answers[n].wrong(rows); err != nil {
			wrong = append(wrong, fmt.Errorf("the answer to query %d is wrong: %w", n, err))
		}
	}
	return wrong, nil
}
