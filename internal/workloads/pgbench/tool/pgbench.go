// Package pgbench runs PostgreSQL's own pgbench on a machine and counts what its log says of every transaction, and
// reads what pgbench prints and logs, of versions from 9.x on.
//
// It stands below the load generator of that name and the importer of others' files. Work is what this program does
// where the generator has put it: it makes named pipes of the names that pgbench's log files will have, so that no log
// grows on the machine, has pgbench started once they are there, and prints a worker.State for every second in which
// all threads have been heard of. It refuses options that the pgbench there does not know, with the version that does.
package pgbench

// WorkCommand is the command line's word for Work; its argument is the file of the job.
const WorkCommand = "pgbench-worker"

// Script is run by a client.
type Script struct {
	Builtin string `json:"builtin,omitempty"` // of pgbench, or
	File    string `json:"file,omitempty"`    // in the working folder
	Weight  int    `json:"weight"`
}

// Job says what Work does in the working folder. Where the server is and what opens it stands in the environment, as
// every client of PostgreSQL reads it.
type Job struct {
	Initialize bool `json:"initialize,omitempty"` // make and fill the tables, and no more
	// Initialise is postgres.Never, Missing or Always: what is done about the tables.
	Initialise string `json:"initialise,omitempty"`
	Scale      int    `json:"scale"`
	// Schema has the tables; "" is postgres.PgbenchSchema.
	Schema string `json:"schema,omitempty"`

	Clients        int      `json:"clients,omitempty"`
	Threads        int      `json:"threads,omitempty"`
	Scripts        []Script `json:"scripts,omitempty"`
	Mode           string   `json:"mode,omitempty"`
	Rate           float64  `json:"rate,omitempty"` // tps; 0: as fast as it goes
	LatencyLimitMS float64  `json:"latency_limit_ms,omitempty"`
	MaxTries       int      `json:"max_tries,omitempty"`
	Connect        bool     `json:"connect,omitempty"`
	Statements     bool     `json:"statements,omitempty"`
	Log            bool     `json:"log,omitempty"` // count every transaction; else pgbench's own lines are all there is
	Seconds        int      `json:"seconds,omitempty"`
	Seed           uint64   `json:"seed,omitempty"`
	Options        []string `json:"options,omitempty"` // as pgbench takes them, --name=value
	// Apart: operations are the scripts, else all transactions are of one.
	Apart    bool     `json:"apart,omitempty"`
	Measures []string `json:"measures,omitempty"` // names, in the order of the values to be printed
}

// Names of measures, besides those of statements.
const (
	TPS              = "tps"                    // without the time to connect
	TPSWith          = "tps_with_connections"   //
	InitialConnect   = "initial_connection"     // ms
	RetriedMeasure   = "retried"                // transactions that were
	RetriesMeasure   = "retries"                //
	SerializationBad = "serialization_failures" //
	DeadlockBad      = "deadlock_failures"      //
	OtherBad         = "other_failures"         //
	SkippedMeasure   = "skipped"                //
	LateMeasure      = "late"                   // above the latency limit
	LagMean          = "schedule_lag_mean"      // ms
	LagMax           = "schedule_lag_max"       // ms
	ServiceMean      = "service_mean"           // ms
	ServiceP50       = "service_p50"            // ms
	ServiceP99       = "service_p99"            // ms
	ServiceP999      = "service_p99_9"          // ms
)
