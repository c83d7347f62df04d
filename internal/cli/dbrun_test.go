package cli

import "testing"

// What is said of a server before and after a run is of the database that the run uses.
func TestDatabaseBesideAddress(t *testing.T) {
	for _, test := range []struct{ address, database, want string }{
		{"postgresql://app@h", "bench", "postgresql://app@h/bench"},
		{"postgresql://app@/?host=/run/x", "a b", "postgresql://app@/a%20b?host=/run/x"},
		{"postgresql://app@h:1/", "", "postgresql://app@h:1/"},
		{"postgresql://app@h/theirs", "bench", "postgresql://app@h/theirs"}, // the load's file objects to both
	} {
		if got := withDatabase(test.address, test.database); got != test.want {
			t.Errorf("%s and %s: %s, want %s", test.address, test.database, got, test.want)
		}
	}
}
