package hammerdb

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/kit/lazyregexp"
)

var (
	version  = lazyregexp.New(`^HammerDB CLI v([\w.]{1,20})`)
	period   = lazyregexp.New(`Timing test period of (\d{1,6}) in minutes`)
	users    = lazyregexp.New(`(\d{1,6}) Active (?:Virtual Users|Sessions) configured`)
	achieved = lazyregexp.New(`System achieved (\d{1,12}) NOPM from (\d{1,12}) (.{1,40}) TPM`)
	older    = lazyregexp.New(`System achieved (\d{1,12}) (.{1,40}) TPM at (\d{1,12}) NOPM`)
	query    = lazyregexp.New(`^(?:Vuser )?(\d{1,6}):query (\d{1,3}) completed in ([\d.]+) seconds`)
	querySet = lazyregexp.New(`Completed (\d{1,6} query set\(s\)|query set) in ([\d.]{1,12}) seconds`)
	geoMean  = lazyregexp.New(`(?i)geometric mean of query times.{0,60}?\bis "?([\d.]+)`)
	failed   = lazyregexp.New(`^Vuser \d+:FINISHED FAILED`)
	trouble  = lazyregexp.New(`^Error in Virtual User \d+:|^Vuser \d+:(?:Error|ERROR)`)
	swallow  = lazyregexp.New(`(?i)\berror set RAISEERROR for details|^Vuser \d+:(?:Query Failed : |` +
		`(?:Error in \S{1,80} )?(?:New Order|Payment|Delivery|Order Status|Stock Level)(?: Bind/Exec| Fetch)?` +
		`(?: in \S{1,80})? : |` + // of SQL Server, and of clients that think
		`(?:ORA|TT|SQL)-?\d{4,5}[NC]?\b|\[[^]]{1,80}\]\[[^]]{1,80}\]|` + // of Oracle, Db2 and ODBC
		`(?:Deadlock found when|Lock wait timeout exceeded|Duplicate entry '|Lost connection to|` +
		`(?:MySQL |MariaDB |)server has gone away|Record has changed since|Query execution was interrupted|` +
		`Table '[^']{1,80}' doesn't exist|PROCEDURE \S{1,80} does not exist|Too many connections))`) // of MariaDB and MySQL
	timing   = lazyregexp.New(`^Vuser \d+:Timing test period of`)
	complete = lazyregexp.New(`^Vuser \d+:Test complete`)
	running  = lazyregexp.New(`^Vuser \d+:(?:Processing \d+ transactions|Beginning rampup)`)
	own      = lazyregexp.New(`^(?:Vuser\b|Error in |ALL VIRTUAL|Transaction Counter|vudestroy|Changed |Value |Script )`)
	secret   = lazyregexp.New(`(?i)_(?:super)?(?:pass|userpass|password)\b`)
	offset   = lazyregexp.New(`^\s*(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d )([-+]\d\d)(\d\d)?( \d{4})\s*$`)
	counter  = lazyregexp.New(`^(\d{1,12}) (.{1,40}) tpm(?: @ (.{20,40}))?$`)
	user     = lazyregexp.New(`^>>>>> (?:VIRTUAL USER (\d{1,6})|SUMMARY OF (\d{1,6}) ACTIVE VIRTUAL USERS) : ` +
		`(?:MEDIAN )?ELAPSED TIME : (\d{1,12})ms`)
	procedure = lazyregexp.New(`^>>>>> PROC: (\w{1,40})$`)
	figure    = lazyregexp.New(`(CALLS|MIN|AVG|MAX|TOTAL|P\d{1,2}(?:\.\d+)?|SD|RATIO): ([\d.]+)`)
)

// Result holds what a timed test of TPROC-C comes to.
type Result struct {
	NOPM     float64 // new orders a minute
	TPM      float64 // transactions of the database a minute
	Database string  // as HammerDB calls it
}

// RatioLow and RatioHigh bound TPM over NOPM: of 23 transactions of the mix 10 are new orders. Beyond them something
// else used the server, or the mix was another.
const (
	RatioLow  = 2.2
	RatioHigh = 2.4
)

