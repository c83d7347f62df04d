// Package certificates makes a certificate for a server on 127.0.0.1, and the authority that signed it. For tests only.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Files are where they are.
type Files struct {
	Authority, Certificate, Key string
	Another                     string // an authority of the same name
}

// All are the paths of the files.
func (f Files) All() []string { return []string{f.Authority, f.Certificate, f.Key, f.Another} }

// Make makes them in a folder: ca.crt, server.crt, server.key, other.crt. Clients may show the server's as well.
func Make(t testing.TB, folder string) Files {
	t.Helper()
	now := time.Now()
	of := func(name string, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate,
		*ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template.SerialNumber, template.Subject.CommonName = big.NewInt(now.UnixNano()), name
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(24*time.Hour)
		if parent == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made, key
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(folder, name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	root := func() *x509.Certificate { return &x509.Certificate{IsCA: true, BasicConstraintsValid: true} }
	parent, signer := of("test authority", root(), nil, nil)
	stranger, _ := of("test authority", root(), nil, nil)
	leaf, key := of("database", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, parent, signer)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	const certificate = "CERTIFICATE"
	return Files{
		Authority:   write("ca.crt", certificate, parent.Raw),
		Certificate: write("server.crt", certificate, leaf.Raw),
		Key:         write("server.key", "PRIVATE KEY", der),
		Another:     write("other.crt", certificate, stranger.Raw),
	}
}
