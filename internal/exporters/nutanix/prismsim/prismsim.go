// Package prismsim is a Prism that does not exist: it answers as v1, v2.0, v3 and v4 of the API do, over TLS, for a
// cluster of a chosen size whose counters move, and it fails in chosen ways. Tests and demonstrations of what reads a
// Prism use it. It knows nothing of package prism, so that neither follows the other's mistakes.
//
// Where the shapes come from:
//
//   - v2.0: the published answer of /hosts in demisto/content, Packs/NutanixHypervisor (statistics are numbers in
//     quotes, -1 where there was no sample); the fields of /virtual_disks and /storage_containers, and the statistics
//     of a single entity, from
//     https://www.nutanix.dev/2019/01/16/getting-performance-stats-with-the-nutanix-api-v2-0/ and from the fields that
//     the exporter VirtualInstruments/nutanix-exporter reads.
//   - v1: the same statistics in an envelope of camel case; only v1 gives statistics of VMs on Prism Element, says
//     https://nutanix.dev/2024/06/18/new-v4-api-and-sdk-features-in-prism-central-2024-1-and-aos-6-8
//   - v3: questions and the paths to their answers' values in programs that were published (POST /api/nutanix/v3/groups
//     with entity_type, group_member_attributes and group_member_offset; group_results, entity_results, data, values,
//     filtered_entity_count); names of counters are those of v2.0. No answer with its types was found published.
//   - v4: the published answers that DataDog/integrations-core (nutanix/tests/fixtures) and
//     ManageIQ/manageiq-providers-nutanix (spec/vcr_cassettes) hold: lists of at most 100 with totalAvailableResults,
//     statistics as lists of time and value, newest first, with old times on capacities; those of VMs as one object for
//     each time, the oldest first, beside one of long ago.
//
// Not there: anything that changes a cluster, filters and orders of lists, sessions of Prism Central. The limit of
// requests is of our own: Nutanix publishes none.
package prismsim

import (
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are what the cluster is.
type Options struct {
	Hosts, VMs, DisksPerVM, Containers int // 4, 20, 2 and 3 by default
	Off                                int // of the VMs, the last ones: they have no statistics in v4
	User, Password                     string
	APIKey                             string // v4 takes it in the place of user and password; "" for none
	// Versions that answer; none for all. The others are 404.
	Versions []string
	// MostPerPage bounds pages of v1, v2.0 and v3; 0 for no bound.
	MostPerPage int
	// RequestsPerSecond is the limit above which requests are answered with 429; 0 for none.
	RequestsPerSecond int
	// Hostile gives entities names with quotes, line ends, other scripts, and the same name twice.
	Hostile bool
	// Every is how long counters stand still, 20 s by default, as Prism's do.
	Every time.Duration
	// Now is the cluster's clock; time.Now by default.
	Now func() time.Time
}

// Faults are what is wrong at the moment. The zero value is nothing.
type Faults struct {
	Slow     time.Duration // before each answer
	Status   int           // instead of an answer: 401, 429, 500, ...
	First    int           // how many requests the status is for; 0 for all
	Paths    string        // the faults above and Truncate are only of paths that hold this
	Truncate bool          // answers break off in the middle, with a length that says so
	Endless  bool          // answers have no end
	Half     bool          // answers are half of the JSON, with the length of that half
	NoSample float64       // share of counters that are -1
	Lag      time.Duration // the cluster's clock is this much behind
	Missing  int           // VMs that are gone, of those with the highest numbers
	Frozen   time.Duration // v4 has no samples younger than this
}

// Sim answers requests. It is safe for concurrent use.
type Sim struct {
	o Options

	mu     sync.Mutex
	faults Faults
	total  int // requests
	same   int // of them answered with "not modified"
	bucket float64
	filled time.Time
	tick   int64
	loads  map[string][]load
}

// New makes a cluster.
func New(o Options) *Sim {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&o.Hosts, 4)
	set(&o.VMs, 20)
	set(&o.DisksPerVM, 2)
	set(&o.Containers, 3)
	if o.Every <= 0 {
		o.Every = 20 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.User == "" {
		o.User, o.Password = "viewer", "let-me-look"
	}
	return &Sim{o: o, tick: -1}
}

// Set puts faults in the place of those there are.
func (s *Sim) Set(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Requests is how many requests were answered since the last call, failures included.
func (s *Sim) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.total
	s.total = 0
	return n
}

// NotModified is how many requests were answered so since the beginning: the client has the answer already.
func (s *Sim) NotModified() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.same
}

