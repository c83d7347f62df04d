package ipmi

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // cipher suite 3 is the one that all BMCs have
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net"
	"slices"
	"time"
)

// suite is a cipher suite: authentication, integrity, and AES-CBC-128.
type suite struct {
	id                        int
	authentication, integrity byte // their numbers in IPMI
	hash                      func() hash.Hash
	sum                       int // bytes that are kept of an authentication code
}

// suites are those there are, the strongest first.
var suites = []suite{{17, 3, 4, sha256.New, 16}, {3, 1, 1, sha1.New, 12}}

const aesCBC = 1

func (s suite) mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(s.hash, key)
	for _, p := range parts {
		_, _ = h.Write(p) // hashes do not fail
	}
	return h.Sum(nil)
}

// Kinds of payload.
const (
	message      = 0x00
	openRequest  = 0x10
	openAnswer   = 0x11
	rakp1        = 0x12
	rakp2        = 0x13
	rakp3        = 0x14
	rakp4        = 0x15
	encrypted    = 0x80
	authentic    = 0x40
	headerBytes  = 4 + 12 // of RMCP and of the session
	resendEvery  = time.Second
	mostDatagram = 1024
)

// status is why a BMC opens no session.
type status byte

const (
	badRole     status = 0x09
	noRole      status = 0x0a
	unknownUser status = 0x0d
)

var statusWords = map[status]string{
	0x01:        "it has too many sessions",
	0x02:        "invalid session",
	0x04:        "invalid authentication",
	0x05:        "invalid integrity",
	0x06:        "no matching authentication",
	0x07:        "no matching integrity",
	0x08:        "inactive session",
	badRole:     "invalid role",
	noRole:      "the user may not have this privilege",
	0x0b:        "it has too many sessions of this privilege",
	0x0c:        "invalid length of name",
	unknownUser: "it does not know the user",
	0x0e:        "invalid GUID",
	0x0f:        "wrong integrity check",
	0x10:        "invalid confidentiality",
	0x11:        "no matching cipher suite",
	0x12:        "invalid parameter",
}

func (s status) Error() string { return fmt.Sprintf("status %#02x %s", byte(s), statusWords[s]) }

// suite reports whether another cipher suite may do.
func (s status) suite() bool { return s >= 0x04 && s <= 0x07 || s >= 0x10 && s <= 0x12 }

// refusal is a completion code other than 0.
type refusal byte

func (r refusal) Error() string {
	words := map[refusal]string{busy: "busy", 0xc1: "it does not know the command", 0xcc: "invalid request",
		0xd4: "the user may not do this", 0xd5: "not in its present state", 0xff: "no reason given"}[r]
	return fmt.Sprintf("it refuses (completion code %#02x %s)", byte(r), words)
}

var errPassword = errors.New("wrong password")

// session is an open session, or one that is being opened.
type session struct {
	ctx       context.Context
	conn      net.Conn
	suite     suite
	id        [4]byte // ours
	theirs    [4]byte
	k1, k2    []byte
	sent      uint32 // number of the last packet that we sent
	got       uint32 // and of the last that came
	requested byte   // number of the last request
}

