package k8s

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// authority is a cluster's own, which signs for two days.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func certificate(name string, groups []string, ip net.IP) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err) // it never fails
	}
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	if ip != nil {
		c.IPAddresses = []net.IP{ip}
	}
	return c
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := certificate("plimsoll-test", nil, nil)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	c, err = x509.ParseCertificate(der)
	return &authority{c, key, encode("CERTIFICATE", der)}, err
}

// sign gives a certificate and its key.
func (a *authority) sign(c *x509.Certificate) (cert, key []byte, err error) {
	own, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, own.Public(), a.key)
	return encode("CERTIFICATE", der), key, err
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, encode("EC PRIVATE KEY", der), err
}

func encode(kind string, der []byte) []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}) // to memory
	return b.Bytes()
}

// kubeconfig names the API server, its authority and a user, in one file.
func kubeconfig(url string, ca []byte, user map[string]any) string {
	type object = map[string]any
	data, _ := json.MarshalIndent(object{"apiVersion": "v1", "kind": "Config", "current-context": "plimsoll-test",
		"clusters": []object{{"name": "plimsoll-test", "cluster": object{"server": url,
			"certificate-authority-data": ca}}},
		"users": []object{{"name": "plimsoll-test", "user": user}},
		"contexts": []object{{"name": "plimsoll-test", "context": object{"cluster": "plimsoll-test",
			"user": "plimsoll-test"}}}}, "", " ") // of texts alone
	return string(data) + "\n"
}

// credentials writes what the cluster's parts know each other by.
func (p *plan) credentials(token string) error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	url := "https://" + p.address(254) + ":6443"
	files := map[string]string{"pki/ca.crt": string(ca.pem),
		"pki/tokens": token + `,admin,admin,"system:masters"` + "\n",
		"kubeconfig": kubeconfig(url, ca.pem, map[string]any{"token": token}), "pki/token": token + "\n"}
	pair := func(name string, c *x509.Certificate) (cert, key []byte, err error) {
		cert, key, err = ca.sign(c)
		files["pki/"+name+".crt"], files["pki/"+name+".key"] = string(cert), string(key)
		return cert, key, err
	}
	_, _, err = pair("api", certificate("kube-apiserver", nil, net.ParseIP(p.address(254))))
	if err != nil {
		return err
	}
	if _, _, err = pair("kubelet-client", certificate("apiserver", []string{"system:masters"}, nil)); err != nil {
		return err
	}
	for n := 1; n <= p.Nodes; n++ {
		cert, key, err := pair(p.node(n), certificate("system:node:"+p.node(n), []string{"system:nodes"}, nil))
		if err != nil {
			return err
		}
		files[p.node(n)+"/kubeconfig"] = kubeconfig(url, ca.pem, map[string]any{"client-certificate-data": cert,
			"client-key-data": key})
	}
	_, accounts, err := newKey()
	if err != nil {
		return err
	}
	files["pki/accounts.key"] = string(accounts)
	files["audit-policy.json"] = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata"}]}`
	for name, text := range files {
		if err := write(p.path(name), text); err != nil {
			return err
		}
	}
	return nil
}
