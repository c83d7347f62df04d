package remote

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"

	"golang.org/x/crypto/ssh"
)

// NewKey makes a pair of ed25519 keys that nobody else has: the private one in OpenSSH's PEM, with a comment, and the
// public one as a line of authorized_keys.
func NewKey(comment string) (private []byte, public string, err error) {
	of, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return nil, "", err
	}
	line, err := ssh.NewPublicKey(of)
	if err != nil {
		return nil, "", err
	}
	return pem.EncodeToMemory(block), string(ssh.MarshalAuthorizedKey(line)), nil
}
