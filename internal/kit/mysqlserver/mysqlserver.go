// Package mysqlserver is how MariaDB and MySQL are reached: their address, TLS by the words that libpq has for it, and
// what helps when a server lets nobody in.
//
// It stands on go-sql-driver/mysql, which connects. Everything in its addresses that it does not know is refused.
package mysqlserver

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"plimsoll/internal/kit/regular"
)

// Files are the parameters of an address that name files of certificates and keys, with names for copies of them.
var Files = map[string]string{"sslrootcert": "root.crt", "sslcert": "client.crt", "sslkey": "client.key"}

// mostFile is how large such a file may be.
const mostFile = 1 << 20

// The values of sslmode. Without one it is prefer, as the clients of MySQL and of MariaDB 11.4 have it.
const (
	disable    = "disable"     // no TLS
	prefer     = "prefer"      // where the server has it, whoever it is
	require    = "require"     // whoever the server is; with sslrootcert verify-ca
	verifyCA   = "verify-ca"   // its certificate is of an authority
	verifyFull = "verify-full" // and for its name
)

var modes = []string{disable, prefer, require, verifyCA, verifyFull}

// others are what other clients call these parameters.
var others = map[string]string{"ssl-mode": "sslmode", "tls": "sslmode", "ssl": "sslmode", "ssl-ca": "sslrootcert",
	"ssl-cert": "sslcert", "ssl-key": "sslkey", "ssl-verify-server-cert": "sslmode"}

// Parse reads mariadb://USER@HOST:PORT, with ?socket=/PATH or words of TLS. It reads no file. A path is the caller's
// matter. No error quotes a password.
func Parse(text string) (*url.URL, error) {
	want := errors.New("want mariadb://USER@HOST:PORT, or mariadb://USER@localhost?socket=/PATH")
	u, err := url.Parse(text)
	if err != nil {
		return nil, want // and not quoted: it may hold a password
	}
	q := u.Query()
	if _, has := u.User.Password(); has || q.Has("password") {
		return nil, errors.New("it has a password, which lists of processes and histories show; leave it out and give " +
			"password: env:NAME or file:PATH")
	}
	if u.Scheme != "mariadb" && u.Scheme != "mysql" || u.User.Username() == "" || u.Hostname() == "" {
		return nil, want
	}
	for _, key := range slices.Sorted(maps.Keys(q)) {
		known := Files[key] != "" || key == "sslmode" || key == "socket"
		switch {
		case others[key] != "":
			return nil, fmt.Errorf("%s is %s here: sslmode=%s, sslrootcert=FILE, sslcert=FILE, sslkey=FILE", key, others[key],
				strings.Join(modes, ", "))
		case !known:
			return nil, fmt.Errorf("%q is no parameter that an address can have; known are socket, sslmode, %s", key,
				strings.Join(slices.Sorted(maps.Keys(Files)), ", "))
		case len(q[key]) != 1 || q.Get(key) == "":
			return nil, fmt.Errorf("%s: want one value", key)
		}
	}
	switch mode := q.Get("sslmode"); {
	case mode != "" && !slices.Contains(modes, mode):
		return nil, fmt.Errorf("sslmode=%s: want %s", mode, strings.Join(modes, ", "))
	case q.Has("sslcert") != q.Has("sslkey"):
		return nil, errors.New("sslcert and sslkey go together")
	case q.Has("socket") && !strings.HasPrefix(q.Get("socket"), "/"):
		return nil, fmt.Errorf("socket=%s: want /PATH", q.Get("socket"))
	}
	return u, nil
}

// Config is how the library connects to an address that Parse has read; it reads the files of certificates. A password
// goes as it is only where TLS is sure, or by a unix socket, or where cleartext says so.
func Config(u *url.URL, cleartext bool) (c *mysql.Config, err error) {
	q := u.Query()
	c = mysql.NewConfig()
	c.Net, c.Addr, c.User = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), u.User.Username()
	c.Logger = &logged{}
	mode := cmp.Or(q.Get("sslmode"), prefer)
	if socket := q.Get("socket"); socket != "" {
		c.Net, c.Addr, mode = "unix", socket, disable
	}
	c.AllowCleartextPasswords = cleartext || c.Net == "unix" || mode != disable && mode != prefer
	c.AllowFallbackToPlaintext = mode == prefer
	if mode != disable {
		c.TLS, err = encryption(q, u.Hostname(), mode)
	}
	return c, err
}

