package pgload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/postgrestest"
)

// scripted is a job of one script that needs no tables.
func scripted(text string, change func(*Job)) Job {
	return job(func(j *Job) {
		j.Initialise, j.Scripts = Never, []Script{{"s", text, 1}}
		change(j)
	})
}

// An open loop whose server stands still for a while: response times show it, service times do not, and arrivals that
// waited are late.
func TestStall(t *testing.T) {
	s := postgrestest.Start(t)
	const stall = 600 * time.Millisecond
	stalled := make(chan error, 1)
	j := scripted("SELECT 1;", func(j *Job) { // one client: while it waits all others do
		j.Clients, j.Rate, j.Duration, j.Arrivals, j.Late = 1, 400, 2*time.Second, Constant, 50*time.Millisecond
	})
	var server = server(t, s.URL())
	o := outcome{values: map[string]float64{}}
	begun := false
	err := Run(context.Background(), j, server, 50*time.Millisecond, func(st worker.State) {
		if o.State = st; !begun && st.Operations[0].Times.Count() > 20 {
			begun = true
			go func() { stalled <- stop(s, stall) }()
		}
	}, func(string) {})
	if err := errors.Join(err, <-stalled); err != nil {
		t.Fatal(err)
	}
	_, measures := j.Declared()
	for i, v := range o.Values {
		if v != nil {
			o.values[measures[i].Name] = *v
		}
	}
	times := o.Operations[0].Times
	waited := times.CountAbove(uint64(stall / 4))
	if waited < 50 || o.values["late_arrivals"] < 50 || o.values["service_p95"] > 1e6*(stall/4).Seconds() {
		t.Errorf("%d waited, %v", waited, o.values)
	}
	// Every arrival of the time was served, late or not.
	if n := float64(times.Count()) + o.values["unserved_arrivals"]; n < 795 || n > 805 {
		t.Errorf("%g arrivals of 800", n)
	}
}

// stop has every process of the server stand still for a time.
func stop(s *postgrestest.Server, stall time.Duration) error {
	pids := []int{s.Pid()}
	for line := range strings.SplitSeq(s.Exec("postgres",
		"SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"), "\n") {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	var err error
	for _, pid := range pids {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGSTOP))
	}
	time.Sleep(stall)
	for _, pid := range pids {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
	}
	return err
}

// A server that is gone for a while: what was lost is counted, connections are made anew, and the load goes on.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	j := scripted("BEGIN;\nSELECT pg_sleep(0.002);\nEND;", func(j *Job) { j.Clients, j.Duration = 4, 6*time.Second })
	restarted, n := make(chan struct{}), uint64(0)
	var last worker.State
	var said []string
	err := Run(context.Background(), j, server(t, s.URL()), 50*time.Millisecond, func(st worker.State) {
		if last = st; n == 0 && st.Operations[0].Times.Count() > 20 {
			n = st.Operations[0].Times.Count()
			go func() { s.Restart(); close(restarted) }()
		}
	}, func(text string) { said = append(said, text) })
	<-restarted
	if err != nil {
		t.Fatal(err)
	}
	lost, refused := *last.Values[pgwire.Lost], *last.Values[pgwire.Refused]
	if lost != 4 || last.Errors != uint64(lost+refused) || last.Operations[0].Times.Count() < 2*n || len(said) == 0 {
		t.Errorf("%g lost, %g refused, %d errors, %d then %d transactions; it says %q", lost, refused, last.Errors, n,
			last.Operations[0].Times.Count(), said)
	}
}

