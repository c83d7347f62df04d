package postgres_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/workloads/postgres"
)

// The sizes that were measured, and those of the notes that were not used when they were.
func TestSizesMeasured(t *testing.T) {
	t.Parallel()
	for scale, want := range map[int64]float64{1: 23_559_527, 10: 164_683_111, 50: 791_895_399, 100: 1_575_894_375,
		1000: 15.69e9} {
		got, err := postgres.SizeOfPgbench(scale)
		if err != nil || math.Abs(float64(got.FreshBytes)/want-1) > 0.002 {
			t.Errorf("scale %d: %d bytes, %.0f were measured (%v)", scale, got.FreshBytes, want, err)
		}
	}
}

// Tables and indexes have, to the byte, what pgbench leaves; the whole database differs by what the release's catalogs
// have.
func TestSizeOfPgbench(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	if _, err := os.Stat(filepath.Join(s.Bin, "pgbench")); err != nil {
		t.Fatal("PostgreSQL comes with pgbench, and it is not beside this server: ", err)
	}
	for _, scale := range []int64{1, 3, 12} {
		name := fmt.Sprintf("scale%d", scale)
		s.Exec("postgres", "create database "+name)
		cmd := exec.Command(filepath.Join(s.Bin, "pgbench"), "-i", "-q", "-s", strconv.FormatInt(scale, 10),
			"-h", s.Sockets,
			"-p", strconv.Itoa(s.Port), "-U", postgrestest.User, name)
		cmd.Env = append(os.Environ(), "PGPASSWORD="+postgrestest.Password)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got [3]int64
		for i, v := range strings.Split(s.Exec(name, "select sum(pg_table_size(oid)), sum(pg_indexes_size(oid)), "+
			"pg_database_size(current_database()) from pg_class where relname like 'pgbench%' and relkind = 'r'"), "|") {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = n
		}
		want, err := postgres.SizeOfPgbench(scale)
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != want.TableBytes || got[1] != want.IndexBytes || math.Abs(float64(got[2]-want.FreshBytes)) > 400e3 {
			t.Errorf("scale %d: tables, indexes, database: %d, want %d, %d, %d", scale, got, want.TableBytes,
				want.IndexBytes, want.FreshBytes)
		}
	}
}

// The scale for a size is the largest that fits.
func TestScaleFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Range(24_000_000, 1<<50).Draw(t, "bytes")
		got, err := postgres.ScaleFor(bytes)
		if err != nil || got.FreshBytes > bytes {
			t.Fatalf("%d: %+v, %v", bytes, got, err)
		}
		if next, err := postgres.SizeOfPgbench(got.Scale + 1); err != nil || next.FreshBytes <= bytes {
			t.Fatalf("%d: %+v would fit, too (%v)", bytes, next, err)
		}
	})
	if _, err := postgres.ScaleFor(1 << 20); err == nil || !strings.Contains(err.Error(), "smallest") {
		t.Error(err)
	}
}
