package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"plimsoll/internal/kit/untyped"
	"plimsoll/scenario/jinja"

	"go.yaml.in/yaml/v3"
)

// LoadOptions say how to read a scenario.
type LoadOptions struct {
	Set    untyped.Object // values of variables, native: string, bool, int, int64, float64, nil, []any, untyped.Object
	Preset string         // name of a preset in the file; Set wins over it
	File   string         // the scenario file inside the fs; "": the one test.yml anywhere below the root
	ID     int64          // 0: from the file, else milliseconds since the epoch of Now
	Now    time.Time      // used for the id only
	Nodes  int            // size of the cluster when known, 0 otherwise: range checks of selectors need it
	Strict bool           // weigh objections for an author instead of accepting what runs; see Codes
	// Rendered says that the file is a scenario after templating, as Scenario.Rendered is: braces in it are text.
	Rendered bool
	// Generators read the config files of workloads, by the name that scenarios call them by. Nil: any generator will
	// do, and no config file is looked into.
	Generators map[string]Generator
	// CheckQuery says what is wrong with a PromQL query as written, its filters not yet filled in; nil: queries are
	// taken as they are.
	CheckQuery func(query string) error
}

// scenarioFile is the name a scenario has in its directory.
const scenarioFile = "test.yml"

// maxFiles bounds the search for the scenario file.
const maxFiles = 100_000

var digitBesideN = regexp.MustCompile(`[0-9]n|n[0-9n]`)

// Load reads the scenario in fsys. Objections and remarks come back sorted by position, each once; the scenario is nil
// when one of them is an Error. fsys is read only; give os.Root.FS or a zip.Reader so that links cannot lead outside.
func Load(fsys fs.FS, opts LoadOptions) (*Scenario, []Diagnostic) {
	l := &loader{fsys: fsys, opts: opts, sc: &Scenario{}}
	if l.find() && l.read() {
		values := l.readVars()
		if l.render(values) {
			l.document()
		}
	}
	diags := sortDiagnostics(l.diags)
	if hasError(diags) {
		return nil, diags
	}
	return l.sc, diags
}

// find walks the directory and decides which file is the scenario.
func (l *loader) find() bool {
	var found []string
	err := fs.WalkDir(l.fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		if l.files = append(l.files, p); len(l.files) > maxFiles {
			return fmt.Errorf("more than %d files below the directory", maxFiles)
		}
		if d.Name() == scenarioFile {
			found = append(found, p)
		}
		return nil
	})
	if l.opts.File != "" {
		l.file = path.Clean(l.opts.File)
		if ext := strings.ToLower(path.Ext(l.file)); ext != ".yml" && ext != ".yaml" {
			l.say("no-scenario", Pos{File: l.file}, "load: a scenario file ends in .yml or .yaml",
				"name the file or its directory")
			return false
		}
		return true
	}
	switch {
	case err != nil:
		at := Pos{}
		if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path != "." {
			at.File = p.Path
		}
		l.say("no-scenario", at, "load: cannot search the directory: "+cause(err), "")
	case len(found) == 0:
		hint := "name the directory that has it"
		if i := slices.IndexFunc(l.files, func(p string) bool {
			return strings.EqualFold(path.Base(p), "test.yaml") || strings.EqualFold(path.Base(p), scenarioFile)
		}); i >= 0 {
			hint = fmt.Sprintf("rename %s, or name it as the scenario", l.files[i])
		}
		l.say("no-scenario", Pos{}, "load: no file "+scenarioFile+" in the directory or below it", hint)
	case len(found) > 1:
		shown := slices.Clone(found[:min(5, len(found))])
		if len(found) > len(shown) {
			shown = append(shown, "...")
		}
		l.say("no-scenario", Pos{}, fmt.Sprintf("load: %d files named %s: %s", len(found), scenarioFile,
			strings.Join(shown, ", ")), "name the one to load")
	default:
		l.file = found[0]
		return true
	}
	return false
}

// read reads the scenario file.
func (l *loader) read() bool {
	most := int64(maxSource)
	if l.opts.Rendered {
		most = jinja.MaxRendered
	}
	data, err := readFile(l.fsys, l.file, most)
	at := Pos{File: l.file}
	if err != nil {
		hint := ""
		if errors.Is(err, errSpecial) {
			hint = "put a copy of what it holds in its place"
		}
		l.say("no-scenario", at, "load: "+cause(err), hint)
		return false
	}
	l.source = strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\r", "\n")
	l.source = strings.TrimPrefix(l.source, "\ufeff")
	l.starts = lineStarts(l.source)
	if what, hint, offset := notText(l.source); what != "" {
		at.Line, at.Col = lineCol(l.source, l.starts, offset)
		l.say("yaml", at, "load: "+what, hint)
		return false
	}
	return true
}

// notText says why a file is no text that YAML can be, and where; what is "" for one that is.
func notText(data string) (what, hint string, at int) {
	const convert = "save it as UTF-8"
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if strings.HasPrefix(data, mark) {
			return "the file is UTF-16 text", convert, 0
		}
	}
	for i := 0; i < len(data); {
		r, width := utf8.DecodeRuneInString(data[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			return fmt.Sprintf("the file is not UTF-8 text: byte 0x%02x", data[i]), convert, i
		case r == 0 && (i == 1 || i+2 < len(data) && data[i+2] == 0):
			return "the file is UTF-16 text", convert, i
		case r < ' ' && !strings.ContainsRune("\t\n", r) || r == 0x7f:
			return fmt.Sprintf("the file has the control character 0x%02x, which is not text", r), "remove it", i
		}
		i += width
	}
	return "", "", 0
}

