package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	common "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/kit/regular"
)

// Remote is where the points of a Store are sent while they are written: servers that take Prometheus' remote write,
// and the labels that each series gets beside its own.
type Remote struct{ conf config.Config }

// RemoteTo is one server, by its http or https address, with Prometheus' defaults (no native histograms, which older
// servers refuse together with all that is in the same request) and a request a second. An address that holds a
// password is refused: it would stand in the list of processes.
func RemoteTo(address string) (*Remote, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: %w", address, errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q: an address begins with http:// or https:// and a host", address)
	case u.User != nil:
		return nil, fmt.Errorf("%q holds a password: put the server into a file with basic_auth and password_file",
			u.Redacted())
	}
	entry := config.DefaultRemoteWriteConfig
	entry.URL = &common.URL{URL: u}
	entry.QueueConfig.BatchSendDeadline = model.Duration(time.Second) // charts follow the run
	r := &Remote{}
	r.conf.RemoteWriteConfigs = []*config.RemoteWriteConfig{&entry}
	return r, nil
}

// ReadRemote reads the servers from a file of Prometheus' own configuration, of which remote_write and
// global.external_labels are used; scrape_configs, rule_files and the like are refused. Files that it names are sought
// beside it.
func ReadRemote(file string) (*Remote, error) {
	text, err := regular.Read(file, 0, 1<<20)
	if err != nil {
		return nil, err
	}
	conf, err := config.Load(string(text), promslog.NewNopLogger())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	conf.SetDirectory(filepath.Dir(file))
	for name, there := range map[string]bool{
		"scrape_configs": len(conf.ScrapeConfigs) > 0, "scrape_config_files": len(conf.ScrapeConfigFiles) > 0,
		"rule_files": len(conf.RuleFiles) > 0, "remote_read": len(conf.RemoteReadConfigs) > 0,
		"alerting": len(conf.AlertingConfig.AlertmanagerConfigs) > 0,
	} {
		if there {
			return nil, fmt.Errorf("%s: %s does nothing here: keep remote_write and global.external_labels", file, name)
		}
	}
	if len(conf.RemoteWriteConfigs) == 0 {
		return nil, fmt.Errorf("%s: remote_write names no server", file)
	}
	for _, entry := range conf.RemoteWriteConfigs {
		if entry.SigV4Config != nil || entry.AzureADConfig != nil || entry.GoogleIAMConfig != nil {
			return nil, fmt.Errorf("%s: remote_write: %s: sigv4, azuread and google_iam are not known here: use "+
				"basic_auth, authorization or oauth2", file, entry.URL.Redacted())
		}
		if entry.ProtobufMessage != remote.WriteV1MessageType {
			return nil, fmt.Errorf("%s: remote_write: %s: protobuf_message %q: only %s is sent", file,
				entry.URL.Redacted(), entry.ProtobufMessage, remote.WriteV1MessageType)
		}
	}
	return &Remote{*conf}, nil
}

// Servers are the addresses, without passwords.
func (r *Remote) Servers() string {
	var out []string
	for _, entry := range r.conf.RemoteWriteConfigs {
		out = append(out, entry.URL.Redacted())
	}
	return strings.Join(out, ", ")
}

// Sender sends the points of a Store on. It reads them from the log that the Store writes, so that a slow server, or
// one that is gone, neither holds up who writes nor makes the memory grow; what fails for a while is tried again.
type Sender struct {
	store   *Store
	queues  []*queue
	trouble func(string)
	mu      sync.Mutex // of what follows
	why     string
	told    bool
}

// Send begins to send what is written from now on, with these labels added. Trouble is called once, from a goroutine
// of its own, when a server does not take something. A Timeless Store has no log to be sent from.
func (s *Store) Send(to *Remote, ls []Label, trouble func(why string)) (*Sender, error) {
	if s.blocks != nil || s.counters == nil {
		return nil, errors.New("metrics: only what is written as it happens can be sent on")
	}
	external := labels.NewBuilder(to.conf.GlobalConfig.ExternalLabels)
	for _, l := range ls {
		external.Set(l.Name, l.Value)
	}
	out := &Sender{store: s, trouble: trouble}
	for _, entry := range to.conf.RemoteWriteConfigs {
		q, err := newQueue(out, entry, external.Labels())
		if err != nil {
			return nil, fmt.Errorf("metrics: remote write: %s: %w", entry.URL.Redacted(), err)
		}
		out.queues = append(out.queues, q)
	}
	for _, q := range out.queues {
		q.begin()
	}
	s.db.SetWriteNotified(out)
	return out, nil
}

// Notify implements wlog.WriteNotified.
func (s *Sender) Notify() {
	for _, q := range s.queues {
		q.log.Notify()
	}
}

// RunLabel is the label that names a series' run where there are several.
const RunLabel = "run"

// Sent holds what became of the points of a Sender, summed over its servers.
type Sent struct {
	Points int    // that the servers took
	Missed int    // that they did not
	Why    string // the last thing that went wrong; empty when nothing is missing
}

// How long the end of a Sender waits for a server that takes nothing, and for what it is just taking.
const (
	silence   = 5 * time.Second
	lastFlush = 5 * time.Second
)

// Close sends what has been written until then, for as long as servers go on taking it and ctx is not done. It may be
// called when the Store is closed.
func (s *Sender) Close(ctx context.Context) Sent {
	floats, histograms := s.store.appended()
	var sum Sent
	var g sync.WaitGroup
	for _, q := range s.queues {
		g.Go(func() { q.end(ctx, floats+histograms) })
	}
	g.Wait()
	for _, q := range s.queues {
		due := floats
		if q.entry.SendNativeHistograms {
			due += histograms
		}
		took := q.took.Load()
		sum.Points += int(took)
		sum.Missed += int(due - took - q.dropped.Load())
	}
	if sum.Missed > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		sum.Why = cmp.Or(s.why, late)
	}
	return sum
}

const late = "no answer in time" // whether its own time or that of the end is over

// failed keeps the last reason, and tells the first.
func (s *Sender) failed(err error) {
	var u *url.Error
	if errors.As(err, &u) && u.Timeout() {
		err = fmt.Errorf("%s %q: %s", u.Op, u.URL, late)
	}
	s.mu.Lock()
	first := !s.told
	s.why, s.told = err.Error(), true
	s.mu.Unlock()
	if first && s.trouble != nil {
		s.trouble(err.Error())
	}
}

// appended is how many points the database has taken since it was opened.
func (s *Store) appended() (floats, histograms int64) {
	families, _ := s.counters.Gather() // what cannot be gathered counts as nothing
	for _, f := range families {
		switch f.GetName() {
		case "prometheus_tsdb_head_samples_appended_total", "prometheus_tsdb_head_out_of_order_samples_appended_total":
			for _, m := range f.GetMetric() {
				n := int64(m.GetCounter().GetValue())
				if m.GetLabel()[0].GetValue() == "float" {
					floats += n
				} else {
					histograms += n
				}
			}
		}
	}
	return floats, histograms
}
