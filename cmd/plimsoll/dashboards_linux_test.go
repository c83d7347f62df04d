package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/exporters/nutanix/prismsim"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/testkit/prismtest"
	"plimsoll/internal/testkit/programtest"
	"plimsoll/result"
)

// written holds what a test needs of a dashboard, read from the JSON that the command wrote.
type written struct {
	UID        string
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr, Step string }
	}
	Panels []struct {
		Title, Description string
		Targets            []struct {
			Expr    string
			Instant bool
		}
	}
}

// without leaves out the panels whose description has these words.
func (w written) without(words string) written {
	w.Panels = slices.Clone(w.Panels)
	for i := range w.Panels {
		if strings.Contains(w.Panels[i].Description, words) {
			w.Panels[i].Targets = nil
		}
	}
	return w
}

// background runs plimsoll until the test ends, from when it answers at a path of its address on.
func (s session) background(ready string, args ...string) (address string) {
	s.t.Helper()
	address = programtest.Port(s.t)
	cmd := s.command(s.t.Context(), append(args, "--listen", address)...)
	programtest.Start(s.t, cmd)
	programtest.Eventually(s.t, args[0]+" answers", func() bool {
		_, err := programtest.Get("http://" + address + ready)
		return err == nil
	})
	return address
}

// sqlServerPage is a page of windows_exporter with the families that the dashboard asks for; counters rise with time.
func sqlServerPage(began time.Time) string {
	var b strings.Builder
	line := func(labels string, value float64, names ...string) {
		for i, name := range names {
			fmt.Fprintf(&b, "windows_mssql_%s{mssql_instance=\"MSSQLSERVER\"%s} %g\n", name, labels, value*float64(i+1))
		}
	}
	at := 100 * time.Since(began).Seconds()
	line(`,collector="bufman"`, 1, "collector_success")
	line("", 5, "genstats_user_connections", "genstats_blocked_processes", "bufman_page_life_expectancy_seconds",
		"memmgr_total_server_memory_bytes", "memmgr_target_server_memory_bytes", "memmgr_pending_memory_grants",
		"bufman_buffer_cache_hits", "bufman_buffer_cache_lookups")
	line("", at, "sqlstats_batch_requests", "sqlstats_sql_compilations", "sqlstats_sql_recompilations",
		"accessmethods_full_scans", "accessmethods_index_searches", "bufman_page_reads", "bufman_page_writes",
		"bufman_checkpoint_pages", "bufman_lazywrites", "bufman_background_writer_pages")
	line(`,resource="Key"`, at, "locks_lock_waits", "locks_deadlocks")
	line(`,resource="_Total"`, at, "sql_errors_total")
	for _, database := range []string{`,database="bench"`, `,database="tempdb"`} {
		line(database, at, "databases_transactions", "databases_write_transactions", "databases_log_flushed_bytes",
			"databases_log_flushes", "databases_log_flush_waits")
		line(database, 7, "databases_active_transactions", "databases_log_files_used_size_bytes",
			"databases_log_files_size_bytes", "databases_data_files_size_bytes")
	}
	return b.String()
}

