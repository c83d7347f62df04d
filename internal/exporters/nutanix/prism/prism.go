// Package prism reads the statistics of Nutanix clusters from their management API, Prism: clusters, hosts, storage
// containers, VMs and virtual disks, over its versions v1, v2.0 (both of Prism Element), v3 and v4 (of Prism Central).
//
// It sits below whatever shows or passes on such statistics (exporter/nutanix and the commands) and knows none of them.
// What the versions write differently comes out the same: values in base units by one table of counters. What is no
// value is left out: -1, which the API writes where there was no sample, text that is empty, samples that are old, and
// mean latencies of so few operations that they say nothing.
//
// It only reads. It refuses plain HTTP, addresses that hold a password, redirects, and answers that are too large; it
// does not ask again where that cannot help. Errors quote nothing of what a server wrote.
package prism

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind tells what an entity is.
type Kind int

// The kinds, in the order in which they are polled.
const (
	Cluster Kind = iota
	Host
	Container
	VM
	Disk // a virtual disk
	kinds
)

var kindNames = [...]string{"cluster", "host", "container", "vm", "disk"}

func (k Kind) String() string { return kindNames[k] }

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Cluster, Host, Container, VM, Disk} }

// Version is a version of the API.
type Version string

// The versions. Auto takes v4 where it gives statistics of VMs, then v2.0, then v1, and v3, which has no virtual disks,
// last: the first that is there, that the user may read, and that does not answer with an error of the server.
const (
	Auto Version = "auto"
	V1   Version = "v1"
	V2   Version = "v2.0"
	V3   Version = "v3"
	V4   Version = "v4"
)

// Entity is one thing that has statistics.
type Entity struct {
	ID, Name  string
	Host      string // of a VM: the name of its host, or its ID where the API gives no name
	VM        string // of a disk: the name of the VM it is attached to
	VMID      string
	Container string // of a disk: ID of its storage container
	Address   string // of a disk, as "scsi.0"
	State     string // as the API writes it
	// Controller says of a VM that it is a controller VM, which is part of the storage itself.
	Controller bool
	Values     []Value // in the order of Counters, one of each at most
}

// Value is the value of one counter in its base unit.
type Value struct {
	Counter uint16 // index in Counters
	V       float64
}

// Get is the value of the counter of that name in Counters.
func (e *Entity) Get(name string) (float64, bool) {
	c, ok := byFolded[fold(name)]
	if !ok {
		return 0, false
	}
	return e.get(c)
}

func (e *Entity) get(counter uint16) (float64, bool) {
	i, ok := slices.BinarySearchFunc(e.Values, counter,
		func(v Value, c uint16) int { return cmp.Compare(v.Counter, c) })
	if !ok {
		return 0, false
	}
	return e.Values[i].V, true
}

// Left counts values that the API gave and that are not passed on, by the reason.
type Left struct {
	NoSample int // -1, another negative number, null, or empty
	LowIO    int // mean latencies of too few operations
	Stale    int // older than Options.MaxAge by the server's own clock
	Unknown  int // of counters that are not in Counters
	Bad      int // neither number nor empty
}

// Add adds up.
func (l *Left) Add(o Left) {
	l.NoSample += o.NoSample
	l.LowIO += o.LowIO
	l.Stale += o.Stale
	l.Unknown += o.Unknown
	l.Bad += o.Bad
}

// Part holds what one poll of one kind gave.
type Part struct {
	Entities []Entity // in the order of the API, each ID once
	Left     Left
	Requests int // made, those that were repeated included
	At       time.Time
	Took     time.Duration
}