// A connection that is lost while its client thinks or sleeps: the client goes on with one connection, and no faster
// than before.
func TestLostMeanwhile(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	const clients, gap = 4, 200 * time.Millisecond
	for name, text := range map[string]string{"thinks": "SELECT 1;", "sleeps": "SELECT 1;\n\\sleep 200 ms\nSELECT 2;"} {
		j := scripted(text, func(j *Job) {
			j.Clients, j.Duration = clients, 3*time.Second
			if name == "thinks" {
				j.Think, j.ThinkTimes = gap, Constant
			}
		})
		var last worker.State
		killed, connected := 0, 0
		err := Run(t.Context(), j, server(t, s.URL()), 50*time.Millisecond, func(st worker.State) {
			switch last = st; {
			case killed < 5 && st.Elapsed > time.Duration(killed+1)*gap+50*time.Millisecond:
				killed++
				s.Exec("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
					"WHERE application_name = 'plimsoll'")
			case !st.Final && st.Elapsed > 2500*time.Millisecond && connected == 0:
				connected, _ = strconv.Atoi(s.Exec("postgres", "SELECT count(*) FROM pg_stat_activity "+
					"WHERE application_name = 'plimsoll'"))
			}
		}, func(string) {})
		// Each loss lets a client begin anew once before its time.
		most := uint64(clients * (int(j.Duration/gap) + 1 + killed))
		n := last.Operations[0].Times.Count()
		if err != nil || connected > clients || n < clients || n > most {
			t.Errorf("%s: %v: %d connections, %d transactions; want %d and %d at most", name, err, connected, n, clients,
				most)
		}
	}
}

// Clients over TLS, many times: no answer is lost to what pgconn has left behind while it connected, as happened on a
// busy machine in one of four runs.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	s.TLS()
	for range 5 {
		o, err := drive(t, server(t, s.URL()+"?sslmode=require"), scripted("SELECT 1;", func(j *Job) {
			j.Clients, j.Duration = 8, 200*time.Millisecond
		}))
		if err != nil || o.Errors > 0 || o.ops["s"] == 0 {
			t.Errorf("%v: %v %v", err, o.ops, o.values)
		}
	}
}

// A disk of the server that is full for a while: transactions fail and are counted, rarely, until there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := devicetest.Mounted(t, "ext4", 64<<20)
	s := postgrestest.Start(t)
	s.OnDisk("small", disk)
	giveBack := devicetest.Fill(t, disk, 4<<20)
	on := server(t, s.URL()).WithDatabase("small")
	s.Exec("small", "CREATE TABLE rows (n text)")
	s.Exec("small", "ALTER TABLE rows ALTER n SET STORAGE external")
	j := scripted("INSERT INTO rows VALUES (repeat('x', 4000));", func(j *Job) {
		j.Clients, j.Duration, j.Rate = 2, 6*time.Second, 500
	})
	var last worker.State
	var said []string
	full := uint64(0)
	err := Run(t.Context(), j, on, 50*time.Millisecond, func(st worker.State) {
		if last = st; st.Errors > 2 && full == 0 {
			full = st.Operations[0].Times.Count()
			giveBack()
		}
	}, func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	n, done := *last.Values[pgwire.OutOfSpace], last.Operations[0].Times.Count()
	if n < 3 || n > 12 || last.Errors != uint64(n) || full < 100 || done < full+100 || len(said) != 1 ||
		!strings.Contains(said[0], "make room on the server's disk") {
		t.Errorf("%g met a full disk, %d errors, %d transactions before and %d in all; it says %q", n, last.Errors, full,
			done, said)
	}
}

// Loads with a server that is there all the time.
func TestLoads(t *testing.T) {
	s := postgrestest.Start(t, "max_connections=40", "superuser_reserved_connections=0",
		"search_path=plimsoll_pgbench,public")
	tests := map[string]func(*testing.T, *postgrestest.Server){"errors": testErrors, "tries": testTries,
		"scripts": testScripts, "texts": testTexts, "ways": testWays, "stopped": testStopped, "over": testOver,
		"builtins": testBuiltins, "beside pgbench": testBesidePgbench}
	// The one beside pgbench comes last: it leaves tables that pgbench has made.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(tests))) {
		t.Run(name, func(t *testing.T) { tests[name](t, s) })
	}
}

