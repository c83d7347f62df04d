package result_test

import (
	"testing"

	"plimsoll/result"
	"plimsoll/scenario"
)

func TestPlainNames(t *testing.T) {
	t.Parallel()
	vm, template := scenario.VMName(17, "Big Load", 3), scenario.TemplateName(17, "ubuntu 1604", "Load")
	for text, want := range map[string]string{
		vm:                                "Big_Load_0003",
		"on " + vm + ": no":               "on Big_Load_0003: no",
		`vm "` + template + `": x`:        `vm "ubuntu_1604_Load": x`,
		vm + ", " + vm:                    "Big_Load_0003, Big_Load_0003",
		"/tmp/work/" + vm + "/sdb.img":    "/tmp/work/" + vm + "/sdb.img",
		scenario.EntityName(17, "before"): "before",
		"__curie_filter_scenario__":       "__curie_filter_scenario__",
		"":                                "",
	} {
		if got := result.PlainNames(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	got, want := result.SpokenNames("sdb of "+vm+", not "+template), "sdb of VM 3 of Big_Load, not ubuntu_1604_Load"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
