package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
)

//go:embed server.sh
var script []byte

// oldest is the release of PostgreSQL that scram-sha-256 came with.
const oldest = 10

// hba lets everyone in who has the password, standbys as well.
const hba = "local all all scram-sha-256\nhost all,replication all all scram-sha-256\n"

// ownConnections is how many connections a server of the run's own admits.
const ownConnections = "300"

// Settings of a server of the run's own, before those of the config: its log tells of checkpoints and what waits.
const stated = `# What plimsoll set, on top of what initdb writes.
max_connections = ` + ownConnections + `
log_checkpoints = on
log_lock_waits = on
log_timezone = 'UTC'
`

// Server is the service on one peer of a workload whose server is the run's own: made where it is not there yet, with
// scram passwords, one superuser (OwnUser) and the database. It stays until the teardown.
func (c Config) Server(spec workload.Spec) (workload.Server, error) {
	if !c.RunsServer() {
		return workload.Server{}, fmt.Errorf("prepare: workload %q: its server is not one that the run starts", spec.Name)
	}
	verifier, err := ownVerifier()
	if err != nil {
		return workload.Server{}, err
	}
	var settings strings.Builder
	settings.WriteString(stated)
	for _, key := range slices.Sorted(maps.Keys(c.Settings)) {
		fmt.Fprintf(&settings, "%s = '%s'\n", key, strings.NewReplacer("'", "''", `\`, `\\`).Replace(c.Settings[key]))
	}
	sql := fmt.Sprintf("ALTER ROLE %s PASSWORD '%s';\n", OwnUser, verifier)
	if c.Database != "postgres" {
		sql += fmt.Sprintf("CREATE DATABASE %s;\n", c.Database)
	}
	const folder = ServerFolder
	// The last but one tells servers of other settings apart: see loads.Set.
	sum := fnv.New32a()
	fmt.Fprint(sum, settings.String(), c.Database, c.CPUs)
	service := target.Service{Name: ServiceName, Command: target.Command{
		Argv:   []string{"/bin/sh", folder + "/server.sh", "", fmt.Sprintf("%08x", sum.Sum32()), c.CPUs, c.Follows},
		Stdout: folder + "/output", Stderr: folder + "/output"}}
	if c.Group != "" {
		service.Command.Argv[2] = spec.Address
		service.Command.Listens = []int{OwnPort}
	}
	made := workload.Server{
		Service: service,
		Files: map[string][]byte{
			folder + "/server.sh": script, folder + "/pg_hba.conf": []byte(hba), folder + "/first.sql": []byte(sql),
			folder + "/settings.conf": []byte(settings.String()),
		},
		Ready: target.Readiness{Output: service.Command.Stdout, Within: 10 * time.Minute,
			Match: regexp.MustCompile(`database system is ready to accept (?:read[- ]only )?connections`)},
		Grace: 10 * time.Second,
		Stays: true,
	}
	if c.Follows != "" {
		made.Service.Command.Dials = []int{OwnPort}
		made.Private = map[string][]byte{folder + "/" + passFile: passLine(ownPassword())}
	}
	return made, nil
}

// ServiceName is the name of a run's own server on its machine.
const ServiceName = "postgresql"

var versionWords = regexp.MustCompile(`PostgreSQL\) ([0-9]+)([0-9.a-z]*)`)

// CheckServer finds PostgreSQL on a machine that is to have a server of the run's own.
func CheckServer(ctx context.Context, host target.Host, _ workload.Spec) (workload.Tool, error) {
	const folder = ServerFolder
	fail := func(err error) (workload.Tool, error) {
		return workload.Tool{}, fmt.Errorf("check: PostgreSQL on %s: %w", host.Name(), err)
	}
	if err := target.WriteFile(ctx, host, folder+"/server.sh", script); err != nil {
		return fail(err)
	}
	said, exit, err := workload.Ask(ctx, host, []string{"/bin/sh", folder + "/server.sh", "version"}, folder+"/version",
		"PostgreSQL's version", true)
	if err != nil {
		return fail(err)
	}
	m := versionWords.FindStringSubmatch(said)
	if exit != (target.Exit{}) || m == nil {
		return fail(fmt.Errorf("%s; install it (apt-get install postgresql), or name its folder in %s",
			strings.TrimSpace(said), FolderVariable))
	}
	if version(m[1]) < oldest*100 {
		return fail(fmt.Errorf("version %s%s is too old: want %d or later", m[1], m[2], oldest))
	}
	return workload.Tool{Path: "postgres", Version: m[1] + m[2]}, nil
}