func testErrors(t *testing.T, s *postgrestest.Server) {
	// What is refused now and then is told in the server's words, and how often where it is for several reasons.
	o, err := drive(t, server(t, s.URL()), scripted("\\set r random(1, 4)\n\\if :r = 1\nSELECT * FROM none;\n\\elif :r = 2\n"+
		"SELECT 1 / (:r - 2);\n\\else\nSELECT 1;\n\\endif", func(j *Job) { j.Threads, j.Clients = 2, 4 }))
	reasons, total := map[string]uint64{}, uint64(0)
	for _, text := range o.said {
		var n, all uint64
		words, count, ok := strings.Cut(text, "): ")
		if _, err := fmt.Sscanf(count, "%d of %d failures", &n, &all); ok && err == nil && all == o.Errors {
			reasons[words] += n
			total += n
		}
	}
	if err != nil || total != o.Errors || reasons[`ERROR: relation "none" does not exist (SQLSTATE 42P01`] == 0 ||
		reasons["ERROR: division by zero (SQLSTATE 22012"] == 0 {
		t.Errorf("%d failures: %q, %v, %v", o.Errors, o.said, reasons, err)
	}
	wrong := strings.Replace(s.URL(), "app:", "app:x", 1)
	for want, c := range map[string]struct {
		url string
		job Job
	}{
		"28P01":                  {wrong, scripted("SELECT 1;", func(*Job) {})},
		"client ":                {s.URL(), scripted("SELECT 1;", func(j *Job) { j.Clients = 60 })},
		"fails each time":        {s.URL(), scripted("SELECT * FROM none;", func(*Job) {})},
		"leaves its transaction": {s.URL(), scripted("BEGIN;\nSELECT 1;", func(*Job) {})},
		"s:2: division by zero":  {s.URL(), scripted("SELECT 1;\n\\set x 1 / 0", func(*Job) {})},
		"wants one row":          {s.URL(), scripted("SELECT 1 AS a WHERE false \\gset\nSELECT :a;", func(*Job) {})},
		`"nothing" has no value`: {s.URL(), scripted("SELECT :nothing;", func(*Job) {})},
		"clients: 0; want":       {s.URL(), scripted("SELECT 1;", func(j *Job) { j.Clients = 0 })},
		"rate: NaN":              {s.URL(), scripted("SELECT 1;", func(j *Job) { j.Rate = math.NaN() })},
	} {
		_, err := drive(t, server(t, c.url), c.job)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "horse") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Serialization failures are tried again with the same random numbers, and counted where that does not help.
func testTries(t *testing.T, s *postgrestest.Server) {
	s.Exec("postgres", "DROP TABLE IF EXISTS c; CREATE TABLE c (id int PRIMARY KEY, n int); "+
		"INSERT INTO c VALUES (1, 0)")
	text := "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT n FROM c WHERE id = 1;\n\\sleep 1 ms\n" +
		"UPDATE c SET n = n + 1 WHERE id = 1;\nEND;"
	defer s.Exec("postgres", "DROP TABLE c")
	for _, tries := range []int{1, 100} {
		s.Exec("postgres", "UPDATE c SET n = 0")
		o, err := drive(t, server(t, s.URL()), scripted(text, func(j *Job) { j.Clients, j.Tries = 6, tries }))
		if err != nil {
			t.Fatal(err)
		}
		failed := o.values["failed_serialization"]
		if n := s.Exec("postgres", "SELECT n FROM c"); n != fmt.Sprint(o.ops["s"]) {
			t.Errorf("%s were done, %d counted", n, o.ops["s"])
		}
		// Those that fail when the time is over are not tried again.
		if tries == 1 && failed == 0 || tries > 1 && failed > 6 || (o.values["retries"] == 0) != (tries == 1) ||
			o.Errors != uint64(failed) {
			t.Errorf("%d tries: %v", tries, o.values)
		}
	}
}

// What scripts say reaches the server the same in every mode, and what it says reaches them.
func testScripts(t *testing.T, s *postgrestest.Server) {
	const quoted = `-- a comment; with a semicolon
\set a 40 + 2
\set half double(:a) / 4
SELECT :a+1 AS next, 'it''s :a; $1 12:30:zz ::a' AS words, NULL AS nothing, 7::text AS seven /* ; /* nested */ */ \gset got_
\if :got_next = 43 and :got_seven = 7
\set where case when :got_nothing is null then 1 else 2 end
\elif 1 / 0
\set where 3
\else
\set where 4
\endif
INSERT INTO seen SELECT :where, :half, :got_next, $q$ ; :a :zz $q$, :name, :client_id;
\sleep 2 ms
`
	defer s.Exec("postgres", "DROP TABLE seen")
	for _, mode := range []string{Simple, Extended, Prepared} {
		s.Exec("postgres", "DROP TABLE IF EXISTS seen; CREATE TABLE seen (place int, half float8, n int, words text, "+
			"name text, client int)")
		// In quotes pgbench has values in mode simple alone; what has none stays there.
		name, text, words := "name", strings.ReplaceAll(quoted, ":a ", ":zz "), " ; :zz :zz "
		text = strings.ReplaceAll(text, "s :a", "s :zz")
		if mode == Simple { // its variables are SQL
			name, text, words = "'name'", quoted, " ; 42 :zz "
		} else if err := (&Job{Mode: mode, Scripts: []Script{{"s", quoted, 1}}}).Check(); err == nil ||
			!strings.Contains(err.Error(), "s:4: :a stands in quotes, where mode "+mode) {
			t.Errorf("%s: %v", mode, err)
		}
		o, err := drive(t, server(t, s.SocketURL()), scripted(text, func(j *Job) {
			j.Mode, j.Clients, j.Variables = mode, 2, map[string]string{"name": name}
		}))
		if err != nil || o.Errors > 0 || o.ops["s"] == 0 {
			t.Fatal(mode, err, o.State)
		}
		got := s.Exec("postgres", "SELECT DISTINCT place, half, n, words, name, client FROM seen ORDER BY client")
		if want := fmt.Sprintf("1|10.5|43|%s|name|0\n1|10.5|43|%[1]s|name|1", words); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		if n := s.Exec("postgres", "SELECT count(*) FROM seen"); n != fmt.Sprint(o.ops["s"]) {
			t.Errorf("%s: %s rows, %d transactions", mode, n, o.ops["s"])
		}
	}
}

// What is given or comes as text goes on as it was written; an expression reads it as pgbench does.
func testTexts(t *testing.T, s *postgrestest.Server) {
	s.Exec("postgres", "CREATE TABLE texts (code text, n int, yes bool)")
	defer s.Exec("postgres", "DROP TABLE texts")
	const text = "SELECT '08' AS plain \\gset\n\\set n :plain + :lead\n\\set yes :yes and not :no\n" +
		"INSERT INTO texts VALUES (:lead::text || '-' || :plain::text, :n, :yes);\n\\set yes true"
	o, err := drive(t, server(t, s.URL()), scripted(text, func(j *Job) {
		j.Variables = map[string]string{"lead": "007", "yes": "y", "no": "fal"}
	}))
	if got := s.Exec("postgres", "SELECT DISTINCT * FROM texts"); err != nil || o.Errors > 0 || got != "007-08|15|t" {
		t.Errorf("%v: %q: %q", err, got, o.said)
	}
}

// The ways to go on between transactions: a connection each, think times, pipelines, drops, a script without an end.
func testWays(t *testing.T, s *postgrestest.Server) {
	for name, c := range map[string]struct {
		text  string
		job   func(*Job)
		judge func(outcome) bool
	}{
		"connect": {"SELECT 1;", func(j *Job) { j.Clients, j.Connect = 3, true },
			func(o outcome) bool { return o.ops["connect"] >= o.ops["s"] && o.ops["s"] > 3 }},
		"connects": {"SELECT 1;", func(j *Job) { j.Clients, j.Connect = 8, true },
			func(o outcome) bool { return o.ops["connect"] >= o.ops["s"] && o.ops["s"] > 3 }},
		"silent": {"\\if :client_id = 0\nSELECT 1;\n\\endif", func(j *Job) { j.Clients = 3 },
			func(o outcome) bool { return o.ops["s"] > 10 }},
		"think": {"SELECT 1;", func(j *Job) { j.Clients, j.Think, j.ThinkTimes = 5, 50*time.Millisecond, Constant },
			func(o outcome) bool { return o.ops["s"] >= 5 && o.ops["s"] <= 35 }},
		"pipeline": {"\\startpipeline\nBEGIN;\nSELECT :client_id;\nEND;\n\\endpipeline\n", func(j *Job) {
			j.Pipelining = true
		},
			func(o outcome) bool { return o.ops["s"] > 10 }},
		"drop": {"SELECT pg_sleep(0.02);", func(j *Job) { j.Rate, j.Drop = 1000, 20*time.Millisecond },
			func(o outcome) bool {
				n := float64(o.ops["s"]) + o.values["dropped_arrivals"] + o.values["unserved_arrivals"]
				return o.values["dropped_arrivals"] > 100 && n > 200 && n < 400
			}},
		"endless": {"SELECT pg_sleep(600);", func(j *Job) { j.Clients = 2 },
			func(o outcome) bool { return o.ops["s"] == 0 && o.values["cut_off"] == 2 && o.Errors == 2 }},
		"rare": {"SELECT 1;", func(j *Job) { j.Rate = 1e-12 },
			func(o outcome) bool { return o.ops["s"] == 0 && o.values["unserved_arrivals"] == 0 }},
		"backlog": {"SELECT pg_sleep(0.1);", func(j *Job) { j.Rate = 1e6 },
			func(o outcome) bool { return o.values["unserved_arrivals"] > 250e3 }},
		"combined": {"SELECT 1 AS one \\; SELECT 2 AS two \\aset\nSELECT :one + :two AS three \\gset\n\\if :three <> 3\n" +
			"SELECT 1 / 0;\n\\endif\n", func(j *Job) { j.Mode = Simple },
			func(o outcome) bool { return o.ops["s"] > 1 }},
		"the last of combined": {"SELECT 9 AS two FROM generate_series(1, 3) \\; SELECT 2 AS two \\gset\n\\if :two <> 2\n" +
			"SELECT 1 / 0;\n\\endif\n", func(j *Job) { j.Mode = Simple },
			func(o outcome) bool { return o.ops["s"] > 1 }},
	} {
		o, err := drive(t, server(t, s.URL()), scripted(c.text, c.job))
		if name != "endless" && o.Errors > 0 || err != nil || !c.judge(o) {
			t.Errorf("%s: %v: %v %v %q", name, err, o.ops, o.values, o.said)
		}
	}
}

func testStopped(t *testing.T, s *postgrestest.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	j := scripted("SELECT pg_sleep(600);", func(j *Job) { j.Clients, j.Duration = 3, time.Hour })
	err := Run(ctx, j, server(t, s.URL()), 20*time.Millisecond, func(worker.State) { cancel() }, func(string) {})
	if err != nil {
		t.Error(err)
	}
}

// A load that is over writes to no descriptor any more: what it had may be another's by then.
func testOver(t *testing.T, s *postgrestest.Server) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var others [40]int
	err := Run(t.Context(), scripted("SELECT 1;", func(*Job) {}), server(t, s.SocketURL()), 50*time.Millisecond,
		func(st worker.State) {
			runtime.GOMAXPROCS(1) // what goes on beside the end comes after it
			for i := 0; st.Final && i < len(others); i += 2 {
				pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				copy(others[i:], pair[:])
			}
		}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	for _, fd := range others {
		var b [8]byte
		if n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_DONTWAIT); err != syscall.EAGAIN {
			t.Errorf("%q was written: %v", b[:n], err)
		}
	}
	for _, fd := range others {
		_ = syscall.Close(fd)
	}
}

