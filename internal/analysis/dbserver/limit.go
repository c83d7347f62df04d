// Package dbserver asks what limited a load on a database server, by what the server itself counted: what its
// sessions waited for, its connections, and whether its log stood still at checkpoints. It gives view.Checks to package
// analysis.
//
// A server is judged while a load used it that ran on its machine, or on others when no server ran there. Nothing is
// said of servers that were not asked, nor of waits that the exporter's role was not shown.
package dbserver

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// From where on something is told.
const (
	fewestPoints   = 20   // of a series
	fewestSeen     = 30.0 // sessions at work, counted once a second and added up
	mostOf         = 0.40 // of the time of sessions at work, from which a wait is the limit
	full           = 95.0 // per cent of the connections
	busyCPUs       = 90.0 // per cent
	threadBusy     = 0.95 // of one CPU
	hardlyAtWork   = 0.25 // of the clients: below, the server waited for them
	mostEventsTold = 3
)

// Limit says what the sessions of a server at work waited for, or that it waited for its clients.
var Limit = view.Check{Name: "database-limit", Rank: 415, Run: limits}

func limits(v *view.Run) (out []result.Finding) {
	for _, l := range v.Loads {
		servers := serversOf(v, l)
		if len(servers) == 0 {
			continue
		}
		if f, ok := connections(v, l, servers); ok {
			out = append(out, f)
		}
		if f, ok := limit(v, l, servers); ok {
			out = append(out, f)
		}
	}
	return out
}

// serversOf are the servers that a load can have used: those on its machines, else those where no load ran.
func serversOf(v *view.Run, l *view.Load) []string {
	var own, others []string
	for i := range v.Data.Series {
		s := &v.Data.Series[i]
		switch {
		case s.Measure != result.DatabaseTransactions:
		case slices.ContainsFunc(l.Parts, func(p *result.Workload) bool { return p.VM == s.Machine }):
			own = view.AppendNew(own, s.Machine)
		case !slices.ContainsFunc(v.Loads, func(o *view.Load) bool {
			return slices.ContainsFunc(o.Parts, func(p *result.Workload) bool { return p.VM == s.Machine })
		}):
			others = view.AppendNew(others, s.Machine)
		}
	}
	if own != nil {
		return own
	}
	return others
}

// track adds up a measure of servers while a load ran; nil when it is not known.
func track(v *view.Run, l *view.Load, servers []string, measure, part string) *view.Track {
	c := v.Sum(measure, func(s *result.Series) bool { return slices.Contains(servers, s.Machine) && s.Part == part })
	if c == nil {
		return nil
	}
	return c.Within(l.Times())
}

// mean of a measure of servers, and of how many points.
func mean(v *view.Run, l *view.Load, servers []string, measure, part string) (mean float64, n int) {
	c := track(v, l, servers, measure, part)
	if c == nil {
		return 0, 0
	}
	some, _ := view.FiniteOf(c.Ops)
	return view.Total(some) / float64(max(len(some), 1)), len(some)
}

// parts are those that a measure of servers is told by.
func parts(v *view.Run, servers []string, measure string) (list []string) {
	for i := range v.Data.Series {
		if s := &v.Data.Series[i]; s.Measure == measure && slices.Contains(servers, s.Machine) {
			list = view.AppendNew(list, s.Part)
		}
	}
	return list
}

// wait is one thing that sessions at work waited for: a kind, or an event of a kind.
type wait struct {
	name  string
	share float64 // of their time
}

// waits are what they waited for, the most first, as shares of a total over so many points. Where there is no point of
// an event nobody waited for it.
func waits(v *view.Run, l *view.Load, servers []string, measure string, total float64, points int) (list []wait) {
	for _, part := range parts(v, servers, measure) {
		if m, n := mean(v, l, servers, measure, part); n > 0 && m > 0 {
			list = append(list, wait{part, m * float64(n) / float64(points) / total})
		}
	}
	slices.SortStableFunc(list, func(a, b wait) int { return cmp.Compare(b.share, a.share) })
	return list
}

// cause is a limit that is known by what is waited for, as "IO DataFileRead".
type cause struct {
	what   *regexp.Regexp
	kind   bool // it is a kind, which is known whole; else events, of which the most frequent are
	name   string
	severe result.Severity
	say    string
}

