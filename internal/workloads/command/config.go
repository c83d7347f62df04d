package command

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/workload"
	"plimsoll/result"
	"plimsoll/scenario"
)

const (
	maxArguments  = 128
	maxDeclared   = 32 // operations, and measures
	maxRecords    = 32
	maxDepth      = 1 << 20
	serviceTime   = "service time"
	responseTime  = "response time"
	fromStdout    = "stdout"
	fromStderr    = "stderr"
	fromBoth      = "both"
	fromFile      = "file"
	formatLines   = "lines"
	formatCSV     = "csv"
	formatObjects = "json-lines"
	formatJSON    = "json"
)

// config is an author's file as it was read.
type config struct {
	reader
	program
	server     *server // nil: the load stays on its machine
	options    map[string]string
	version    *version
	depth      int
	rated      *yaml.Node // the option that is the rate it offers; nil: it offers as much as it takes
	rate       float64    // operations per second; 0: as much as it takes
	latency    string
	operations []result.Operation
	measures   []result.Measure
	from       string
	layout     layout
}

// version is how to learn the version of the program, and which one is needed at least.
type version struct {
	command []string
	match   *regexp.Regexp
	oldest  string
}

// parseConfig reads a config and returns all objections at once.
func parseConfig(spec workload.Spec) (*config, error) {
	c := &config{reader: reader{file: spec.ConfigFile}, depth: 1, latency: serviceTime,
		program: program{files: map[string]string{}}, options: map[string]string{}, from: fromStdout}
	root := c.document(spec.Config)
	if root != nil {
		c.read(root)
		c.set(spec.Settings)
		c.readRate()
		c.placeholders(spec)
	}
	return c, c.err()
}

func (c *config) read(root *yaml.Node) {
	var output *yaml.Node
	c.mapping(root, "the file",
		member{"command", true, func(n *yaml.Node) { c.readCommand(n, "command", &c.program) }},
		member{"env", false, func(n *yaml.Node) { c.readEnv(n, "env", &c.program) }},
		member{"files", false, func(n *yaml.Node) { c.readFiles(n, "files", &c.program) }},
		member{"server", false, c.readServer},
		member{"options", false, c.readOptions},
		member{"version", false, func(n *yaml.Node) { c.version = c.readVersion(n, "version") }},
		member{"concurrency", false, func(n *yaml.Node) {
			v, err := strconv.Atoi(n.Value)
			if err != nil || n.Tag != "!!int" || v < 1 || v > maxDepth {
				c.object(n, "concurrency must be a whole number from 1 to %d, not %s", maxDepth, kind(n))
				return
			}
			c.depth = v
		}},
		member{"rate", false, func(n *yaml.Node) { c.rated = n }},
		member{"latency", false, func(n *yaml.Node) { c.latency = c.choice(n, "latency", serviceTime, responseTime) }},
		member{"operations", false, c.readOperations},
		member{"measures", false, c.readMeasures},
		member{"output", true, func(n *yaml.Node) { output = n }})
	if len(c.operations)+len(c.measures) == 0 && len(c.objections) == 0 {
		c.object(root, "nothing is counted; declare operations: or measures:")
	}
	if output != nil { // it speaks of what may be declared below it
		c.readOutput(output)
	}
}

func (c *config) readOptions(n *yaml.Node) {
	c.pairs(n, "options", func(key, value *yaml.Node) {
		if !plainWord.MatchString(key.Value) {
			c.object(key, "options: the name %q must begin with a letter and hold letters, digits, _ . %% - only",
				key.Value)
		}
		if t, ok := c.text(value, "options: "+key.Value); ok {
			c.options[key.Value] = t
		}
	})
}