// Odd says what is wrong with the ratio, "" for nothing.
func (r Result) Odd() string {
	if ratio := r.TPM / r.NOPM; r.NOPM <= 0 || ratio < RatioLow || ratio > RatioHigh {
		why := "something else used the server, or the counts are not of this test"
		if r.Database != "PostgreSQL" {
			why += ", or " + strings.Join(strings.Fields(r.Database), " ") + " counts more than the mix's transactions"
		}
		return fmt.Sprintf("%.0f TPM over %.0f NOPM is %.3g, and the mix makes 2.3: %s", r.TPM, r.NOPM, ratio, why)
	}
	return ""
}

// Achieved reads the line of the result, which older versions wrote the other way round.
func Achieved(line string) (Result, bool) {
	if m := achieved.FindStringSubmatch(line); m != nil {
		return Result{number(m[1]), number(m[2]), m[3]}, true
	}
	if m := older.FindStringSubmatch(line); m != nil {
		return Result{number(m[3]), number(m[1]), m[2]}, true
	}
	return Result{}, false
}

// Version reads the first line of the command line's program.
func Version(line string) (string, bool) {
	if m := version.FindStringSubmatch(line); m != nil {
		return m[1], true
	}
	return "", false
}

// Minutes reads how long a test is timed for.
func Minutes(line string) (float64, bool) { return one(period, 1, line) }

// Users reads how many virtual users are at work; the monitor is none of them.
func Users(line string) (float64, bool) { return one(users, 1, line) }

// QuerySet reads how many seconds a set of TPROC-H's queries took.
func QuerySet(line string) (float64, bool) { return one(querySet, 2, line) }

// GeometricMean reads the one of a set's query times, in seconds.
func GeometricMean(line string) (float64, bool) { return one(geoMean, 1, line) }

// Failed reports whether a virtual user failed.
func Failed(line string) bool { return failed.MatchString(line) }

// Trouble reports whether the line is about an error of a virtual user.
func Trouble(line string) bool { return trouble.MatchString(line) && !Swallowed(line) }

// Swallowed reports whether the line is about an error of a transaction or a query after which its virtual user went
// on, as it does unless raiseerror is set: no other line says that it failed. Each database has its own words, and some
// no more than the server's message.
func Swallowed(line string) bool { return swallow.MatchString(line) }

// Begins reports whether the line says that a virtual user has begun, Times that the time of the test has, and Ends
// that it is over.
func Begins(line string) bool { return running.MatchString(line) }

// Times is as Begins says.
func Times(line string) bool { return timing.MatchString(line) }

// Ends is as Begins says.
func Ends(line string) bool { return complete.MatchString(line) }

// Secret reports whether a line has a password in it, as those of settings have.
func Secret(line string) bool { return secret.MatchString(line) }

func one(re *lazyregexp.Regexp, group int, line string) (float64, bool) {
	if m := re.FindStringSubmatch(line); m != nil {
		return number(m[group]), true
	}
	return 0, false
}

// number is a figure of digits that a pattern has found, 0 for what is none.
func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v < 1e15) {
		return 0
	}
	return v
}

// Sample is a figure of the transaction counter: what the whole server did since the one before, its first always 0.
type Sample struct {
	TPM      float64
	Database string
	At       string // as Date reads it, "" where it has none
}

// Counter reads a line of the transaction counter.
func Counter(line string) (Sample, bool) {
	m := counter.FindStringSubmatch(line)
	if m == nil {
		return Sample{}, false
	}
	return Sample{number(m[1]), m[2], m[3]}, true
}

// Query is one of TPROC-H's that was done.
type Query struct {
	User    string
	Number  int
	Seconds float64
}

// ReadQuery reads the line of a query that was done.
func ReadQuery(line string) (Query, bool) {
	m := query.FindStringSubmatch(line)
	if m == nil {
		return Query{}, false
	}
	n, _ := strconv.Atoi(m[2]) // three digits at most
	seconds, err := strconv.ParseFloat(m[3], 64)
	return Query{m[1], n, seconds}, err == nil && seconds >= 0 && seconds < 1e9
}

