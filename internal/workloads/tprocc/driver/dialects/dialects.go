// Package dialects is the list of the databases that the order-entry workload runs on, one line each.
//
// It stands between the command of the worker and package tprocc. It refuses names that are not in the list.
package dialects

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"plimsoll/internal/kit/mysqlserver"
	"plimsoll/internal/kit/pgwire"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/internal/workloads/tprocc/driver/mariadb"
	"plimsoll/internal/workloads/tprocc/driver/postgres"
	"plimsoll/internal/workloads/tprocc/driver/sqlserver"
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
	case mariadb.Dialect{}.Name():
		u, err := mysqlserver.Parse(j.URL)
		if err != nil {
			return nil, err
		}
		c, err := mysqlserver.Config(u, j.Cleartext)
		if err != nil {
			return nil, err
		}
		secret, err := os.ReadFile(j.PassFile)
		c.Passwd = string(secret)
		return mariadb.Dialect{Server: mariadb.Server{Config: c, Database: j.Database}}, err
	case sqlserver.Dialect{}.Name():
		address, user, password, err := access(j)
		return sqlserver.Dialect{Server: sqlserver.Server{Address: address, User: user, Password: password,
			Database: j.Database}}, err
	}
	return nil, fmt.Errorf("dialect %q: there is none of that name", j.Dialect)
}

// access returns what a job says of a SQL Server.
func access(j tprocc.Job) (address, user, password string, err error) {
	u, err := url.Parse(j.URL)
	if err != nil || u.Hostname() == "" {
		return "", "", "", errors.New("the job's url names no server")
	}
	secret, err := os.ReadFile(j.PassFile)
	if err != nil {
		return "", "", "", err
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "1433")), u.User.Username(), string(secret), nil
}
