package mysqlserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"plimsoll/internal/testkit/certificates"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"mariadb://a@h":                    "",
		"mysql://a@h:1/b":                  "",
		"mariadb://a@localhost?socket=/s":  "",
		"mariadb://a@h?sslmode=verify-ca":  "",
		"postgresql://a@h":                 "want mariadb://USER@HOST:PORT",
		"mariadb://h":                      "want mariadb://USER@HOST:PORT",
		"mariadb://a:secret@h":             "it has a password",
		"mariadb://a@h?password=secret":    "it has a password",
		"mariadb://a@h:x?password=secret":  "want mariadb://USER@HOST:PORT",
		"mariadb://a@h?sslmode=REQUIRED":   "sslmode=REQUIRED: want disable, prefer, require, verify-ca, verify-full",
		"mariadb://a@h?ssl-ca=/f":          "ssl-ca is sslrootcert here",
		"mariadb://a@h?tls=true":           "tls is sslmode here",
		"mariadb://a@h?charset=utf8":       `"charset" is no parameter`,
		"mariadb://a@h?sslcert=/f":         "sslcert and sslkey go together",
		"mariadb://a@h?socket=s":           "socket=s: want /PATH",
		"mariadb://a@h?sslmode=":           "sslmode: want one value",
		"mariadb://a@h?socket=/a&socket=b": "socket: want one value",
	} {
		_, err := Parse(text)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.HasPrefix(got, want) && want != "" ||
			strings.Contains(got, "secret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// What a connection is, by its mode: with TLS, whether it may go without, and whether a password may go as it is.
func TestConfig(t *testing.T) {
	files := certificates.Make(t, t.TempDir())
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ca := "&sslrootcert=" + files.Authority
	for more, want := range map[string]string{
		"":                                     "TLS, or without; not checked",
		"sslmode=disable":                      "no TLS",
		"sslmode=disable" + ca:                 "no TLS",
		"sslmode=prefer" + ca:                  "TLS, or without; not checked",
		"sslmode=require":                      "TLS; not checked; clear text",
		"sslmode=require" + ca:                 "TLS; authority; clear text",
		"sslmode=verify-ca":                    "TLS; authority; clear text",
		"sslmode=verify-full" + ca:             "TLS; name h; clear text",
		"sslmode=verify-full&socket=/s":        "no TLS; clear text",
		"sslmode=require&sslrootcert=/nowhere": "sslrootcert: open /nowhere",
		"sslmode=require&sslrootcert=" + empty: "sslrootcert: " + empty + " holds no certificate",
		"sslcert=" + files.Authority + "&sslkey=" + files.Key: "sslcert and sslkey: tls: private key does not match",
	} {
		u, err := Parse("mariadb://a@h?" + more)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Config(u, false)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case c.TLS == nil:
			got = "no TLS"
		default:
			got = "TLS" + map[bool]string{true: ", or without"}[c.AllowFallbackToPlaintext] + "; " + map[bool]string{
				true: "not checked", false: "name " + c.TLS.ServerName}[c.TLS.InsecureSkipVerify]
			if c.TLS.VerifyConnection != nil {
				got = strings.Replace(got, "not checked", "authority", 1)
			}
		}
		if err == nil && c.AllowCleartextPasswords {
			got += "; clear text"
		}
		if got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

// A way to log in that nobody here speaks is named.
func TestUnknownPlugin(t *testing.T) {
	u, err := Parse("mariadb://a@h")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Config(u, false)
	if err != nil {
		t.Fatal(err)
	}
	c.Logger.Print("auth.go:1 ", "unknown auth plugin:", "parsec")
	if got := Hint(c.Clone(), mysql.ErrUnknownPlugin); !strings.HasPrefix(got, `: "parsec"; have the user use ed25519`) {
		t.Error(got)
	}
}