// open does the four steps of logging in.
func (s *session) open(user string, password []byte, privilege byte) error {
	var random [16]byte
	_, _ = rand.Read(s.id[:]) // it never fails
	_, _ = rand.Read(random[:])
	s.id[0] |= 1 // 0 is no session
	algorithms := []byte{0, 0, 0, 8, s.suite.authentication, 0, 0, 0, 1, 0, 0, 8, s.suite.integrity, 0, 0, 0,
		2, 0, 0, 8, aesCBC, 0, 0, 0}
	p, err := s.step(openRequest, openAnswer, 36, slices.Concat([]byte{s.tag(), privilege, 0, 0}, s.id[:], algorithms))
	if err != nil {
		return err
	}
	copy(s.theirs[:], p[8:12])
	if p[16] != s.suite.authentication || p[24] != s.suite.integrity || p[32] != aesCBC {
		return status(0x11) // it chose something else
	}
	role := slices.Concat([]byte{0x10 | privilege, byte(len(user))}, []byte(user)) // 0x10: find the user by name alone
	key := make([]byte, 20)
	copy(key, password)
	full := s.suite.hash().Size()
	p, err = s.step(rakp1, rakp2, 40+full, slices.Concat([]byte{s.tag(), 0, 0, 0}, s.theirs[:], random[:], role[:1],
		[]byte{0, 0}, role[1:]))
	if err != nil {
		return err
	}
	their, guid := p[8:24], p[24:40]
	if !hmac.Equal(p[40:40+full], s.suite.mac(key, s.id[:], s.theirs[:], random[:], their, guid, role)) {
		return errPassword // either side has a wrong one
	}
	sik := s.suite.mac(key, random[:], their, role)
	s.k1, s.k2 = s.suite.mac(sik, bytes.Repeat([]byte{1}, 20)), s.suite.mac(sik, bytes.Repeat([]byte{2}, 20))
	p, err = s.step(rakp3, rakp4, 8+s.suite.sum, slices.Concat([]byte{s.tag(), 0, 0, 0}, s.theirs[:],
		s.suite.mac(key, their, s.id[:], role)))
	if err != nil {
		return err
	}
	if !hmac.Equal(p[8:8+s.suite.sum], s.suite.mac(sik, random[:], s.theirs[:], guid)[:s.suite.sum]) {
		return errPassword
	}
	return nil
}

// tag is given back by answers: a late one to an attempt with another suite is none to this, though it may name no
// session.
func (s *session) tag() byte { return byte(s.suite.id) }

// step sends a packet of logging in, and returns the answer, which is not shorter than least.
func (s *session) step(kind, want byte, least int, payload []byte) (answer []byte, err error) {
	request := packet(kind, [4]byte{}, 0, payload)
	err = s.exchange(func() []byte { return request }, func(got byte, _, p, _ []byte) bool {
		switch {
		case got != want || len(p) < 2 || p[0] != s.tag():
			return false
		case p[1] != 0: // some say no more than this
			err = status(p[1])
			return true
		}
		answer = p
		return len(p) >= least && bytes.Equal(p[4:8], s.id[:])
	}, &err)
	return answer, err
}

// exchange sends a packet, again every second, until an answer is accepted or the context is over. failed is what an
// accepted answer is an error of.
func (s *session) exchange(request func() []byte, accept func(kind byte, header, payload, rest []byte) bool,
	failed *error) error {
	buffer := make([]byte, mostDatagram)
	for s.ctx.Err() == nil {
		if _, err := s.conn.Write(request()); err != nil {
			return err
		}
		again := time.Now().Add(resendEvery)
		for s.ctx.Err() == nil {
			if err := s.conn.SetReadDeadline(again); err != nil {
				return err
			}
			if s.ctx.Err() != nil { // it may have set another deadline before
				break
			}
			n, err := s.conn.Read(buffer)
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				break
			}
			if err != nil {
				return err
			}
			kind, header, payload, rest, ok := parse(buffer[:n])
			if ok && accept(kind, header, slices.Clone(payload), rest) {
				return *failed
			}
		}
	}
	return s.ctx.Err()
}

// packet is a packet without authentication code.
func packet(kind byte, id [4]byte, number uint32, payload []byte) []byte {
	b := slices.Concat([]byte{6, 0, 0xff, 7, 6, kind}, id[:])
	b = binary.LittleEndian.AppendUint32(b, number)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(payload)))
	return append(b, payload...)
}

// parse takes a packet apart: its kind with flags, what stands before the payload, that, and what comes after it.
func parse(b []byte) (kind byte, header, payload, rest []byte, ok bool) {
	if len(b) < headerBytes || b[0] != 6 || b[3] != 7 || b[4] != 6 {
		return 0, nil, nil, nil, false
	}
	end := headerBytes + int(binary.LittleEndian.Uint16(b[14:16]))
	if end > len(b) {
		return 0, nil, nil, nil, false
	}
	return b[5], b[4:headerBytes], b[headerBytes:end], b[end:], true
}

// busy is the refusal of a BMC that has something else to do just now.
const busy refusal = 0xc0

