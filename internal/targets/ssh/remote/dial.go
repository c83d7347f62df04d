package remote

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	sshagent "golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
)

// refused is an error that does not pass by itself: a key that is not known, a login or sudo that is refused. It is not
// tried again.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// dialLimit bounds every step on the way to a machine, answerLimit the first command there, for which a busy machine
// starts a shell, and agentLimit what an ssh-agent takes to tell its keys.
const (
	dialLimit   = 15 * time.Second
	answerLimit = time.Minute
	agentLimit  = 3 * time.Second
)

// Connection is a way into a machine that is open. SSH's is this package's own; a place whose machines have another
// implements it.
type Connection interface {
	// Command runs a command line in the machine's shell, with what it reads, and gives the end of what it printed. It
	// obeys ctx and the limit also where the machine does not answer any more.
	Command(ctx context.Context, limit time.Duration, in io.Reader, line string) (string, error)
	// Session starts a command line whose input and output are a connection, which ends with Close of either. A Read
	// that finds it ended gives Ended when the command said why.
	Session(line string) (net.Conn, error)
	io.Closer
}

// Ended is the error of a session whose command ended by itself: what it said last. It is not tried again.
func Ended(said string) error { return refused{errors.New(said)} }

// Dialer opens a Connection. Its errors wrap target.ErrNotAccessible where the machine cannot be reached.
type Dialer func(ctx context.Context) (Connection, error)

// connection is an open connection to a machine, with those that it goes through.
type connection struct {
	*ssh.Client
	through []io.Closer
}

// Close closes all of them.
func (c *connection) Close() error {
	err := c.Client.Close()
	if errors.Is(err, net.ErrClosed) { // the other side was first
		err = nil
	}
	for _, t := range slices.Backward(c.through) {
		_ = t.Close() // what went through it is closed
	}
	return err
}

// dial leads to the machine, by its own way where it has one. Errors name it and say what to do; they wrap
// target.ErrNotAccessible.
func (m Machine) dial(ctx context.Context) (Connection, error) {
	if m.Way == nil {
		return m.login(ctx)
	}
	c, err := m.Way(ctx)
	if err != nil {
		return nil, fmt.Errorf("machine %q: %w", m.Name, err)
	}
	return c, nil
}

// login is dial over SSH.
func (m Machine) login(ctx context.Context) (*connection, error) {
	c := &connection{}
	fail := func(err error) (*connection, error) {
		for _, t := range slices.Backward(c.through) {
			_ = t.Close() // it was of no use
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, fmt.Errorf("machine %q: %w", m.Name, ctx.Err())
		}
		return nil, fmt.Errorf("machine %q: %w: %w", m.Name, target.ErrNotAccessible, err)
	}
	connect := dialer((&net.Dialer{Timeout: dialLimit}).DialContext)
	if first := slices.Concat(m.Jump, []Hop{m.Hop})[0]; first.Dial != nil {
		connect = first.Dial
	}
	for i, x := range slices.Concat(m.Jump, []Hop{m.Hop}) {
		at := net.JoinHostPort(x.Address, strconv.Itoa(x.Port))
		client, err := x.patiently(ctx, connect, at)
		if err != nil {
			return fail(err)
		}
		if i < len(m.Jump) {
			c.through = append(c.through, client)
			connect = client.DialContext
		}
		c.Client = client
	}
	return c, nil
}

// dialer connects to an address.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// A server hangs up on logins beyond those that it lets be under way (MaxStartups: from ten on by chance). So no more
// go on at a time with one server, and as others may log in as well, a hang-up before the login is tried again.
const (
	mostLogins  = 8
	loginTrials = 6
	firstPause  = 200 * time.Millisecond
)

// logins are places for logins with each server, by address.
var logins sync.Map

