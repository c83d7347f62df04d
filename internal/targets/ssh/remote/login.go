package remote

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

	"golang.org/x/crypto/ssh/knownhosts"

	"plimsoll/internal/contract/target"
)

// Login is how another program gets into the machine.
func (m Machine) Login() target.Login {
	return target.Login{Machine: m.Name, User: m.User, Sudo: m.Sudo, Keys: slices.DeleteFunc(slices.Clone(m.Keys),
		func(name string) bool { return !Exists(name) }), KnownHosts: m.KnownHosts,
		KnownAs: knownhosts.Normalize(m.at()), Dial: m.reach}
}

func (x Hop) at() string { return net.JoinHostPort(x.Address, strconv.Itoa(x.Port)) }

// reach connects to the machine's SSH server, through the machines on the way.
func (m Machine) reach(ctx context.Context) (net.Conn, error) {
	if len(m.Jump) == 0 {
		connect := m.Dial
		if connect == nil {
			connect = (&net.Dialer{Timeout: dialLimit}).DialContext
		}
		return connect(ctx, "tcp", m.at())
	}
	last := len(m.Jump) - 1
	via := Machine{Name: m.Name, Hop: m.Jump[last], Jump: m.Jump[:last]}
	c, err := via.login(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := c.DialContext(ctx, "tcp", m.at())
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return through{conn, c}, nil
}

// through is a connection that ends with those that it goes through.
type through struct {
	net.Conn
	via *connection
}

// Close implements net.Conn.
func (t through) Close() error { return errors.Join(t.Conn.Close(), t.via.Close()) }
