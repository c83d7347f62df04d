package ipmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/bmctest"
	"plimsoll/internal/testkit/powertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func poll(t *testing.T, done func() bool) {
	t.Helper()
	for range 200 {
		if done() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("it never was")
}

// A BMC that others wrote is driven by the contract's suite.
func TestConformance(t *testing.T) {
	b := bmctest.New(t)
	t.Setenv("WRONG_PASSWORD", "wrong")
	o := b.Options(t)
	powertest.RunKind(t, powertest.Bench{Kind: Kind{}, Options: o, Secret: bmctest.Password, Node: b.State,
		Wait:  func(done func() bool) { poll(t, done) },
		Wrong: powertest.With(o, "password", "env:WRONG_PASSWORD"), Graceful: true})
	if asked := b.Asked(t); !strings.Contains(asked, "set shutdown 1") {
		t.Errorf("a shutdown was never asked for: %s", asked)
	}
}

// What a BMC refuses is said with what to do.
func TestRefusals(t *testing.T) {
	b := bmctest.New(t)
	t.Setenv("WRONG_PASSWORD", "wrong")
	t.Setenv("LONG_PASSWORD", "this is longer than 20")
	o := b.Options(t)
	for name, c := range map[string]struct {
		options target.Options
		words   []string
	}{
		"password": {powertest.With(o, "password", "env:WRONG_PASSWORD"), []string{
			fmt.Sprintf("BMC 127.0.0.1:%d", b.Port),
			`the password of user "admin" is not the one from env:WRONG_PASSWORD`}},
		"no password": {powertest.With(o, "password", "env:NO_SUCH"), []string{"env:NO_SUCH", "not set"}},
		"long password": {
			powertest.With(o, "password", "env:LONG_PASSWORD"), []string{"env:LONG_PASSWORD", "20 bytes"},
		},
		"user": {powertest.With(o, "user", "nobody"), []string{`no user "nobody" there`}},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := powertest.Open(t, Kind{}, c.options).State(t.Context())
			powertest.Fails(t, err, c.words...)
			if state != target.Unknown || errors.Is(err, target.ErrNotAccessible) {
				t.Errorf("state %q, %v: it does answer", state, err)
			}
		})
	}
}

// A node that does not follow is the state's to show: commands return when the BMC has taken them.
func TestStuckNode(t *testing.T) {
	b := bmctest.New(t)
	b.Stick(t)
	c := powertest.Open(t, Kind{}, b.Options(t))
	if err := c.PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err := c.State(t.Context()); state != target.On || err != nil {
		t.Errorf("%s, %v: the node did not follow", state, err)
	}
}

// relay passes packets to a BMC and back, as change has them; nil is a lost one.
func relay(t *testing.T, to int, change func(answer bool, n int, packet []byte) []byte) (port int) {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", to))
	if err != nil {
		t.Fatal(err)
	}
	clients := make(chan net.Addr, 1000)
	done := make(chan bool, 2)
	go func() {
		defer func() { done <- true }()
		b := make([]byte, 2048)
		for i := 0; ; i++ {
			n, from, err := front.ReadFrom(b)
			if err != nil {
				return
			}
			clients <- from
			if p := change(false, i, b[:n]); p != nil {
				_, _ = back.Write(p)
			}
		}
	}()
	go func() {
		defer func() { done <- true }()
		b := make([]byte, 2048)
		var client net.Addr
		for i := 0; ; i++ {
			n, err := back.Read(b)
			if err != nil {
				return
			}
			for len(clients) > 0 {
				client = <-clients
			}
			if p := change(true, i, b[:n]); p != nil {
				_, _ = front.WriteTo(p, client)
			}
		}
	}()
	t.Cleanup(func() { _ = front.Close(); _ = back.Close(); <-done; <-done })
	return front.LocalAddr().(*net.UDPAddr).Port
}

