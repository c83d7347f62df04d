package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/exporters/nutanix"
	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/exporters/nutanix/prismsim"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/listen"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/kit/visible"
)

const nutanixSummary = "counters of Nutanix clusters, read from Prism"

// nutanixFlags say which clusters are read, and how.
type nutanixFlags struct {
	file                   string
	url, name, api, user   string
	password, apiKey, ca   string
	insecure               bool
	poll, stale            time.Duration
	floor                  float64
	kinds                  []string
	pushgateway, write, to string
}

func (f *nutanixFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.file, "clusters", "", "YAML `file` of clusters and settings, in the place of flags")
	flags.StringVar(&f.url, "url", "", "`address` of Prism, https://HOST:9440")
	flags.StringVar(&f.name, "name", "", "`name` of the cluster in the label cluster (default: the host of --url)")
	flags.StringVar(&f.api, "api", "auto", "`version` of the API: auto, v1, v2.0, v3 or v4")
	flags.StringVar(&f.user, "user", "", "`name` of a user who may read")
	flags.StringVar(&f.password, "password", "", "`where` the password is: env:NAME, file:PATH, command:PROGRAM")
	flags.StringVar(&f.apiKey, "api-key", "", "`where` an API key of v4 is, in the place of user and password")
	flags.StringVar(&f.ca, "ca", "", "PEM `file` of the authority of Prism's certificate (default: the system's)")
	flags.BoolVar(&f.insecure, "insecure", false, "take any certificate: whoever is in between reads the password")
	flags.Float64Var(&f.floor, "iops-floor", prism.DefaultFloor,
		"leave mean latencies out below this `number` of operations per second")
	flags.DurationVar(&f.poll, "poll", nutanix.DefaultPoll, "`time` between polls")
}

// config is the configuration of file or flags, checked.
func nutanixConfig(con *console.Console, f nutanixFlags) (nutanix.Config, error) {
	if f.file != "" {
		if f.url != "" || f.user != "" || f.password != "" {
			return nutanix.Config{}, errors.New("--clusters: the file takes the place of --url, --user and --password")
		}
		data, err := con.ReadGiven(f.file, 1<<20)
		if err != nil {
			return nutanix.Config{}, err
		}
		c, err := nutanix.Parse(data)
		if err != nil {
			return c, fmt.Errorf("%s: %s", f.file, strings.ReplaceAll(err.Error(), "\n", "\n"+f.file+": "))
		}
		return c, nil
	}
	if f.url == "" {
		return nutanix.Config{}, errors.New("give --url, --user and --password, or --clusters FILE")
	}
	k := nutanix.Cluster{Name: f.name, URL: f.url, API: prism.Version(f.api), User: f.user, CA: f.ca,
		Insecure: f.insecure}
	var bad []error
	for _, s := range []struct {
		flag, text string
		to         *secret.Source
	}{{"--password", f.password, &k.Password}, {"--api-key", f.apiKey, &k.APIKey}} {
		if s.text != "" {
			if err := s.to.UnmarshalText([]byte(s.text)); err != nil {
				bad = append(bad, fmt.Errorf("%s: %w", s.flag, err))
			}
		}
	}
	if len(bad) > 0 {
		return nutanix.Config{}, errors.Join(bad...)
	}
	c := nutanix.Config{Poll: f.poll, StaleAfter: max(f.stale, f.poll), IOPSFloor: &f.floor, Kinds: f.kinds,
		Clusters: []nutanix.Cluster{k}}
	if f.stale == 0 {
		c.StaleAfter = max(nutanix.DefaultStale, f.poll)
	}
	if f.pushgateway != "" {
		c.Push = append(c.Push, nutanix.Push{Pushgateway: f.pushgateway, Job: f.to})
	}
	if f.write != "" {
		c.Push = append(c.Push, nutanix.Push{RemoteWrite: f.write, Job: f.to})
	}
	return c, c.Check()
}

