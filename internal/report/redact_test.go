package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/internal/testkit/visibletest"
	"plimsoll/result"
)

// home and rootHome are where users have their files; no line of this project names a folder of somebody.
const (
	home     = "/home/"
	rootHome = "/root" + "/"
)

// planted are values of every kind as they stand in texts, some told by facts and some by nothing but their look.
var planted = []string{
	"dbseven.corp.example", "dbseven", "DBSEVEN.elsewhere.example", "mallory", "mallory's", "xmallory2",
	"203.0.113.77", "203.0.113.7", "[2001:db8::7:99]:22", "fe80::5054:ff:feab:cdef%eth0", "::ffff:198.51.100.9",
	"52:54:00:ab:cd:ef", "52-54-00-AB-CD-EE", "5254.00ab.cdaa", "50:01:43:80:12:34:56:78",
	"S4EVNX0M123456", "serial=ZK209XYZ", "Serial Number: WD-WCC4N5", "naa.5000c500a1b2c3d4", "0x5000c500a1b2c3d5",
	"eui.0025385b71b00f5e", "/dev/disk/by-id/ata-SAMSUNG_X_S5Y3", "3f2a9c1e-1111-4222-8333-944445555666",
	"BOOT_IMAGE=/vmlinuz-6.1 root=LABEL=secretroot quiet",
	home + "mallory/secret-project/x.fio", home + "eve/y", "/Us" + "ers/carol/z", "~trent/notes", rootHome + "private",
	"https://oscar:pw@array9.corp.example:9440/api", "peggy@victor.example", "cifs (rw,username=wendy,vers=3)",
	"/srv/of-the-run", "/mnt/under-test/disks", "host=tagged-box",
}

// needles are what must be nowhere.
var needles = []string{
	"dbseven", "elsewhere.example", "mallory", "203.0.113", "2001:db8", "fe80::", "198.51.100", "52:54:00", "52-54-00",
	"5254.00ab", "50:01:43", "S4EVNX0M", "ZK209XYZ", "WD-WCC4N5", "5000c500",
	"0025385b71b00f5e", "SAMSUNG_X_S5Y3",
	"3f2a9c1e", "secretroot", "secret-project", home, "eve/", "carol", "trent", rootHome + "private", "oscar", "array9",
	"peggy", "victor", "prod-nine", "exporter-of-prod", "blade-xvii", "wendy", "/srv/of-the-run",
	"under-test", "s4evnx0m", "tagged-box",
}

// betraying is a run in which every text holds planted values, and whose facts tell of some what they are.
func betraying() Input {
	in := runInput(reporttest.Options{VMs: 2, Length: 10 * time.Second})
	in.Manifest.Hashes, in.Manifest.Options = map[string]string{"": ""}, map[string]string{"": ""}
	in.Manifest.SharedCounters = &result.SharedCounters{}
	in.Manifest.Imported = []result.Imported{{Notes: []string{""}}}
	in.Labels.Tags = []string{""}
	in.Problems = []string{""}
	next := 0
	visibletest.Fill(&in, func() string {
		next++
		return "before " + planted[next%len(planted)] + ", after"
	})
	in.Manifest.Scenario.Description = "<p>on dbseven by mallory, see <b>52:54:00:ab:cd:ef</b></p>"
	in.Manifest.Operator = "mallory"
	in.Manifest.ClusterName, in.Manifest.SharedCounters.Instance = "prod-nine", "exporter-of-prod"
	for i := range in.Manifest.Nodes {
		in.Manifest.Nodes[i].Name = "blade-xvii"
	}
	for i := range in.Manifest.Environment {
		in.Manifest.Environment[i].Identifies = ""
	}
	in.Manifest.Environment = append(in.Manifest.Environment,
		result.Fact{Group: "host", Name: "name", Value: "dbseven.corp.example", Identifies: result.Host},
		result.Fact{Group: "host", Name: "kernel command line", Value: planted[23], Identifies: result.CommandLine},
		result.Fact{Group: "disk", Name: "serial", Value: "S4EVNX0M123456", Identifies: result.Serial},
		result.Fact{Group: "storage", Name: "folder", Value: "/mnt/under-test/disks", Identifies: result.Path},
		result.Fact{Group: "host", Name: "user", Value: "root", Identifies: result.User},
		result.Fact{Group: "host", Name: "gone", Missing: "asked dbseven"})
	in.Manifest.Imported = nil // or the plan and much else would not be shown
	all, _ := json.Marshal(strings.Join(planted, " and "))
	in.Plan = json.RawMessage(`{"steps":[{"number":1,"text":` + string(all) + `}]}`)
	in.Events = append(in.Events, result.Event{Kind: result.KindNote, Time: in.Manifest.Created,
		Data: result.EventData{Reason: strings.Join(planted, ";")}})
	return in
}

