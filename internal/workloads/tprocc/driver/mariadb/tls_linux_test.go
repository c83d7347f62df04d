package mariadb_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"plimsoll/internal/testkit/certificates"
	"plimsoll/internal/testkit/mariadbtest"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/internal/workloads/tprocc/driver/mariadb"
)

// TLS with a server's own authority: every mode of checking it, users of whom it is asked, in the session and in the
// loop, and what is said when something is missing.
func TestTLS(t *testing.T) {
	files := certificates.Make(t, t.TempDir())
	s := mariadbtest.Start(t, "--ssl-ca="+files.Authority, "--ssl-cert="+files.Certificate, "--ssl-key="+files.Key,
		"--innodb-flush-log-at-trx-commit=2", "--plugin-load-add=auth_ed25519")
	to := func(user, host string, more ...string) mariadb.Dialect {
		q := url.Values{}
		for i := 0; i < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		return mariadb.At(t, fmt.Sprintf("mariadb://%s@%s:%d?%s", user, host, s.Port, q.Encode()), mariadbtest.Password,
			"bench")
	}
	of := func(more ...string) mariadb.Dialect { return to(mariadbtest.User, "127.0.0.1", more...) }
	admin, err := of("sslmode", "disable").Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if got := value(t, admin, "SHOW STATUS LIKE 'Ssl_cipher'"); got != "Ssl_cipher " {
		t.Errorf("without TLS: %q", got)
	}
	do(t, admin, "CREATE DATABASE bench")
	for user, how := range map[string]string{"sealed": "BY '%s' REQUIRE SSL", "shown": "BY '%s' REQUIRE X509",
		"curve": "VIA ed25519 USING PASSWORD('%s')"} {
		do(t, admin, "CREATE USER "+user+"@'%' IDENTIFIED "+fmt.Sprintf(how, mariadbtest.Password))
		do(t, admin, "GRANT ALL ON *.* TO "+user+"@'%'")
	}
	full, ca := []string{"sslmode", "verify-full", "sslrootcert", files.Authority}, "sslrootcert"
	mine := append([]string{"sslcert", files.Certificate, "sslkey", files.Key}, full...)
	for name, d := range map[string]mariadb.Dialect{
		"as is": of(), "require": of("sslmode", "require"), "full": of(full...),
		"another name": to(mariadbtest.User, "localhost", "sslmode", "verify-ca", ca, files.Authority),
		"asked":        to("sealed", "127.0.0.1", full...), "shown": to("shown", "127.0.0.1", mine...),
		"ed25519": to("curve", "127.0.0.1"),
	} {
		c, err := d.Connect(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := value(t, c, "SHOW STATUS LIKE 'Ssl_version'"); got != "Ssl_version TLSv1.3" {
			t.Errorf("%s: %q", name, got)
		}
		_ = c.Close()
	}
	for want, d := range map[string]mariadb.Dialect{
		"?sslrootcert=FILE":    of("sslmode", "verify-ca", ca, files.Another),
		"unknown authority":    of("sslmode", "require", ca, files.Another),
		"or ?sslmode=verify":   to(mariadbtest.User, "localhost", full...),
		"(?sslmode=require)":   to("sealed", "127.0.0.1", "sslmode", "disable"),
		"?sslcert=FILE&sslkey": to("shown", "127.0.0.1", full...),
	} {
		if c, err := d.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), mariadbtest.Password) {
			t.Errorf("%v, %v, want %q", c, err, want)
		}
	}
	d := to("shown", "127.0.0.1", mine...)
	if err := (&tprocc.Load{Dialect: d, Warehouses: 1, Workers: 2, Data: data}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	use(t, d, admin, "shown")
	if got := value(t, admin, "SELECT variable_value > 0 FROM information_schema.global_status WHERE variable_name = "+
		"'ssl_accepts'"); got != "1" {
		t.Error(got)
	}
}
