// Package redfish is the power controllers behind Redfish, the web service of BMCs: kind `redfish` of target.PowerKind,
// named in package drivers.
//
// Every call asks for the system, then for its reset; nothing is kept between calls, and a fresh process needs no more
// than the options. Of the standard it needs a system's PowerState and the action ComputerSystem.Reset.
//
// It refuses plain HTTP, certificates that nobody whom it trusts has signed (unless told otherwise), redirections, and
// links to other machines: a password goes to the BMC alone.
package redfish

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/answer"
	"plimsoll/internal/kit/regular"
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
func (Kind) Name() string { return "redfish" }

// Summary implements target.PowerKind.
func (Kind) Summary() string { return "a BMC with a Redfish service" }

// Options implements target.PowerKind.
func (Kind) Options() []target.Option {
	return []target.Option{
		{Name: "address", Help: "the BMC's name or address"},
		{Name: "port", Type: target.Count, Default: "443", Range: "1 to 65535",
			Help: "its port of HTTPS"},
		{Name: "user", Help: "who we are there"},
		{
			Name: "password",
			Type: target.Secret,
			Help: "where the password is kept: env:NAME, file:PATH or command:PROGRAM",
		},
		{Name: "system", Help: "the id of the system, where the BMC has several"},
		{
			Name: "ca",
			Help: "a file with the certificate that signed the BMC's, or is it (default: those of this machine)",
		},
		{Name: "tls", Type: target.Choice, Default: "verify", Choices: []string{"verify", "insecure"},
			Help: "insecure takes any certificate, so the password goes to whoever answers"},
		{Name: "timeout", Type: target.Duration, Default: "30s", Range: "1s to 10m",
			Help: "how long one command may take"},
	}
}

// Open implements target.PowerKind.
func (k Kind) Open(v target.Values) (target.PowerController, error) {
	var objections []error
	missing := func(name, give string) {
		objections = append(objections, fmt.Errorf("option %q is missing: give %s", name, give))
	}
	if v.Text("address") == "" {
		missing("address", "the BMC's name or address")
	}
	if v.Text("user") == "" {
		missing("user", "who we are there")
	}
	if v.Secret("password") == (secret.Source{}) {
		missing("password", "env:NAME, file:PATH or command:PROGRAM")
	}
	c := &controller{at: net.JoinHostPort(v.Text("address"), strconv.Itoa(v.Count("port"))), user: v.Text("user"),
		password: v.Secret("password"), system: v.Text("system"), ca: v.Text("ca"),
		insecure: v.Text("tls") == "insecure", limit: v.Duration("timeout"), dial: k.dial}
	if c.insecure && c.ca != "" {
		objections = append(objections, errors.New(`options "ca" and "tls": insecure asks nobody: give one of them`))
	}
	if strings.Contains(c.system, "/") {
		objections = append(objections, fmt.Errorf(`option "system": %q: give the id, without the path`, c.system))
	}
	return c, errors.Join(objections...)
}

// controller is one BMC. It holds no secret, only where one is kept.
type controller struct {
	at, user   string
	password   secret.Source
	system, ca string
	insecure   bool
	limit      time.Duration
	dial       target.Dial // nil: this machine's network
}

var _ target.PowerController = (*controller)(nil)

// State implements target.PowerController. A node that is being switched is in neither state.
func (c *controller) State(ctx context.Context) (state target.PowerState, err error) {
	state = target.Unknown
	err = c.session(ctx, func(s *session) error {
		m, _, err := s.find()
		state = m.state()
		return err
	})
	return state, err
}

// PowerOn implements target.PowerController.
func (c *controller) PowerOn(ctx context.Context) error {
	return c.reset(ctx, target.On, "On", "ForceOn")
}

// PowerOff implements target.PowerController.
func (c *controller) PowerOff(ctx context.Context) error { return c.reset(ctx, target.Off, "ForceOff") }

// Shutdown implements target.PowerController.
func (c *controller) Shutdown(ctx context.Context) error {
	return c.reset(ctx, target.Off, "GracefulShutdown")
}

// reset asks for the first kind of reset that the BMC offers. A BMC may refuse to do again what is done: then the state
// tells.
func (c *controller) reset(ctx context.Context, to target.PowerState, kinds ...string) error {
	return c.session(ctx, func(s *session) error {
		m, at, err := s.find()
		if err != nil {
			return err
		}
		reset := m.Actions.Reset
		if reset.Target == "" {
			return fmt.Errorf("%s offers no ComputerSystem.Reset: its power cannot be switched here", at)
		}
		kind := kinds[0]
		if len(reset.Allowed) > 0 {
			i := slices.IndexFunc(kinds, func(k string) bool { return slices.Contains(reset.Allowed, k) })
			if i < 0 {
				return fmt.Errorf(
					"%s offers the resets %s, and not %s",
					at,
					strings.Join(reset.Allowed, ", "),
					kinds[0],
				)
			}
			kind = kinds[i]
		}
		err = s.ask(http.MethodPost, reset.Target, map[string]string{"ResetType": kind}, nil)
		if refused, ok := errors.AsType[refusal](err); ok && !refused.login {
			if again, _, second := s.find(); second == nil && again.state() == to {
				return nil
			}
		}
		return err
	})
}

// system holds what is needed of Redfish's ComputerSystem.
type system struct {
	PowerState string
	Actions    struct {
		Reset struct {
			Target  string   `json:"target"`
			Allowed []string `json:"ResetType@Redfish.AllowableValues"`
		} `json:"#ComputerSystem.Reset"`
	}
}

func (m system) state() target.PowerState {
	switch m.PowerState {
	case "On":
		return target.On
	case "Off":
		return target.Off
	}
	return target.Unknown // PoweringOn, PoweringOff, Paused
}