// load holds what one entity does.
type load struct {
	read, write     float64 // operations per second
	readKB, writeKB float64 // per second
	readUs, writeUs float64 // mean latency
	cpu, mem        float64 // ppm
}

func (l load) plus(o load, share float64) load {
	mean := func(a, na, b, nb float64) float64 {
		if na+nb == 0 {
			return 0
		}
		return (a*na + b*nb) / (na + nb)
	}
	l.readUs = mean(l.readUs, l.read, o.readUs, o.read*share)
	l.writeUs = mean(l.writeUs, l.write, o.writeUs, o.write*share)
	l.read += o.read * share
	l.write += o.write * share
	l.readKB += o.readKB * share
	l.writeKB += o.writeKB * share
	l.cpu += o.cpu * share
	l.mem += o.mem * share
	return l
}

// chance is a number in [0, 1) that belongs to its arguments.
func chance(of string, i int, at int64) float64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(of) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ uint64(i)) * 0x9E3779B97F4A7C15  // a hash
	h = (h ^ uint64(at)) * 0xBF58476D1CE4E5B9 // a hash
	h ^= h >> 31
	h *= 0x94D049BB133111EB
	h ^= h >> 29
	return float64(h>>11) / (1 << 53)
}

// vmLoad returns what a VM does: two in five next to nothing, the others up to some thousand operations, in waves.
func vmLoad(i int, tick int64) load {
	size := chance("size", i, 0)
	peak := 2.0
	if size > 0.4 {
		peak = 60 * math.Pow(50, (size-0.4)/0.6)
	}
	wave := 0.6 + 0.3*math.Sin(float64(tick)/15+6*chance("phase", i, 0)) + 0.1*chance("noise", i, tick)
	iops, reads := peak*wave, chance("mix", i, 0)
	l := load{read: math.Round(iops * reads), write: math.Round(iops * (1 - reads))}
	kb := 4 + 28*chance("block", i, 0)
	l.readKB, l.writeKB = l.read*kb, l.write*kb
	l.readUs, l.writeUs = 300+900*chance("lat", i, tick), 500+1500*chance("lat", i, -tick)
	l.cpu, l.mem = 1e4+6e5*size*wave, 2e5+7e5*chance("mem", i, 0)
	return l
}

// at makes the loads of the moment: those of VMs, and of what they are made of and lie on.
func (s *Sim) at(now time.Time) (map[string][]load, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	vms := max(0, s.o.VMs-s.faults.Missing)
	tick := now.UnixNano() / int64(s.o.Every)
	if tick == s.tick && len(s.loads["vm"]) == vms {
		return s.loads, vms
	}
	s.tick = tick
	s.loads = map[string][]load{
		"vm": make([]load, vms), "host": make([]load, s.o.Hosts), "container": make([]load, s.o.Containers),
		"cluster": make([]load, 1), "disk": make([]load, vms*s.o.DisksPerVM),
	}
	for i := range vms {
		l := vmLoad(i, tick)
		s.loads["vm"][i] = l
		perHost := float64(vms)/float64(s.o.Hosts) + 1
		host := &s.loads["host"][i%s.o.Hosts]
		cpu, mem := host.cpu+l.cpu/perHost, host.mem+l.mem/perHost
		*host = host.plus(l, 1)
		host.cpu, host.mem = cpu, mem
		s.loads["container"][i%s.o.Containers] = s.loads["container"][i%s.o.Containers].plus(l, 1)
		s.loads["cluster"][0] = s.loads["cluster"][0].plus(l, 1)
		for d := range s.o.DisksPerVM {
			s.loads["disk"][i*s.o.DisksPerVM+d] = load{}.plus(l, 1/float64(s.o.DisksPerVM))
		}
	}
	if n := float64(vms); n > 0 {
		s.loads["cluster"][0].cpu /= n
		s.loads["cluster"][0].mem /= n
	}
	return s.loads, vms
}

// count is how many entities of a kind there are.
func (s *Sim) count(kind string, vms int) int {
	switch kind {
	case "vm":
		return vms
	case "disk":
		return vms * s.o.DisksPerVM
	case "host":
		return s.o.Hosts
	case "container":
		return s.o.Containers
	}
	return 1
}