// Date reads a date as Tcl writes it; zone is its name where that is neither UTC nor an offset, for such names mean
// several things.
func Date(text string) (at time.Time, zone string, ok bool) {
	if m := offset.FindStringSubmatch(text); m != nil {
		at, err := time.Parse("Mon Jan _2 15:04:05 2006 -0700",
			m[1]+strings.TrimSpace(m[4])+" "+m[2]+cmp.Or(m[3], "00"))
		return at.UTC(), "", err == nil
	}
	at, err := time.Parse("Mon Jan _2 15:04:05 MST 2006", strings.TrimSpace(text))
	if err != nil {
		return time.Time{}, "", false
	}
	if name, _ := at.Zone(); name != "UTC" && name != "GMT" {
		zone = name
	}
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC), zone, true
}

// Transaction holds what a time profile says of one kind of transaction.
type Transaction struct {
	Calls   float64            // of all users
	TotalMS float64            // their times
	Stated  map[string]float64 // ms, HammerDB's own of all users: min, max, p99 and others
	Summed  float64            // calls by HammerDB's own summary; NaN without one
}

// Profile reads a time profile (xtprof). Calls and times are those of the users added up, for HammerDB's own summary
// counts them twice in some versions; percentiles are the summary's. The standard deviation has no unit that could be
// relied on and is left out.
type Profile struct {
	Kinds     []string // of transactions, in the order of the text, in small letters
	Of        map[string]*Transaction
	Users     int
	LongestMS float64 // the longest that a user was at work
	SumMS     float64 // how long all of them were
	Summary   bool    // there was one

	within bool // the summary
	kind   string
}

// Line takes a line; ok is false for one that is none of a profile.
func (p *Profile) Line(line string) (ok bool, err error) {
	if p.Of == nil {
		p.Of = map[string]*Transaction{}
	}
	if m := user.FindStringSubmatch(line); m != nil {
		p.within, p.kind = m[1] == "", ""
		p.Summary = p.Summary || p.within
		if !p.within {
			p.Users++
			p.LongestMS = max(p.LongestMS, number(m[3]))
			p.SumMS += number(m[3])
		}
		return true, nil
	}
	if m := procedure.FindStringSubmatch(line); m != nil {
		if p.kind = strings.ToLower(m[1]); p.Of[p.kind] == nil {
			if len(p.Kinds) >= 32 {
				return true, errors.New("more than 32 kinds of transactions")
			}
			p.Kinds = append(p.Kinds, p.kind)
			p.Of[p.kind] = &Transaction{Stated: map[string]float64{}, Summed: math.NaN()}
		}
		return true, nil
	}
	found := figure.FindAllStringSubmatch(line, -1)
	if len(found) == 0 || p.kind == "" {
		return false, nil
	}
	t := p.Of[p.kind]
	if strings.Contains(line, "CALLS:") && !strings.Contains(line, "TOTAL:") {
		return true, errors.New("a line of calls that is cut before their total")
	}
	for _, m := range found {
		v, bad := strconv.ParseFloat(m[2], 64)
		if bad != nil || !(v >= 0 && v < 1e15) {
			err = fmt.Errorf("%.40q is no figure", m[2])
			continue
		}
		p.set(t, m[1], v)
	}
	return true, err
}

func (p *Profile) set(t *Transaction, name string, v float64) {
	key := strings.ToLower(name)
	stated := key[0] == 'p' || key == "min" || key == "max"
	switch {
	case p.within && name == "CALLS":
		t.Summed = v
	case p.within && stated:
		t.Stated[key] = v
	case p.within:
	case name == "CALLS":
		t.Calls += v
	case name == "TOTAL":
		t.TotalMS += v
	case p.Users == 1: // of one user its figures are those of all
		if stated {
			t.Stated[key] = v
		}
	case !p.Summary:
		clear(t.Stated)
	}
}

// Elapsed is how long users were at work on average: what they did over it is the sum of their rates.
func (p *Profile) Elapsed() time.Duration {
	if p.Users == 0 {
		return time.Duration(p.LongestMS * float64(time.Millisecond))
	}
	return time.Duration(p.SumMS / float64(p.Users) * float64(time.Millisecond))
}

// Doubled says which calls the summary does not count as its users did, "" for none.
func (p *Profile) Doubled() string {
	for _, kind := range p.Kinds {
		if t := p.Of[kind]; !math.IsNaN(t.Summed) && t.Calls > 0 && t.Summed != t.Calls {
			return fmt.Sprintf("the summary of the time profile has %.0f calls of %s, its users %.0f together: the sum of "+
				"the users is taken", t.Summed, kind, t.Calls)
		}
	}
	return ""
}
