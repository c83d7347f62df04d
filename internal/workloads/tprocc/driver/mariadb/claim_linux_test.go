package mariadb_test

import (
	"strings"
	"testing"
)

// A second run is refused by the name of the first, until that has ended.
func TestClaim(t *testing.T) {
	d := start(t)
	first, err := d.Claim(t.Context(), "one's", true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Claim(t.Context(), "one's", false)
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	_, err = d.Claim(t.Context(), "two", true)
	if err == nil || !strings.Contains(err.Error(), "run one's works on it") {
		t.Errorf("%v", err)
	}
	_ = again.Close()
	second, err := d.Claim(t.Context(), "two", true)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
}
