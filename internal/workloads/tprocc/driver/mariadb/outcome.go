package mariadb

import (
	"errors"

	"github.com/go-sql-driver/mysql"

	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

func outcome(in *tprocc.Input, err error) tprocc.Outcome {
	said := (*mysql.MySQLError)(nil)
	switch {
	case errors.As(err, new(errRows)):
		return tprocc.Failed
	case !errors.As(err, &said):
		return tprocc.Lost
	case in.Invalid() && string(said.SQLState[:]) == "45404":
		return tprocc.RolledBack
	case said.Number == 1213:
		return tprocc.Deadlock
	case said.Number == 1205 || said.Number == 1020: // a lock that was waited for too long; a row changed since
		return tprocc.Serialization
	case said.Number == 1021 || said.Number == 1114: // the disk, or a table, is full
		return tprocc.OutOfSpace
	case said.Number == 1317 || said.Number == 1969 || said.Number == 3024: // killed; max_statement_time
		return tprocc.Cancelled
	case said.Number == 1053 || said.Number == 1927: // the server shuts down; the connection was killed
		return tprocc.Lost
	}
	return tprocc.Failed
}
