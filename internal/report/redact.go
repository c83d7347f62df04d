package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

// redactedSentence stands at the top of a redacted report.
const redactedSentence = "Redacted: names of hosts, addresses, serial numbers, the kernel's command line, names of " +
	"users and paths of theirs are replaced, the same value by the same replacement; the run's name, tags and note are " +
	"left out. A name that is a word of reports stays where nothing beside it says that it is one."

// Redacted is a copy of a document in which all that names a machine, an address, a disk or a user is replaced: what
// the manifest and its facts say that it is, what looks like one wherever it stands, and every further place of any of
// these values; what a user called the run is left out. paths are further ones to be replaced, such as that of the run
// folder. All formats print the copy, so the same value has the same replacement in all of them.
func Redacted(doc *Document, paths ...string) *Document {
	m := doc.Manifest
	r := redactorOf([]result.Manifest{m}, paths)
	bare := *doc
	bare.Labels = nil
	bare.Beside = nil // a catalogue names systems of a team
	bare.InShort = slices.DeleteFunc(slices.Clone(doc.InShort), func(s Short) bool { return s.Check == BesideCheck })
	out := redactedBy(r, &bare)
	r.told(m, &out.Manifest)
	out.Redacted = redactedSentence
	return out
}

// told replaces, in a copy of a manifest, values that are too common to be looked for in texts where it is known what
// they are.
func (r *redactor) told(m result.Manifest, out *result.Manifest) {
	out.Operator = r.of(m.Operator)
	out.ClusterName = cmp.Or(r.of(m.ClusterName), out.ClusterName)
	for i, f := range m.Environment {
		if f.Identifies != "" && f.Missing == "" {
			out.Environment[i].Value = r.of(f.Value)
		}
	}
	for i, n := range m.Nodes {
		out.Nodes[i].Name = cmp.Or(r.of(n.Name), out.Nodes[i].Name)
	}
	if m.SharedCounters != nil {
		out.SharedCounters.Instance = r.of(m.SharedCounters.Instance)
	}
}

// RedactedComparison is a copy of a comparison without what Redacted replaces. Whoever made it named the sides.
func RedactedComparison(d *compare.Document, paths ...string) *compare.Document {
	bare := *d
	bare.Links, bare.Here = nil, ""
	out := redactedBy(redactorOf(d.Manifests, paths), &bare)
	out.Mind = append(out.Mind, redactedSentence)
	return out
}

// RedactedExperiment is a copy of the result of an experiment, likewise.
func RedactedExperiment(x *compare.Experiment, paths ...string) *compare.Experiment {
	bare := *x
	bare.Beside, bare.Recorded = false, nil
	out := redactedBy(redactorOf(x.Manifests, paths), &bare)
	out.Mind = append(out.Mind, redactedSentence)
	return out
}

// redactorOf knows what manifests say that names somebody.
func redactorOf(manifests []result.Manifest, paths []string) *redactor {
	r := &redactor{names: map[string]string{}, values: map[string]string{}, counts: map[result.Identity]int{}}
	for _, m := range manifests {
		for _, f := range m.Environment {
			if f.Identifies != "" && f.Missing == "" {
				r.found(f.Identifies, f.Value)
			}
		}
		r.found(result.User, m.Operator)
		if shared := m.SharedCounters; shared != nil {
			r.found(result.Host, shared.Instance)
		}
		if !m.Simulated && !m.OneMachine && m.Target != result.ImportTarget { // elsewhere they are names of our own
			r.found(result.Host, m.ClusterName)
			for _, n := range m.Nodes {
				r.found(result.Host, n.Name)
			}
		}
	}
	for _, p := range paths {
		r.found(result.Path, p)
	}
	return r
}

// redactedBy is a copy of a document without what the redactor knows, or finds in it.
func redactedBy[T any](r *redactor, doc *T) *T {
	walkTexts(reflect.ValueOf(doc), false, func(s string, _ bool) string { r.look(s); return s })
	r.ready()
	return walkTexts(reflect.ValueOf(doc), false, r.replaced).Interface().(*T)
}

