package tprocc

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/mysqlserver"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	maria "plimsoll/internal/workloads/tprocc/driver/mariadb"
)

// keeper keeps services on a test's machine.
type keeper struct {
	*workloadtest.Host
	process target.Process
	pid     int
}

func (k *keeper) StartService(ctx context.Context, s target.Service) (err error) {
	if k.process, err = k.Start(ctx, s.Command); err == nil {
		k.pid = k.Pids()[len(k.Pids())-1]
	}
	return err
}

func (k *keeper) ServiceState(ctx context.Context, _ string) (target.ServiceState, error) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	exit, err := k.process.Wait(ended)
	return target.ServiceState{Started: true, Running: err != nil, Exit: exit}, nil
}

func (k *keeper) StopService(context.Context, string, time.Duration) error { return nil }

// A MariaDB of the run's own is made with what was stated, lets in who has the password alone, and keeps its data when
// it is started again. The password is in no file but the client's.
func TestOwnMariaDB(t *testing.T) {
	t.Parallel()
	needs.MariaDB(t)
	host := workloadtest.NewHost(t)
	if os.Getuid() == 0 { // the server is another one's
		for dir := host.Dir; dir != os.TempDir(); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	spec := specOf("dialect: mariadb\ndatabase: bench\nserver: {settings: {innodb_buffer_pool_size: 32M, " +
		"init_connect: \"\"}}\n")
	err := Engine{}.Validate(spec)
	if err == nil || !strings.Contains(err.Error(), "init_connect is not for a scenario") {
		t.Errorf("%v", err)
	}
	spec = specOf("dialect: mariadb\ndatabase: bench\nserver: {settings: {innodb_buffer_pool_size: 32M}}\n")
	if peers, ok, err := (Engine{}).Peers(spec); err != nil || !ok || peers != (workload.Peers{Served: true}) {
		t.Errorf("%+v, %v, %v", peers, ok, err)
	}
	tool, err := Engine{}.CheckServer(t.Context(), host, spec)
	if err != nil || tool.Version == "" {
		t.Fatalf("%+v, %v", tool, err)
	}
	server, err := Engine{}.Server(spec)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range server.Files {
		if err := target.WriteFile(t.Context(), host, name, data); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), ownPassword()) {
			t.Errorf("%s has the password", name)
		}
	}
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := putPassword(t.Context(), host, job); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(host.Dir, workload.FolderName(spec.Name), "tprocc.password")
	secret, err := os.ReadFile(file)
	about, err2 := os.Stat(file)
	if err != nil || err2 != nil || about.Mode().Perm() != fs.FileMode(0o600) {
		t.Fatal(err, err2, about)
	}
	u, err := mysqlserver.Parse("mariadb://plimsoll@localhost?socket=" + filepath.Join(host.Dir, "mariadb", "socket"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysqlserver.Config(u, false)
	if err != nil {
		t.Fatal(err)
	}
	c.Passwd = string(secret)
	d := maria.Dialect{Server: maria.Server{Config: c, Database: "bench"}}
	k := &keeper{Host: host}
	for i, want := range []string{"[[33554432 bench]]", "[[33554432 kept]]"} {
		if err := k.StartService(t.Context(), server.Service); err != nil {
			t.Fatal(err)
		}
		if err := target.Ready(t.Context(), clock.Real{}, k, server.Service, server.Ready); err != nil {
			said, _ := os.ReadFile(filepath.Join(host.Dir, "mariadb", "output"))
			t.Fatalf("%v: %s", err, said)
		}
		s, err := d.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, err := s.Rows("select @@innodb_buffer_pool_size, max(schema_name) from information_schema.schemata " +
			"where schema_name in ('bench', 'kept')")
		if got := fmt.Sprint(rows); err != nil || got != want {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
		if i == 0 {
			if err := s.Exec("create database kept"); err != nil {
				t.Error(err)
			}
		}
		_ = s.Close()
		for user, password := range map[string]string{"plimsoll": "wrong", "root": "", "mysql": ""} {
			wrong := d
			wrong.Server.Config = c.Clone()
			wrong.Server.Config.User, wrong.Server.Config.Passwd = user, password
			if s, err := wrong.Connect(t.Context()); err == nil && (user == "plimsoll" || os.Getuid() != 0) {
				_ = s.Close()
				t.Errorf("%s gets in with password %q", user, password)
			}
		}
		_ = syscall.Kill(k.pid, syscall.SIGTERM)
		if exit, err := k.process.Wait(t.Context()); err != nil || exit != (target.Exit{}) {
			t.Errorf("%+v, %v", exit, err)
		}
	}
}
