package pgwire_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"plimsoll/internal/kit/pgwire"
)

// asks is a server without TLS that asks for the password in clear text. It tells what it was sent.
func asks(t *testing.T, network, at string) (net.Listener, <-chan string) {
	t.Helper()
	listener, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	sent := make(chan string, 10)
	answer := func(conn net.Conn) (password string) {
		defer conn.Close()
		b := pgproto3.NewBackend(conn, conn)
		for {
			first, err := b.ReceiveStartupMessage()
			if err != nil {
				return ""
			}
			if _, ok := first.(*pgproto3.SSLRequest); !ok {
				break
			}
			if _, err := conn.Write([]byte("N")); err != nil {
				return ""
			}
		}
		b.Send(&pgproto3.AuthenticationCleartextPassword{})
		if b.Flush() != nil || b.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
			return ""
		}
		if said, ok := first(b.Receive()).(*pgproto3.PasswordMessage); ok {
			password = said.Password
		}
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "no"})
		_ = b.Flush()
		return password
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(sent)
				return
			}
			if password := answer(conn); password != "" {
				sent <- password
			}
		}
	}()
	return listener, sent
}

func first[T any](v T, _ error) T { return v }

// A password is not sent as it is over a network without TLS, unless the user said so.
func TestCleartextPassword(t *testing.T) {
	t.Parallel()
	const password = "a-secret"
	for name, c := range map[string]struct {
		network, more string
		sent          bool
	}{
		"without TLS":               {"tcp", "sslmode=disable", false},
		"with TLS if possible":      {"tcp", "sslmode=prefer", false},
		"allowed by its name":       {"tcp", "sslmode=disable&require_auth=password", true},
		"over a socket":             {"unix", "sslmode=disable", true},
		"with TLS and nothing else": {"tcp", "sslmode=require", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			at, host := "127.0.0.1:0", ""
			if c.network == "unix" {
				at, host = filepath.Join(dir, ".s.PGSQL.5432"), "&host="+dir
			}
			listener, sent := asks(t, c.network, at)
			url := "postgresql://app:" + password + "@"
			if c.network == "tcp" {
				url += listener.Addr().String()
			}
			server, err := pgwire.ParseServer(url + "/x?" + c.more + host)
			if err != nil {
				t.Fatal(err)
			}
			_, err = server.Connect(t.Context())
			if err == nil || strings.Contains(err.Error(), password) {
				t.Errorf("it was let in, or it tells: %v", err)
			}
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
			var got []string
			for s := range sent {
				got = append(got, s)
			}
			if want := c.sent; want != (len(got) > 0) || want && got[0] != password {
				t.Errorf("sent %q, want it sent: %v; %v", got, want, err)
			}
			if !c.sent && !strings.Contains(c.more, "require") && !strings.Contains(err.Error(), "it was not sent") {
				t.Error(err)
			}
		})
	}
}
