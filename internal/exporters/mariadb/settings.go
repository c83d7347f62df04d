package mariadb

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Lasting are the settings by which a commit lasts or does not, which are told whatever they are.
var Lasting = []string{"innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method", "log_bin",
	"sync_binlog"}

// settingsOf are queries for the settings that somebody gave, of MariaDB and of MySQL.
var settingsOf = []string{
	"SELECT variable_name AS name, global_value AS value FROM information_schema.system_variables " +
		"WHERE global_value_origin NOT IN ('COMPILE-TIME', 'AUTO', 'ENVIRONMENT') " +
		"AND NOT global_value <=> default_value",
	"SELECT variable_name AS name, variable_value AS value FROM performance_schema.variables_info " +
		"JOIN performance_schema.global_variables USING (variable_name) WHERE variable_source <> 'COMPILED'",
}

// Settings are the server's version, those of its settings that are not as it has them by itself, and Lasting. A user
// who may not see who gave a setting gets Lasting alone.
func (c *Collector) Settings(ctx context.Context) (version string, settings map[string]string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connected(ctx); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	all, err := c.rows(ctx, "SHOW GLOBAL VARIABLES")
	if err != nil {
		return "", nil, err
	}
	settings = map[string]string{}
	for _, row := range all {
		switch name := strings.ToLower(row["variable_name"]); {
		case name == "version":
			version = row["value"]
		case slices.Contains(Lasting, name):
			settings[name] = row["value"]
		}
	}
	if version == "" {
		return "", nil, errors.New("the server does not say its version")
	}
	product, ask := "MySQL", settingsOf[1]
	number, _, maria := strings.Cut(version, "-MariaDB")
	if maria {
		product, ask = "MariaDB", settingsOf[0]
	}
	version = product + " " + number
	given, err := c.rows(ctx, ask)
	if err != nil {
		return version, settings, nil // the user may not see it
	}
	for _, row := range given {
		settings[strings.ToLower(row["name"])] = row["value"]
	}
	return version, settings, nil
}