// link is a reference to a resource.
type link struct {
	ID string `json:"@odata.id"`
}

// session is the requests of one call.
type session struct {
	*controller
	ctx      context.Context
	client   *http.Client
	password secret.Secret
}

// find gets the system, and says where it is.
func (s *session) find() (m system, at string, err error) {
	var root struct{ Systems link }
	if err := s.ask(http.MethodGet, "/redfish/v1/", nil, &root); err != nil {
		return m, "", err
	}
	if root.Systems.ID == "" {
		return m, "", errors.New("its Redfish service names no systems")
	}
	members, err := s.members(root.Systems.ID)
	if err != nil {
		return m, "", err
	}
	var names []string
	for _, l := range members {
		names = append(names, path.Base(l.ID))
		if len(members) == 1 && s.system == "" || path.Base(l.ID) == s.system {
			at = l.ID
		}
	}
	switch {
	case at == "" && len(names) == 0:
		return m, "", errors.New("it has no systems")
	case at == "" && s.system != "":
		return m, "", fmt.Errorf("no system %q: there are %s", s.system, strings.Join(names, ", "))
	case at == "":
		return m, "", fmt.Errorf("it has %d systems: give system: one of %s", len(names), strings.Join(names, ", "))
	}
	if err := s.ask(http.MethodGet, at, nil, &m); err != nil {
		return m, at, err
	}
	if m.PowerState == "" {
		return m, at, fmt.Errorf("%s tells no PowerState", at)
	}
	return m, at, nil
}

// mostPages bounds what is read of a collection.
const mostPages = 1000

// members are those of a collection, which may come in pages.
func (s *session) members(at string) (all []link, err error) {
	for range mostPages {
		var page struct {
			Members []link
			Next    string `json:"Members@odata.nextLink"`
		}
		if err := s.ask(http.MethodGet, at, nil, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Members...); page.Next == "" {
			return all, nil
		}
		at = page.Next
	}
	return nil, fmt.Errorf("its list of systems has no end: %d pages, and the next is %q", mostPages, at)
}

// refusal is an answer that is none of success.
type refusal struct {
	text  string
	login bool // of who we are
}

func (r refusal) Error() string { return r.text }

// mostBytes bounds answers.
const mostBytes = 4 << 20

// ask makes one request, and reads the answer into a value unless that is nil.
func (s *session) ask(method, at string, give, into any) error {
	if !strings.HasPrefix(at, "/") || strings.HasPrefix(at, "//") {
		return fmt.Errorf("it refers to %q, which is not a path of its own", at)
	}
	var body io.Reader
	if give != nil {
		data, err := json.Marshal(give)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(s.ctx, method, "https://"+s.at+at, body)
	if err != nil {
		return fmt.Errorf("it refers to %q: %w", at, err)
	}
	r.SetBasicAuth(s.user, s.password.Reveal())
	r.Header.Set("Accept", "application/json")
	r.Header.Set("OData-Version", "4.0")
	if give != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	data, err := answer.Read(got.Body, "https://"+s.at+at, mostBytes)
	if err != nil {
		return err
	}
	if got.StatusCode < 200 || got.StatusCode > 299 {
		return s.refused(method+" "+at, got, data)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf(
			"%s: its answer is not Redfish's (%w): see that the address and port are those of a BMC",
			at,
			err,
		)
	}
	return nil
}

// refused returns what an answer says of a failure, in the BMC's words where it has some.
func (s *session) refused(what string, answer *http.Response, data []byte) error {
	if code := answer.StatusCode; code == http.StatusUnauthorized || code == http.StatusForbidden {
		return refusal{fmt.Sprintf("%s: it answered %q: user %q with the password from %v may not do this", what,
			answer.Status, s.user, s.controller.password), true}
	}
	var said struct {
		Error struct {
			Message string                     `json:"message"`
			More    []struct{ Message string } `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	text := ""
	if json.Unmarshal(data, &said) == nil {
		text = said.Error.Message
		if len(said.Error.More) > 0 && said.Error.More[0].Message != "" {
			text = said.Error.More[0].Message
		}
	}
	if text != "" {
		text = fmt.Sprintf(": %.300q", text)
	}
	return refusal{fmt.Sprintf("%s: it answered %q%s", what, answer.Status, text), false}
}

// session does something with a client that trusts the certificates that were asked for. Errors name the BMC; they wrap
// target.ErrNotAccessible when it does not answer, and the context's error when that is over.
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
	config := &tls.Config{InsecureSkipVerify: c.insecure} // only where the user says so
	if c.ca != "" {
		data, err := regular.Read(c.ca, os.O_RDONLY, mostBytes)
		if err != nil {
			return fmt.Errorf("option \"ca\": %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(data) {
			return fmt.Errorf("option \"ca\": %s has no certificate in PEM", c.ca)
		}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DialContext: c.dial}
	defer transport.CloseIdleConnections()
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	err = do(&session{c, limited, &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, password})
	return c.explain(ctx, limited, err)
}

// explain tells a BMC that is not there from one that must not be trusted.
func (c *controller) explain(ctx, limited context.Context, err error) error {
	var unknown *tls.CertificateVerificationError
	var failed *net.OpError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("%w: no answer within %v: see that the address is right and no firewall is in between",
			target.ErrNotAccessible, c.limit)
	case errors.As(err, &unknown):
		return fmt.Errorf(
			"its certificate is not trusted (%w): give ca: the file of the certificate that signed it, or "+
				"tls: insecure to take any",
			unknown.Err,
		)
	case errors.As(err, &failed):
		return fmt.Errorf("%w: %w: see that the address and port are right", target.ErrNotAccessible, err)
	}
	return err
}
