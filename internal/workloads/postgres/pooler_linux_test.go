package postgres_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/workloads/postgres"
)

// pooler passes all on and gives sessions other numbers, as poolers do.
func pooler(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() {
				defer client.Close()
				for head := make([]byte, 5); ; {
					if _, err := io.ReadFull(server, head); err != nil {
						return
					}
					body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
					if _, err := io.ReadFull(server, body); err != nil {
						return
					}
					if head[0] == 'K' {
						binary.BigEndian.PutUint32(body, binary.BigEndian.Uint32(body)+1)
					}
					if _, err := client.Write(append(head[:5:5], body...)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// Through a pooler a claim is a transaction's, so that no session that the pooler keeps goes on having it, and what
// would need a session of its own is refused.
func TestPooler(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Host = pooler(t, u.Host)
	server, err := pgwire.ParseServer(u.String() + "?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := server.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := postgres.Unpooled(conn); err == nil || !strings.Contains(err.Error(), "a pooler stands between") {
		t.Error(err)
	}
	if path, err := postgres.Path(conn, "nowhere", false); path != "" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	if _, err := postgres.Path(conn, "nowhere", true); err == nil ||
		!strings.Contains(err.Error(), "keeps no search_path") {
		t.Error(err)
	}
	claim, err := postgres.NewClaim(t.Context(), server, "one")
	if err != nil {
		t.Fatal(err)
	}
	const held = "select string_agg(a.state, ' ') from pg_locks l join pg_stat_activity a on a.pid = l.pid where " +
		"l.locktype = 'advisory'"
	state := func() string {
		rows, err := conn.Do(held)
		if err != nil || !rows.Next() {
			t.Fatal(err)
		}
		return string(rows.Column(0))
	}
	if got := state(); got != "idle in transaction" {
		t.Errorf("the claim is of a session that is %q", got)
	}
	if _, err := postgres.NewClaim(t.Context(), server, "two"); err == nil ||
		!strings.Contains(err.Error(), "run one works on this database") {
		t.Error(err)
	}
	claim.Close()
	for limit := time.Now().Add(20 * time.Second); state() != ""; {
		if time.Now().After(limit) {
			t.Fatal("the claim goes on")
		}
	}
}
