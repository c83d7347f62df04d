package workload

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"plimsoll/internal/contract/target"
)

// Peering is implemented by engines whose load goes to machines besides the one that it runs on, or to servers that
// have to be started first.
type Peering interface {
	// Peers says from the config which machines the load goes to; false for none. It needs no host.
	Peers(Spec) (Peers, bool, error)
	// Server is the program to be kept running on one peer for as long as the workload runs: of the Spec, VM, Disks and
	// Address are the peer's, Config and Name the workload's. It is pure, as Command is, and asked only when
	// Peers.Served.
	Server(Spec) (Server, error)
	// CheckServer is Check for that program, on a peer; a zero Tool when there is no way to learn its version.
	CheckServer(context.Context, target.Host, Spec) (Tool, error)
}

// Peers are the machines that a load goes to.
type Peers struct {
	Group   string // of the scenario; "": every machine of the workload is its own peer
	Served  bool   // each runs a Server of the workload's while the workload runs
	Network bool   // they are reached by address
}

// Peer is one of them.
type Peer struct {
	VM      string
	Address string // see target.Networked; "" when nothing is reached by address
	Disks   []target.Disk
}

// Counting is implemented by engines that know how to ask the servers of their load what they count.
type Counting interface {
	// Counters is one server's. host is the machine where Server runs, of which the Spec is as for Server; nil for a
	// server beyond the cluster, which the config names. It returns nil where there is nothing to ask, and connects to
	// nothing.
	Counters(spec Spec, host target.Host) (*Scrape, error)
}

// Filling is implemented by engines that fill what their load uses only where the config has them do it.
type Filling interface {
	// Fills reports whether a prefill step of this workload has anything to do.
	Fills(Spec) bool
}

// Scrape is a server that is asked what it counts while loads use it. Close ends that, and waits for a page that is
// being made.
type Scrape struct {
	Name  string // what answers, such as "postgres"
	Where string // of a server beyond the cluster: its address, without secrets
	Get   target.Getter
	Close func()
}

// Scraped is a server beyond the cluster whose counters an exporter of the user's gives: its page is got from url.
func Scraped(name, where, url string) *Scrape {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: scrapeLimit}
	return &Scrape{Name: name, Where: where, Get: target.FromURL(client, url), Close: client.CloseIdleConnections}
}

// scrapeLimit bounds a page of an exporter.
const scrapeLimit = 10 * time.Second

// CheckExporter objects to what cannot be the address of an exporter's page.
func CheckExporter(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return fmt.Errorf("%q: want the address of an exporter's page without a user, http://HOST:PORT/metrics", text)
	}
	return nil
}

// Server is a program that is kept running on a machine while a workload runs.
type Server struct {
	Service target.Service    // its output goes to one file, Command.Stdout
	Files   map[string][]byte // put there before it is started
	Private map[string][]byte // the same, readable by the server alone
	Ready   target.Readiness
	Grace   time.Duration // to end by itself when it is asked to; 0: it is not asked
	Stays   bool          // when the workload has ended, for its next start and for other workloads, until the teardown
}