func encryption(q url.Values, host, mode string) (*tls.Config, error) {
	read := func(parameter string) ([]byte, error) {
		text, err := regular.Read(q.Get(parameter), os.O_RDONLY, mostFile)
		if err != nil {
			err = fmt.Errorf("%s: %w", parameter, err)
		}
		return text, err
	}
	c := &tls.Config{ServerName: host, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if q.Has("sslrootcert") && q.Get("sslrootcert") != "system" {
		text, err := read("sslrootcert")
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("sslrootcert: %s holds no certificate", q.Get("sslrootcert"))
		}
		if mode == require {
			mode = verifyCA
		}
	}
	if q.Has("sslcert") {
		certificate, err := read("sslcert")
		if err != nil {
			return nil, err
		}
		key, err := read("sslkey")
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("sslcert and sslkey: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	c.InsecureSkipVerify = mode != verifyFull
	if mode == verifyCA {
		c.VerifyConnection = func(s tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
			for _, between := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(between)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return c, nil
}

// logged keeps the name of the plugin that the library does not know, which it logs and does not put into its error.
// All else that it logs comes as an error, too.
type logged struct{ plugin atomic.Pointer[string] }

// Print implements mysql.Logger.
func (l *logged) Print(v ...any) {
	for i, what := range v {
		if name, ok := v[len(v)-1].(string); ok && what == "unknown auth plugin:" && i == len(v)-2 {
			l.plugin.Store(&name)
		}
	}
}

// Hint returns what helps against an error of connecting by a Config, after "; ", or "".
func Hint(c *mysql.Config, err error) string {
	said := (*mysql.MySQLError)(nil)
	unknown, name := x509.UnknownAuthorityError{}, x509.HostnameError{}
	switch {
	case errors.Is(err, mysql.ErrCleartextPassword):
		return "; the server asks for the password in clear text, and it was not sent: give ?sslmode=require, have the " +
			"user use another plugin, or give server: cleartext_password: true"
	case errors.Is(err, mysql.ErrOldPassword):
		return "; the server asks for a password that is as good as in clear text: have the user use another plugin"
	case errors.Is(err, mysql.ErrUnknownPlugin):
		const use = "have the user use ed25519, caching_sha2_password or mysql_native_password, and PAM " +
			"pam_use_cleartext_plugin=ON"
		if l, ok := c.Logger.(*logged); ok && l.plugin.Load() != nil {
			return fmt.Sprintf(": %.40q; %s", *l.plugin.Load(), use)
		}
		return "; " + use
	case errors.Is(err, mysql.ErrNoTLS):
		return "; give the server a certificate, or ?sslmode=disable"
	case errors.As(err, &unknown):
		return "; name the file of the authority that signed the server's certificate: ?sslrootcert=FILE"
	case errors.As(err, &name):
		return "; give the name that its certificate has, or ?sslmode=verify-ca"
	case !errors.As(err, &said):
		return ""
	}
	switch said.Number {
	case 1045, 1044, 1698:
		switch {
		case c.Net == "unix":
			return "; give the right password, and see what the user may do"
		case c.TLS == nil:
			return "; give the right password, and see what the user may do, and whether TLS is asked of it (?sslmode=require)"
		case len(c.TLS.Certificates) == 0:
			return "; give the right password, and see what the user may do, and whether a certificate is asked of it " +
				"(?sslcert=FILE&sslkey=FILE)"
		}
		return "; give the right password, and see what the user may do, and which certificate is asked of it"
	case 3159:
		return "; give ?sslmode=require"
	case 1040, 1203:
		return "; use fewer users, or a server with a higher max_connections"
	case 1148, 3948, 4166:
		return "; the server needs local_infile=ON for loading"
	}
	return ""
}
