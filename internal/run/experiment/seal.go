package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"plimsoll/internal/kit/regular"
)

// unsealed stands where the sum of a record or an event is, while the sum is taken.
var unsealed = strings.Repeat("0", 2*sha256.Size)

// sealed gives what was written with unsealed its sum.
func sealed(data []byte) []byte { return resealed(data, unsealed, sumOf(data)) }

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// resealed puts one sum in the place of another; nil when there is no such.
func resealed(data []byte, from, to string) []byte {
	i := bytes.LastIndex(data, []byte(from))
	if i < 0 {
		return nil
	}
	return append(append(bytes.Clone(data[:i]), to...), data[i+len(from):]...)
}

// intact says whether what has this sum in it is as it was written; what is older has none.
func intact(data []byte, sum string) bool {
	return sum == "" || sumOf(resealed(data, sum, unsealed)) == sum
}

// VerifySums returns what of the record and of the events is not as it was written, in words.
func (f *Folder) VerifySums() (bad []string) {
	var has struct {
		Sum string `json:"sum"`
	}
	data, err := regular.Read(filepath.Join(f.dir, recordFile), regular.NoLinks, regular.Document)
	if err != nil || json.Unmarshal(data, &has) != nil || !intact(bytes.TrimSuffix(data, []byte("\n")), has.Sum) {
		bad = append(bad, recordFile+": changed since it was written")
	}
	data, err = regular.Read(filepath.Join(f.dir, cellsFile), regular.NoLinks, regular.Document)
	if err != nil {
		return bad // Progress says so
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSuffix(line, []byte("\n"))
		has.Sum = ""
		whole := json.Unmarshal(line, &has) == nil
		// A line that a crash has torn ends before its sum.
		if whole && !intact(line, has.Sum) ||
			!whole && (bytes.HasSuffix(line, []byte("}")) || bytes.Contains(line, []byte(`"sum":"`))) {
			bad = append(bad, fmt.Sprintf("%s: line %d changed since it was written", cellsFile, n))
		}
	}
	return bad
}
