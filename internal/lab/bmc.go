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
	"strings"
	"time"

	"plimsoll/internal/regular"
	"plimsoll/internal/target"
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
		files[n.Name()+".conf"] = fmt.Sprintf(lanConf, n.Name(), n.bmcAddress(), l.record.ID, l.dir, password, n.number)
	}
	for name, text := range files {
		if err := writeFile(l.path("bmc", name), []byte(text)); err != nil {
			return err
		}
	}
	hub := filepath.Join(namespaces, l.hub())
	for _, n := range l.Nodes() {
		log, err := os.OpenFile(l.path("bmc", n.Name()+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		state := l.path("bmc", n.Name())
		if err := os.MkdirAll(state, 0o700); err != nil {
			return err
		}
		cmd := exec.Command("ipmi_sim", "-n", "-p", "-c", l.path("bmc", n.Name()+".conf"), "-f",
			l.path("bmc", "emulation"), "-s", state)
		cmd.Stdout, cmd.Stderr = log, log
		err = spawn(hub, cmd)
		log.Close()
		if err != nil {
			return fmt.Errorf("%s: bmc: %w", n.Name(), err)
		}
		go cmd.Wait() //nolint:errcheck // it ends with the lab
	}
	return l.part(hub, l.path("bmc", "redfish.log"), "redfish", l.dir)
}

// BMCAnswers says why the node's controller does not answer, over IPMI or Redfish; nil when it does.
func (n *Node) BMCAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	dial := func(network, port string) (net.Conn, error) {
		c, err := n.lab.Dial(ctx, network, n.bmcAddress().String()+":"+port)
		if err != nil {
			return nil, err
		}
		deadline, _ := ctx.Deadline()
		return c, c.SetDeadline(deadline)
	}
	// RMCP: an ASF presence ping, to which a pong of 28 bytes is the answer.
	ping := []byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 1, 0, 0}
	c, err := dial("udp", "623")
	if err == nil {
		_, err = c.Write(ping)
		if err == nil {
			_, err = c.Read(make([]byte, 64))
		}
		c.Close()
	}
	r, rerr := dial("tcp", "443")
	if rerr == nil {
		r.Close()
	}
	if err = errors.Join(err, rerr); err != nil {
		return fmt.Errorf("lab: %s: controller at %s: %w: %w", n.Name(), n.bmcAddress(), target.ErrNotAccessible, err)
	}
	return nil
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
