package drivers

import (
	"context"

	"plimsoll/internal/exporters/mariadb"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/workloads/tprocc"
	"plimsoll/result"
)

// MariaFacts are the version and the settings of a MariaDB or MySQL of the user's, at an address without its password.
func MariaFacts(ctx context.Context, address string, password secret.Source, cleartext bool) ([]result.Fact, error) {
	collector, err := mariadb.New(mariadb.Server{URL: address, Password: password, Cleartext: cleartext})
	if err != nil {
		return nil, err
	}
	defer collector.Close()
	version, settings, err := collector.Settings(ctx)
	return append([]result.Fact{{Group: result.ServerGroup, Name: "version", Value: version}},
		tprocc.MariaFacts(settings)...), err
}