// TestDashboardsReturnSomething asks every question of every dashboard, of variables and panels, as Grafana would: of
// Debian's Prometheus, which scrapes the program's exporters of a simulated Prism and of a real PostgreSQL and pages
// under windows_exporter's names, and of plimsoll serve over real runs of fio and of pg and a run with the other
// pages in it. One that returns no number fails.
func TestDashboardsReturnSomething(t *testing.T) {
	needs.Fio(t)
	s := session{t: t, runs: t.TempDir()}
	began := time.Now().Add(-time.Hour)
	dir := t.TempDir()
	prism := prismtest.Start(t, prismsim.Options{Hosts: 3, VMs: 12, DisksPerVM: 2, Containers: 2})
	ca := programtest.Write(t, dir, "ca.pem", string(prism.Certificate.PEM), 0o600)
	password := programtest.Write(t, dir, "password", prismtest.Password, 0o600)
	cluster := func(name, api string) string {
		return s.background("/-/ready", "exporter", "nutanix", "--url", prism.URL, "--user", "viewer", "--name", name,
			"--api", api, "--password", "file:"+password, "--ca", ca, "--poll", "1s")
	}
	db := postgrestest.Start(t)
	t.Setenv("PGPASSWORD", postgrestest.Password)
	postgres := s.background("/-/ready", "exporter", "postgres", "--opt",
		fmt.Sprintf("url=postgresql://%s@127.0.0.1:%d/postgres", postgrestest.User, db.Port))
	db.Exec("postgres", "CREATE TABLE t AS SELECT generate_series(1, 10000) AS a")
	windows := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, sqlServerPage(began))
	}))
	t.Cleanup(windows.Close)
	pages := map[string]string{
		"element":  cluster("element", "v2.0"),
		"central":  cluster("central", "v4"),
		"postgres": postgres,
		"windows":  windows.Listener.Addr().String(),
	}
	config := "global: {scrape_interval: 1s}\nscrape_configs:\n"
	for name, at := range pages {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%q]}]}\n", name, at)
	}
	prometheus := "http://" + programtest.Prometheus(t, config)

	job := programtest.Write(
		t,
		dir,
		"job.fio",
		"[global]\nbs=4k\nsize=16M\ntime_based\nruntime=8\n[w]\nrw=randrw\n",
		0o600,
	)
	disk := filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	s.must("run", job, "--target", "local", "--disk", disk)
	fio := s.newest()
	s.must("db", "run", "pg", "--scale", "1", "--clients", "2", "--duration", "8s")
	pg := s.newest()
	scraped := s.scraped(pages, func() { db.Exec("postgres", "SELECT count(*) FROM t") })
	site := "http://" + s.background("/-/ready", "serve")

	all := s.dashboards()
	for _, name := range []string{"nutanix-cluster", "nutanix-host", "nutanix-container", "nutanix-vm", "postgresql",
		"sqlserver"} {
		run := map[bool]string{true: pg, false: scraped}[name == "postgresql"]
		t.Run(name+"/prometheus", func(t *testing.T) {
			answered(
				t,
				name,
				all[name],
				grafana{at: prometheus, from: time.Now().Add(-20 * time.Second), to: time.Now()},
			)
		})
		if strings.HasPrefix(name, "nutanix-") {
			t.Run(name+"/v4", func(t *testing.T) { // panels that need another version say so
				answered(
					t,
					name,
					all[name].without("v4"),
					grafana{at: prometheus, from: time.Now().Add(-20 * time.Second),
						to: time.Now(), cluster: "central"},
				)
			})
		}
		t.Run(name+"/serve", func(t *testing.T) { answered(t, name, all[name], s.grafana(site, run)) })
	}
	// No engine has everything: fio reports no measures.
	t.Run("run/serve", func(t *testing.T) {
		answered(t, "run", all["run"], s.grafana(site, fio), s.grafana(site, pg))
	})
	if len(all) != 7 {
		t.Errorf("%d dashboards were written; those not named here were not asked", len(all))
	}
}

// TestMarksOfARun: Grafana's questions for marks give each fault and each stretch of the journal in the step after its
// moment, with its words, and nothing else.
func TestMarksOfARun(t *testing.T) {
	t.Parallel()
	s := session{t: t, runs: t.TempDir()}
	s.must("run", "node-loss", "--target", "sim")
	g := s.grafana("http://"+s.background("/-/ready", "serve"), s.newest())
	folder, err := result.Open(filepath.Join(s.runs, g.run))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	events, _, err := folder.Events()
	if err != nil {
		t.Fatal(err)
	}
	const step = 15
	want, got := map[string][]string{}, map[string][]string{}
	name := map[string]string{result.KindFault: "Fault", result.KindAnnotation: "Stretch"}
	for _, e := range events {
		if of := name[e.Kind]; of != "" {
			at := int64(math.Ceil(float64(e.Time.UnixMilli())/1000/step)) * step
			want[of] = append(want[of], fmt.Sprint(at, " ", e.Text))
		}
	}
	for _, a := range s.dashboards()["run"].Annotations.List {
		var data struct {
			Result []struct {
				Metric struct{ Text string }
				Values [][]any
			}
		}
		if a.Step != "15s" {
			t.Errorf("%s: step %s", a.Name, a.Step)
		}
		g.ask(t, "query_range", url.Values{"query": {g.filled(a.Expr)}, "step": {a.Step},
			"start": {fmt.Sprint(g.from.Unix() / step * step)}, "end": {fmt.Sprint((g.to.Unix()/step + 1) * step)}},
			&data)
		for _, r := range data.Result {
			for _, v := range r.Values {
				got[a.Name] = append(got[a.Name], fmt.Sprintf("%.0f %s", v[0], r.Metric.Text))
			}
		}
	}
	for of := range want {
		slices.Sort(want[of])
		slices.Sort(got[of])
	}
	if len(want) != 2 || !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("marks\n%q\nwant\n%q", got, want)
	}
}

