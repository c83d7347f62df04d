package mariadb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/kit/mysqlserver"
)

// packet is one of the protocol's.
func packet(n byte, body ...byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), n}, body...)
}

var (
	handshake = packet(0, []byte("\x0a5.5.5-10.6.1-MariaDB\x00\x01\x00\x00\x0012345678\x00\xff\xf7\x21\x02\x00"+
		"\xff\x80\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00123456789012\x00mysql_native_password\x00")...)
	letIn  = packet(2, 0, 0, 0, 2, 0, 0, 0)
	done   = packet(1, 0, 0, 0, 2, 0, 0, 0) // of the session's settings
	column = append(append(packet(1, 1), packet(2, []byte("\x03def\x00\x00\x00\x01a\x00\x0c\x21\x00\xff\x00\x00"+
		"\x00\xfd\x00\x00\x00\x00\x00")...)...), packet(3, 0xfe, 0, 0, 2, 0)...)
)

// hostile is a server that does with every connection what it is told to; all that it is sent is in got.
func hostile(t *testing.T, do func(conn net.Conn)) (Dialect, *bytes.Buffer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got, done := &bytes.Buffer{}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			do(conn)
			_, _ = io.Copy(got, conn) // until the client leaves
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return at(t, "mariadb://somebody@"+l.Addr().String(), "a-secret", "d"), got
}

// at is a server by its address.
func at(t *testing.T, address, password, database string) Dialect {
	t.Helper()
	u, err := mysqlserver.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysqlserver.Config(u, false)
	if err != nil {
		t.Fatal(err)
	}
	c.Passwd = password
	return Dialect{Server{Config: c, Database: database}}
}

// say sends and takes what is sent back by then.
func say(conn net.Conn, text []byte) bool {
	if _, err := conn.Write(text); err != nil {
		return false
	}
	_, err := conn.Read(make([]byte, 4096))
	return err == nil
}

// A password is not sent as it is to a server that asks for that, unless the user said so.
func TestCleartextPassword(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		sent := make(chan []byte, 10)
		d, _ := hostile(t, func(conn net.Conn) {
			if !say(conn, handshake) {
				return
			}
			_, _ = conn.Write(packet(2, []byte("\xfemysql_clear_password\x00")...))
			answer := make([]byte, 100)
			n, _ := conn.Read(answer)
			sent <- answer[:n]
			_ = conn.Close()
		})
		d.Server.Config.AllowCleartextPasswords = allowed
		_, err := d.Connect(t.Context())
		if err == nil {
			t.Fatal("it was let in")
		}
		if got := bytes.Contains(<-sent, []byte("a-secret")); got != allowed {
			t.Errorf("allowed %v, sent %v: %v", allowed, got, err)
		}
		if !allowed && !strings.Contains(err.Error(), "cleartext_password: true") {
			t.Error(err)
		}
		if strings.Contains(err.Error(), "a-secret") {
			t.Error(err)
		}
	}
}

// Answers without an end are refused, with the server named, whatever they are made of.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	row := packet(4, append([]byte{0xfd, 0x60, 0xea, 0}, bytes.Repeat([]byte("x"), 60_000)...)...)
	part := packet(4, make([]byte, 1<<24-1)...)
	for name, more := range map[string][]byte{"rows": row, "a row": part} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := hostile(t, func(conn net.Conn) {
				if !say(conn, handshake) || !say(conn, letIn) || !say(conn, done) {
					return
				}
				if _, err := conn.Write(column); err != nil {
					return
				}
				text := bytes.Clone(more)
				for n := byte(4); ; n++ {
					text[3] = n
					if _, err := conn.Write(text); err != nil {
						return
					}
				}
			})
			s, err := d.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rows, err := s.Rows("SELECT 1")
			if err == nil || !strings.Contains(err.Error(), d.Server.Config.Addr) ||
				!strings.Contains(err.Error(), "larger than 64 MiB") {
				t.Errorf("%d rows, %v", len(rows), err)
			}
			if err := s.Close(); err != nil {
				t.Log(err) // it is closed already
			}
		})
	}
}

// A server that takes the connection and says nothing, or stops in the middle, is named after a while.
func TestSilentServer(t *testing.T) { // not parallel: the limit is everybody's
	defer func(was time.Duration) { greeting = was }(greeting)
	greeting = 200 * time.Millisecond
	for name, text := range map[string][]byte{"nothing": nil, "half": handshake[:20], "greeting alone": handshake} {
		d, _ := hostile(t, func(conn net.Conn) { _, _ = conn.Write(text) })
		_, err := d.Connect(t.Context())
		if err == nil || !strings.Contains(err.Error(), d.Server.Config.Addr) ||
			!strings.Contains(err.Error(), "within 200ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, _ := hostile(t, func(net.Conn) {})
	if _, err := d.Connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A server that has TLS and then says nothing, something else, or more than any handshake has, is told of in time; one
// that has none where it is asked for, and one whose way to log in nobody here speaks, are told by name.
func TestHostileTLS(t *testing.T) { // not parallel: the limit is everybody's
	defer func(was time.Duration) { greeting = was }(greeting)
	greeting = time.Second
	sealed := bytes.Replace(handshake, []byte("\xff\xf7\x21"), []byte("\xff\xff\x21"), 1)
	hello := append([]byte{22, 3, 3, 0x40, 0}, make([]byte, 0x4000)...) // a record of a handshake
	copy(hello[5:], []byte{11, 0xff, 0xff, 0xff})                       // of 16 MiB of certificates
	plugin := func(name string) []byte { return packet(2, []byte("\xfe"+name+"\x00")...) }
	for name, test := range map[string]struct {
		mode, want string
		do         func(net.Conn)
	}{
		"silent": {"require", "within 1s", func(c net.Conn) { say(c, sealed) }},
		"other":  {"require", "does not look like a TLS handshake", func(c net.Conn) { say(c, sealed); say(c, letIn) }},
		"endless": {"require", "tls: ", func(c net.Conn) {
			for say(c, sealed); ; {
				if _, err := c.Write(hello); err != nil {
					return
				}
			}
		}},
		"none": {"verify-full", "server does not support TLS; give the server a certificate", func(c net.Conn) {
			say(c, handshake)
		}},
		"stripped": {"require", "server does not support TLS", func(c net.Conn) {
			if say(c, handshake) {
				_, _ = c.Write(plugin("mysql_clear_password"))
			}
		}},
		"asks without": {"prefer", "give ?sslmode=require", func(c net.Conn) {
			if say(c, handshake) {
				_, _ = c.Write(plugin("mysql_clear_password"))
			}
		}},
		"dialog": {"prefer", `: "dialog"; have the user use ed25519`, func(c net.Conn) {
			if say(c, handshake) {
				_, _ = c.Write(plugin("dialog"))
			}
		}},
	} {
		d, _ := hostile(t, test.do)
		d = at(t, "mariadb://somebody@"+d.Server.Config.Addr+"?sslmode="+test.mode, "a-secret", "d")
		_, err := d.Connect(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), d.Server.Config.Addr) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