// Options are how a Prism is read. The zero value of what has a default means that.
type Options struct {
	URL  string // https://HOST:9440
	User string
	// Password gives the password, and is asked again after it was refused.
	Password func(context.Context) (string, error)
	// APIKey takes the place of User and Password; v4 only.
	APIKey  func(context.Context) (string, error)
	Version Version // default Auto
	// Roots are the certificates to trust instead of the system's.
	Roots    *x509.CertPool
	Insecure bool // take any certificate
	// PageSize is how many entities a request of v1, v2.0 and v3 asks for: 1000 by default. A server may give fewer. v4
	// takes 100 at most, which is what is asked for.
	PageSize int
	Timeout  time.Duration // of one request: 15 s by default
	Retries  int           // of one request: 2 by default, -1 for none
	// Floor is the number of operations per second below which a mean latency says nothing: 50 by default, negative
	// for none.
	Floor float64
	// MaxAge is how old a sample of v3 and v4 may be, by the server's clock: 5 minutes by default. v1 and v2.0 do not
	// say.
	MaxAge time.Duration
	// Configuration is how long names and sizes of v4 are kept before they are asked for again: 5 minutes by default.
	Configuration time.Duration
	// Observe is told of each answer; may be nil. It may be called by several goroutines.
	Observe func(Answer)
}

// Answer is how one request ended.
type Answer struct {
	Kind   Kind
	Took   time.Duration
	Reason Reason // "" when it gave what was asked for
	Retry  bool   // whether it is asked again
}

func (o *Options) defaults() error {
	var bad []error
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "":
		bad = append(bad, errors.New("url: want https://HOST:9440"))
	case u.Scheme != "https":
		bad = append(bad, fmt.Errorf("url: %s: want https: a password is not sent over %q", u.Redacted(), u.Scheme))
	case u.User != nil:
		bad = append(bad, fmt.Errorf("url: of %s: it holds a user or password: give them by user and password", u.Host))
	case u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		bad = append(bad, fmt.Errorf("url: %s: want only https://HOST:PORT", u.Redacted()))
	default:
		o.URL = "https://" + u.Host
	}
	o.Version = cmp.Or(o.Version, Auto)
	if !slices.Contains([]Version{Auto, V1, V2, V3, V4}, o.Version) {
		bad = append(bad, fmt.Errorf("api: %q is none of auto, v1, v2.0, v3, v4", o.Version))
	}
	if o.APIKey == nil && (o.User == "" || o.Password == nil) {
		bad = append(bad, errors.New("give user and password, or an API key"))
	}
	if o.APIKey != nil && o.Version != Auto && o.Version != V4 {
		bad = append(bad, fmt.Errorf("API keys are of v4, not of %s: give user and password", o.Version))
	}
	if o.PageSize < 0 || o.PageSize > 10000 {
		bad = append(bad, fmt.Errorf("page size: %d is not from 1 to 10000", o.PageSize))
	}
	o.PageSize = cmp.Or(o.PageSize, 1000)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	o.Retries = max(0, cmp.Or(o.Retries, 2))
	o.Floor = cmp.Or(o.Floor, DefaultFloor)
	o.MaxAge = cmp.Or(o.MaxAge, 5*time.Minute)
	o.Configuration = cmp.Or(o.Configuration, 5*time.Minute)
	if o.Observe == nil {
		o.Observe = func(Answer) {}
	}
	return errors.Join(bad...)
}

// DefaultFloor is the default of Options.Floor, in operations per second.
const DefaultFloor = 50

// Reason is why a request failed, in few words that serve as a label.
type Reason string

// The reasons.
const (
	Refused     Reason = "unauthorized" // user, password or key
	Forbidden   Reason = "forbidden"    // the user may not read this
	Certificate Reason = "certificate"  // not valid, or of nobody we trust
	Unreachable Reason = "unreachable"
	Slow        Reason = "timeout"
	Limited     Reason = "rate_limit"
	Absent      Reason = "not_found" // this version of the API is not there
	Server      Reason = "server"    // 5xx, or another status that is not expected
	Broken      Reason = "broken"    // not JSON, half of it, or of another form
	Large       Reason = "too_large"
	Secret      Reason = "secret" // the password or key could not be read
	Stopped     Reason = "stopped"
)

// Error is a request that failed. Its text holds no secret and nothing that a server wrote.
type Error struct {
	Reason Reason
	Path   string // without the query
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("prism: %s: %s: %v", e.Path, e.Reason, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ReasonOf is the reason of an error of this package; Broken for any other, "" for none.
func ReasonOf(err error) Reason {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Reason
	}
	return Broken
}
