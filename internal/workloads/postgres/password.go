package postgres

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/regular"
)

// ownPassword is that of every server that this process starts. It is in no file but those of mode 0600 that a load's
// client or a standby reads; servers get a verifier, from which it cannot be had.
var ownPassword = sync.OnceValue(rand.Text)

var ownVerifier = sync.OnceValues(func() (string, error) { return verifier(ownPassword(), []byte(rand.Text()[:16])) })

// verifier returns what PostgreSQL keeps of a password (RFC 5803).
func verifier(password string, salt []byte) (string, error) {
	const rounds = 4096
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("postgres: password: %w", err)
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(mac("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(stored[:]), text(mac("Server Key"))), nil
}

// PutPassword claims the database of a user's server for the run, and puts the password of a job's server on the
// machine, in a file of mode 0600 that PGPASSFILE of the job's command names: Engine.Run does so before it starts
// the command. The password of a user's server comes from where the config says, else from where psql would take it
// on this machine: PGPASSWORD, or ~/.pgpass. So do files of certificates.
func PutPassword(ctx context.Context, host target.Host, job workload.Job) error {
	for name, data := range job.Files {
		if path.Base(name) != accessFile {
			continue
		}
		var a access
		if err := json.Unmarshal(data, &a); err != nil {
			return fmt.Errorf("password of the server of workload %s: %s: %w", job.Command.Label, name, err)
		}
		password := ownPassword()
		if !a.Own {
			var err error
			if password, err = a.password(ctx); err != nil {
				return fmt.Errorf("password of the server of workload %s: %w", job.Command.Label, err)
			}
			if err := a.hold(ctx, runOf(job), password); err != nil {
				return fmt.Errorf("server of workload %s: %w", job.Command.Label, err)
			}
		}
		if err := a.putCertificates(ctx, host); err != nil {
			return fmt.Errorf("server of workload %s: %w", job.Command.Label, err)
		}
		if err := host.Put(ctx, a.PassFile, fs.FileMode(0o600), bytes.NewReader(passLine(password))); err != nil {
			return fmt.Errorf("password of the server of workload %s: %w", job.Command.Label, err)
		}
	}
	return nil
}

// passLine is a password as a file of libpq's has it.
func passLine(password string) []byte {
	return []byte("*:*:*:*:" + strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(password) + "\n")
}

// runOf is the run that a job is of; "" for none.
func runOf(job workload.Job) (run string) {
	for _, v := range job.Command.Env {
		if name, ok := strings.CutPrefix(v, worker.RunVariable+"="); ok {
			run = name
		}
	}
	return run
}

// putCertificates puts certificates and keys on the machine, which only their owner may read.
func (a access) putCertificates(ctx context.Context, host target.Host) error {
	for variable, file := range a.Certificates {
		if err := PutCertificate(ctx, host, path.Join(path.Dir(a.PassFile), certificates[variable]), file); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(strings.TrimPrefix(variable, "PG")), err)
		}
	}
	return nil
}

// PutCertificate puts a file of this machine, a certificate or a key, on a machine by a name.
func PutCertificate(ctx context.Context, host target.Host, name, file string) error {
	text, err := regular.Read(file, os.O_RDONLY, mostFile)
	if err != nil {
		return err
	}
	return host.Put(ctx, name, 0o600, bytes.NewReader(text))
}

// mostFile is how large a file of certificates may be.
const mostFile = 1 << 20

func (a access) password(ctx context.Context) (string, error) {
	if a.Password.String() != "nowhere" {
		s, err := a.Password.Read(ctx)
		return s.Reveal(), err
	}
	c, err := pgconn.ParseConfig(a.URL)
	if err != nil {
		return "", fmt.Errorf("the URL: %w", err)
	}
	return c.Password, nil // "" where the server trusts
}
