// Package ipmi is the power controllers behind IPMI 2.0 over LAN (RMCP+), as BMCs have them: kind `ipmi` of
// target.PowerKind, named in package drivers.
//
// Every call logs in, does its one command and logs out: nothing is kept between calls, and a fresh process needs no
// more than the options. Passwords never leave this machine: both sides prove that they know it. Every answer is
// authenticated and encrypted, and one that is not as it has to be is taken for lost.
//
// It refuses cipher suites without both (0, 1, 2, and those of MD5 and RC4), IPMI 1.5, and answers of a BMC that does
// not know the password.
package ipmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/secret"
)

// Kind makes the controllers. The zero value is ready for use.
type Kind struct{ dial target.Dial }

var (
	_ target.PowerKind    = Kind{}
	_ target.PowerThrough = Kind{}
)

// Through implements target.PowerThrough.
func (Kind) Through(dial target.Dial) target.PowerKind { return Kind{dial} }

// Name implements target.PowerKind.
func (Kind) Name() string { return "ipmi" }

// Summary implements target.PowerKind.
func (Kind) Summary() string { return "a BMC behind IPMI 2.0 over LAN" }

var privileges = map[string]byte{"operator": 3, "administrator": 4}

// Options implements target.PowerKind.
func (Kind) Options() []target.Option {
	return []target.Option{
		{Name: "address", Help: "the BMC's name or address"},
		{Name: "port", Type: target.Count, Default: "623", Range: "1 to 65535",
			Help: "its UDP port"},
		{Name: "user", Help: "who we are there, at most 16 bytes"},
		{
			Name: "password",
			Type: target.Secret,
			Help: "where the password is kept: env:NAME, file:PATH or command:PROGRAM",
		},
		{Name: "cipher", Type: target.Choice, Default: "auto", Choices: []string{"auto", "17", "3"},
			Help: "cipher suite: 17 (SHA-256), 3 (SHA-1), or whichever of them in this order it takes"},
		{Name: "privilege", Type: target.Choice, Default: "operator", Choices: []string{"operator", "administrator"},
			Help: "the level to ask for; switching power needs operator"},
		{Name: "timeout", Type: target.Duration, Default: "15s", Range: "1s to 10m",
			Help: "how long one command may take, logging in included"},
	}
}

// Open implements target.PowerKind.
func (k Kind) Open(v target.Values) (target.PowerController, error) {
	var objections []error
	if v.Text("address") == "" {
		objections = append(objections, errors.New(`option "address" is missing: give the BMC's name or address`))
	}
	if len(v.Text("user")) > 16 {
		objections = append(objections, fmt.Errorf(`option "user": %q is longer than IPMI's 16 bytes`, v.Text("user")))
	}
	if v.Secret("password") == (secret.Source{}) {
		objections = append(objections, errors.New(`option "password" is missing: give env:NAME, file:PATH or `+
			`command:PROGRAM`))
	}
	c := &controller{at: net.JoinHostPort(v.Text("address"), strconv.Itoa(v.Count("port"))), user: v.Text("user"),
		password: v.Secret("password"), privilege: v.Text("privilege"), limit: v.Duration("timeout"),
		dial: k.dial}
	if c.dial == nil {
		c.dial = new(net.Dialer).DialContext
	}
	for _, s := range suites {
		if text := v.Text("cipher"); text == "auto" || text == strconv.Itoa(s.id) {
			c.suites = append(c.suites, s)
		}
	}
	return c, errors.Join(objections...)
}

// controller is one BMC. It holds no secret, only where one is kept.
type controller struct {
	at, user  string
	password  secret.Source
	suites    []suite // to be tried, in this order
	privilege string
	limit     time.Duration
	dial      target.Dial
}

var _ target.PowerController = (*controller)(nil)

// Commands of IPMI: the network function of requests, and the number.
type command struct{ function, number byte }

var (
	getStatus    = command{0x00, 0x01}
	control      = command{0x00, 0x02}
	setPrivilege = command{0x06, 0x3b}
	closeSession = command{0x06, 0x3c}
)

// What the command `control` is given.
const (
	controlOff  = 0
	controlOn   = 1
	controlSoft = 5
)

// State implements target.PowerController.
func (c *controller) State(ctx context.Context) (state target.PowerState, err error) {
	state = target.Unknown
	err = c.session(ctx, func(s *session) error { state, err = s.state(); return err })
	return state, err
}