// readRate reads the rate that the load offers from the option that is declared to be it.
func (c *config) readRate() {
	if c.rated == nil {
		return
	}
	text, ok := c.options[c.rated.Value]
	if !ok {
		c.object(c.rated, "rate must name one of options:, whose value is operations per second; there is no %q",
			c.rated.Value)
		return
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !(rate >= 0) || math.IsInf(rate, 1) {
		c.object(c.rated, "rate: option %s is %q, which is no number of operations per second", c.rated.Value, text)
		return
	}
	c.rate = rate
}

// set puts the workload's settings in the place of the options' own values. What is declared to be the rate is known as
// rate, too, whatever the option is called.
func (c *config) set(settings []scenario.Setting) {
	for _, s := range settings {
		if _, own := c.options[s.Key]; s.Key == "rate" && !own && c.rated != nil {
			s.Key = c.rated.Value
		}
		if _, ok := c.options[s.Key]; !ok {
			there := slices.Sorted(maps.Keys(c.options))
			what := fmt.Sprintf("there is no %q under options: of the file; %s", s.Key, suggestion(s.Key, there))
			c.objections = append(c.objections, objection{what: what, setting: true})
			continue
		}
		c.options[s.Key] = s.Value
	}
}

func (c *config) readVersion(n *yaml.Node, what string) *version {
	v := &version{}
	c.mapping(n, what,
		member{"command", true, func(n *yaml.Node) {
			c.list(n, "version: command", maxArguments, func(e *yaml.Node) {
				if t, ok := c.text(e, "an argument"); ok {
					v.command = append(v.command, t)
				}
			})
			if n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || n.Content[0].Value == "") {
				c.object(n, "%s: command is empty; write [program, --version]", what)
			}
		}},
		member{"match", true, func(n *yaml.Node) {
			if v.match = c.pattern(n, what+": match"); v.match != nil && v.match.NumSubexp() != 1 {
				c.object(n, "%s: match must have one group (...) around the version, not %d", what, v.match.NumSubexp())
			}
		}},
		member{"oldest", false, func(n *yaml.Node) {
			if t, ok := c.text(n, what+": oldest"); ok {
				if v.oldest = t; numbersOf(t) == nil {
					c.object(n, "%s: oldest must be numbers with dots between, like \"1.0\", not %q", what, t)
				}
			}
		}})
	return v
}

// name reads the name of an operation or measure, which nothing else has.
func (c *config) name(n *yaml.Node, what string) string {
	t, ok := c.text(n, what+": name")
	switch {
	case !ok:
	case !plainWord.MatchString(t):
		c.object(n, "%s: the name %q must begin with a letter and hold letters, digits, _ . %% - only, at most 63",
			what, t)
	case c.operation(t) >= 0 || c.measure(t) >= 0:
		c.object(n, "%s: the name %q is taken already; names are told apart by it", what, t)
	case what == "measure" && (slices.Contains(result.MachineMeasures, t) || slices.Contains(ownMeasures, t)):
		c.object(n, "%s: %q is a measure of plimsoll's own; take another name", what, t)
	default:
		return t
	}
	return ""
}

// ownMeasures are what charts and tables call what is measured of everything.
var ownMeasures = []string{result.NodeCPU, result.Rate, result.Bandwidth, result.LatencyMean, result.LatencyP50,
	result.LatencyP99, result.LatencyP999, "iops", "latency", "errors"}

func (c *config) operation(name string) int {
	return slices.IndexFunc(c.operations, func(o result.Operation) bool { return o.Name == name })
}

func (c *config) measure(name string) int {
	return slices.IndexFunc(c.measures, func(m result.Measure) bool { return m.Name == name })
}

// noun reads the words that stand for several of something, or a unit.
func (c *config) noun(n *yaml.Node, what string) string {
	t, ok := c.text(n, what)
	if ok && (len(t) > 40 || t == "" || strings.TrimSpace(t) != t || strings.ContainsAny(t, "\"{}\\") ||
		strings.ContainsFunc(t, func(r rune) bool { return !unicode.IsPrint(r) })) {
		c.object(n, "%s: %q must be a word or two, at most 40 bytes", what, t)
	}
	return t
}