// causes in the order in which they are asked; the first that most of the time went to is it.
var causes = []cause{
	{regexp.MustCompile(`^Lock$`), true, "for locks", result.Warning,
		"sessions of the load held each other up, on rows or tables that they shared, and more clients add waits"},
	{regexp.MustCompile(`(?i)^(IO wal|LWLock wal_?(write|bufmapping)|IPC sync_?rep)`), false,
		"for the write-ahead log", result.Info,
		"commits waited until the log was on its disk (or on a standby); that disk was the limit"},
	{regexp.MustCompile(`(?i)^IO ([^w]|w[^a])`), false, "for reads and writes of files", result.Info,
		"the disks of the data were the limit"},
	{regexp.MustCompile(`^IO$`), true, "for reads and writes of files", result.Info, "the disks were the limit"},
	{regexp.MustCompile(`^LWLock$`), true, "for locks inside the server", result.Info,
		"what its processes share was the limit, which more CPUs do not help"},
	{regexp.MustCompile(`^Client$`), true, "for the client", result.Warning,
		"the client, or the network, was slower than the server"},
	{regexp.MustCompile(`^(IPC|BufferPin|Extension|Timeout)$`), true, "for other sessions or timers", result.Info,
		"disks were not the limit"},
}

// limit says what it was.
func limit(v *view.Run, l *view.Load, servers []string) (f result.Finding, ok bool) {
	total, n := 0.0, 0
	for _, part := range parts(v, servers, result.DatabaseSessions) {
		m, points := mean(v, l, servers, result.DatabaseSessions, part)
		total, n = total+m, max(n, points)
	}
	if n < fewestPoints {
		return f, false
	}
	f = result.Finding{
		Check: "database-limit", Subject: l.Name, N: n, Unit: "%", Limit: view.Ptr(100 * mostOf),
		Metric:     "time of sessions at work",
		NoInterval: "a share of sessions that were looked at once a second",
		Basis:      "what sessions at work waited for, as " + said(servers) + " told while the load ran",
	}
	clients, closed := clientsOf(l)
	use, known := cpuOf(v, l, servers)
	switch _, limited, _ := l.Offered(); {
	case clients > 0 && closed && limited == 0 && total < hardlyAtWork*float64(clients) && known && use >= busyCPUs:
		// A session that waits for a CPU to read its statement is not told as at work yet.
		f.Severity, f.Metric = result.Info, "CPUs of its machine"
		f.Value, f.Limit = view.Ptr(use), view.Ptr(busyCPUs)
		f.Sentence = fmt.Sprintf("The CPUs of the machine of %s were busy %s of the time under %s: CPU was the limit, "+
			"whoever used it. (Sessions at work were %s of %d; those that wait for a CPU before they begin are not among them.)",
			said(servers), view.Percent(use/100), l.Name, view.SayCount(total), clients)
		if beside := besideServer(l, servers); beside != "" {
			f.Sentence += beside
		}
		return f, true
	case clients > 0 && closed && limited == 0 && total < hardlyAtWork*float64(clients):
		f.Severity, f.Metric = result.Info, "clients that the server was at work for"
		f.Value, f.Limit = view.Ptr(100*total/float64(clients)), view.Ptr(100*hardlyAtWork)
		f.Sentence = fmt.Sprintf("%s was at work for %s of the %d clients of %s at a time: the rest of their time went by "+
			"in the client, on the network or in think times, so this is not the server's limit.",
			view.Capital(said(servers)), view.SayCount(total), clients, l.Name)
		if busy := busyThread(l); busy > 0 {
			f.Severity = result.Invalid
			f.Evidence = []result.Evidence{{Name: "CPUs used by one thread of the client", Value: busy, Unit: "count"}}
			f.Sentence = fmt.Sprintf("%s was at work for %s of the %d clients of %s at a time, while the load generator kept "+
				"one thread at a full CPU: this is the client's limit, and says nothing about the server.",
				view.Capital(said(servers)), view.SayCount(total), clients, l.Name)
		}
		return f, true
	case total*float64(n) < fewestSeen:
		return f, false
	}
	kinds := waits(v, l, servers, result.DatabaseSessions, total, n)
	events := waits(v, l, servers, result.DatabaseWaits, total, n)
	at := fmt.Sprintf("Of the time of its sessions at work (%s on average) %s", view.SayCount(total), said(servers))
	for _, k := range kinds {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "time: " + k.name, Value: 100 * k.share, Unit: "%"})
	}
	if known {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "CPUs of its machine", Value: use, Unit: "%"})
	}
	for _, c := range causes {
		from := events
		if c.kind {
			from = kinds
		}
		share, names := 0.0, []string(nil)
		for _, w := range from {
			if c.what.MatchString(w.name) {
				share += w.share
			}
		}
		if share < mostOf {
			continue
		}
		for _, e := range events {
			mine := c.what.MatchString(e.name) || c.kind && c.what.MatchString(kindOf(e.name))
			if mine && len(names) < mostEventsTold {
				names = append(names, fmt.Sprintf("%s %s", e.name, view.Percent(e.share)))
			}
		}
		f.Severity, f.Value = c.severe, view.Ptr(100*share)
		f.Sentence = fmt.Sprintf("%s waited %s of it %s under %s", at, view.Percent(share), c.name, l.Name)
		if len(names) > 0 {
			f.Sentence += " (" + strings.Join(names, ", ") + ")"
		}
		f.Sentence += ": " + c.say + "."
		if known && use >= busyCPUs {
			f.Sentence += fmt.Sprintf(" The CPUs of its machine were busy %s of the time as well, so whoever held them up may "+
				"have waited for one.", view.Percent(use/100))
		}
		return f, true
	}
	share := 0.0
	if i := slices.IndexFunc(kinds, func(w wait) bool { return w.name == "CPU" }); i >= 0 {
		share = kinds[i].share
	}
	f.Value, f.Severity = view.Ptr(100*share), result.Passed
	f.Sentence = fmt.Sprintf("%s spent %s without a wait under %s, and no kind of wait took %s of it", at,
		view.Percent(share), l.Name, view.Percent(mostOf))
	switch {
	case known && use >= busyCPUs && share >= 1-mostOf:
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf("%s spent %s without a wait under %s, and the CPUs of its machine were busy %s of the "+
			"time: CPU was the limit.", at, view.Percent(share), l.Name, view.Percent(use/100))
		return f, true
	case known:
		f.Sentence += fmt.Sprintf("; the CPUs of its machine were busy %s", view.Percent(use/100))
	}
	f.Sentence += "."
	return f, true
}

