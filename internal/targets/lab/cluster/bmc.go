//go:build linux

package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
)

// BMC is how a node's controller is reached in the lab's network, over IPMI 2.0 (lanplus, cipher suite 3, UDP port 623)
// and Redfish (HTTPS, port 443).
type BMC struct {
	Address      netip.Addr `json:"address"`
	User         string     `json:"user"`
	PasswordFile string     `json:"password_file"` // mode 0600, one line, as ipmitool -f takes it
	CAFile       string     `json:"ca_file"`       // PEM: its certificate is its own authority
	System       string     `json:"system"`        // /redfish/v1/Systems/...
}

// BMC of the node.
func (n *Node) BMC() BMC {
	return BMC{Address: n.bmcAddress(), User: "admin", PasswordFile: n.lab.path("bmc", "password"),
		CAFile: n.lab.path("bmc", "cert.pem"), System: systems + "/" + n.Name()}
}

func (n *Node) bmcAddress() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, 0, byte(20 + n.number)})
}

// lanConf is ipmi_sim's configuration: who may log in, and what switches the node. Its files are readable by their
// owner only.
const lanConf = `name "%[1]s"
set_working_mc 0x20
  startlan 1
    addr %[2]s 623
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa1234567%[3]s0%[6]d
  endlan
  chassis_control "%[4]s/plimsoll lab part chassis %[4]s %[6]d"
  user 1 true "" "%[5]s" user 10 none md2 md5 straight
  user 2 true "admin" "%[5]s" admin 10 none md2 md5 straight
`