func (s *session) state() (target.PowerState, error) {
	data, err := s.call(getStatus)
	switch {
	case err != nil:
		return target.Unknown, err
	case len(data) < 3:
		return target.Unknown, fmt.Errorf("its status is of %d bytes, where IPMI has 3 or 4", len(data))
	case data[0]&1 == 1:
		return target.On, nil
	}
	return target.Off, nil
}

// PowerOn implements target.PowerController.
func (c *controller) PowerOn(ctx context.Context) error { return c.control(ctx, controlOn, target.On) }

// PowerOff implements target.PowerController.
func (c *controller) PowerOff(ctx context.Context) error {
	return c.control(ctx, controlOff, target.Off)
}

// Shutdown implements target.PowerController: the BMC presses the power button shortly (ACPI).
func (c *controller) Shutdown(ctx context.Context) error {
	return c.control(ctx, controlSoft, target.Off)
}

// control switches. A BMC may refuse to do again what is done: then the state tells.
func (c *controller) control(ctx context.Context, what byte, to target.PowerState) error {
	return c.session(ctx, func(s *session) error {
		_, err := s.call(control, what)
		if _, refused := errors.AsType[refusal](err); refused {
			if state, second := s.state(); second == nil && state == to {
				return nil
			}
		}
		return err
	})
}

// session logs in, does something and logs out. Errors name the BMC; they wrap target.ErrNotAccessible when it does not
// answer, and the context's error when that is over.
func (c *controller) session(ctx context.Context, do func(*session) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("BMC %s: %w", c.at, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	password, err := c.password.Read(ctx)
	if err != nil {
		return err
	}
	if len(password.Reveal()) > 20 {
		return fmt.Errorf("the %v is longer than IPMI's 20 bytes", password)
	}
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	conn, err := c.dial(limited, "udp", c.at)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer conn.Close() // UDP: nothing is left to be written
	stop := context.AfterFunc(limited, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	s, err := c.login(limited, conn, []byte(password.Reveal()))
	if err == nil {
		err = do(s)
		s.close()
	}
	if errors.Is(err, busy) && ctx.Err() == nil {
		return fmt.Errorf("%w, again and again for %v", err, c.limit)
	}
	if failed := (*net.OpError)(nil); errors.As(err, &failed) || limited.Err() != nil && err != nil {
		return c.unreachable(ctx, err)
	}
	return err
}

// unreachable is for a BMC that does not answer.
func (c *controller) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed := (*net.OpError)(nil); errors.As(err, &failed) && !failed.Timeout() {
		return fmt.Errorf("%w: %w: see that the address is right and IPMI over LAN is enabled there",
			target.ErrNotAccessible, err)
	}
	return fmt.Errorf("%w: no valid answer within %v: see that the address is right, IPMI over LAN is enabled there, "+
		"and no firewall is in between", target.ErrNotAccessible, c.limit)
}

// login opens a session with the first cipher suite that the BMC takes.
func (c *controller) login(ctx context.Context, conn net.Conn, password []byte) (s *session, err error) {
	for _, suite := range c.suites {
		s = &session{ctx: ctx, conn: conn, suite: suite}
		err = s.open(c.user, password, privileges[c.privilege])
		if r, ok := errors.AsType[status](err); !ok || !r.suite() {
			break
		}
	}
	switch r, _ := errors.AsType[status](err); {
	case errors.Is(err, errPassword):
		return nil, fmt.Errorf("the password of user %q is not the one from %v", c.user, c.password)
	case r == unknownUser:
		return nil, fmt.Errorf("no user %q there, or it may not log in over LAN", c.user)
	case r == noRole, r == badRole:
		return nil, fmt.Errorf(
			"user %q may not have privilege %q there (%w): give privilege: operator, or another user",
			c.user,
			c.privilege,
			r,
		)
	case r.suite():
		return nil, fmt.Errorf("it takes none of the cipher suites asked for (%w): 17 and 3 are known here, "+
			"and cipher: auto tries both", r)
	case err != nil:
		return nil, fmt.Errorf("logging in: %w", err)
	}
	got, err := s.call(setPrivilege, privileges[c.privilege])
	if err == nil && (len(got) == 0 || got[0]&0xf != privileges[c.privilege]) {
		err = errors.New("it gives another")
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("asking for privilege %q: %w", c.privilege, err)
	}
	return s, nil
}