func (c *config) readOperations(n *yaml.Node) {
	c.list(n, "operations", maxDeclared, func(e *yaml.Node) {
		var o result.Operation
		c.mapping(e, "operation",
			member{"name", true, func(n *yaml.Node) { o.Name = c.name(n, "operation") }},
			member{"noun", true, func(n *yaml.Node) { o.Noun = c.noun(n, "operation: noun") }},
			member{"bytes", false, func(n *yaml.Node) { o.Bytes = c.boolean(n, "operation: bytes") }})
		c.operations = append(c.operations, o)
	})
}

func (c *config) readMeasures(n *yaml.Node) {
	c.list(n, "measures", maxDeclared, func(e *yaml.Node) {
		var m result.Measure
		c.mapping(e, "measure",
			member{"name", true, func(n *yaml.Node) { m.Name = c.name(n, "measure") }},
			member{"unit", true, func(n *yaml.Node) { m.Unit = c.noun(n, "measure: unit") }},
			member{"better", false, func(n *yaml.Node) {
				m.Better = result.Direction(c.choice(n, "measure: better", string(result.Higher), string(result.Lower)))
			}},
			member{"kind", true, func(n *yaml.Node) {
				m.Kind = result.Kind(c.choice(n, "measure: kind", string(result.Count), string(result.Level),
					string(result.Single)))
			}})
		c.measures = append(c.measures, m)
	})
}

func (c *config) readOutput(n *yaml.Node) {
	l := &c.layout
	l.Format = formatLines
	var records, header, separator *yaml.Node
	c.mapping(n, "output",
		member{"format", true, func(n *yaml.Node) {
			l.Format = c.choice(n, "output: format", formatLines, formatCSV, formatObjects, formatJSON)
		}},
		member{"from", false, func(n *yaml.Node) {
			c.from = c.choice(n, "output: from", fromStdout, fromStderr, fromBoth, fromFile)
		}},
		member{"header", false, func(n *yaml.Node) { header, l.NoHeader = n, !c.boolean(n, "output: header") }},
		member{"separator", false, func(n *yaml.Node) {
			separator = n
			t, ok := c.text(n, "output: separator")
			if ok && (len(t) != 1 || strings.ContainsAny(t, "\"\n\r")) {
				c.object(n, "output: separator must be one character, like \";\", not %q", t)
				return
			}
			l.Separator = t
		}},
		member{"records", true, func(n *yaml.Node) { records = n }})
	for _, n := range []*yaml.Node{header, separator} {
		if n != nil && l.Format != formatCSV {
			c.object(n, "output: header: and separator: belong to format: csv")
		}
	}
	if records == nil || l.Format == "" {
		return
	}
	c.list(records, "output: records", maxRecords, c.readRecord)
	if len(l.Records) < len(records.Content) {
		return // objected to
	}
	if records.Kind == yaml.SequenceNode && len(records.Content) == 0 {
		c.object(records, "output: records is empty; say what a line or document of the output holds")
	}
	timed := slices.ContainsFunc(l.Records, func(r record) bool { return r.Elapsed != nil && !r.Final })
	for i := range l.Records {
		r := &l.Records[i]
		if !timed && !r.Final && r.Histogram == nil {
			c.object(records.Content[i], "when is that? no record but the final ones has a time: add elapsed:, "+
				"or final: true to a summary")
		}
		r.eachCounter(func(k *counter) {
			switch {
			case k.How != byRate:
			case r.Final:
				c.object(k.at, "a rate in a final record says nothing of how many there were; use count:, or make it "+
					"a measure")
			case !timed:
				c.object(k.at, "a rate becomes a count only with the time it holds for; give elapsed: in a record "+
					"that is not final")
			}
		})
	}
	for i, o := range c.operations {
		if !slices.ContainsFunc(l.Records, func(r record) bool {
			return slices.ContainsFunc(r.Operations, func(of opRecord) bool {
				return of.Operation == i && of.Ops != nil
			})
		}) && o.Name != "" {
			c.object(records, "no record counts the operation %q; add operations: {%s: ...} to one", o.Name, o.Name)
		}
	}
	for i, m := range c.measures {
		if !slices.ContainsFunc(l.Records, func(r record) bool {
			return slices.ContainsFunc(r.Measures, func(of measureRecord) bool { return of.Measure == i })
		}) && m.Name != "" {
			c.object(records, "no record gives the measure %q; add measures: {%s: ...} to one", m.Name, m.Name)
		}
	}
}