// errSpecial is the error of a named pipe, a device or a socket.
var errSpecial = errors.New("it is not a regular file")

// readFile reads a whole file of bounded size.
func readFile(fsys fs.FS, name string, most int64) ([]byte, error) {
	// Looked at before it is opened: to open a named pipe is to wait for whoever writes to it.
	switch info, err := fs.Stat(fsys, name); {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory")
	case !info.Mode().IsRegular():
		return nil, errSpecial
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return data, err
}

// cause is an error without the path that the position already names.
func cause(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// document reads the rendered text.
func (l *loader) document() {
	root, objection := parseYAML(l.out.Text)
	if objection != nil {
		l.sayYAML(objection, 0)
		return
	}
	at := Pos{File: l.file, Line: 1, Col: 1}
	if root == nil {
		l.say("yaml", at, "yaml: the file is empty", "")
		return
	}
	l.withoutVars(root)
	f, _ := l.decode(root, at, "the scenario", fileFields, "unknown-key")
	if root.Kind != yaml.MappingNode {
		return
	}
	l.headers(f)
	d := &document{loader: l, fields: f, fits: map[fit]bool{}}
	d.groups()
	d.workloads()
	d.results()
	d.steps()
	d.asserts()
	d.experiment(root)
	d.check()
	l.sc.File = l.file
	l.sc.Rendered = l.redacted()
}

// withoutVars drops the rendered vars and presets, whose meaning was read before rendering.
func (l *loader) withoutVars(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		return
	}
	for i := len(root.Content) - 2; i >= 0; i -= 2 {
		if key := root.Content[i].Value; key == "vars" || key == "presets" {
			root.Content = slices.Delete(root.Content, i, i+2)
		}
	}
}

// headers reads the plain top-level fields.
func (l *loader) headers(f fields) {
	sc := l.sc
	sc.Name = strings.TrimSpace(f.String("name"))
	sc.DisplayName = strings.TrimSpace(f.String("display_name"))
	sc.Summary = strings.TrimSpace(f.String("summary"))
	sc.Description = strings.TrimSpace(f.String("description"))
	sc.EstimatedRuntime = f.Seconds("estimated_runtime")
	sc.Tags = f.Strings("tags")
	switch {
	case l.opts.ID != 0:
		sc.ID = l.opts.ID
	case f.Has("id"):
		sc.ID, _ = f.Args["id"].(int64)
	default:
		sc.ID = l.opts.Now.UnixMilli()
	}
	if strings.Contains(sc.Description, "<img") {
		l.say("image", f.where("description"), "the description contains an image", "reports leave it out")
	}
}

// mappingOf is entries without remarks, for a mapping that was read before.
func (l *loader) mappingOf(n *yaml.Node) []entry {
	keep := l.diags
	defer func() { l.diags = keep }()
	return l.entries(n, "")
}

// mask stands in place of a password. In YAML it is a plain text wherever it stands.
const mask = "(redacted)"

// redacted is the rendered text without passwords. A variable that holds one is masked as well.
func (l *loader) redacted() []byte {
	text := l.out.Text
	slices.SortFunc(l.redact, func(a, b *yaml.Node) int { return cmp.Or(b.Line-a.Line, b.Column-a.Column) })
	for _, n := range l.redact {
		start := l.out.offset(n.Line, n.Column)
		rest, length := text[start:], len(n.Value)
		tail := ""
		switch quoted := length+2 <= len(rest) && rest[1:1+length] == n.Value; {
		case strings.HasPrefix(rest, n.Value):
			tail = rest[length:]
		case quoted:
			tail = rest[length+2:]
		default: // escapes, or several lines
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				tail = rest[end:]
			}
			for line := range strings.SplitSeq(n.Value, "\n") {
				if line = strings.TrimSpace(line); line != "" {
					tail = strings.ReplaceAll(tail, line, mask)
				}
			}
		}
		text = text[:start] + mask + tail
	}
	for _, n := range l.redact {
		for i := range l.sc.Vars {
			v := &l.sc.Vars[i]
			if v.Value == any(n.Value) && n.Value != "" {
				v.Value = mask
				text = strings.ReplaceAll(text, n.Value, mask)
			}
			if v.Default == any(n.Value) && n.Value != "" {
				v.Default = mask
			}
		}
	}
	return []byte(text)
}

// pathFrom resolves a path of the author's, which is relative to the scenario file. ok is false when it leaves the
// scenario's directory.
func (l *loader) pathFrom(dir, name string) (clean string, ok bool) {
	if name == "" || path.IsAbs(name) || strings.Contains(name, "\x00") {
		return "", false
	}
	home := path.Dir(l.file)
	clean = path.Join(dir, name)
	return clean, fs.ValidPath(clean) && (home == "." || strings.HasPrefix(clean, home+"/"))
}