// Packets that are lost are sent again; answers that were changed on the way are none.
func TestBadNetwork(t *testing.T) {
	b := bmctest.New(t)
	o := b.Options(t)
	t.Run("every third packet is lost", func(t *testing.T) {
		t.Parallel()
		port := relay(t, b.Port, func(answer bool, n int, p []byte) []byte {
			if !answer && n%3 == 1 {
				return nil
			}
			return p
		})
		c := powertest.Open(t, Kind{}, powertest.With(o, "port", fmt.Sprint(port)))
		if state, err := c.State(t.Context()); state != target.On ||
			err != nil {
			t.Errorf("%s, %v", state, err)
		}
	})
	for name, change := range map[string]func([]byte) []byte{
		"changed in the body": func(p []byte) []byte { p[len(p)-20] ^= 1; return p },
		"forged code":         func(p []byte) []byte { p[len(p)-1] ^= 1; return p },
		"not authentic":       func(p []byte) []byte { p[5] &= 0x3f; return p },
		"cut":                 func(p []byte) []byte { return p[:len(p)/2] },
		"empty":               func([]byte) []byte { return []byte{} },
		"long":                func(p []byte) []byte { p[14], p[15] = 0xff, 0xff; return p },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := relay(t, b.Port, func(answer bool, _ int, p []byte) []byte {
				if answer && p[5]&0xc0 == 0xc0 {
					return change(p)
				}
				return p
			})
			state, err := powertest.Open(t, Kind{}, powertest.With(o, "port", fmt.Sprint(port), "timeout", "1s")).
				State(t.Context())
			powertest.Fails(t, err, "no valid answer within 1s", "firewall")
			if state != target.Unknown || !errors.Is(err, target.ErrNotAccessible) {
				t.Errorf("%s, %v", state, err)
			}
		})
	}
}

// A BMC that refuses a cipher suite late, so often as it was asked, is not taken to refuse the next one.
func TestLateRefusal(t *testing.T) {
	b := bmctest.New(t)
	var held []byte
	port := relay(t, b.Port, func(answer bool, _ int, p []byte) []byte {
		if !answer {
			return p
		}
		switch {
		case p[5] == openAnswer && held == nil: // to suite 17, as one has it that knows only 3
			p = slices.Concat(p[:14], []byte{8, 0, p[16], 0x11, 0, 0}, p[20:24])
			held = p
		case p[5] == openAnswer: // that the first refusal comes again before this one
			p, held = held, p
		}
		return p
	})
	c := powertest.Open(t, Kind{}, powertest.With(b.Options(t), "port", fmt.Sprint(port), "timeout", "10s"))
	if state, err := c.State(t.Context()); state != target.On || err != nil {
		t.Errorf("%s, %v", state, err)
	}
}

// A BMC that is busy is asked again, with a new number, until the time is over.
func TestBusy(t *testing.T) {
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]byte, 32)
	client := session{suite: suites[0], id: [4]byte{1}, theirs: [4]byte{2}, k1: keys, k2: keys}
	there := session{suite: client.suite, id: client.theirs, theirs: client.id, k1: keys, k2: keys}
	asked := make(chan byte, 10)
	go func() { // busy for two requests, and for all ever after the third
		defer close(asked)
		b := make([]byte, 2048)
		for {
			n, from, err := front.ReadFrom(b)
			if err != nil {
				return
			}
			kind, header, payload, rest, _ := parse(b[:n])
			m, ok := there.unseal(kind, header, payload, rest)
			if !ok {
				t.Error("a request that is none")
				return
			}
			asked <- m[4] >> 2
			code := byte(busy)
			if len(asked) == 3 {
				code = 0
			}
			answer := []byte{m[3], m[1] | 1<<2, checksum(m[3], m[1]|1<<2), m[0], m[4], m[5], code, 0x21, 0, 0}
			there.sent++
			_, _ = front.WriteTo(there.seal(append(answer, checksum(answer[3:]...))), from)
		}
	}()
	if client.conn, err = net.Dial("udp", front.LocalAddr().String()); err != nil {
		t.Fatal(err)
	}
	client.ctx = t.Context()
	state, err := client.state()
	if state != target.On || err != nil {
		t.Errorf("%s, %v", state, err)
	}
	within, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	client.ctx = within
	if state, err = client.state(); state != target.Unknown || !errors.Is(err, busy) {
		t.Errorf("%s, %v", state, err)
	}
	_, _ = client.conn.Close(), front.Close()
	var numbers []byte
	for n := range asked {
		numbers = append(numbers, n)
	}
	if d := cmp.Diff([]byte{1, 2, 3, 4}, numbers); d != "" {
		t.Error(d)
	}
}

