package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// Durability comes first, told in any case; then what differs from PostgreSQL's own. What says nothing of speed refuses
// no comparison.
func TestSettingFacts(t *testing.T) {
	t.Parallel()
	of := func(name, value string, across result.Across) result.Fact {
		return result.Fact{Group: result.ServerGroup, Name: name, Value: value, Across: across}
	}
	want := []result.Fact{of("fsync", "off", result.MustAgree), of("synchronous_commit", "on", result.MustAgree),
		of("full_page_writes", "on", result.MustAgree), of("log_min_messages", "error", result.Noted),
		of("shared_buffers", "1GB", result.MustAgree), of("timezone", "UTC", result.Noted)}
	got := SettingFacts(map[string]string{"shared_buffers": "1GB", "FSYNC": "off", "TimeZone": "UTC",
		"log_min_messages": "error"})
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	want = []result.Fact{of("fsync", "on", result.MustAgree), of("synchronous_commit", "off", result.MustAgree),
		of("full_page_writes", "on", result.MustAgree), of("max_connections", "300", result.MustAgree),
		of("CPUs", "0-1", result.MustAgree)}
	own := Config{Settings: map[string]string{"synchronous_commit": "off"}, CPUs: "0-1"}
	if d := cmp.Diff(want, own.Facts()); d != "" {
		t.Error(d)
	}
	if got := (Config{URL: "postgresql://a@h/d"}).Facts(); got != nil {
		t.Errorf("a server of the user's: %v", got)
	}
}

// Random numbers are the same in every run, but on tables of the user's, where an earlier run's keys are.
func TestSeed(t *testing.T) {
	t.Parallel()
	theirs := Config{URL: "postgresql://a@192.0.2.1/b"}
	for _, c := range []struct {
		on         Config
		initialise string
		want       uint64
	}{{Config{}, Never, 7}, {theirs, Missing, 7}, {theirs, Never, 0}} {
		if got := c.on.Seed(7, c.initialise); got != c.want {
			t.Errorf("%+v, %s: %d, want %d", c.on, c.initialise, got, c.want)
		}
	}
}