func (c *config) readRecord(n *yaml.Node) {
	r := record{Line: n.Line}
	ofLines := c.layout.Format == formatLines
	var match *regexp.Regexp
	var afterNode, matchNode, whereNode, eachNode *yaml.Node
	c.mapping(n, "a record",
		member{"after", false, func(n *yaml.Node) {
			if after := c.pattern(n, "after"); after != nil {
				afterNode, r.After = n, after.String()
			}
		}},
		member{"match", ofLines, func(n *yaml.Node) {
			if matchNode, match = n, c.pattern(n, "match"); match != nil {
				r.Match = match.String()
			}
		}},
		member{"where", false, func(n *yaml.Node) {
			whereNode = n
			c.pairs(n, "where", func(key, value *yaml.Node) {
				if re := c.pattern(value, "where: "+key.Value); re != nil {
					r.Where = append(r.Where, condition{Field: key.Value, Match: re.String(), at: key})
				}
			})
		}},
		member{"each", false, func(n *yaml.Node) { eachNode = n; r.Each, _ = c.text(n, "each") }},
		member{"elapsed", false, func(n *yaml.Node) { r.Elapsed = c.number(n, "elapsed", times, "") }},
		member{"final", false, func(n *yaml.Node) { r.Final = c.boolean(n, "final") }},
		member{"errors", false, func(n *yaml.Node) { r.Errors = c.counter(n, "errors", plain).Ops }},
		member{"operations", false, func(n *yaml.Node) { c.readOps(n, &r) }},
		member{"measures", false, func(n *yaml.Node) { c.readValues(n, &r) }},
		member{"histogram", false, func(n *yaml.Node) { r.Histogram = c.readHistogram(n) }})
	switch {
	case matchNode != nil && !ofLines:
		c.object(matchNode, "match: belongs to format: lines; use where: {field: expression}")
	case afterNode != nil && !ofLines:
		c.object(afterNode, "after: belongs to format: lines")
	case whereNode != nil && ofLines:
		c.object(whereNode, "where: belongs to the other formats; of lines, match: decides")
	case eachNode != nil && c.layout.Format != formatJSON && c.layout.Format != formatObjects:
		c.object(eachNode, "each: belongs to format: json and json-lines")
	case r.Each != "":
		c.checkField(r.Each, eachNode, nil)
	}
	if n.Kind == yaml.MappingNode && r.empty() {
		c.object(n, "the record takes nothing from what it matches; add operations:, measures: or another part")
	}
	r.eachField(func(field string, at *yaml.Node) { c.checkField(field, at, match) })
	c.layout.Records = append(c.layout.Records, r)
}

// checkField objects to a field that no line, row or document can have.
func (c *config) checkField(field string, at *yaml.Node, match *regexp.Regexp) {
	switch c.layout.Format {
	case formatLines:
		if match == nil {
			return
		}
		var names []string
		for _, n := range match.SubexpNames() {
			if n != "" {
				names = append(names, n)
			}
		}
		if !slices.Contains(names, field) {
			c.unknown(at, "match has no group", field, names)
		}
	case formatCSV:
		if position, err := strconv.Atoi(field); c.layout.NoHeader &&
			(err != nil || position < 1 || position > maxColumns) {
			c.object(at, "without a header, a field is the number of a column from 1 to %d, not %q", maxColumns, field)
		}
	default:
		if _, err := parsePath(field); err != nil {
			c.object(at, "%v", err)
		}
	}
}