// A BMC that is not there, or is silent, is told from one that refuses; nobody waits longer than was asked for.
func TestNoAnswer(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("BMC", "x")
	o := target.Options{"address": "127.0.0.1", "password": "env:BMC", "timeout": "1s",
		"port": fmt.Sprint(silent.LocalAddr().(*net.UDPAddr).Port)}
	began := time.Now()
	_, err = powertest.Open(t, Kind{}, o).State(t.Context())
	powertest.Fails(t, err, "no valid answer within 1s")
	if took := time.Since(began); !errors.Is(err, target.ErrNotAccessible) || took > 3*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	_, err = powertest.Open(t, Kind{}, powertest.With(o, "port", "1")).State(t.Context())
	powertest.Fails(t, err, "connection refused", "address is right")
	if !errors.Is(err, target.ErrNotAccessible) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	began = time.Now()
	if err := powertest.Open(t, Kind{}, powertest.With(o, "timeout", "1m")).PowerOff(ctx); !errors.Is(
		err,
		context.Canceled,
	) ||
		time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// All that is wrong with options is said at once.
func TestOptions(t *testing.T) {
	_, err := target.PowerSetting{
		Kind:    "ipmi",
		Options: target.Options{"user": "a name of 17 bytes"},
	}.Open(
		"node 0",
		[]target.PowerKind{Kind{}},
	)
	powertest.Fails(
		t,
		err,
		"node 0",
		`"address" is missing`,
		`"a name of 17 bytes" is longer`,
		`"password" is missing`,
	)
}

// FuzzAnswer: no packet breaks the client, and none without the right code is taken.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{6, 0, 0xff, 7, 6, 0xc0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 1, 2, 3, 4})
	f.Add(packet(openAnswer, [4]byte{}, 0, make([]byte, 36)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &session{suite: suites[0], id: [4]byte{1}, k1: make([]byte, 32), k2: make([]byte, 32)}
		kind, header, payload, rest, ok := parse(b)
		if !ok {
			return
		}
		if len(header)+len(payload)+len(rest)+4 != len(b) {
			t.Fatalf("%d bytes became %d, %d and %d", len(b), len(header), len(payload), len(rest))
		}
		if m, ok := s.unseal(kind, header, payload, rest); ok {
			t.Fatalf("accepted %x", m)
		}
	})
}

// sealed packets come back as they were, for each suite and length.
func TestSeal(t *testing.T) {
	for _, suite := range suites {
		s := &session{
			suite:  suite,
			id:     [4]byte{7},
			theirs: [4]byte{7},
			k1:     make([]byte, 20),
			k2:     make([]byte, 20),
			sent:   1,
		}
		for n := range 40 {
			body := []byte{0x81, 4, checksum(0x81, 4)}
			rest := append([]byte{0x20, 8, 1, 0}, make([]byte, n)...)
			body = append(append(body, rest...), checksum(rest...))
			s.got = 0
			kind, header, payload, tail, ok := parse(s.seal(body))
			m, opened := s.unseal(kind, header, payload, tail)
			if !ok || !opened || string(m) != string(body) {
				t.Fatalf("suite %d, %d bytes: %x, want %x", suite.id, n, m, body)
			}
			if _, twice := s.unseal(kind, header, payload, tail); twice {
				t.Fatal("an answer was taken twice")
			}
		}
	}
}
