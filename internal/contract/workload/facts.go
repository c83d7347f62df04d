package workload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/untyped"
	"plimsoll/result"
)

// Stating is implemented by engines that say what makes their load what it is, and what of it is to be the same in runs
// that are compared.
type Stating interface {
	// Facts are of a workload of this config; none of one that cannot be read. They hold no passwords.
	Facts(Spec) []result.Fact
}

// Asking is implemented by engines whose load may go to a server of the user's.
type Asking interface {
	// Asked are the server's version and settings, from itself, in ServerGroup; none where the run starts the server.
	Asked(context.Context, Spec) ([]result.Fact, error)
}

// LoadFacts are the options of a load, of a job that is marshalled to JSON, but for those left out. They are to agree
// in runs that are compared.
func LoadFacts(name string, job any, but ...string) []result.Fact {
	data, err := json.Marshal(job)
	if err != nil {
		return nil // a job is plain values
	}
	var options untyped.Object
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&options) != nil {
		return nil
	}
	var out []result.Fact
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if slices.Contains(but, key) {
			continue
		}
		value := fmt.Sprint(options[key])
		if word, ok := strings.CutSuffix(key, "_ns"); ok {
			if n, err := json.Number(value).Int64(); err == nil {
				key, value = word, time.Duration(n).String()
			}
		}
		if !untyped.Plain(options[key]) {
			text, _ := json.Marshal(options[key]) // it came from JSON
			value = string(text)
		}
		if value == "" {
			continue
		}
		out = append(out, LoadFact(name, key, value))
	}
	return out
}

// LoadFact is one option of a load.
func LoadFact(name, key, value string) result.Fact {
	return result.Fact{Group: result.LoadGroup + name, Name: key, Value: value, Across: result.MustAgree}
}

// ScriptFact says which script of a load is what: a built-in by its name, another by the hash of its text, too.
func ScriptFact(name, script, text string, weight int) result.Fact {
	value := "built in"
	if text != "" {
		sum := sha256.Sum256([]byte(text))
		value = fmt.Sprintf("%d bytes, sha256 %s", len(text), hex.EncodeToString(sum[:8]))
	}
	if weight != 1 {
		value += fmt.Sprintf(", weight %d", weight)
	}
	return LoadFact(name, "script "+script, value)
}