// redactor knows the values that are replaced, and by what.
type redactor struct {
	names  map[string]string // by the value in small letters
	values map[string]string // as they were found, by the same
	counts map[result.Identity]int
	hosts  []string
	any    *regexp.Regexp // one of the values; nil when there are none
	beside *regexp.Regexp // a word that names come after, and one that is too common to be looked for by itself
}

// kinds are those that replacements are named for.
var kinds = []result.Identity{result.Host, result.Address, result.Serial, result.CommandLine, result.User, result.Path}

// found has a value replaced wherever it stands.
func (r *redactor) found(kind result.Identity, value string) {
	value = strings.TrimSpace(value)
	key := strings.ToLower(value)
	if value == "" || r.names[key] != "" {
		return
	}
	if !slices.Contains(kinds, kind) { // of a folder that a newer program, or somebody, wrote
		kind = "value"
	}
	r.counts[kind]++
	r.values[key] = value
	r.names[key] = fmt.Sprintf("%s-%d", strings.ReplaceAll(string(kind), "_", "-"), r.counts[kind])
	if short, _, ok := strings.Cut(key, "."); ok && kind == result.Host && r.names[short] == "" && !common(short) {
		r.names[short] = r.names[key] // the same host
		r.hosts = append(r.hosts, short)
	}
	if kind == result.Host {
		r.hosts = append(r.hosts, key)
	}
	if kind == result.Path || kind == result.CommandLine {
		r.look(value) // for the user in it
	}
}

// of is the replacement of a value that is known.
func (r *redactor) of(value string) string {
	return r.names[strings.ToLower(strings.TrimSpace(value))]
}

