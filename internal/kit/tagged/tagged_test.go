package tagged_test

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/kit/tagged"
)

type disk struct {
	ID    string  `yaml:"id"`
	Share float64 `yaml:"share"`
}

type file struct {
	Hosts map[string]host `yaml:"hosts"`
}

type host struct {
	Address string         `yaml:"address"`
	Port    int            `yaml:"port"`
	Wait    *time.Duration `yaml:"wait"`
	Sudo    bool           `yaml:"sudo"`
	Disks   []disk         `yaml:"disks"`
	Next    *host          `yaml:"next"`
}

// TestObjections has a mistake of each kind, and what is said of it.
func TestObjections(t *testing.T) {
	var into file
	for text, want := range map[string]string{
		"hosts: {a: {address: x, port: 22, wait: 3s, disks: [{id: d, share: 0.5}], next: {sudo: true}}}": "",
		"":                                       "",
		"# nothing":                              "",
		"host: {}":                               `line 1: unknown key "host"; did you mean "hosts"?`,
		"hosts: {a: {zzz: 1}}":                   `line 1: unknown key "zzz"; known are address, port, wait, sudo, disks, next`,
		"hosts: {a: {next: {disk: 1}}}":          `line 1: unknown key "disk"; did you mean "disks"?`,
		"hosts: {a: {disks: [{ids: 1}]}}":        `line 1: unknown key "ids"; did you mean "id"?`,
		"hosts:\n- a\n":                          `line 2: a list where {NAME: {address: ...}} is wanted`,
		"hosts: {a: b}":                          `line 1: "b" where {address: ...} is wanted`,
		"hosts: {a: {port: x22, sudo: 3}}":       "line 1: \"x22\" where a whole number is wanted\nline 1: \"3\" where true or false is wanted",
		"hosts: {a: {address: [b]}}":             `line 1: a list where a text is wanted`,
		"hosts: {a: {wait: {b: c}}}":             `line 1: keys with values where a length of time, like 90s is wanted`,
		"hosts: {a: {disks: x}}":                 `line 1: "x" where a list of {id: ...} is wanted`,
		"hosts: {a: {disks: [{share: x}]}}":      `line 1: "x" where a number is wanted`,
		"hosts: {a: {}}\n---\nhosts: {b: {}}\n":  "there is a second document (---): put all into the first",
		"hosts: {a: {},\n a: {}}":                `line 2: "a" is there twice: its first line is 1`,
		"hosts: {a: {address: [b}}":              "did not find expected",
		"[]":                                     `line 1: a list where {hosts: ...} is wanted`,
		"hosts: {a: {private: 1, disks: [[1]]}}": "line 1: unknown key \"private\"; known are address, port, wait, sudo, disks, next\nline 1: a list where {id: ...} is wanted",
	} {
		into.Hosts = nil
		objections, err := tagged.Decode([]byte(text), &into)
		got := ""
		if err != nil {
			got = err.Error()
		} else if err = tagged.Join(objections); err != nil {
			got = err.Error()
		}
		if got != want && (!strings.HasPrefix(want, "did not") || !strings.Contains(got, want)) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
