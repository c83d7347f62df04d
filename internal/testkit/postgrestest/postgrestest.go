//go:build linux

// Package postgrestest gives tests a real PostgreSQL: a server in a folder of its own, on a unix socket and a loopback
// port that the test picks, with a password for its one role, gone when the test has ended.
//
// It is for tests only, above package postgres, which finds the programs. PostgreSQL refuses root, so a test that is
// root runs it as postgres or nobody. Where the programs are not installed a test is skipped through package needs.
package postgrestest

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/certificates"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/postgres"
)

// The one role, which may do everything, and its password.
const (
	User     = "app"
	Password = "horse:battery@staple/%41"
)

// Server is a PostgreSQL that runs until its test ends.
type Server struct {
	Bin     string // folder of psql, pgbench, ... of the same version
	Sockets string // folder of the unix socket
	Port    int    // on 127.0.0.1, and of the socket's name
	Data    string // folder of the data
	Log     string // file of what the server says

	t        testing.TB
	as       *syscall.SysProcAttr
	settings []string
	process  *os.Process
	ended    <-chan error
}

// Start makes a server with these settings ("shared_buffers=64MB") on top of some that spare the machine: small
// buffers and no fsync. It is stopped and removed when the test has ended, or is killed.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("a PostgreSQL is started: make test runs it")
	}
	bin, err := postgres.Folder()
	needs.That(t, err == nil, "postgresql", "apt-get install postgresql")
	folder, err := os.MkdirTemp("", "pg") // short: the path of a unix socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, Bin: bin, Sockets: folder,
		Data: filepath.Join(folder, "data"), Log: filepath.Join(folder, "log"),
		settings: append([]string{"fsync=off", "shared_buffers=32MB", "max_wal_size=256MB"}, settings...)}
	t.Cleanup(func() {
		if s.process != nil {
			_ = s.process.Signal(syscall.SIGQUIT) // it may have ended; nobody asks for what it has
			<-s.ended
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	s.as = unprivileged(t, folder)
	s.initialize()
	for range 3 { // until a port is free that was free
		s.Port = freePort(t)
		if s.start() {
			return s
		}
	}
	said, _ := os.ReadFile(s.Log) // what there is
	t.Fatalf("PostgreSQL does not start: %s", said)
	return nil
}

// initialize gives the server a folder of data: a copy of one that initdb has made once for each build of PostgreSQL.
func (s *Server) initialize() {
	s.t.Helper()
	program := filepath.Join(s.Bin, "initdb")
	about, err := os.Stat(program)
	if err != nil {
		s.t.Fatal(err)
	}
	key := sha256.Sum256(fmt.Appendln(nil, program, about.Size(), about.ModTime(), os.Getuid()))
	made := needs.Cached(s.t, fmt.Sprintf("postgres-%x", key[:6]), func(dir string) error {
		secret, data := filepath.Join(s.Sockets, "password"), filepath.Join(s.Sockets, "made")
		if err := os.WriteFile(secret, []byte(Password+"\n"), 0o644); err != nil { // known to everyone
			return err
		}
		initdb := exec.Command(program, "-D", data, "-U", User, "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8",
			"--locale", "C", "-N")
		initdb.SysProcAttr, initdb.Dir = s.as, s.Sockets
		if out, err := initdb.CombinedOutput(); err != nil {
			return fmt.Errorf("initdb: %w: %s", err, out)
		}
		needs.Copy(s.t, data, filepath.Join(dir, "data"))
		return os.RemoveAll(data)
	})
	needs.Copy(s.t, filepath.Join(made, "data"), s.Data)
}

// unprivileged gives the folder to one whom PostgreSQL accepts, when we are root.
func unprivileged(t testing.TB, folder string) *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		Pdeathsig: syscall.SIGQUIT}
}

