package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/internal/workloads/postgres"
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

// keeper keeps services on a test's machine.
type keeper struct {
	*workloadtest.Host
	process target.Process
	pid     int
}

func (k *keeper) StartService(ctx context.Context, s target.Service) (err error) {
	k.process, err = k.Start(ctx, s.Command)
	if err == nil {
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

// environment returns what a client of a job would have, for this process: working folders are those of the machine.
func environment(dir string, job workload.Job) (list []string) {
	for _, e := range job.Command.Env {
		e = strings.Replace(e, "/proc/self/cwd", dir, 1)
		list = append(list, strings.Replace(e, "PGPASSFILE=", "PGPASSFILE="+dir+"/", 1))
	}
	return list
}

func psql(t *testing.T, env []string, args ...string) string {
	t.Helper()
	folder, err := postgres.Folder()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(folder, "psql"), append([]string{"-XAtqw"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("psql %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A run's own server is made with what was stated, lets in who has the password alone, and keeps its data when it is
// started again. The password is in no file but the client's.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	_, err := postgres.Folder()
	needs.That(t, err == nil, "postgresql", "apt-get install postgresql")
	host := workloadtest.NewHost(t)
	if os.Getuid() == 0 { // the server is another one's
		for dir := host.Dir; dir != os.TempDir(); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	spec := workload.Spec{Name: "Load it"}
	c := postgres.Config{Settings: map[string]string{"shared_buffers": "16MB", "application_name": `it's \ here`},
		Database: "bench"}
	tool, err := postgres.CheckServer(t.Context(), host, spec)
	if err != nil || tool.Version == "" {
		t.Fatalf("%+v, %v", tool, err)
	}
	server, err := c.Server(spec)
	if err != nil {
		t.Fatal(err)
	}
	var job workload.Job
	if err := c.Apply(spec, &job); err != nil {
		t.Fatal(err)
	}
	if err := postgres.PutPassword(t.Context(), host, job); err != nil {
		t.Fatal(err)
	}
	for name, data := range server.Files {
		if err := target.WriteFile(t.Context(), host, name, data); err != nil {
			t.Fatal(err)
		}
	}
	env := environment(host.Dir, job)
	k := &keeper{Host: host}
	for i, query := range []string{
		"create table t as select 1; show shared_buffers; show application_name; select current_user, current_database()",
		"select count(*) from t",
	} {
		if err := k.StartService(t.Context(), server.Service); err != nil {
			t.Fatal(err)
		}
		if err := target.Ready(t.Context(), clock.Real{}, k, server.Service, server.Ready); err != nil {
			t.Fatal(err)
		}
		want := []string{"16MB\npsql\nplimsoll|bench", "1"}[i]
		if got := psql(t, env, "-c", query); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		_ = syscall.Kill(k.pid, syscall.SIGTERM)
		if exit, err := k.process.Wait(t.Context()); err != nil || exit != (target.Exit{}) {
			t.Errorf("%+v, %v", exit, err)
		}
	}
	password, err := os.ReadFile(filepath.Join(host.Dir, workload.FolderName(spec.Name), ".pgpass"))
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(password)), "*:*:*:*:")
	for name, data := range server.Files {
		if strings.Contains(string(data), value) {
			t.Errorf("%s has the password", name)
		}
	}
}

// A file of passwords is searched for the database that the config names beside a URL without one.
func TestPasswordOfDatabase(t *testing.T) {
	s := postgrestest.Start(t)
	s.Exec("postgres", "create database bench")
	file := filepath.Join(t.TempDir(), "pgpass")
	line := fmt.Sprintf("127.0.0.1:%d:bench:%s:%s\n", s.Port, postgrestest.User,
		strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(postgrestest.Password))
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSFILE", file)
	t.Setenv("PGPASSWORD", "")
	c := postgres.Config{Database: "bench", URL: fmt.Sprintf("postgresql://%s@127.0.0.1:%d", postgrestest.User, s.Port)}
	host := workloadtest.NewHost(t)
	var job workload.Job
	if err := c.Apply(workload.Spec{Name: "w"}, &job); err != nil {
		t.Fatal(err)
	}
	if err := postgres.PutPassword(t.Context(), host, job); err != nil {
		t.Fatal(err)
	}
	got := psql(t, append(environment(host.Dir, job), "PGPASSWORD="), "-c", "select current_database()")
	if got != "bench" {
		t.Errorf("%q", got)
	}
	counters, err := c.Counters(workload.Spec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer counters.Close()
	page, _, err := counters.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = page.Close()
}

// A user's server is reached with the password that stands where the config says, or where psql takes it.
func TestUsersServer(t *testing.T) {
	s := postgrestest.Start(t)
	t.Setenv("SECRET_OF_TEST", postgrestest.Password)
	t.Setenv("PGPASSWORD", postgrestest.Password)
	source, err := secret.ParseSource("env:SECRET_OF_TEST")
	if err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"tcp": s.URL(), "socket": s.SocketURL()} {
		for _, password := range []secret.Source{{}, source} {
			c := postgres.Config{Password: password, Database: "postgres",
				URL: strings.Replace(url, ":horse%3Abattery%40staple%2F%2541", "", 1)}
			if bad := postgres.CheckURL(c.URL); bad != nil {
				t.Fatalf("%s: %q", c.URL, bad)
			}
			host := workloadtest.NewHost(t)
			var job workload.Job
			if err := c.Apply(workload.Spec{Name: "w"}, &job); err != nil {
				t.Fatal(err)
			}
			if err := postgres.PutPassword(t.Context(), host, job); err != nil {
				t.Fatal(err)
			}
			env := append(environment(host.Dir, job), "PGPASSWORD=")
			if got := psql(t, env, "-c", "select current_user"); got != postgrestest.User {
				t.Errorf("%s: %q", name, got)
			}
			info, err := os.Stat(filepath.Join(host.Dir, "w", ".pgpass"))
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
			wantOutside := []string{strings.TrimPrefix(strings.Split(s.String(), " ")[2], " ")}
			if name == "socket" {
				wantOutside = []string{s.Sockets}
			}
			if diff := cmp.Diff(wantOutside, job.Command.Outside); diff != "" {
				t.Error(diff)
			}
			for file, data := range job.Files {
				if strings.Contains(string(data), "staple") {
					t.Errorf("%s: %s has the password", name, file)
				}
			}
		}
	}
	_, err = pgconn.Connect(t.Context(), s.URL()+"?password=wrong")
	if err == nil {
		t.Error("a wrong password")
	}
}