// patiently connects to a server and logs in.
func (x Hop) patiently(ctx context.Context, connect dialer, at string) (*ssh.Client, error) {
	shared, _ := logins.LoadOrStore(at, make(chan struct{}, mostLogins))
	places := shared.(chan struct{}) // the line before
	for trial, pause := 1, firstPause; ; trial, pause = trial+1, 2*pause {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		client, err := x.try(ctx, connect, at)
		<-places
		hungUp := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
		if !hungUp || ctx.Err() != nil {
			return client, err
		}
		if trial == loginTrials {
			return nil, fmt.Errorf("%w: it hung up before the login %d times; if it has many at a time, raise "+
				"MaxStartups in its sshd_config", err, trial)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// try connects and logs in once.
func (x Hop) try(ctx context.Context, connect dialer, at string) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := connect(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // of a login that hangs
	client, err := x.login(ctx, conn, at)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // it was of no use
		return nil, err
	}
	return client, nil
}

// login does the handshake over a connection.
func (x Hop) login(ctx context.Context, conn net.Conn, at string) (*ssh.Client, error) {
	keys, unread, done := x.signers(ctx)
	defer done()
	if len(keys) == 0 {
		return nil, refused{errors.Join(unread, errors.New("there is no key to log in with: give key: FILE, or start an "+
			"ssh-agent"))}
	}
	check, algorithms, err := x.hostKeys(at)
	if err != nil {
		return nil, refused{err}
	}
	config := &ssh.ClientConfig{User: x.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)}, HostKeyCallback: check,
		HostKeyAlgorithms: algorithms, Timeout: dialLimit}
	c, channels, requests, err := ssh.NewClientConn(conn, at, config)
	if err != nil {
		if r, ok := errors.AsType[refused](err); ok {
			return nil, r
		}
		if strings.Contains(err.Error(), "unable to authenticate") || tooMany(err) {
			no := fmt.Errorf("%s: user %q is not let in by any of %d keys (%s): put the public key into its "+
				"~/.ssh/authorized_keys there, or give another key", at, x.User, len(keys), strings.Join(x.Keys, ", "))
			if tooMany(err) {
				no = fmt.Errorf("%s: user %q: it hung up before the last of %d keys (%s and those of the ssh-agent): give "+
					"the right one as key:, which is tried first, or raise its MaxAuthTries", at, x.User, len(keys),
					strings.Join(x.Keys, ", "))
			}
			return nil, refused{errors.Join(no, unread)}
		}
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return ssh.NewClient(c, channels, requests), nil
}

// tooMany reports whether a server does not want to see more keys.
func tooMany(err error) bool {
	return strings.Contains(err.Error(), "Too many authentication failures")
}

// signers are the keys to log in with: those of files, and those of a running ssh-agent. unread says which files are
// none, and why. The agent signs until ctx is over or done is called.
func (x Hop) signers(ctx context.Context) (list []ssh.Signer, unread error, done func()) {
	done = func() {}
	var objections []error
	for _, name := range x.Keys {
		data, err := regular.Read(name, os.O_RDONLY, 1<<20)
		if err != nil {
			objections = append(objections, fmt.Errorf("key: %w", err))
			continue
		}
		signer, err := ssh.ParsePrivateKey(data)
		if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
			phrase, readErr := x.Passphrase.Read(ctx)
			if readErr != nil {
				objections = append(objections, fmt.Errorf("key %s has a passphrase: add the key to an ssh-agent, or "+
					"give passphrase: env:NAME (%w)", name, readErr))
				continue
			}
			signer, err = ssh.ParsePrivateKeyWithPassphrase(data, []byte(phrase.Reveal()))
		}
		if err != nil {
			objections = append(objections, fmt.Errorf("key %s: %w", name, err))
			continue
		}
		list = append(list, signer)
	}
	if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
		if conn, err := net.Dial("unix", socket); err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			done = func() { _, _ = stop(), conn.Close() }
			hangs := time.AfterFunc(agentLimit, func() { _ = conn.Close() })
			if more, err := sshagent.NewClient(conn).Signers(); err == nil {
				list = append(list, more...)
			}
			hangs.Stop()
		}
	}
	return list, errors.Join(objections...), done
}

// certificates are the kinds of certificates that machines show.
var certificates = []string{ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01,
	ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01}

