package tproch

import (
	_ "embed" // the queries
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Queries is how many there are, numbered from 1.
const Queries = 22

//go:embed queries.sql
var queryText string

// templates are the queries by number, with {1}, {2}, ... where parameters stand.
var templates = func() (t [Queries + 1]string) {
	for n := range t[1:] {
		begin := strings.Index(queryText, fmt.Sprintf("-- %d: ", n+1))
		_, text, _ := strings.Cut(queryText[begin:], "\n")
		text, _, _ = strings.Cut(text, "\n-- ")
		t[n+1] = strings.TrimSpace(text)
	}
	return t
}()

// Query is the text of a query, from 1 to Queries, with its parameters in place.
func Query(number int, parameters []string) (string, error) {
	if number < 1 || number > Queries {
		return "", fmt.Errorf("query %d: there are those from 1 to %d", number, Queries)
	}
	text := templates[number]
	var pairs []string
	for i, p := range parameters {
		pairs = append(pairs, fmt.Sprintf("{%d}", i+1), strings.ReplaceAll(p, "'", "''"))
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	if strings.Contains(text, "{") {
		return "", fmt.Errorf("query %d: %d parameters are too few", number, len(parameters))
	}
	return text, nil
}

// validation are the parameters of which the answers are published, by query.
var validation = [Queries + 1]string{1: "90", 2: "15|BRASS|EUROPE", 3: "BUILDING|1995-03-15", 4: "1993-07-01",
	5: "ASIA|1994-01-01", 6: "1994-01-01|0.06|24", 7: "FRANCE|GERMANY", 8: "BRAZIL|AMERICA|ECONOMY ANODIZED STEEL",
	9: "green", 10: "1993-10-01", 11: "GERMANY", 12: "MAIL|SHIP|1994-01-01", 13: "special|requests", 14: "1995-09-01",
	15: "1996-01-01", 16: "Brand#45|MEDIUM POLISHED|49|14|23|45|19|3|36|9", 17: "Brand#23|MED BOX", 18: "300",
	19: "Brand#12|Brand#23|Brand#34|1|10|20", 20: "forest|1994-01-01|CANADA", 21: "SAUDI ARABIA",
	22: "13|31|23|29|30|18|17"}

// ValidationQuery is a query with the parameters of which the answers are published.
func ValidationQuery(number int, scale Scale) (string, error) {
	if number < 1 || number > Queries {
		return Query(number, nil)
	}
	parameters := strings.Split(validation[number], "|")
	if number == 11 {
		parameters = append(parameters, scale.fraction())
	}
	return Query(number, parameters)
}

// fraction is the share of query 11, which falls as the scale grows.
func (s Scale) fraction() string { return strconv.FormatFloat(0.0001/float64(s), 'f', -1, 64) }

// StreamQuery is a query with parameters drawn for a stream: the same seed, stream and number give the same text.
func StreamQuery(number int, scale Scale, seed uint64, stream int) (string, error) {
	if number < 1 || number > Queries {
		return Query(number, nil)
	}
	d := draw{rand.New(rand.NewPCG(seed, uint64(stream)<<8|uint64(number)))} // not for secrets
	return Query(number, d.parameters(number, scale))
}

// draw draws parameters as clause 2.4 of the specification says.
type draw struct{ *rand.Rand }

func (d draw) of(words []string) string { return words[d.IntN(len(words))] }

func (d draw) between(low, high int) string { return strconv.Itoa(low + d.IntN(high-low+1)) }

func (d draw) brand() string { return "Brand#" + d.between(1, 5) + d.between(1, 5) }

// month is the first day of one of n months from a year's month on.
func (d draw) month(year, month, n int) string {
	return time.Date(year, time.Month(month+d.IntN(n)), 1, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

// year is the first day of 1993 to 1997.
func (d draw) year() string { return d.between(1993, 1997) + "-01-01" }

// different are n different ones of words.
func (d draw) different(words []string, n int) (some []string) {
	for _, i := range d.Perm(len(words))[:n] {
		some = append(some, words[i])
	}
	return some
}

func numbers(low, high int) (all []string) {
	for i := low; i <= high; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func (d draw) parameters(number int, scale Scale) []string {
	switch number {
	case 1:
		return []string{d.between(60, 120)}
	case 2:
		return []string{d.between(1, 50), d.of(metals), d.of(regionNames)}
	case 3:
		return []string{d.of(segments), fmt.Sprintf("1995-03-%02d", 1+d.IntN(31))}
	case 4, 15:
		return []string{d.month(1993, 1, 58)}
	case 5:
		return []string{d.of(regionNames), d.year()}
	case 6:
		return []string{d.year(), "0.0" + d.between(2, 9), d.between(24, 25)}
	case 7:
		return d.different(nationNames, 2)
	case 8:
		n := d.IntN(len(nationNames))
		return []string{nationNames[n], regionNames[nationRegions[n]], d.of(partTypes)}
	case 9:
		return []string{d.of(colors)}
	case 10:
		return []string{d.month(1993, 2, 24)}
	case 11:
		return []string{d.of(nationNames), scale.fraction()}
	case 12:
		return append(d.different(modes, 2), d.year())
	case 13:
		return []string{d.of([]string{"special", "pending", "unusual", "express"}),
			d.of([]string{"packages", "requests", "accounts", "deposits"})}
	case 14:
		return []string{d.month(1993, 1, 60)}
	case 16:
		return append([]string{d.brand(), d.of(coatings)}, d.different(numbers(1, 50), 8)...)
	case 17:
		return []string{d.brand(), d.of(containers)}
	case 18:
		return []string{d.between(312, 315)}
	case 19:
		return []string{d.brand(), d.brand(), d.brand(), d.between(1, 10), d.between(10, 20), d.between(20, 30)}
	case 20:
		return []string{d.of(colors), d.year(), d.of(nationNames)}
	case 21:
		return []string{d.of(nationNames)}
	}
	return d.different(numbers(10, 34), 7)
}

// orders are the sequences that the streams ask in, as appendix A of the specification lists them: the first one is
// that of the power run.
const orders = `
14 2 9 20 6 17 18 8 21 13 3 22 16 4 11 15 1 10 19 5 7 12
21 3 18 5 11 7 6 20 17 12 16 15 13 10 2 8 14 19 9 22 1 4
6 17 14 16 19 10 9 2 15 8 5 22 12 7 13 18 1 4 20 3 11 21
8 5 4 6 17 7 1 18 22 14 9 10 15 11 20 2 21 19 13 16 12 3
5 21 14 19 15 17 12 6 4 9 8 16 11 2 10 18 1 13 7 22 3 20
21 15 4 6 7 16 19 18 14 22 11 13 3 1 2 5 8 20 12 17 10 9
10 3 15 13 6 8 9 7 4 11 22 18 12 1 5 16 2 14 19 20 17 21
18 8 20 21 2 4 22 17 1 11 9 19 3 13 5 7 10 16 6 14 15 12
19 1 15 17 5 8 9 12 14 7 4 3 20 16 6 22 10 13 2 21 18 11
8 13 2 20 17 3 6 21 18 11 19 10 15 4 22 1 7 12 9 14 5 16
6 15 18 17 12 1 7 2 22 13 21 10 14 9 3 16 20 19 11 4 8 5
15 14 18 17 10 20 16 11 1 8 4 22 5 12 3 9 21 2 13 6 19 7
1 7 16 17 18 22 12 6 8 9 11 4 2 5 20 21 13 10 19 3 14 15
21 17 7 3 1 10 12 22 9 16 6 11 2 4 5 14 8 20 13 18 15 19
2 9 5 4 18 1 20 15 16 17 7 21 13 14 19 8 22 11 10 3 12 6
16 9 17 8 14 11 10 12 6 21 7 3 15 5 22 20 1 13 19 2 4 18
1 3 6 5 2 16 14 22 17 20 4 9 10 11 15 8 12 19 18 13 7 21
3 16 5 11 21 9 2 15 10 18 17 7 8 19 14 13 1 4 22 20 6 12
14 4 13 5 21 11 8 6 3 17 2 20 1 19 10 9 12 18 15 7 22 16
4 12 22 14 5 15 16 2 8 10 17 9 21 7 3 6 13 18 11 20 19 1
16 15 14 13 4 22 18 19 7 1 12 17 5 10 20 3 9 21 11 2 6 8
20 14 21 12 15 17 4 19 13 10 11 1 16 5 18 7 8 22 9 6 3 2
16 14 13 2 21 10 11 4 1 22 18 12 19 5 7 8 6 3 15 20 9 17
18 15 9 14 12 2 8 11 22 21 16 1 6 17 5 10 19 4 20 13 3 7
7 3 10 14 13 21 18 6 20 4 9 8 22 15 2 1 5 12 19 17 11 16
18 1 13 7 16 10 14 2 19 5 21 11 22 15 8 17 20 3 4 12 6 9
13 2 22 5 11 21 20 14 7 10 4 9 19 18 6 3 1 8 15 12 17 16
14 17 21 8 2 9 6 4 5 13 22 7 15 3 1 18 16 11 10 12 20 19
10 22 1 12 13 18 21 20 2 14 16 7 15 3 4 17 5 19 6 8 9 11
10 8 9 18 12 6 1 5 20 11 17 22 16 3 13 2 15 21 14 19 7 4
7 17 22 5 3 10 13 18 9 1 14 15 21 19 16 12 8 6 11 20 4 2
2 9 21 3 4 7 1 11 16 5 20 19 18 8 17 13 10 12 15 6 14 22
15 12 8 4 22 13 16 17 18 3 7 5 6 1 9 11 21 10 14 20 19 2
15 16 2 11 17 7 5 14 20 4 21 3 10 9 12 8 13 6 18 19 22 1
1 13 11 3 4 21 6 14 15 22 18 9 7 5 10 20 12 16 17 8 19 2
14 17 22 20 8 16 5 10 1 13 2 21 12 9 4 18 3 7 6 19 15 11
9 17 7 4 5 13 21 18 11 3 22 1 6 16 20 14 15 10 8 2 12 19
13 14 5 22 19 11 9 6 18 15 8 10 7 4 17 16 3 1 12 2 21 20
20 5 4 14 11 1 6 16 8 22 7 3 2 12 21 19 17 13 10 15 18 9
3 7 14 15 6 5 21 20 18 10 4 16 19 1 13 9 8 17 11 12 22 2
13 15 17 1 22 11 3 4 7 20 14 21 9 8 2 18 16 6 10 12 5 19`

// QueryOrder is the sequence of queries of a stream: 0 is the power run's, and there are 40 others, that come round.
func QueryOrder(stream int) (order []int) {
	lines := strings.Split(strings.TrimSpace(orders), "\n")
	line := lines[0]
	if stream > 0 {
		line = lines[1+(stream-1)%(len(lines)-1)]
	}
	for number := range strings.FieldsSeq(line) {
		n, _ := strconv.Atoi(number) // constants of this package
		order = append(order, n)
	}
	return order
}
