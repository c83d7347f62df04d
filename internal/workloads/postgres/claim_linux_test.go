package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/workloads/postgres"
)

// A second run is refused by the name of the first, until that has ended, however it does.
func TestClaim(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	server, err := pgwire.ParseServer(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	claim := func(run string) (*postgres.Claim, error) { return postgres.NewClaim(t.Context(), server, run) }
	first, err := claim("one")
	if err != nil {
		t.Fatal(err)
	}
	again, err := claim("one")
	if err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		taken := (*postgres.ClaimedError)(nil)
		if _, err := claim("two"); !errors.As(err, &taken) || taken.Run != "run one" ||
			!strings.Contains(err.Error(), "run one works on this database") {
			t.Errorf("%v", err)
		}
	}
	refused()
	first.Close()
	refused()
	s.Exec("postgres", "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'plimsoll run one'")
	second, err := claim("two")
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	again.Close()
}
