package postgres

import "fmt"

// PgbenchSize holds what pgbench's tables take at a scale, in bytes, and how that is made up. Tables and indexes are
// exact: they are counted in pages, as pgbench -i leaves them on PostgreSQL 12 and later with its default options.
type PgbenchSize struct {
	Scale          int64 `json:"scale"`
	Rows           int64 `json:"rows"`             // of pgbench_accounts
	TableBytes     int64 `json:"table_bytes"`      // of all tables, with their free-space and visibility maps
	IndexBytes     int64 `json:"index_bytes"`      // of their primary keys
	FreshBytes     int64 `json:"fresh_bytes"`      // of the database, with the 7.7 MB that an empty one has
	HistoryPerMega int64 `json:"history_per_mega"` // by which a million writing transactions let it grow, at least
}

// What an empty database holds: measured on PostgreSQL 15; 14 to 18 differ by less than 0.4 MB.
const emptyDatabaseBytes = 7_716_199

// MostScale is pgbench's own: the branches are numbered by a 32-bit integer, of accounts it uses 64 bits.
const MostScale = 1<<31 - 1

const page = 8 << 10

// How many entries pages of a table or a B-tree hold: rows of that many bytes with their headers, alignment and line
// pointers, beside the page's own 24 bytes; entries of a primary key of 4 bytes, 90 % full in leaves and 70 % above.
const (
	accountsPerPage = 61  // 128 bytes: the filler has 84
	tellersPerPage  = 185 // 40 bytes: their filler is null
	branchesPerPage = 226 // 32 bytes
	historyPerPage  = 157 // 48 bytes
	leafEntries     = 366
	innerEntries    = 285
	slotsPerFSM     = 4069  // pages that a page of the free-space map stands for
	pagesPerVM      = 32672 // and one of the visibility map
	smallestFSM     = 3
)

func pages(n, each int64) int64 { return (n + each - 1) / each }

// heap is the pages of a table with its maps.
func heap(rows, each int64) int64 {
	n := pages(rows, each)
	return n + smallestFSM - 1 + pages(n, slotsPerFSM) + pages(n, pagesPerVM)
}

// tree is the pages of a primary key: leaves, what is above them, and the page that says where the root is. From 2^31
// accounts on pgbench uses 64 bits, which take the same space.
func tree(rows int64) int64 {
	n := pages(rows, leafEntries)
	sum := n + 1
	for n > 1 {
		n = pages(n, innerEntries)
		sum += n
	}
	return sum
}

// SizeOfPgbench is the size at a scale of 1 or more.
func SizeOfPgbench(scale int64) (PgbenchSize, error) {
	if scale < 1 || scale > MostScale {
		return PgbenchSize{}, fmt.Errorf("scale %d: want a whole number from 1 to %d", scale, MostScale)
	}
	accounts := 100_000 * scale
	tables := heap(accounts, accountsPerPage) + heap(10*scale, tellersPerPage) + heap(scale, branchesPerPage)
	s := PgbenchSize{Scale: scale, Rows: accounts, TableBytes: page * tables,
		IndexBytes:     page * (tree(accounts) + tree(10*scale) + tree(scale)),
		HistoryPerMega: page * pages(1e6, historyPerPage)}
	s.FreshBytes = s.TableBytes + s.IndexBytes + emptyDatabaseBytes
	return s, nil
}

// ScaleFor is the largest scale whose fresh database is not larger than so many bytes.
func ScaleFor(bytes int64) (PgbenchSize, error) {
	least, err := SizeOfPgbench(1)
	if err != nil {
		return PgbenchSize{}, err
	}
	if bytes < least.FreshBytes {
		return PgbenchSize{}, fmt.Errorf("%d bytes are less than pgbench's smallest database, of scale 1, which has %d",
			bytes, least.FreshBytes)
	}
	low, high := int64(1), int64(MostScale)
	for low < high {
		mid := (low + high + 1) / 2
		s, err := SizeOfPgbench(mid)
		if err != nil {
			return PgbenchSize{}, err
		}
		if s.FreshBytes > bytes {
			high = mid - 1
		} else {
			low = mid
		}
	}
	return SizeOfPgbench(low)
}
