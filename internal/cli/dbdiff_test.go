package cli

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/workloads/postgres"
)

// What a server did between two states is said with what it counts in.
func TestDifferenceHasUnits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := sayDifference(&out, postgres.Difference{Elapsed: 10 * time.Second, HitRatio: -1,
		Bytes:    postgres.Growth{Name: "shop", Before: 1 << 20, After: 3 << 20},
		DeadRows: []postgres.Growth{{Name: "public.a", Before: 1, After: 5}},
		Counters: []postgres.Growth{{Name: "database.blks_hit", After: 200}, {Name: "database.xact_commit", After: 50},
			{Name: "database.blk_read_time", After: 30}, {Name: "wal.wal_bytes", After: 20 << 20},
			{Name: "other.something", After: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := `BETWEEN BEFORE AFTER CHANGE
time 10 s
size of shop 1 MiB 3 MiB +2 MiB
dead rows of public.a 1 rows 5 rows +4 rows
database.blks_hit +200 blocks 20 blocks/s
database.xact_commit +50 transactions 5 transactions/s
database.blk_read_time +30 ms 3 ms/s
wal.wal_bytes +20 MiB 2 MiB/s
other.something +5 0.5/s`
	if strings.Join(got, "\n") != want {
		t.Error(out.String())
	}
}