// counter reads how something is counted and, of an operation, what else is said of it.
func (c *config) counter(n *yaml.Node, what string, d dimension, more ...string) (of opRecord) {
	take := func(how string) func(*yaml.Node) {
		return func(v *yaml.Node) {
			if of.Ops != nil {
				c.object(v, "%s: one of count:, delta: and rate: is enough", what)
			}
			of.Ops = &counter{How: how, Number: c.number(v, what+": "+how, d, ""), at: v}
		}
	}
	rest := []member{
		{"bytes", false, func(v *yaml.Node) { of.Bytes = c.counter(v, what+": bytes", sizes).Ops }},
		{"mean", false, func(v *yaml.Node) { of.Mean = c.number(v, what+": mean", times, "") }},
		{"sum", false, func(v *yaml.Node) { of.Sum = c.number(v, what+": sum", times, "") }},
	}
	members := []member{{byCount, false, take(byCount)}, {byDelta, false, take(byDelta)}, {byRate, false, take(byRate)}}
	for _, m := range rest {
		if slices.Contains(more, m.key) {
			members = append(members, m)
		}
	}
	c.mapping(n, what, members...)
	switch {
	case n.Kind != yaml.MappingNode:
	case of.Ops == nil && of.Mean != nil:
		c.object(n, "%s: a mean is of a number of operations; add count:, delta: or rate:, or give sum: instead", what)
	case of.Ops == nil && of.Bytes == nil && of.Sum == nil:
		c.object(n, "%s: say how it is counted: count: (since the beginning), delta: (since the record before) or "+
			"rate: (per second)", what)
	}
	return of
}

func (c *config) readOps(n *yaml.Node, r *record) {
	c.pairs(n, "operations", func(key, value *yaml.Node) {
		i := c.operation(key.Value)
		if i < 0 {
			c.unknown(key, "operations: there is no", key.Value, c.operationNames())
			return
		}
		of := c.counter(value, key.Value, plain, "bytes", "mean", "sum")
		of.Operation = i
		if of.Bytes != nil && !c.operations[i].Bytes {
			c.object(of.Bytes.at, "%s: its bytes are counted but not declared; add bytes: true to the operation",
				key.Value)
		}
		r.Operations = append(r.Operations, of)
	})
}

func (c *config) readValues(n *yaml.Node, r *record) {
	c.pairs(n, "measures", func(key, value *yaml.Node) {
		i := c.measure(key.Value)
		if i < 0 {
			c.unknown(key, "measures: there is no", key.Value, c.measureNames())
			return
		}
		r.Measures = append(r.Measures, measureRecord{i, c.number(value, key.Value, plain, c.measures[i].Unit)})
	})
}

func (c *config) readHistogram(n *yaml.Node) *histogram {
	h := &histogram{Operation: -1}
	c.mapping(n, "histogram",
		member{"operation", true, func(n *yaml.Node) {
			t, _ := c.text(n, "histogram: operation")
			if h.Operation = c.operation(t); h.Operation < 0 {
				c.unknown(n, "histogram: there is no operation", t, c.operationNames())
			}
		}},
		member{"upto", true, func(n *yaml.Node) { h.UpTo = c.number(n, "histogram: upto", times, "") }},
		member{"count", true, func(n *yaml.Node) { h.Count = c.number(n, "histogram: count", plain, "") }})
	if h.Operation < 0 || h.UpTo == nil || h.Count == nil {
		return nil
	}
	return h
}

func (c *config) operationNames() (names []string) {
	for _, o := range c.operations {
		names = append(names, o.Name)
	}
	return names
}

func (c *config) measureNames() (names []string) {
	for _, m := range c.measures {
		names = append(names, m.Name)
	}
	return names
}

// numbersOf reads "1.0.20" as numbers; nil when it is something else.
func numbersOf(version string) (numbers []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		numbers = append(numbers, n)
	}
	return numbers
}