// besideServer says what of the CPUs of the servers' machines the load generator took, if it ran there.
func besideServer(l *view.Load, servers []string) string {
	used := 0.0
	for _, p := range l.Parts {
		if s := view.Seconds(p); s > 0 && slices.Contains(servers, p.VM) {
			used += p.GeneratorCPUSeconds / s
		}
	}
	if used == 0 {
		return ""
	}
	return fmt.Sprintf(" The load generator took %s of them on the same machine: with a machine of its own the "+
		"server does more.", view.SayCount(used))
}

// busyThread is the share of a CPU that the busiest thread of a load's generators took, where it was all of one on at
// least half of its machines; else 0.
func busyThread(l *view.Load) (most float64) {
	n := 0
	for _, p := range l.Parts {
		if p.ThreadBusy != nil && *p.ThreadBusy >= threadBusy {
			n, most = n+1, max(most, *p.ThreadBusy)
		}
	}
	if 2*n < len(l.Parts) {
		return 0
	}
	return most
}

// kindOf is the kind of an event.
func kindOf(event string) string {
	kind, _, _ := strings.Cut(event, " ")
	return kind
}

// said names the servers in a sentence.
func said(servers []string) string {
	if len(servers) == 1 {
		return "the database server on " + servers[0]
	}
	return fmt.Sprintf("the %d database servers (%s)", len(servers), view.Three(servers))
}

// clientsOf is how many clients a load has, and whether each waits for an answer before it asks again.
func clientsOf(l *view.Load) (clients int, closed bool) {
	closed = true
	seen := map[string]bool{}
	for _, p := range l.Parts {
		if seen[p.VM] {
			continue // another start
		}
		seen[p.VM] = true
		for _, stream := range p.Streams {
			clients += stream.Depth
			closed = closed && !stream.OpenLoop && stream.Rate == 0
		}
	}
	return clients, closed
}

// cpuOf is how busy the CPUs of the servers' machines were, in per cent, of the busiest of them.
func cpuOf(v *view.Run, l *view.Load, servers []string) (use float64, known bool) {
	take := func(k view.CPU) {
		if m, ok := k.Over(l); ok {
			use, known = max(use, m.Value), true
		}
	}
	for _, s := range servers {
		vm, inside := v.VMs[s]
		if !inside {
			continue // nothing is counted there
		}
		if v.OneHost {
			for _, k := range v.Percents(result.HostCPUs) {
				take(k)
			}
			continue
		}
		for _, k := range v.CPUs() {
			if k.Node == vm.Node {
				take(k)
			}
		}
	}
	return use, known
}

// connections tells of servers that let nearly no more in.
func connections(v *view.Run, l *view.Load, servers []string) (f result.Finding, ok bool) {
	most, who, n := 0.0, "", 0
	for _, s := range servers {
		if c := track(v, l, []string{s}, result.DatabaseConnections, ""); c != nil {
			some, _ := view.FiniteOf(c.Ops)
			n += len(some)
			for _, x := range some {
				if x > most {
					most, who = x, s
				}
			}
		}
	}
	if most < full {
		return f, false
	}
	return result.Finding{
		Check: "database-limit", Subject: l.Name, Severity: result.Warning, Metric: "connections", Unit: "%",
		Value: view.Ptr(most), Limit: view.Ptr(full), N: n, NoInterval: "counted, not sampled",
		Basis: "sessions of the server against max_connections",
		Sentence: fmt.Sprintf("The database server on %s had %s of the sessions that it lets in while %s ran: clients may "+
			"have been turned away. Raise max_connections, or use fewer clients.", who, view.Percent(most/100), l.Name),
	}, true
}
