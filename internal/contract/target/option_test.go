package target_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
)

var table = []target.Option{
	{Name: "dir"},
	{Name: "reserve", Type: target.Bytes, Default: "512MiB", Range: "1MiB to 1TiB"},
	{Name: "wait", Type: target.Duration, Default: "4m", Range: "1s to 1h"},
	{Name: "ports", Type: target.Count, Range: "1 to 65535"},
	{Name: "share", Type: target.Number, Default: "0.5", Range: "0 to 1"},
	{Name: "groups", Type: target.Choice, Choices: []string{"auto", "off"}, Default: "auto"},
	{Name: "password", Type: target.Secret},
}

func TestDecode(t *testing.T) {
	v, err := target.Decode("test", table, target.Options{"dir": "/x", "ports": "22", "password": "env:P",
		"wait": "90s"})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{v.Text("dir"), v.Bytes("reserve"), v.Duration("wait"), v.Count("ports"), v.Number("share"),
		v.Text("groups"),
		v.Secret("password").String(), v.Given("wait"), v.Given("share"), v.Count("nothing")}
	want := []any{"/x", int64(512 << 20), 90 * time.Second, 22, 0.5, "auto", "env:P", true, false, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// All objections come at once, each naming its option; the text of a secret is not among them.
func TestDecodeObjects(t *testing.T) {
	_, err := target.Decode("test", table, target.Options{"reserve": "1KiB", "wait": "2h", "ports": "many",
		"share":  "NaN",
		"groups": "on", "password": "hunter2", "resreve": "1"})
	want := []string{
		`target test: option "reserve": "1KiB" is no size from 1MiB to 1TiB`,
		`target test: option "wait": "2h" is no time from 1s to 1h`,
		`target test: option "ports": "many" is no whole number from 1 to 65535`,
		`target test: option "share": "NaN" is no number from 0 to 1`,
		`target test: option "groups": "on" is none of auto, off`,
		`target test: option "password": a secret is not given as itself, where lists of processes and histories show it: give env:NAME, file:PATH or command:PROGRAM ARGUMENT...`,
		`target test: option "resreve": unknown; did you mean "reserve"? known are dir, reserve, wait, ports, share, groups, password`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
		t.Error(diff)
	}
}