// call does a command and returns what the answer has after the completion code, which is a refusal unless it is 0. A
// BMC that is busy is asked again, once a second.
func (s *session) call(c command, data ...byte) (answer []byte, err error) {
	for {
		answer, err = s.once(c, data...)
		if !errors.Is(err, busy) {
			return answer, err
		}
		select {
		case <-s.ctx.Done():
			return nil, err
		case <-time.After(resendEvery):
		}
	}
}

func (s *session) once(c command, data ...byte) (answer []byte, err error) {
	s.requested = (s.requested + 1) & 0x3f
	body := slices.Concat([]byte{0x20, c.function << 2}, []byte{checksum(0x20, c.function<<2)},
		[]byte{0x81, s.requested << 2, c.number}, data)
	body = append(body, checksum(body[3:]...))
	err = s.exchange(func() []byte { s.sent++; return s.seal(body) },
		func(kind byte, header, payload, rest []byte) bool {
			m, ok := s.unseal(kind, header, payload, rest)
			if !ok || len(m) < 8 || m[1] != (c.function|1)<<2 || m[4] != s.requested<<2 || m[5] != c.number {
				return false
			}
			if m[6] != 0 {
				err = refusal(m[6])
			}
			answer = m[7 : len(m)-1]
			return true
		}, &err)
	return answer, err
}

// close logs out. A BMC that does not hear of it forgets the session by itself.
func (s *session) close() {
	limited, cancel := context.WithTimeout(s.ctx, resendEvery)
	defer cancel()
	s.ctx = limited
	_, _ = s.call(closeSession, s.theirs[:]...)
}

func checksum(b ...byte) (sum byte) {
	for _, x := range b {
		sum -= x
	}
	return sum
}

// seal encrypts a message and adds its authentication code.
func (s *session) seal(body []byte) []byte {
	pad := (aes.BlockSize - (len(body)+1)%aes.BlockSize) % aes.BlockSize
	body = slices.Clone(body)
	for i := range pad {
		body = append(body, byte(i+1))
	}
	body = append(body, byte(pad))
	payload := make([]byte, aes.BlockSize, aes.BlockSize+len(body))
	_, _ = rand.Read(payload)
	block, _ := aes.NewCipher(s.k2[:16]) // 16 is a length that it takes
	cipher.NewCBCEncrypter(block, payload).CryptBlocks(body, body)
	b := packet(message|encrypted|authentic, s.theirs, s.sent, append(payload, body...))
	fill := (4 - (len(b)-4+2)%4) % 4
	b = append(b, bytes.Repeat([]byte{0xff}, fill)...)
	b = append(b, byte(fill), 7)
	return append(b, s.suite.mac(s.k1, b[4:])[:s.suite.sum]...)
}

// unseal checks an answer and decrypts it. What is not of this session, older than what came, or not authentic is no
// answer.
func (s *session) unseal(kind byte, header, payload, rest []byte) ([]byte, bool) {
	number := binary.LittleEndian.Uint32(header[6:10])
	if kind != message|encrypted|authentic || !bytes.Equal(header[2:6], s.id[:]) || number <= s.got ||
		len(rest) < 2+s.suite.sum || len(payload) < 2*aes.BlockSize || len(payload)%aes.BlockSize != 0 {
		return nil, false
	}
	trailer, code := rest[:len(rest)-s.suite.sum], rest[len(rest)-s.suite.sum:]
	if !hmac.Equal(code, s.suite.mac(s.k1, header, payload, trailer)[:s.suite.sum]) {
		return nil, false
	}
	s.got = number
	block, _ := aes.NewCipher(s.k2[:16])
	m := payload[aes.BlockSize:]
	cipher.NewCBCDecrypter(block, payload[:aes.BlockSize]).CryptBlocks(m, m)
	pad := int(m[len(m)-1])
	if pad >= aes.BlockSize || len(m) < pad+1 {
		return nil, false
	}
	m = m[:len(m)-pad-1]
	if len(m) < 7 || checksum(m[:3]...) != 0 || checksum(m[3:]...) != 0 {
		return nil, false
	}
	return m, true
}