// Ways in which texts name machines, addresses, disks and users.
var (
	hexGroups   = lazyregexp.New(`(?i)\b[0-9a-f]{2}(?:([:-])[0-9a-f]{2}){5,}\b|\b(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}\b`)
	dotted      = lazyregexp.New(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	colons      = lazyregexp.New(`(?i)[0-9a-f]*:[0-9a-f:]*:[0-9a-f.]*`)
	uuids       = lazyregexp.New(`(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b`)
	worldWide   = lazyregexp.New(`(?i)\b(?:(?:naa|eui|t10|wwn|wwid|uuid)[._:-][0-9a-z._-]{8,}|0x[0-9a-f]{16}\b)`)
	byID        = lazyregexp.New(`/dev/disk/by-[a-z]+/([^\s"'<>|,;)\]]+)`)
	serials     = lazyregexp.New(`(?i)\bserial(?:[ _-]?(?:no|number))?\.?"?\s*[:=]\s*"?([0-9a-z_-]{4,})`)
	underHome   = lazyregexp.New(`/(?:home|Users|export/home|var/home)/([^/\s"'<>|,;:)\]]+)[^\s"'<>|,;:)\]]*|/root/[^\s"'<>|,;:)\]]+`)
	tilde       = lazyregexp.New(`~([a-z_][a-z0-9_-]*)/[^\s"'<>|,;:)\]]*`)
	urls        = lazyregexp.New(`(?i)\b[a-z][a-z0-9+.-]*://(?:([^\s/:@"'<>]+)(?::[^\s/@"'<>]*)?@)?([^\s/:?#"'<>\[\])]+)`)
	atHost      = lazyregexp.New(`(?i)\b([a-z_][a-z0-9_.+-]*)@([a-z0-9-]+(?:\.[a-z0-9-]+)+)`)
	hostOptions = lazyregexp.New(`\b(?:host|hostname|server|nodename)=([^\s,;:"']+)`)
	secrets     = lazyregexp.New(`(?i)((?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key)["' ]*[=:] *["']?|` +
		`://[^\s/:@"'<>]+:)([^\s"'<>,;&@]+)`)
	userOptions = lazyregexp.New(`\b(?:user|username|login|uname)=([^,\s"']+)`)
)

// look finds values in a text.
func (r *redactor) look(s string) {
	if len(s) < 3 {
		return
	}
	each := func(re *lazyregexp.Regexp, groups ...result.Identity) {
		for _, m := range re.FindAllStringSubmatch(s, -1) {
			for i, kind := range groups {
				if kind != "" && i < len(m) {
					r.found(kind, m[i])
				}
			}
		}
	}
	if strings.ContainsAny(s, "/~=@:") {
		each(underHome, result.Path, result.User)
		each(tilde, result.Path, result.User)
		each(byID, "", result.Serial)
		each(urls, "", result.User, "")
		hosts := hostOptions.FindAllStringSubmatch(s, -1)
		for _, m := range urls.FindAllStringSubmatch(s, -1) {
			hosts = append(hosts, []string{"", m[2]})
		}
		for _, m := range hosts {
			if _, err := netip.ParseAddr(m[1]); err != nil && !common(strings.ToLower(m[1])) {
				r.found(result.Host, m[1])
			}
		}
		each(atHost, "", result.User, result.Host)
		each(userOptions, "", result.User)
		each(serials, "", result.Serial)
	}
	each(uuids, result.Serial)
	each(worldWide, result.Serial)
	each(hexGroups, result.Address)
	for _, re := range []*lazyregexp.Regexp{dotted, colons} {
		for _, text := range re.FindAllString(s, -1) {
			text = strings.TrimRight(text, ".")
			a, err := netip.ParseAddr(text)
			if err == nil && !a.IsLoopback() && !a.IsUnspecified() {
				r.found(result.Address, text)
			}
		}
	}
}

// ordinary are values that name nobody, or that stand in texts for other things.
var ordinary = []string{"root", "localhost", "host", "none", "unknown", "user", "admin", "default", "not specified",
	"default string", "to be filled by o.e.m.", "local", "this host", "system"}

// pageWords are those of reports which would not be told from a name that is one of them.
var pageWords = strings.Fields(`
	after all alone an and any as at bandwidth be before between by bytes change cluster complete count cpu cpus
	data depth device direct disk disks do each error errors event events failed fault fio first flush free from
	group groups he held if in info interval invalid io iops is it its job jobs journal kib latency load loads
	machine machines max mean median memory mib min mix ms network no node nodes not of off on one op operation
	operations ops or os over p50 p90 p95 p99 passed phase plan point points ran random rate rates read reads report
	response result results run runs sequential series server service size so start started steady step steps
	storage switched target test the time times to total trim up used user users vm vms warning was we were with
	work workload workloads write writes wrote`)

// common reports whether a value is not looked for in texts: too short, an ordinary word, or a small number.
func common(key string) bool {
	const shortest, shortestNumber = 2, 6
	digits := !strings.ContainsFunc(key, func(c rune) bool { return !unicode.IsDigit(c) })
	return len(key) < shortest || digits && len(key) < shortestNumber || slices.Contains(ordinary, key) ||
		slices.Contains(pageWords, key)
}

// ready prepares the replacement. Longer values go first: they may hold others.
func (r *redactor) ready() {
	var keys, near []string
	for _, key := range r.hosts {
		if common(key) && !slices.Contains(ordinary, key) {
			near = append(near, regexp.QuoteMeta(key))
		}
	}
	if near != nil {
		slices.SortFunc(near, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
		r.beside = regexp.MustCompile(`(?i)\b((?:nodes?|hosts?|switched|server|machine|cluster|instance)[ =:]+"?)(` +
			strings.Join(near, "|") + `)\b`)
	}
	for key := range r.names {
		if !common(key) && utf8.ValidString(cmp.Or(r.values[key], key)) { // no document holds other text
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var parts []string
	for _, key := range keys {
		value := cmp.Or(r.values[key], key)
		part := regexp.QuoteMeta(value)
		if escaped := template.HTMLEscapeString(value); escaped != value { // in an author's description
			part += "|" + regexp.QuoteMeta(escaped)
			r.names[strings.ToLower(escaped)] = r.names[key]
		}
		parts = append(parts, part)
	}
	if parts != nil {
		r.any = regexp.MustCompile("(?i)" + strings.Join(parts, "|"))
	}
}

// ourWord matches words of our own.
var ourWord = lazyregexp.New(`^[A-Za-z/%_-]{1,16}$`)

// replaced is a text with every known value replaced; a word of our own that happens to be one stays.
func (r *redactor) replaced(s string, word bool) string {
	if word && ourWord.MatchString(s) && r.of(s) != "" {
		return s
	}
	return r.replace(s)
}

// domain matches the rest of a host's full name.
var domain = lazyregexp.New(`^(?:\.[A-Za-z0-9-]+)+`)

// replace is a text with every known value replaced.
func (r *redactor) replace(s string) string {
	if r.beside != nil {
		s = r.beside.ReplaceAllStringFunc(s, func(found string) string {
			m := r.beside.FindStringSubmatch(found)
			return m[1] + cmp.Or(r.of(m[2]), "value")
		})
	}
	if strings.ContainsAny(s, "=:") {
		s = secrets.ReplaceAllString(s, "${1}secret")
	}
	if r.any == nil || len(s) < 2 {
		return s
	}
	var b strings.Builder
	for at := 0; ; {
		m := r.any.FindStringIndex(s[at:])
		if m == nil {
			b.WriteString(s[at:])
			return b.String()
		}
		from, to := at+m[0], at+m[1]
		value := s[from:to]
		if !wordOf(s, from, to) {
			_, n := utf8.DecodeRuneInString(s[from:])
			b.WriteString(s[at : from+n])
			at = from + n
			continue
		}
		key := strings.ToLower(value)
		b.WriteString(s[at:from])
		b.WriteString(cmp.Or(r.names[key], "value")) // letters have more forms than large and small
		if slices.Contains(r.hosts, key) {
			to += len(domain.FindString(s[to:]))
		}
		at = to
	}
}

// wordOf reports whether what stands from one place of a text to another is a word of its own. Long values are replaced
// within words as well: a name that something was added to still tells whose it is.
func wordOf(s string, from, to int) bool {
	const long = 6
	if to-from >= long {
		return true
	}
	word := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	after, _ := utf8.DecodeRuneInString(s[to:])
	return !word(before) && !word(after)
}

// ours are members of documents that hold words of this program, by which it tells things apart.
var ours = []string{"unit", "x_unit", "y_unit", "kind", "type", "state", "question", "status", "phase", "ended",
	"check"}

var (
	rawJSON   = reflect.TypeFor[json.RawMessage]()
	plainType = reflect.TypeFor[string]()
)

// walkTexts is a copy of a value in which f was asked about every text: also in members of maps and in JSON that is not
// decoded. It is told which are, as far as the type says, words of our own.
func walkTexts(v reflect.Value, word bool, f func(s string, word bool) string) reflect.Value {
	t := v.Type()
	if v.IsZero() || t != rawJSON && t != madeHere && !holdsText(t, nil) {
		return v
	}
	out := reflect.New(t).Elem()
	if t == rawJSON {
		out.SetBytes(inJSON(v.Bytes(), f))
		return out
	}
	switch t.Kind() {
	case reflect.String:
		out.SetString(f(v.String(), word || t != plainType && t != madeHere))
	case reflect.Struct:
		out.Set(v)
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if t.Field(i).IsExported() {
				out.Field(i).Set(walkTexts(v.Field(i), slices.Contains(ours, name), f))
			}
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(t, v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(walkTexts(v.Index(i), word, f))
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(t, v.Len()))
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, k := range keys {
			out.SetMapIndex(walkTexts(k, false, f), walkTexts(v.MapIndex(k), false, f))
		}
	case reflect.Pointer:
		out.Set(reflect.New(t.Elem()))
		out.Elem().Set(walkTexts(v.Elem(), word, f))
	case reflect.Interface:
		out.Set(walkTexts(v.Elem(), word, f))
	default:
		return v
	}
	return out
}

// inJSON asks about every text of a JSON document. What is none is left out: nobody could say what is in it.
func inJSON(doc []byte, f func(string, bool) string) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return []byte("null")
	}
	if v == nil {
		return doc
	}
	out, err := json.Marshal(walkTexts(reflect.ValueOf(&v).Elem(), false, f).Interface())
	if err != nil {
		return []byte("null")
	}
	return out
}