// TestDashboardOfSQLServerOnASample asks what the published sample of windows_exporter has the families for.
func TestDashboardOfSQLServerOnASample(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(needs.Corpus(t, "windows_exporter-mssql"), "*.prom"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	windows := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }),
	)
	t.Cleanup(windows.Close)
	at := "http://" + programtest.Prometheus(t, fmt.Sprintf(
		"scrape_configs:\n  - {job_name: w, scrape_interval: 1s, static_configs: [{targets: [%q]}]}\n",
		windows.Listener.Addr().String()))
	g := grafana{at: at}
	programtest.Eventually(t, "some pages were read", func() bool {
		g.from, g.to = time.Now().Add(-20*time.Second), time.Now()
		return g.numbers(t, `count_over_time(windows_mssql_bufman_page_reads[20s]) > 6`, true) > 0
	})
	board, asked := (session{t: t}).dashboards()["sqlserver"], 0
	names := regexp.MustCompile(`windows_mssql_\w+`)
	for i, p := range board.Panels {
		kept := p.Targets[:0]
		for _, q := range p.Targets {
			absent := func(name string) bool { return !strings.Contains(string(text), "\n"+name+"{") }
			if !slices.ContainsFunc(names.FindAllString(q.Expr, -1), absent) {
				kept, asked = append(kept, q), asked+1
			}
		}
		board.Panels[i].Targets = kept
	}
	if asked < 15 {
		t.Errorf("the sample has what %d questions need", asked)
	}
	answered(t, "sqlserver", board, g)
}

// dashboards are those that the command writes, by name.
func (s session) dashboards() map[string]written {
	s.t.Helper()
	dir, out := s.t.TempDir(), map[string]written{}
	s.must("dashboards", "write", dir)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		var w written
		if err := json.Unmarshal(text, &w); err != nil {
			s.t.Fatalf("%s: %v", file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = w
	}
	return out
}

// newest is the identity of the run that was made last.
func (s session) newest() string {
	s.t.Helper()
	all, err := result.Folders(s.runs)
	if err != nil || len(all) == 0 {
		s.t.Fatalf("%v, %v", all, err)
	}
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return filepath.Base(all[len(all)-1])
}

// scraped makes a run in whose metrics the pages at these addresses are, one a second, as a run has them of its
// machines' exporters. meanwhile is done before each.
func (s session) scraped(pages map[string]string, meanwhile func()) string {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	began := time.Now()
	id := result.NewRunID(began, "scraped", 1)
	folder, err := result.Create(s.runs, result.Manifest{RunID: id, Created: began, Target: "local", TimeScale: 1,
		SizeScale: 1, Scenario: result.ScenarioInfo{ID: 1, Name: "scraped"}})
	must(err)
	store, err := series.Open(folder.MetricsDir(), series.Options{})
	must(err)
	r := record.NewRecorder(record.RecorderOptions{Store: store, Now: time.Now, Base: began,
		Scope: record.Scope{ScenarioID: 1, ScenarioName: "scraped", ClusterName: "c"}})
	into := map[string]*record.Exporter{}
	for name := range pages {
		into[name] = r.Exporter(name, "vm-"+name, "")
	}
	for range 9 {
		meanwhile()
		for name, at := range pages {
			text, err := programtest.Get("http://" + at + "/metrics")
			must(err)
			must(into[name].Served(series.Page{Text: []byte(text), Time: into[name].Now()}, time.Millisecond))
		}
		time.Sleep(time.Second)
	}
	must(store.Close())
	must(folder.Update(func(m *result.Manifest) { m.Status, m.Ended = result.StatusSucceeded, time.Now() }))
	must(folder.Close())
	return id
}

// grafana asks as Grafana does, over the time that a board shows.
type grafana struct {
	at       string // the data source
	run      string // that is chosen; "" where the data source has none
	from, to time.Time
	cluster  string // "" for all
}

func (s session) grafana(at, run string) grafana {
	s.t.Helper()
	folder, err := result.Open(filepath.Join(s.runs, run))
	if err != nil {
		s.t.Fatal(err)
	}
	m := folder.Manifest()
	if err := folder.Close(); err != nil {
		s.t.Fatal(err)
	}
	return grafana{at: at, run: run, from: m.Created, to: m.Ended}
}

// ask gets the data of an answer.
func (g grafana) ask(t *testing.T, path string, form url.Values, into any) {
	t.Helper()
	body, err := programtest.Get(g.at + "/api/v1/" + path + "?" + form.Encode())
	if err != nil {
		t.Fatalf("%s %v: %v", path, form, err)
	}
	answer := struct{ Data any }{into}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s %v: %v in %.300s", path, form, err, body)
	}
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// filled is a text with variables replaced: all values chosen, but for the run.
func (g grafana) filled(text string) string {
	text = strings.NewReplacer("$__rate_interval", "5s", "$run", cmp.Or(g.run, ".*"), "$cluster",
		cmp.Or(g.cluster, ".*")).Replace(text)
	return regexp.MustCompile(`\$\w+`).ReplaceAllLiteralString(text, ".*")
}

// numbers counts the values that are numbers in an answer.
func (g grafana) numbers(t *testing.T, expr string, instant bool) (n int) {
	t.Helper()
	path := "query_range"
	form := url.Values{"query": {expr}, "start": {seconds(g.from)}, "end": {seconds(g.to)}, "step": {"1"}}
	if instant {
		path, form = "query", url.Values{"query": {expr}, "time": {seconds(g.to)}}
	}
	var data struct {
		Result []struct {
			Value  []any
			Values [][]any
		}
	}
	g.ask(t, path, form, &data)
	for _, r := range data.Result {
		for _, v := range append(r.Values, r.Value) {
			if len(v) == 2 {
				if f, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64); err == nil && !math.IsNaN(f) &&
					!math.IsInf(f, 0) {
					n++
				}
			}
		}
	}
	return n
}