var kindDigit = map[string]int{"cluster": 1, "host": 2, "container": 3, "vm": 4, "disk": 5}

func id(kind string, i int) string {
	return fmt.Sprintf("00000000-0000-4000-800%d-%012d", kindDigit[kind], i+1)
}

// index is the number of an entity of that ID; -1 when there is none.
func (s *Sim) index(kind, uuid string, vms int) int {
	n, err := strconv.Atoi(strings.TrimLeft(uuid[max(0, len(uuid)-12):], "0"))
	if err != nil || n < 1 || n > s.count(kind, vms) || uuid != id(kind, n-1) {
		return -1
	}
	return n - 1
}

var hostile = []string{`quo"te`, "line\nend", "tab\tand \\backslash", "ünïcode 日本 🚀", "twin", "twin", "{a=\"b\",c}",
	"\u202eright to left", "", strings.Repeat("long ", 60), "\x1b[31mred", "' OR 1=1 --", "<script>alert(1)</script>",
	"# HELP x", "a,b;c|d"}

func (s *Sim) name(kind string, i int) string {
	if s.o.Hostile && i < len(hostile) && (kind == "vm" || kind == "container") {
		return hostile[i]
	}
	if kind == "host" {
		return fmt.Sprintf("NTNX-SIM-%02d-A", i+1)
	}
	return fmt.Sprintf("%s-%04d", kind, i+1)
}

// ServeHTTP implements http.Handler.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.faults
	s.total++
	concerned := strings.Contains(r.URL.Path, f.Paths)
	if f.Status != 0 && concerned && f.First > 0 {
		if s.faults.First--; s.faults.First == 0 {
			s.faults.Status = 0
		}
	}
	limited := s.overLimit()
	s.mu.Unlock()
	now := s.o.Now().Add(-f.Lag)
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	if !concerned {
		f.Slow, f.Status, f.Truncate, f.Half, f.Endless = 0, 0, false, false, false
	}
	if f.Slow > 0 {
		select {
		case <-time.After(f.Slow):
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case limited:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests)
		return
	case f.Status != 0:
		refuse(w, f.Status)
		return
	case r.Method != map[bool]string{true: http.MethodPost, false: http.MethodGet}[r.URL.Path == groupsPath]:
		refuse(w, http.StatusMethodNotAllowed)
		return
	case !s.permitted(w, r):
		w.Header().Set("WWW-Authenticate", `Basic realm="Prism"`)
		refuse(w, http.StatusUnauthorized)
		return
	}
	body, status := s.answer(r, now, f)
	if status != http.StatusOK {
		refuse(w, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.Contains(r.URL.Path, "/config/") {
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256(body))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			s.mu.Lock()
			s.same++
			s.mu.Unlock()
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if f.Truncate {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	}
	for f.Endless {
		if _, err := w.Write(body); err != nil {
			return
		}
	}
	if f.Half {
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body) // the reader may have gone away
}

// overLimit takes a request from a bucket that holds those of one second.
func (s *Sim) overLimit() bool {
	if s.o.RequestsPerSecond == 0 {
		return false
	}
	now, most := time.Now(), float64(s.o.RequestsPerSecond)
	s.bucket = min(most, s.bucket+now.Sub(s.filled).Seconds()*most)
	s.filled = now
	if s.bucket < 1 {
		return true
	}
	s.bucket--
	return false
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"message":"status %d, says a made-up Prism"}`, status)
}

const sessionCookie = "JSESSIONID"

// permitted looks for user and password, the session that they gave before, or a key.
func (s *Sim) permitted(w http.ResponseWriter, r *http.Request) bool {
	central := strings.HasPrefix(r.URL.Path, "/api/")
	if central && s.o.APIKey != "" && r.Header.Get("X-Ntnx-Api-Key") == s.o.APIKey {
		return true
	}
	session := fmt.Sprintf("%x", sha256.Sum256([]byte(s.o.User+"\x00"+s.o.Password)))
	user, password, given := r.BasicAuth()
	if !given {
		cookie, err := r.Cookie(sessionCookie)
		return err == nil && !central && cookie.Value == session
	}
	if user != s.o.User || password != s.o.Password {
		return false
	}
	if !central {
		http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: session, Path: "/", Secure: true, HttpOnly: true})
	}
	return true
}
