// Package hammerdb runs a HammerDB that the user has, with passwords in no argument, log or report, and reads what
// HammerDB prints: results, its transaction counter, time profiles, queries.
//
// It stands below the load generator of that name and the importer of others' files. Work is what this program does
// where the generator has put it: it starts hammerdbcli with a script, gives the passwords through the environment,
// keeps HammerDB's own files (its log, its database of jobs, which holds passwords in clear) in a folder of its own
// that it removes, leaves out every line with a password, and puts the time since the start before each other line.
// While a test is timed it counts new orders in the tables, beside HammerDB's own figure. It
// refuses to believe "ALL VIRTUAL USERS COMPLETE", which follows failures as well: users that failed, and a test
// without a result, are errors.
package hammerdb

// WorkCommand is the command line's word for Work; its argument is the file of the job.
const WorkCommand = "hammerdb-worker"

// Job says what Work does in the working folder.
type Job struct {
	Folder    string            `json:"folder,omitempty"` // of HammerDB; "" to look for it
	Script    string            `json:"script"`
	Temporary string            `json:"temporary"` // a folder for HammerDB's own files
	Passwords string            `json:"passwords"` // the file that holds them, an object by the names below; "": none
	Sources   map[string]string `json:"sources,omitempty"`
	Profile   bool              `json:"profile,omitempty"` // print the time profile at the end
	Queries   bool              `json:"queries,omitempty"` // TPROC-H: no result but queries is waited for
	Orders    *Orders           `json:"orders,omitempty"`  // that are counted while a test is timed; nil for none
}

// Variable is the environment variable that a script finds a password in.
func Variable(name string) string { return "PLIMSOLL_" + name }

// Find is a shell script that prints the folder of HammerDB, which $1 may name.
const Find = `for d in "$1" "$(dirname "$(readlink -f "$(command -v hammerdbcli)")")" \
	/opt/HammerDB* /usr/local/HammerDB* "$HOME"/HammerDB*; do
	[ -n "$d" ] && [ "$d" != . ] && [ -f "$d/hammerdbcli" ] && { cd "$d" && pwd && exit 0; }
	[ -n "$1" ] && exit 1
done
exit 1
`
