package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"

	"plimsoll/result"
)

// durability are the settings that say whether a commit outlives a loss of power, with what PostgreSQL has by itself.
var durability = []struct{ name, standard string }{{"fsync", "on"}, {"synchronous_commit", "on"},
	{"full_page_writes", "on"}}

// apart are settings, by how they begin, that say nothing of how fast a server is: where and how it is reached, how it
// writes words and times. A difference in them is told and refuses nothing.
var apart = []string{"lc_", "log_", "timezone", "datestyle", "intervalstyle", "default_text_search_config",
	"cluster_name", "port", "listen_addresses", "unix_socket_", "external_pid_file", "dynamic_shared_memory_type",
	"application_name", "logging_collector", "event_source", "update_process_title", "client_encoding"}

// SettingFacts are the settings of a server that are not as PostgreSQL has them, after those of durability, which are
// told in any case.
func SettingFacts(settings map[string]string) []result.Fact {
	var out []result.Fact
	add := func(name, value string) {
		f := result.Fact{Group: result.ServerGroup, Name: name, Value: value, Across: result.MustAgree}
		if slices.ContainsFunc(apart, func(word string) bool { return strings.HasPrefix(name, word) }) {
			f.Across = result.Noted
		}
		out = append(out, f)
	}
	lower := map[string]string{}
	for name, value := range settings {
		lower[strings.ToLower(name)] = value
	}
	for _, d := range durability {
		value, given := lower[d.name]
		if !given {
			value = d.standard
		}
		add(d.name, value)
		delete(lower, d.name)
	}
	for _, name := range slices.Sorted(maps.Keys(lower)) {
		add(name, lower[name])
	}
	return out
}

// Facts are of a server of the run's own, as it is set up. One of the user's is asked when the run begins.
func (c Config) Facts() []result.Fact {
	if !c.RunsServer() {
		return nil
	}
	settings := map[string]string{"max_connections": ownConnections}
	maps.Copy(settings, c.Settings)
	out := SettingFacts(settings)
	if c.CPUs != "" {
		out = append(out, result.Fact{Group: result.ServerGroup, Name: "CPUs", Value: c.CPUs, Across: result.MustAgree})
	}
	return out
}

// Asked are the version and the settings of a server of the user's, which is asked for them.
func (c Config) Asked(ctx context.Context) ([]result.Fact, error) {
	if c.RunsServer() {
		return nil, nil
	}
	u, err := c.address()
	if err != nil {
		return nil, err
	}
	state, err := Ask(ctx, u.String(), c.Password)
	if err != nil {
		return nil, err
	}
	out := append([]result.Fact{{Group: result.ServerGroup, Name: "version", Value: "PostgreSQL " + state.Version}},
		SettingFacts(state.Settings)...)
	if state.Group != "" {
		out = append(out, result.Fact{Group: result.ServerGroup, Name: result.ControlGroup, Value: state.Group})
	}
	return out, nil
}
