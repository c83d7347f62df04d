// Package nutanix makes metrics of what Nutanix clusters say of themselves, and hands them out: as pages that
// Prometheus scrapes, pushed to a Pushgateway, by remote write, and as the answer of a CGI program.
//
// It sits between package prism, which asks the clusters, and whoever reads. Clusters are polled on a cadence of their
// own, and readers get the last good values with their age, whatever the API does: no scrape causes a request, no two
// polls of a cluster overlap, and what is too old to be believed is left out. It refuses targets that are not in its
// configuration: nobody can send it, with its passwords, to an address of their own.
package nutanix

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/kit/tagged"
)

// Defaults of a Config.
const (
	DefaultPoll  = 20 * time.Second // the API's values are renewed about so often
	DefaultStale = 5 * time.Minute
)

// Config says what is polled, how, and where it is pushed. It is one YAML file, or flags.
type Config struct {
	Poll       time.Duration `yaml:"poll"`        // between the beginnings of two polls; default 20s
	StaleAfter time.Duration `yaml:"stale_after"` // age at which values are not told any more; default 5m
	// IOPSFloor is the number of operations per second below which mean latencies are left out; default 50, 0 for none.
	IOPSFloor *float64  `yaml:"iops_floor"`
	Kinds     []string  `yaml:"kinds"` // of cluster, host, container, vm, disk; default all
	Clusters  []Cluster `yaml:"clusters"`
	Push      []Push    `yaml:"push"`
}

// Cluster is one Prism.
type Cluster struct {
	Name     string        `yaml:"name"`     // label cluster, and ?target= of /probe
	URL      string        `yaml:"url"`      // https://HOST:9440
	API      prism.Version `yaml:"api"`      // auto, v1, v2.0, v3 or v4
	User     string        `yaml:"user"`     //
	Password secret.Source `yaml:"password"` // env:NAME, file:PATH or command:PROGRAM
	APIKey   secret.Source `yaml:"api_key"`  // of v4, in the place of user and password
	CA       string        `yaml:"ca"`       // file of the authority's certificates
	Insecure bool          `yaml:"insecure"` // take any certificate: nutanix_exporter_tls_verified is then 0
	Timeout  time.Duration `yaml:"timeout"`  // of one request; default 15s
	PageSize int           `yaml:"page_size"`

	roots *x509.CertPool
}

// Push is where pages go after each poll.
type Push struct {
	Pushgateway string        `yaml:"pushgateway"`  // http(s)://HOST:9091
	RemoteWrite string        `yaml:"remote_write"` // http(s)://HOST/api/v1/write
	Job         string        `yaml:"job"`          // default nutanix
	User        string        `yaml:"user"`
	Password    secret.Source `yaml:"password"`
	CA          string        `yaml:"ca"`
	// Keep leaves the groups on the Pushgateway when the program ends; else they are deleted.
	Keep bool `yaml:"keep"`

	roots *x509.CertPool
}

var clusterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// Parse reads a configuration and returns all objections at once, each with the line or the cluster that it is of.
func Parse(data []byte) (Config, error) {
	var c Config
	objections, err := tagged.Decode(data, &c)
	if err = errors.Join(err, tagged.Join(objections)); err != nil {
		return Config{}, err
	}
	return c, c.Check()
}

