//go:build linux

package postgrestest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// A server takes settings, wants its password over both ways, survives a restart and leaves nothing.
func TestStart(t *testing.T) {
	t.Parallel()
	var folder string
	t.Run("server", func(t *testing.T) {
		s := postgrestest.Start(t, "work_mem=7MB")
		folder = s.Sockets
		if got := s.Exec("postgres", "create table t as select 1 as a; show work_mem"); got != "7MB" {
			t.Errorf("work_mem is %q", got)
		}
		s.Restart()
		for _, url := range []string{s.URL(), s.SocketURL()} {
			out, err := exec.Command(filepath.Join(s.Bin, "psql"), "-XAtc", "select a from t", url).CombinedOutput()
			if err != nil || string(out) != "1\n" {
				t.Errorf("%s: %v: %s", s, err, out)
			}
		}
		cmd := exec.Command(filepath.Join(s.Bin, "psql"), "-XAtc", "select 1", s.URL()+"?password=wrong")
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("a wrong password: %s", out)
		}
	})
	if _, err := os.Stat(folder); folder != "" && !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", folder, err)
	}
}
