package result

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Folders and scenarios of earlier versions have other words for severities.
func TestSeveritiesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	var got []Severity
	if err := json.Unmarshal([]byte(`["blocker","caution","notice","fine","invalid","warning","info","passed","x"]`),
		&got); err != nil {
		t.Fatal(err)
	}
	want := []Severity{Invalid, Warning, Info, Passed, Invalid, Warning, Info, Passed, "x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The state of a run stays as it is in JSON and is shown in words of its own.
func TestWordsOfVerdicts(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"yes": "complete", "partly": "partial", "no": "not done",
		"pending": "pending", "unknown": "unknown"} {
		if got := (Verdict{State: state}).Word(); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
