// Package dialects is the list of the databases that the order-entry workload runs on, one line each.
//
// It stands between the command of the worker and package tprocc. It refuses names that are not in the list.
package dialects

import (
	"fmt"

	"plimsoll/internal/pgwire"
	"plimsoll/internal/tprocc"
	"plimsoll/internal/tprocc/postgres"
)

// Of is the dialect that a job names, with its server: of PostgreSQL the one that the environment names.
func Of(j tprocc.Job) (tprocc.Dialect, error) {
	switch j.Dialect {
	case postgres.Dialect{}.Name():
		server, err := pgwire.ParseServer("")
		if err != nil {
			return nil, err
		}
		return postgres.Dialect{Server: server}, nil
	}
	return nil, fmt.Errorf("dialect %q: there is none of that name", j.Dialect)
}
