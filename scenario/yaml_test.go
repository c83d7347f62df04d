package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// The known answers are PyYAML's.
func TestScalar(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"0": int64(0), "12": int64(12), "-3": int64(-3), "+3": int64(3), "1_000": int64(1000), "0x1F": int64(31),
		"0b101": int64(5), "010": int64(8), "-010": int64(-8),
		"08": "08", "0o17": "0o17", "1:30": int64(90), "1:3": int64(63), "0:2": "0:2", "1:60": "1:60",
		"1:1:1": int64(3661), "1:30.5": 90.5,
		"1.5": 1.5, "1800.0": 1800.0, "1.": 1.0, ".5": .5, "1.0e+3": 1000.0, "1e3": "1e3", "1.0e3": "1.0e3",
		"1e+16": "1e+16", "1_0.5": 10.5,
		"yes": true, "No": false, "on": true, "OFF": false, "True": true, "false": false, "y": "y", "TRUE": true,
		"tRue": "tRue",
		"~":    nil, "null": nil, "Null": nil, "nULL": "nULL", "95%": "95%", "1,2": "1,2",
		"99999999999999999999": "99999999999999999999",
		`"5"`:                  "5", "'yes'": "yes", "2020-01-01": "2020-01-01", "a b": "a b", ":n-1": ":n-1",
		"!!str 5": "5",
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte("k: "+text), &doc); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, _ := scalar(doc.Content[0].Content[1])
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseYAMLLimits(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		prev := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [*" + prev + ",*" + prev + ",*" + prev + ",*" + prev + ",*" + prev +
			",*" + prev + ",*" + prev + ",*" + prev + "]\n"
	}
	deep := ""
	for range 5000 {
		deep += "["
	}
	for name, text := range map[string]string{
		"long key":   "a:\n  ? " + strings.Repeat("k", maxYAMLKey+1) + "\n  : 1\n",
		"long text":  "a: [" + strings.Repeat("v", maxYAMLText+1) + "]\n",
		"alias bomb": bomb, "deep": deep, "self": "a: &a [*a]\n",
		"merge": "b: {<<: 1}\n", "merge itself": "a: &a {<<: *a}\n", "tab": "a:\n\tb: 1\n"} {
		if _, objection := parseYAML(text); objection == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, objection := parseYAML(strings.Repeat("k", maxYAMLKey) + ": " + strings.Repeat("v", maxYAMLText) +
		"\n"); objection != nil {
		t.Errorf("what is just not too long is refused: %s", objection.what)
	}
	root, objection := parseYAML("a: &x {k: 1}\nb: *x\n")
	if objection != nil || root.Content[3].Content[0].Value != "k" {
		t.Errorf("an alias is not what it stands for: %v", objection)
	}
}

func TestPythonCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b any
		want int
	}{
		{int64(1), int64(2), -1}, {1.5, int64(1), 1}, {"5", int64(10), 1}, {nil, int64(-5), -1}, {true, int64(1), 0},
		{[]any{}, int64(5), 1}, {"a", "b", -1}, {int64(1 << 62), int64(1<<62 + 1), -1},
	} {
		if got, ok := pythonCompare(c.a, c.b); !ok || got != c.want {
			t.Errorf("compare %v with %v: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
