package report

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A reader in another language need not ask whether a list is there.
func TestJSONListsAreNeverNull(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := JSON(&b, New(Input{})); err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if string(value) == "null" {
			t.Errorf("%s is null", name)
		}
	}
}
