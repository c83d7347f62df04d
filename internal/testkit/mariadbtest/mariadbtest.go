// Package mariadbtest starts a MariaDB for a test: in a folder of its own, with one user, ended with the test. For
// tests only.
package mariadbtest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// User and Password are those of the user that may all.
const (
	User     = "app"
	Password = "horse:@/"
)

// Server is one that runs.
type Server struct {
	Port   int // on 127.0.0.1
	Socket string
}

// Start starts one, with options of mariadbd such as --innodb-buffer-pool-size=64M.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	server, install := needs.MariaDB(t)
	dir := t.TempDir()
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	about, err := os.Stat(server)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("mariadb-%d-%d-%s", about.Size(), about.ModTime().Unix(), who.Uid)
	needs.Copy(t, needs.Cached(t, name, func(folder string) error {
		out, err := exec.Command(install, "--no-defaults", "--datadir="+folder, "--skip-test-db",
			"--user="+who.Username, "--auth-root-authentication-method=normal").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}), dir+"/data")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Port: listener.Addr().(*net.TCPAddr).Port, Socket: filepath.Join(dir, "s")}
	_ = listener.Close() // it was only to learn a port
	first := filepath.Join(dir, "first.sql")
	if err := os.WriteFile(first, []byte("CREATE USER "+User+"@'%' IDENTIFIED BY '"+Password+"';\nGRANT ALL ON *.* TO "+
		User+"@'%' WITH GRANT OPTION;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(server, append([]string{"--no-defaults", "--user=" + who.Username,
		"--datadir=" + dir + "/data", "--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", s.Port),
		"--socket=" + s.Socket, "--init-file=" + first, "--skip-name-resolve", "--pid-file=" + dir + "/pid",
		"--log-error=" + dir + "/log.err"}, options...)...)
	ended, err := needs.Start(process)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	for range 300 { // until it greets: an error is a greeting of another kind
		if conn, err := net.DialTimeout("unix", s.Socket, time.Second); err == nil {
			_ = conn.SetDeadline(time.Now().Add(time.Second))
			_, err := bufio.NewReader(conn).Peek(5)
			_ = conn.Close()
			said, _ := os.ReadFile(dir + "/log.err")
			if err == nil && strings.Contains(string(said), "ready for connections") {
				return s
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	said, _ := os.ReadFile(dir + "/log.err")
	t.Fatalf("the server does not start: %s", said)
	return nil
}