// answered asks every question of a board; each must return numbers from one of the sources at least.
func answered(t *testing.T, name string, board written, sources ...grafana) {
	t.Helper()
	one := func(has func(grafana) bool) bool { return slices.ContainsFunc(sources, has) }
	form := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	asked := 0
	for _, v := range board.Templating.List {
		m := form.FindStringSubmatch(v.Definition)
		switch {
		case v.Type == "datasource":
			continue
		case m == nil:
			t.Errorf("%s: variable %s: %q is not understood here", name, v.Name, v.Definition)
			continue
		case v.Name == "run" && sources[0].run == "":
			continue // an ordinary Prometheus has none, and All is chosen
		}
		asked++
		if !one(func(g grafana) bool {
			var values []string
			g.ask(t, "label/"+m[2]+"/values", url.Values{"match[]": {g.filled(m[1])}, "start": {seconds(g.from)},
				"end": {seconds(g.to)}}, &values)
			return len(values) > 0 && (v.Name != "run" || slices.Contains(values, g.run))
		}) {
			t.Errorf("%s: variable %s: %s has no values", name, v.Name, v.Definition)
		}
	}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			asked++
			if !one(func(g grafana) bool { return g.numbers(t, g.filled(q.Expr), q.Instant) > 0 }) {
				t.Errorf("%s: panel %q: nothing is returned for\n%s", name, p.Title, sources[0].filled(q.Expr))
			}
		}
	}
	if asked == 0 {
		t.Errorf("%s: nothing was asked", name)
	}
	t.Logf("%s: %d questions", name, asked)
}

// TestCGIBehindAWebServer: nginx has fcgiwrap run the program as a user's script does, a process for each request.
func TestCGIBehindAWebServer(t *testing.T) {
	t.Parallel()
	prism := prismtest.Start(t, prismsim.Options{VMs: 4})
	dir := t.TempDir()
	ca := programtest.Write(t, dir, "ca.pem", string(prism.Certificate.PEM), 0o600)
	password := programtest.Write(t, dir, "password", prismtest.Password, 0o600)
	clusters := programtest.Write(t, dir, "clusters.yaml", fmt.Sprintf(
		"clusters:\n  - {name: one, url: %q, user: viewer, password: %q, ca: %q}\n",
		prism.URL,
		"file:"+password,
		ca,
	), 0o600)
	binary := filepath.Join(dir, "plimsoll")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil { // what users have
		t.Fatalf("%v: %s", err, out)
	}
	at := programtest.CGI(t, programtest.Write(t, dir, "nutanix.cgi", fmt.Sprintf(
		"#!/bin/sh\nexec %s exporter nutanix --cgi --clusters %s --deadline 3s\n", binary, clusters), 0o700),
		"format=ntnx_bash")
	get := func(query string) string {
		page, err := programtest.Get(at + query)
		if err != nil {
			t.Error(err)
		}
		return page
	}
	page := get("?target=one")
	if n := strings.Count(page, "\nnutanix_vm_info{"); n != 4 {
		t.Errorf("%d VMs of 4 in %.500s", n, page)
	}
	programtest.CheckMetrics(t, page)
	if page = get("?format=ntnx_bash"); !strings.HasPrefix(page, `ntnx_bash{metric="cluster_iops"} `) {
		t.Errorf("%.500s", page)
	}
	if _, err := programtest.Get(at + "?target=other"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	prism.Set(prismsim.Faults{Slow: time.Minute}) // it answers within its deadline, and says why there is nothing
	began := time.Now()
	if page = get(""); !strings.Contains(page, "\nnutanix_up{cluster=\"one\"} 0\n") ||
		time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %.500s", time.Since(began), page)
	}
}