const emulation = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`

// makeBMCs writes what the controllers need, and starts them.
func (l *Lab) makeBMCs() error {
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	password := hex.EncodeToString(random) // 16 characters, as many as IPMI 1.5 has room for
	cert, key, err := l.certificate()
	if err != nil {
		return err
	}
	files := map[string]string{"password": password + "\n", "cert.pem": cert, "key.pem": key, "emulation": emulation}
	for _, n := range l.Nodes() {
		files[filepath.Base(n.bmcConf())] = fmt.Sprintf(lanConf, n.Name(), n.bmcAddress(), l.record.ID, l.dir, password,
			n.number)
	}
	for name, text := range files {
		if err := writeFile(l.path("bmc", name), []byte(text)); err != nil {
			return err
		}
	}
	for _, n := range l.Nodes() {
		if err := n.startBMC(); err != nil {
			return err
		}
	}
	return l.startRedfish()
}

// startBMC starts the node's controller, over IPMI.
func (n *Node) startBMC() error {
	l := n.lab
	state := l.path("bmc", n.Name())
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(state+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("ipmi_sim", "-n", "-p", "-c", n.bmcConf(), "-f", l.path("bmc", "emulation"), "-s", state)
	cmd.Stdout, cmd.Stderr = log, log
	if err := spawn(filepath.Join(namespaces, l.hub()), cmd); err != nil {
		return fmt.Errorf("%s: bmc: %w", n.Name(), err)
	}
	go cmd.Wait() //nolint:errcheck // it ends with the lab
	return nil
}

func (n *Node) bmcConf() string { return n.lab.path("bmc", n.Name()+".conf") }

// startRedfish starts the one process that serves Redfish for all controllers.
func (l *Lab) startRedfish() error {
	return l.part(filepath.Join(namespaces, l.hub()), l.path("bmc", "redfish.log"), "redfish", l.dir)
}

// Mend starts controllers again that do not answer, which may have been killed or hang, and returns when they do. It
// names them: "node2", or "redfish" for the service of all. While up or down is at work it leaves that alone.
func (l *Lab) Mend(ctx context.Context) (mended []string, err error) {
	dead := func() (ipmi []*Node, redfish bool) {
		for _, n := range l.Nodes() {
			if n.ipmiAnswers(ctx) != nil {
				ipmi = append(ipmi, n)
			}
			redfish = redfish || n.redfishAnswers(ctx) != nil
		}
		return ipmi, redfish
	}
	hub := filepath.Join(namespaces, l.hub())
	if nodes, redfish := dead(); len(nodes) == 0 && !redfish || !isNamespace(hub) {
		return nil, nil // without its network the lab is beyond mending
	}
	unlock, err := lock(l.path(lockName), false)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	defer unlock()
	if !isNamespace(hub) {
		return nil, nil
	}
	nodes, redfish := dead() // what another process has started meanwhile stays
	limit, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	for _, n := range nodes {
		if err := endOf(limit, hub, n.bmcConf()); err != nil {
			return mended, fmt.Errorf("lab: %s: controller: %w", n.Name(), err)
		}
		if err := n.startBMC(); err != nil {
			return mended, fmt.Errorf("lab: %w", err)
		}
		mended = append(mended, n.Name())
	}
	if redfish {
		if err := endOf(limit, hub, "lab\x00part\x00redfish\x00"+l.dir); err != nil {
			return mended, fmt.Errorf("lab: redfish: %w", err)
		}
		if err := l.startRedfish(); err != nil {
			return mended, fmt.Errorf("lab: redfish: %w", err)
		}
		mended = append(mended, "redfish")
	}
	if err := l.waitBMCs(ctx); err != nil {
		return mended, fmt.Errorf("lab: %w", err)
	}
	return mended, nil
}

// endOf kills the processes of a namespace whose command lines hold a text.
func endOf(ctx context.Context, namespace, text string) error {
	for {
		alive := 0
		if _, err := inside([]string{namespace}, func(pid, fd int) {
			line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			if err == nil && strings.Contains(string(line), text) {
				alive++
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // one that is gone is fine, any other is seen again
			}
		}); err != nil || alive == 0 {
			return err
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("%d processes with %q do not end: %w", alive, text, ctx.Err())
		}
	}
}

// BMCAnswers says why the node's controller does not answer, over IPMI or Redfish; nil when it does.
func (n *Node) BMCAnswers(ctx context.Context) error {
	if err := errors.Join(n.ipmiAnswers(ctx), n.redfishAnswers(ctx)); err != nil {
		return fmt.Errorf("lab: %s: controller at %s: %w: %w", n.Name(), n.bmcAddress(), target.ErrNotAccessible, err)
	}
	return nil
}

const answerLimit = time.Second

func (n *Node) ipmiAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	c, err := n.lab.Dial(ctx, "udp", n.bmcAddress().String()+":623")
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	// RMCP: an ASF presence ping, to which a pong of 28 bytes is the answer.
	_, err = c.Write([]byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 1, 0, 0})
	if err = errors.Join(err, c.SetDeadline(deadline)); err == nil {
		_, err = c.Read(make([]byte, 64))
	}
	return err
}

func (n *Node) redfishAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	c, err := n.lab.Dial(ctx, "tcp", n.bmcAddress().String()+":443")
	if err != nil {
		return err
	}
	return c.Close()
}

// waitBMCs returns when all controllers answer.
func (l *Lab) waitBMCs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	for _, n := range l.Nodes() {
		for {
			err := n.BMCAnswers(ctx)
			if err == nil {
				break
			}
			if !sleep(ctx, 50*time.Millisecond) {
				return fmt.Errorf("%w\n%s%s", err, tail(l.path("bmc", n.Name()+".log")),
					tail(l.path("bmc", "redfish.log")))
			}
		}
	}
	return nil
}

// certificate is that of all the controllers of the lab, which is its own authority, and its key.
func (l *Lab) certificate() (cert, key string, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), IsCA: true, BasicConstraintsValid: true,
		Subject: pkix.Name{CommonName: "plimsoll lab " + l.record.ID}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, n := range l.Nodes() {
		c.IPAddresses = append(c.IPAddresses, net.IP(n.bmcAddress().AsSlice()))
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		return "", "", err
	}
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", kder), err
}

// password is that of the lab's controllers.
func (l *Lab) password() (string, error) {
	data, err := regular.Read(l.path("bmc", "password"), regular.NoLinks, regular.Document)
	return strings.TrimSpace(string(data)), err
}

// chassis answers ipmi_sim: "get power", "set power 1", "set reset 1", "set shutdown 1", "get boot", "check".
func (n *Node) chassis(ctx context.Context, words []string, out io.Writer) error {
	c := n.Power()
	switch request := strings.Join(words, " "); request {
	case "check", "set power", "set boot none", "set boot default", "set identify":
		return nil
	case "get power":
		state, err := c.State(ctx)
		if err != nil {
			return err
		}
		on := 0
		if state == target.On {
			on = 1
		}
		_, err = fmt.Fprintf(out, "power:%d\n", on)
		return err
	case "get boot":
		_, err := fmt.Fprintln(out, "boot:default")
		return err
	case "set power 1":
		return c.PowerOn(ctx)
	case "set power 0":
		return c.PowerOff(ctx)
	case "set reset 1":
		return Cycle(ctx, c)
	case "set shutdown 1", "set graceful_shutdown 1":
		return c.Shutdown(ctx)
	default:
		return fmt.Errorf("chassis: %q: a node of the lab does not know that", request)
	}
}

// Cycle cuts the power of a node that is on and switches it on again.
func Cycle(ctx context.Context, c target.PowerController) error {
	return errors.Join(c.PowerOff(ctx), c.PowerOn(ctx))
}