// authority reports whether a line of known_hosts is of one who signs keys of machines.
func authority(k knownhosts.KnownKey) bool {
	text, err := os.ReadFile(k.Filename)
	if err != nil {
		return false
	}
	lines := bytes.Split(text, []byte("\n"))
	return k.Line <= len(lines) && bytes.HasPrefix(bytes.TrimSpace(lines[k.Line-1]), []byte("@cert-authority"))
}

// hostKeys checks the keys of machines against known_hosts, and says which kinds of keys it has of this one.
func (x Hop) hostKeys(at string) (check ssh.HostKeyCallback, algorithms []string, err error) {
	files := slices.DeleteFunc(slices.Clone(x.KnownHosts), func(f string) bool { return !Exists(f) })
	known, err := knownhosts.New(files...)
	if err != nil {
		return nil, nil, fmt.Errorf("known_hosts: %w", err)
	}
	check = func(name string, remote net.Addr, key ssh.PublicKey) error {
		err := known(name, remote, key)
		wrong, ok := errors.AsType[*knownhosts.KeyError](err)
		shown, certified := key.(*ssh.Certificate)
		where := strings.Join(x.KnownHosts, ", ")
		switch {
		case err == nil:
			return nil
		case certified:
			return refused{fmt.Errorf("%s: its certificate, for %s and signed by %s, is not taken: %w: see that a line "+
				"@cert-authority of %s has the key that signs certificates of this machine", at,
				strings.Join(shown.ValidPrincipals, ", "), ssh.FingerprintSHA256(shown.SignatureKey), err, where)}
		case !ok:
			return refused{fmt.Errorf("%s: %w", at, err)}
		}
		print := key.Type() + " " + ssh.FingerprintSHA256(key)
		if len(wrong.Want) == 0 {
			return refused{
				fmt.Errorf("%s: its key %s is not known (%s): compare it with what ssh-keygen -lf says on the "+
					"machine itself, then log in once with ssh -p %d %s@%s", at, print, where, x.Port, x.User,
					x.Address),
			}
		}
		// An authority's key is none of this machine.
		w := wrong.Want[max(0, slices.IndexFunc(wrong.Want, func(k knownhosts.KnownKey) bool { return !authority(k) }))]
		return refused{fmt.Errorf("%s: its key has changed: it is %s, and line %d of %s has %s: somebody may sit in "+
			"between, or the machine was made anew; find out which, then ssh-keygen -R '%s' -f %s and log in once with "+
			"ssh", at, print, w.Line, w.Filename, ssh.FingerprintSHA256(w.Key), knownhosts.Normalize(at), w.Filename)}
	}
	// A key that nobody has tells which keys are known.
	none, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil, nil, err
	}
	wrong, _ := errors.AsType[*knownhosts.KeyError](known(at, &net.TCPAddr{}, none))
	if wrong != nil {
		for _, w := range wrong.Want {
			kinds := []string{w.Key.Type()}
			switch {
			case authority(w): // whatever kind of key it has signed
				kinds = certificates
			case w.Key.Type() == ssh.KeyAlgoRSA:
				kinds = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
			}
			algorithms = append(algorithms, kinds...)
		}
	}
	return check, algorithms, nil
}

// quoted is a command line for a shell.
func quoted(words ...string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(list, " ")
}

// commandLimit is how long a command of ours may take that moves the agent or removes files: more than dialLimit.
const commandLimit = 10 * time.Minute

// Command implements Connection. A machine that does not answer any more has the connection closed.
func (c *connection) Command(ctx context.Context, limit time.Duration, in io.Reader, line string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: logged in, but no answer within %v: see that "+
		"ssh runs commands there at once", target.ErrNotAccessible, limit))
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // its error is that of what goes on
	var out, errs Tail
	s, err := c.NewSession()
	if err == nil {
		defer s.Close() //nolint:errcheck // it has ended
		s.Stdin, s.Stdout, s.Stderr = in, &out, &errs
		err = s.Run(line)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if said := errs.told(); err != nil && said != "" {
		err = fmt.Errorf("%s (%w)", said, err)
	}
	return out.Text(), err
}