// Check fills defaults in, reads the files of certificates, and returns all objections at once. It reads no secret.
func (c *Config) Check() error {
	var bad []error
	c.Poll, c.StaleAfter = cmp.Or(c.Poll, DefaultPoll), cmp.Or(c.StaleAfter, DefaultStale)
	if c.Poll < time.Second || c.Poll > time.Hour {
		bad = append(bad, fmt.Errorf("poll: %v is not from 1s to 1h", c.Poll))
	}
	if c.StaleAfter < c.Poll {
		bad = append(bad, fmt.Errorf("stale_after: %v is less than the time between polls, %v", c.StaleAfter, c.Poll))
	}
	if c.IOPSFloor == nil {
		floor := float64(prism.DefaultFloor)
		c.IOPSFloor = &floor
	}
	if *c.IOPSFloor < 0 {
		bad = append(bad, fmt.Errorf("iops_floor: %v is below 0", *c.IOPSFloor))
	}
	for _, k := range c.Kinds {
		if _, err := kindOf(k); err != nil {
			bad = append(bad, err)
		}
	}
	if len(c.Clusters) == 0 {
		bad = append(bad, errors.New("clusters: there is none: name one with its url, user and password"))
	}
	seen := map[string]bool{}
	for i := range c.Clusters {
		k := &c.Clusters[i]
		if u, err := url.Parse(k.URL); err == nil {
			k.Name = cmp.Or(k.Name, u.Hostname())
		}
		who := fmt.Sprintf("cluster %q", k.Name)
		if !clusterName.MatchString(k.Name) {
			bad = append(bad, fmt.Errorf("%s: a name is of letters, digits, '_', '.' and '-', 63 at most", who))
		}
		if seen[k.Name] {
			bad = append(bad, fmt.Errorf("%s: there are two of that name", who))
		}
		seen[k.Name] = true
		var err error
		if k.roots, err = rootsOf(k.CA); err != nil {
			bad = append(bad, fmt.Errorf("%s: ca: %w", who, err))
		}
		if k.Timeout < 0 || k.Timeout > 10*time.Minute {
			bad = append(bad, fmt.Errorf("%s: timeout: %v is not from 0 to 10m", who, k.Timeout))
		}
		client, err := k.client(*c, nil)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				bad = append(bad, fmt.Errorf("%s: %s", who, line))
			}
			continue
		}
		client.Close()
	}
	for i := range c.Push {
		bad = append(bad, c.Push[i].check(i)...)
	}
	return errors.Join(bad...)
}

func kindOf(name string) (prism.Kind, error) {
	var names []string
	for _, k := range prism.Kinds() {
		if k.String() == name {
			return k, nil
		}
		names = append(names, k.String())
	}
	return 0, fmt.Errorf("kinds: %q is none of %s", name, strings.Join(names, ", "))
}

// kinds are those to poll, in the order in which that is done.
func (c Config) kinds() []prism.Kind {
	if len(c.Kinds) == 0 {
		return prism.Kinds()
	}
	return slices.DeleteFunc(prism.Kinds(), func(k prism.Kind) bool { return !slices.Contains(c.Kinds, k.String()) })
}

func rootsOf(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	f, err := regular.Open(file, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// client is one for the cluster.
func (k Cluster) client(c Config, observe func(prism.Answer)) (*prism.Client, error) {
	floor := *c.IOPSFloor
	if floor == 0 {
		floor = -1
	}
	return prism.New(prism.Options{URL: k.URL, User: k.User, Password: k.Password.Reader(), APIKey: k.APIKey.Reader(),
		Version: k.API, Roots: k.roots, Insecure: k.Insecure, PageSize: k.PageSize, Timeout: k.Timeout, Floor: floor,
		MaxAge: c.StaleAfter, Observe: observe})
}

func (p *Push) check(i int) (bad []error) {
	who := fmt.Sprintf("push %d", i+1)
	p.Job = cmp.Or(p.Job, "nutanix")
	if (p.Pushgateway == "") == (p.RemoteWrite == "") {
		return []error{fmt.Errorf("%s: give either pushgateway or remote_write", who)}
	}
	u, err := url.Parse(p.Pushgateway + p.RemoteWrite)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		bad = append(bad, fmt.Errorf("%s: want an address like http://HOST:9091", who))
	case u.User != nil:
		bad = append(bad, fmt.Errorf("%s: %s: the address holds a password: give it by user and password", who,
			u.Host))
	case u.Scheme == "http" && p.Password != (secret.Source{}):
		bad = append(bad, fmt.Errorf("%s: %s: a password is sent over https only", who, u.Redacted()))
	}
	if p.roots, err = rootsOf(p.CA); err != nil {
		bad = append(bad, fmt.Errorf("%s: ca: %w", who, err))
	}
	return bad
}