var printers = map[string]func(io.Writer, *Document) error{"html": HTML, "json": JSON, "csv": CSV, "md": Markdown}

var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}={0,2}`)

// readings are a document as it stands and as a reader may decode it.
func readings(t *testing.T, name string, doc []byte) map[string]string {
	t.Helper()
	out := map[string]string{name: string(doc), name + ", entities decoded": html.UnescapeString(string(doc))}
	var decode func(v any, b *strings.Builder)
	decode = func(v any, b *strings.Builder) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, one := range v {
				decode(one, b)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				b.WriteString(k + "\n")
				decode(v[k], b)
			}
		}
	}
	texts := []string{string(doc)}
	if name == "html" {
		texts = nil
		for z := html.NewTokenizer(bytes.NewReader(doc)); z.Next() != html.ErrorToken; {
			texts = append(texts, string(z.Raw()))
		}
	}
	for _, text := range texts {
		var v any
		if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &v) == nil {
			var b strings.Builder
			decode(v, &b)
			out[name+", JSON decoded"] += b.String()
		}
	}
	if (name == "html" || name == "json") && len(out[name+", JSON decoded"]) < 100 {
		t.Errorf("%s: no JSON was found to decode", name)
	}
	for _, m := range encoded.FindAllString(string(doc), -1) {
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			if plain, err := e.DecodeString(m); err == nil {
				out[name+", base64 decoded"] += string(plain)
			}
		}
	}
	return out
}

// TestRedacted: what names a host, an address, a disk or a user is nowhere in any format, plain or decoded, and the
// documents say that they were redacted. What is looked for is there without it.
func TestRedacted(t *testing.T) {
	t.Parallel()
	plain := New(betraying())
	before, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	doc := Redacted(plain, "/srv/of-the-run")
	if after, err := json.Marshal(plain); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the document itself was changed (%v)", err)
	}
	for name, write := range printers {
		var open, closed bytes.Buffer
		if err := write(&open, plain); err != nil {
			t.Fatal(err)
		}
		if err := write(&closed, doc); err != nil {
			t.Fatal(err)
		}
		whole := strings.ToLower(html.UnescapeString(open.String()))
		for _, n := range needles {
			if name == "json" && !strings.Contains(whole, strings.ToLower(n)) {
				t.Errorf("%s: %q is not there without redaction either", name, n)
			}
		}
		for what, text := range readings(t, name, closed.Bytes()) {
			lower := strings.ToLower(text)
			for _, n := range needles {
				if i := strings.Index(lower, strings.ToLower(n)); i >= 0 {
					t.Errorf("%s holds %q: %s", what, n, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
		if !strings.Contains(closed.String(), "host-1") {
			t.Errorf("%s: the host has no replacement", name)
		}
		if name != "csv" && !strings.Contains(closed.String(), "Redacted: names of hosts") {
			t.Errorf("%s does not say that it was redacted", name)
		}
	}
}

// TestReplacements: the same value has the same replacement, in facts and in texts; what names nobody stays.
func TestReplacements(t *testing.T) {
	t.Parallel()
	in := Input{Manifest: result.Manifest{
		RunID: "20261121-204500-x-0001", Operator: "root", Target: "local", OneMachine: true, ClusterName: "this host",
		Nodes:   []result.Node{{Name: "node-0"}},
		Options: map[string]string{"dir": home + "ada/disk"},
		Environment: []result.Fact{
			{Group: "host", Name: "name", Value: "db7.corp.example", Identifies: result.Host},
			{Group: "host", Name: "user", Value: "root", Identifies: result.User},
			{Group: "host", Name: "boot", Value: "12", Identifies: result.Serial},
			{Group: "host", Name: "kernel", Value: "6.12.48+deb13-amd64"},
		},
		Notes: []string{"Db7 and db7.corp.example and db7.other are db7, not db77", "127.0.0.1 and ::1 at 12:34:56",
			"root has 12 of 1.2.3 by ada in " + home + "ada/disk", "192.0.2.1 is not 192.0.2.12, 192.0.2.1.",
			"a std::vector, 10:00:00, 6.1.0-13, 0x12", "yes", `password=hunter2 {"token": "abc", pwd: x}, 5 tokens: all`,
			"postgresql://ada:s3@db7/x"},
	}}
	got := Redacted(New(in)).Manifest
	want := []string{"host-1 and host-1 and host-1 are host-1, not db77", "127.0.0.1 and ::1 at 12:34:56",
		"root has 12 of 1.2.3 by user-2 in path-1", "address-1 is not address-2, address-1.",
		"a std::vector, 10:00:00, 6.1.0-13, 0x12", "yes", `password=secret {"token": "secret", pwd: secret, 5 tokens: all`,
		"postgresql://user-2:secret@host-1/x"}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Error(diff)
	}
	var values []string
	for _, f := range got.Environment {
		values = append(values, f.Value)
	}
	if diff := cmp.Diff([]string{"host-1", "user-1", "serial-1", "6.12.48+deb13-amd64"}, values); diff != "" {
		t.Error(diff)
	}
	if got.Operator != "user-1" || got.ClusterName != "this host" || got.Nodes[0].Name != "node-0" ||
		got.Options["dir"] != "path-1" || got.RunID != in.Manifest.RunID {
		t.Errorf("%+v", got)
	}
}

// A word of the program that happens to be the name of a host stays where the program tells things apart by it.
func TestRedactedWordsOfOurs(t *testing.T) {
	t.Parallel()
	in := runInput(reporttest.Options{VMs: 2, Length: 10 * time.Second})
	in.Manifest.Environment = []result.Fact{{Group: "host", Name: "name", Value: "partly", Identifies: result.Host}}
	in.Manifest.Notes = []string{"on partly"}
	doc := Redacted(New(in))
	if doc.Verdicts[1].State != "partly" || doc.Manifest.Notes[0] != "on host-1" {
		t.Errorf("%+v %q", doc.Verdicts, doc.Manifest.Notes)
	}
}

// TestRedactedStrangeNames: hosts whose names are short, parts of each other, patterns or of any alphabet are nowhere;
// one that is a word of reports is replaced where something says that it is a host, and no report is garbled by it.
func TestRedactedStrangeNames(t *testing.T) {
	t.Parallel()
	names := []string{"n1", "q7", "node1", "node10", "a+b(c", "größe-ß", "Würfel|x", "[z].*", "read", "p99",
		"IOPS", "12"}
	in := runInput(reporttest.Options{VMs: 2, Length: 10 * time.Second})
	plain := New(in)
	in.Manifest.Target, in.Manifest.OneMachine, in.Manifest.Simulated = "ssh", false, false
	in.Manifest.Nodes, in.Findings, in.Events = nil, nil, nil
	in.Manifest.Scenario.DisplayName, in.Labels.Name = "read p99", "a+b(c"
	for _, n := range names {
		in.Manifest.Nodes = append(in.Manifest.Nodes, result.Node{Name: n})
		in.Findings = append(in.Findings, result.Finding{Check: "x", Severity: result.Warning, Subject: "run",
			Sentence: "Node " + n + " was lost, read p99 at 12 s in IOPS."})
		in.Events = append(in.Events, result.Event{Kind: result.KindFault, Time: in.Manifest.Created,
			Text: "Switched " + n + " off"})
	}
	doc := Redacted(New(in))
	if doc.Title != "read p99" || doc.Latencies[0].Windows[0].Rows[0].Op != plain.Latencies[0].Windows[0].Rows[0].Op {
		t.Errorf("words of the report were taken for names: %q, %+v", doc.Title, doc.Latencies[0].Windows[0].Rows[0])
	}
	for i, n := range names {
		host := doc.Manifest.Nodes[i].Name
		if want := "Node " + host + " was lost, read p99 at 12 s in IOPS."; doc.Findings[i].Sentence != want {
			t.Errorf("%s: %q, want %q", n, doc.Findings[i].Sentence, want)
		}
		if !strings.HasPrefix(host, "host-") || doc.Journal[i].Text != "Switched "+host+" off" {
			t.Errorf("%s is %q, %q", n, host, doc.Journal[i].Text)
		}
	}
	for name, write := range printers {
		var out bytes.Buffer
		if err := write(&out, doc); err != nil {
			t.Fatal(err)
		}
		for _, text := range readings(t, name, out.Bytes()) {
			for _, n := range names[2:8] {
				if strings.Contains(text, n) {
					t.Errorf("%s holds %q", name, n)
				}
			}
		}
	}
}

// FuzzRedacted: whatever a text holds, a value that a fact names is not in it afterwards, and nothing breaks.
func FuzzRedacted(f *testing.F) {
	for _, s := range planted {
		f.Add(s, "mallory")
	}
	f.Fuzz(func(t *testing.T, text, user string) {
		in := Input{Manifest: result.Manifest{Operator: user, Notes: []string{text + user, user + text}}}
		doc := Redacted(New(in))
		key := strings.ToLower(strings.TrimSpace(user))
		replacement := func(k result.Identity) bool { return strings.Contains(string(k)+"-12", key) }
		digits := strings.ContainsAny(key, "0123456789")          // which may go on in the number of a replacement
		valid := utf8.ValidString(text) && utf8.ValidString(user) // no document holds other text
		if !valid || len(key) < 6 || digits || common(key) || slices.ContainsFunc(kinds, replacement) {
			return
		}
		for _, n := range doc.Manifest.Notes {
			if strings.Contains(n, strings.TrimSpace(user)) {
				t.Errorf("%q holds %q", n, user)
			}
		}
	})
}
