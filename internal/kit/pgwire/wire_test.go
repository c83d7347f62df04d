package pgwire

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// message makes one of the server's.
func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

var answer = message('T', "\x00\x01abalance\x00"+string(make([]byte, 18))) +
	message('D', "\x00\x01\x00\x00\x00\x03-42") + message('C', "SELECT 1\x00") + message('Z', "I")

func ExampleReply() {
	r := Reply{Keep: true}
	_, done, err := r.Feed([]byte(answer))
	fmt.Println(done, err, r.Tag(), r.Affected())
	for r.Next() {
		fmt.Printf("%s %s\n", r.Names(), r.Column(0))
	}
	// Output:
	// true <nil> SELECT 1 1
	// [abalance] -42
}

// However an answer is cut, it reads the same; nothing is read beyond what it has, and no bytes make it panic.
func FuzzReply(f *testing.F) {
	f.Add([]byte(answer), uint16(3), true)
	f.Add([]byte(message('E', "SERROR\x00VERROR\x00C40001\x00Mno\x00\x00")+message('Z', "E")), uint16(6), false)
	f.Add([]byte(message('1', "")+message('t', "\x00\x01\x00\x00\x00\x17")+message('n', "")+
		message('Z', "T")), uint16(1), true)
	f.Add([]byte(message('D', "\x00\x02\xff\xff\xff\xff\x00\x00\x00\x09ab")+message('Z', "I")), uint16(9), true)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"), uint16(2), true)
	f.Add([]byte(message('G', "\x00\x00\x00")), uint16(7), true)
	type read struct {
		Done     bool
		Used     int
		Failed   bool
		Err      *Error
		Rows     int
		Status   byte
		Tag      string
		Columns  []string
		Affected int64
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, keep bool) {
		of := func(parts ...[]byte) (got read) {
			r := Reply{Keep: keep, Describe: keep}
			for _, p := range parts {
				if got.Done || got.Failed {
					break
				}
				n, done, err := r.Feed(p)
				if n < 0 || n > len(p) || err == nil && !done && n != len(p) {
					t.Fatalf("used %d of %d", n, len(p))
				}
				got.Used += n
				got.Done, got.Failed = done, err != nil
			}
			got.Err, got.Status, got.Tag, got.Affected = r.Err, r.Status, r.Tag(), r.Affected()
			if !got.Failed {
				got.Rows = r.Rows
			}
			for r.Next() {
				for i := range min(r.Columns(), 20) + 1 { // each is a walk from the first
					got.Columns = append(got.Columns, string(r.Column(i)))
					_, _ = r.Int(i)
				}
				r.Names()
			}
			if _, ok := r.NextResult(); ok {
				t.Fatal("a result after the last row's")
			}
			return got
		}
		n := min(int(cut), len(data))
		whole, pieces := of(data), of(data[:n], data[n:])
		if whole.Failed && pieces.Failed { // how far it came before may differ
			return
		}
		if !whole.Done { // of rows that are not whole yet it may know already
			whole.Rows, pieces.Rows = 0, 0
		}
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAppend(t *testing.T) {
	s := &Statement{Name: "s", Params: []uint32{oidInt4, oidInt8, oidInt2, 25, 25}}
	got, err := s.Append(nil, true, Int(258), Int(-1), Int(3), Int(-45), Text("é"))
	want := message('B', "\x00s\x00\x00\x05\x00\x01\x00\x01\x00\x01\x00\x00\x00\x00\x00\x05"+
		"\x00\x00\x00\x04\x00\x00\x01\x02"+
		"\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff"+"\x00\x00\x00\x02\x00\x03"+"\x00\x00\x00\x03-45"+
		"\x00\x00\x00\x02é"+"\x00\x00") + message('D', "P\x00") + message('E', "\x00\x00\x00\x00\x00")
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err = AppendUnnamed(nil, "SELECT $1", Int(5))
	want = message('P', "\x00SELECT $1\x00\x00\x00") +
		message('B', "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x015\x00\x00") +
		message('D', "P\x00") + message('E', "\x00\x00\x00\x00\x00")
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got := string(AppendSync(AppendQuery(nil, "x"))); got != message('Q', "x\x00")+message('S', "") {
		t.Errorf("%q", got)
	}
}