func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts the server and waits for it; false when it has ended instead.
func (s *Server) start() bool {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"-D", s.Data, "-k", s.Sockets, "-p", strconv.Itoa(s.Port), "-h", "127.0.0.1"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(filepath.Join(s.Bin, "postgres"), args...)
	cmd.SysProcAttr, cmd.Dir, cmd.Stdout, cmd.Stderr = s.as, s.Sockets, log, log
	ended, err := needs.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process, s.ended = cmd.Process, ended
	pidfile := filepath.Join(s.Data, "postmaster.pid")
	for range 3000 {
		if text, err := os.ReadFile(pidfile); err == nil {
			lines := strings.Split(string(text), "\n")
			if len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready" {
				return true
			}
		}
		select {
		case <-ended:
			s.process = nil
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// Standby is a server that follows this one by way of an address, HOST:PORT, which may be a relay of the test's own. It
// listens on 127.0.0.2, at the port that this one has on 127.0.0.1.
func (s *Server) Standby(t testing.TB, by string) *Server {
	t.Helper()
	folder, err := os.MkdirTemp("", "pg") // as in Start
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(by)
	if err != nil {
		t.Fatal(err)
	}
	b := &Server{t: t, Bin: s.Bin, Sockets: folder, Port: s.Port, Data: filepath.Join(folder, "data"),
		Log: filepath.Join(folder, "log"), as: unprivileged(t, folder)}
	b.settings = append(slices.Clone(s.settings), "listen_addresses=127.0.0.2", fmt.Sprintf(
		"primary_conninfo=host=%s port=%s user=%s password=%s", host, port, User, Password))
	t.Cleanup(func() {
		b.Stop()
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	backup := exec.Command(filepath.Join(s.Bin, "pg_basebackup"), "-D", b.Data, "-d", s.URL(), "-R", "-c", "fast")
	backup.SysProcAttr, backup.Dir = b.as, folder
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	if !b.start() {
		said, _ := os.ReadFile(b.Log) // what there is
		t.Fatalf("the standby does not start: %s", said)
	}
	return b
}

// Crash ends the server and every connection without a farewell. What was committed is there after Restart.
func (s *Server) Crash() {
	s.t.Helper()
	if err := s.process.Signal(syscall.SIGQUIT); err != nil {
		s.t.Fatal(err)
	}
	<-s.ended
	s.process = nil
}

// Stop ends the server at once, as a crash of its machine does not: what was committed is there after Restart.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Signal(syscall.SIGINT) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		_ = s.process.Signal(syscall.SIGQUIT)
		<-s.ended
	}
	s.process = nil
}

// Restart ends every connection and starts the server again, on the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if !s.start() {
		said, _ := os.ReadFile(s.Log) // what there is
		s.t.Fatalf("PostgreSQL does not start again: %s", said)
	}
}

// Pid is the process of the server, whose children are its connections.
func (s *Server) Pid() int { return s.process.Pid }

// URL is the server's address over TCP, with its password, and the database postgres.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgresql", User: url.UserPassword(User, Password), Path: "/postgres",
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))}
	return u.String()
}

// SocketURL is URL by the unix socket.
func (s *Server) SocketURL() string {
	u := url.URL{Scheme: "postgresql", User: url.UserPassword(User, Password), Path: "/postgres",
		RawQuery: url.Values{"host": {s.Sockets}, "port": {strconv.Itoa(s.Port)}}.Encode()}
	return u.String()
}

// TLS restarts the server with a certificate for 127.0.0.1 (server.crt and server.key of Sockets), which clients may
// show as well, and gives files with the authority that signed it and with another one of the same name.
func (s *Server) TLS() (authority, another string) {
	s.t.Helper()
	files := certificates.Make(s.t, s.Sockets)
	for _, path := range files.All() {
		if s.as.Credential != nil {
			if err := os.Chown(path, int(s.as.Credential.Uid), int(s.as.Credential.Gid)); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.settings = append(s.settings, "ssl=on", "ssl_cert_file="+files.Certificate, "ssl_key_file="+files.Key,
		"ssl_ca_file="+files.Authority)
	s.Restart()
	return files.Authority, files.Another
}

// OnDisk makes a database whose tables are in a folder, such as a file system of its own.
func (s *Server) OnDisk(database, folder string) {
	s.t.Helper()
	folder = filepath.Join(folder, database)
	if err := os.Mkdir(folder, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if s.as.Credential != nil {
		if err := os.Chown(folder, int(s.as.Credential.Uid), int(s.as.Credential.Gid)); err != nil {
			s.t.Fatal(err)
		}
		for up := filepath.Dir(folder); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
			if err := os.Chmod(up, 0o755); err != nil { // it has to be passed through
				s.t.Fatal(err)
			}
		}
	}
	s.Exec("postgres", fmt.Sprintf("CREATE TABLESPACE %s LOCATION '%s'", database, folder))
	s.Exec("postgres", fmt.Sprintf("CREATE DATABASE %[1]s TABLESPACE %[1]s", database))
}

// Exec runs SQL with psql and returns its rows, columns split by "|".
func (s *Server) Exec(database, sql string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.Bin, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", s.Sockets,
		"-p", strconv.Itoa(s.Port), "-U", User, "-d", database, "-c", sql)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+Password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("psql: %v: %s", err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// Gone waits until no session is left that meets a condition on pg_stat_activity: a server notices that a client has
// gone when it is done with what that one asked for.
func (s *Server) Gone(condition string, within time.Duration) {
	s.t.Helper()
	left := ""
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = s.Exec("postgres", "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "+condition)
		if left == "0" {
			return
		}
	}
	s.t.Fatalf("after %v %s sessions are left of %s", within, left, condition)
}

// String is the server's address without its password.
func (s *Server) String() string {
	return fmt.Sprintf("PostgreSQL on 127.0.0.1:%d and %s", s.Port, s.Sockets)
}
