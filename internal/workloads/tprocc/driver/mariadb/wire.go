package mariadb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

// Bytes that requests and packets of answers begin with.
const (
	comQuit, comQuery = 1, 3

	packetOK, packetFile, packetEnd, packetError = 0x00, 0xFB, 0xFE, 0xFF
)

// moreResults is the bit of a result's status that another one follows.
const moreResults = 8

// answer holds what the server answers to a call as text: results, of which the last has no rows, or an error. It is a
// pgwire.Answer. Rows are counted. Whether descriptions of columns have an end of their own was agreed by the driver:
// such an end is shorter than that of rows.
type answer struct {
	part []byte // of a packet that is not whole yet
	took int
	rows int
	ends int  // of the result under way
	open bool // its first packet was there
	said *mysql.MySQLError
}

var errNoAnswer = errors.New("that is no answer of MariaDB")

// Reset implements pgwire.Answer.
func (a *answer) Reset() { *a = answer{part: a.part[:0]} }

// Feed implements pgwire.Answer.
func (a *answer) Feed(data []byte) (used int, done bool, err error) {
	for used < len(data) {
		rest := data[used:]
		if len(a.part) == 0 && len(rest) >= 4 {
			if size := 4 + packetSize(rest); size <= len(rest) {
				used += size
				if done, err = a.packet(rest[4:size]); done || err != nil {
					return used, done, err
				}
				continue
			}
		}
		n := min(4-len(a.part), len(rest))
		if len(a.part) >= 4 {
			n = min(4+packetSize(a.part)-len(a.part), len(rest))
		}
		a.part = append(a.part, rest[:n]...)
		used += n
		if len(a.part) >= 4 && len(a.part) == 4+packetSize(a.part) {
			done, err = a.packet(a.part[4:])
			a.part = a.part[:0]
			if done || err != nil {
				return used, done, err
			}
		}
	}
	return used, false, nil
}

func packetSize(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// packet takes a packet, and says whether it was the last one.
func (a *answer) packet(body []byte) (done bool, err error) {
	if a.took += len(body); a.took > 64<<20 {
		return false, errors.New("its answer is larger than 64 MiB: it was not read to its end")
	}
	if len(body) == 0 {
		return false, errNoAnswer
	}
	switch first := body[0]; {
	case first == packetError:
		a.said, err = refusal(body)
		return true, err
	case !a.open && first == packetOK:
		return a.end(body)
	case !a.open && first == packetFile:
		return false, errors.New("it asks for a file of ours")
	case !a.open:
		a.open, a.ends = true, 0
	case first == packetEnd && len(body) == 5: // the older form, of columns and then of rows
		if a.ends++; a.ends == 2 {
			a.open = false
			return binary.LittleEndian.Uint16(body[3:])&moreResults == 0, nil
		}
	case first == packetEnd:
		a.open = false
		return a.end(body)
	case !bytes.HasPrefix(body, []byte("\x03def")):
		a.rows++
	}
	return false, nil
}

// end reads the status of a packet that ends a result, behind two numbers.
func (a *answer) end(body []byte) (done bool, err error) {
	at := 1
	for range 2 {
		if at >= len(body) {
			return false, errNoAnswer
		}
		switch body[at] {
		case 0xFC:
			at += 3
		case 0xFD:
			at += 4
		case 0xFE:
			at += 9
		default:
			at++
		}
	}
	if at+2 > len(body) {
		return false, errNoAnswer
	}
	return binary.LittleEndian.Uint16(body[at:])&moreResults == 0, nil
}

func refusal(body []byte) (*mysql.MySQLError, error) {
	if len(body) < 3 {
		return nil, errNoAnswer
	}
	e := &mysql.MySQLError{Number: binary.LittleEndian.Uint16(body[1:])}
	body = body[3:]
	if len(body) >= 6 && body[0] == '#' {
		copy(e.SQLState[:], body[1:])
		body = body[6:]
	}
	e.Message = string(body)
	return e, nil
}

// errRows says that a call returned another number of rows than one.
type errRows int

func (e errRows) Error() string {
	return fmt.Sprintf("the procedure returned %d rows, not one", int(e))
}

// why returns what is wrong with the answer.
func (a *answer) why() error {
	switch {
	case a.said != nil:
		return a.said
	case a.rows != 1:
		return errRows(a.rows)
	}
	return nil
}
