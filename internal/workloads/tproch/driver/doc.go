// Package tproch is a workload of decision support derived from TPC-H on PostgreSQL: its data set, made from any row on
// and loaded in parallel, its 22 queries with their parameters and published answers, the functions that refresh the
// data, a power run, a throughput run, and the plans by which the server answered. Its figures are not those of audited
// TPC-H results and are not comparable with them.
//
// It stands below the engine of that name, which puts Work on a machine, and above the connection: package pgconn of
// pgx.
//
// It refuses to load into, change or drop a schema that does not carry its mark, or holds another scale than it was
// asked for; scales that the data set does not come in; and to call answers right that it did not compare.
package tproch