var debugged = regexp.MustCompile(`debug\(script=0,command=\d+\): (?:(?:int|double|boolean) )?(\S+)`)

// testBesidePgbench has pgbench evaluate every expression that has a value, and run its own scripts after ours: what
// they leave goes on from what ours have left.
func testBesidePgbench(t *testing.T, s *postgrestest.Server) {
	pgbench := func(args ...string) string {
		cmd := exec.Command(filepath.Join(s.Bin, "pgbench"), append(args, "-n", s.SocketURL())...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("pgbench %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	var script strings.Builder
	script.WriteString("\\set n null\n")
	var asked []string
	for _, text := range slices.Sorted(maps.Keys(expressions)) {
		if !strings.Contains(expressions[text], ": ") && !strings.Contains(text, ":w") &&
			text != "hash(3) = hash(3, 7)" {
			asked = append(asked, text)
			fmt.Fprintf(&script, "\\set v debug(%s)\n", text)
		}
	}
	file := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(file, []byte(script.String()+"SELECT 1;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := debugged.FindAllStringSubmatch(pgbench("-t", "1", "-D", "x=5", "-f", file), -1)
	if len(said) != len(asked) || len(asked) < 25 {
		t.Fatalf("%d answers, %d questions", len(said), len(asked))
	}
	for i, text := range asked {
		if got := said[i][1]; !strings.EqualFold(got, expressions[text]) {
			t.Errorf("%s: pgbench says %s, want %s", text, got, expressions[text])
		}
	}
	j := job(func(j *Job) { j.Clients, j.Initialise = 4, Always })
	o, err := drive(t, server(t, s.URL()), j)
	if err != nil {
		t.Fatal(err)
	}
	pgbench("-t", "50", "-c", "2", "-b", "tpcb-like")
	pgbench("-t", "50", "-b", "simple-update")
	got := s.Exec("postgres", "SELECT count(*), (SELECT sum(abalance) FROM pgbench_accounts) - sum(delta), "+
		"(SELECT sum(tbalance) FROM pgbench_tellers) - (SELECT sum(bbalance) FROM pgbench_branches) FROM pgbench_history")
	if want := fmt.Sprintf("%d|0|0", o.ops["tpcb-like"]+150); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The tables are what pgbench -i makes.
	const columns = "SELECT string_agg(format('%s.%s %s %s', table_name, column_name, data_type, " +
		"coalesce(character_maximum_length, 0)) || is_nullable, ',' ORDER BY table_name, ordinal_position) || " +
		"(SELECT string_agg(indexdef, ',' ORDER BY indexdef) FROM pg_indexes WHERE schemaname = 'plimsoll_pgbench' AND tablename " +
		"LIKE 'pgbench%') || (SELECT md5(string_agg(a::text, ',' ORDER BY aid)) FROM pgbench_accounts a WHERE abalance = 0 " +
		"AND aid > 99000 AND NOT EXISTS (SELECT FROM pgbench_history h WHERE h.aid = a.aid)) " +
		"FROM information_schema.columns WHERE table_schema = 'plimsoll_pgbench' AND table_name LIKE 'pgbench%'"
	j.Load = true
	if _, err := drive(t, server(t, s.URL()), j); err != nil {
		t.Fatal(err)
	}
	ours := s.Exec("postgres", columns)
	s.Exec("postgres", "DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")
	pgbench("-i", "-q")
	if theirs := s.Exec("postgres", columns); ours != theirs {
		t.Errorf("ours:\n%s\npgbench's:\n%s", ours, theirs)
	}
}