func exporterNutanixCommand(con *console.Console) *cobra.Command {
	var f nutanixFlags
	var address, token string
	var once, cgi, classic bool
	var deadline time.Duration
	c := &cobra.Command{
		Use:   "nutanix",
		Short: "Serve " + nutanixSummary,
		Args:  console.Args(0, 0, "argument"),
		Long: "Serve " + nutanixSummary + `: clusters, hosts, storage containers, VMs and virtual disks.

Clusters are polled on a cadence of their own. /metrics gives the last good values with their age; where there are
several clusters it tells of the exporter itself, and /probe?target=NAME gives those of one. SIGHUP reads the file of
--clusters anew. /-/healthy and /-/ready need no token; other machines can reach the rest with a token only.

--once polls once and prints the page. --cgi does so as a CGI program, for any web server.`,
		Example: `  plimsoll exporter nutanix --url https://prism.example:9440 --user viewer --password env:PRISM_PASSWORD
  plimsoll exporter nutanix --clusters /etc/plimsoll/nutanix.yaml --listen 127.0.0.1:9405`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := nutanixConfig(con, f)
			if err != nil {
				return exit.Usagef("docs/how-to/nutanix.md shows a file", "%s%w", console.Phase(cmd), err)
			}
			x, err := nutanix.New(console.BuildVersion().Program, config, con.Logger())
			if err != nil {
				return exit.Usagef("", "%s%w", console.Phase(cmd), err)
			}
			if once || cgi {
				return nutanixOnce(con, console.Phase(cmd), x, cgi, classic, deadline)
			}
			return nutanixServe(con, console.Phase(cmd), x, f, address, token)
		},
	}
	f.register(c)
	flags := c.Flags()
	flags.StringVar(&address, "listen", "127.0.0.1:9405", "`address` to serve at, HOST:PORT")
	flags.StringVar(&token, "token", "",
		"`where` the token is that readers must send: env:NAME, file:PATH, command:PROGRAM")
	flags.DurationVar(&f.stale, "stale-after", 0, "`age` at which values are not told any more (default 5m)")
	flags.StringSliceVar(&f.kinds, "kinds", nil, "`kinds` to read, of cluster,host,container,vm,disk (default: all)")
	flags.StringVar(&f.pushgateway, "pushgateway", "", "also push to the Pushgateway at this `address`")
	flags.StringVar(&f.write, "remote-write", "", "also send by remote write to this `address`")
	flags.StringVar(&f.to, "job", "nutanix", "`name` of the job of what is pushed")
	flags.BoolVar(&once, "once", false, "poll once, print the page and end")
	flags.BoolVar(&cgi, "cgi", false, "answer one request as a CGI program")
	flags.BoolVar(&classic, "classic", false, `with --once or --cgi: lines of ntnx_bash{metric="..."}`)
	flags.DurationVar(&deadline, "deadline", 8*time.Second, "`time` in which --once and --cgi answer")
	return c
}

func nutanixServe(con *console.Console, phase string, x *nutanix.Exporter, f nutanixFlags, address,
	token string) error {
	ctx, stop := con.Interruptible()
	defer stop()
	s := listen.Server{Address: address,
		Listening: func(at string) { visible.Fprintf(con.Err, "serving http://%s/metrics\n", at) }}
	var err error
	if s.Token, err = TokenFrom(ctx, token); err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	if err := s.Check(); err != nil {
		return exit.Usagef("--token says where a token is, like env:NAME or file:PATH", "%s%w", phase, err)
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	reload := make(chan func() (nutanix.Config, error))
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				select {
				case reload <- func() (nutanix.Config, error) { return nutanixConfig(con, f) }:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	if err := x.Run(ctx, s, reload); err != nil {
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	}
	return nil
}

// nutanixOnce polls once and prints. As a CGI program it answers in any case: what failed is on the page.
func nutanixOnce(con *console.Console, phase string, x *nutanix.Exporter, cgi, classic bool,
	deadline time.Duration) error {
	signals, stop := con.Interruptible()
	defer stop()
	ctx, cancel := context.WithTimeout(signals, deadline)
	defer cancel()
	x.PollOnce(ctx)
	out := con.Out
	if w, ok := out.(interface{ Unwrap() io.Writer }); ok && cgi {
		out = w.Unwrap() // a page is for a program: names stay as they are
	}
	if cgi {
		if err := nutanix.CGI(out, x, os.Getenv("QUERY_STRING"), os.Getenv("REQUEST_METHOD"), classic); err != nil {
			return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
		}
		return nil
	}
	var err error
	if classic {
		err = x.Classic(out, "")
	} else {
		err = x.Page(out, "", false)
	}
	switch reason := x.Failure(); {
	case err != nil:
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	case signals.Err() != nil:
		return exit.Errorf(exit.Interrupted, "", "%s%w", phase, console.ErrInterrupted)
	case reason != "":
		return exit.Errorf(exit.Failed, "the lines above say more", "%spoll failed: %s", phase, reason)
	}
	return nil
}

func NutanixCommand(con *console.Console) *cobra.Command {
	return console.Group("nutanix", "Watch Nutanix clusters: tables like iostat's and top's",
		nutanixViewCommands(con)...)
}

func nutanixSimulateCommand(con *console.Console) *cobra.Command {
	var o prismsim.Options
	var faults prismsim.Faults
	var address, ca string
	c := &cobra.Command{
		Use: "simulate", Short: "Serve a simulated Prism, for trials and demonstrations", Args: console.Args(0, 0,
			"argument"),
		Long: `Serve a Prism that does not exist: v1, v2.0, v3 and v4 of the API over TLS, for a cluster whose counters move. It takes the
user viewer with the password let-me-look. Its certificate is made anew each time and written to the file of --ca.`,
		Example: `  plimsoll nutanix simulate --vms 200 --ca prism-ca.pem
  plimsoll nutanix iostat --url https://127.0.0.1:9440 --ca prism-ca.pem --user viewer --password file:prism-password`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Hosts < 1 || o.VMs < 1 || o.DisksPerVM < 1 || o.Containers < 1 || o.VMs*o.DisksPerVM > 1e6 {
				return exit.Usagef("", "%swant at least one host, VM, disk and container, and at most 1,000,000 disks",
					console.Phase(cmd))
			}
			cert, err := prismsim.NewCertificate(30 * 24 * time.Hour)
			if err == nil {
				err = outfile.Write(ca, func(w io.Writer) error { _, err := w.Write(cert.PEM); return err })
			}
			if err != nil {
				return exit.Errorf(exit.Failed, "", "%s%w", console.Phase(cmd), err)
			}
			ctx, stop := con.Interruptible()
			defer stop()
			sim := prismsim.New(o)
			sim.Set(faults)
			err = sim.Serve(ctx, address, cert, func(at string) {
				visible.Fprintf(con.Err, "serving https://%s, user viewer, password let-me-look, --ca %s\n", at, ca)
			})
			if err != nil {
				return exit.Errorf(exit.Failed, "", "%s%w", console.Phase(cmd), err)
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&address, "listen", "127.0.0.1:9440", "`address` to serve at, of this machine only")
	flags.StringVar(&ca, "ca", "prism-ca.pem", "`file` to write the certificate to")
	flags.IntVar(&o.Hosts, "hosts", 4, "`number` of hosts")
	flags.IntVar(&o.VMs, "vms", 50, "`number` of VMs")
	flags.IntVar(&o.DisksPerVM, "disks", 4, "`number` of virtual disks of each VM")
	flags.IntVar(&o.Containers, "containers", 3, "`number` of storage containers")
	flags.IntVar(&o.RequestsPerSecond, "rate-limit", 0, "answer 429 above this `number` of requests per second")
	flags.BoolVar(&o.Hostile, "hostile-names", false, "give some entities names that break careless programs")
	flags.DurationVar(&faults.Slow, "slow", 0, "wait this `time` before each answer")
	flags.IntVar(&faults.Status, "status", 0, "answer everything with this HTTP `status`")
	flags.BoolVar(&faults.Truncate, "truncate", false, "break answers off in the middle")
	flags.Float64Var(&faults.NoSample, "no-sample", 0, "`share` of counters that are -1")
	flags.DurationVar(&faults.Lag, "clock-lag", 0, "let the cluster's clock be this `time` behind")
	return c
}
