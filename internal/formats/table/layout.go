package table

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// ruled is the line below the header of a table that is drawn with bars: |---|--:| or ---+---.
	ruled    = regexp.MustCompile(`^[|+]?[ \t]*:?-{2,}:?[ \t]*([|+][ \t]*:?-{2,}:?[ \t]*)*[|+]?$`)
	rowCount = regexp.MustCompile(`^\(\d+ rows?\)$`)
	sepLine  = regexp.MustCompile(`(?i)^"?sep=([;,|\t])"?$`)
)

// drawn leaves the table of a text in Markdown, or as databases draw theirs: a line without bars is none of it. Lines
// keep their number. Other texts stay as they are.
func drawn(data []byte) ([]byte, error) {
	lines := bytes.Split(data, []byte("\n"))
	bar := func(i int) bool {
		return i >= 0 && i < len(lines) && bytes.IndexByte(lines[i], '|') >= 0 &&
			!ruled.Match(bytes.TrimSpace(lines[i]))
	}
	var heads []int
	for i, line := range lines {
		if line = bytes.TrimSpace(line); ruled.Match(line) && bytes.ContainsAny(line, "|+") && bar(i-1) && bar(i+1) {
			heads = append(heads, i)
		}
	}
	switch len(heads) {
	case 0:
		return data, nil
	case 1:
	default:
		return nil, fmt.Errorf("it has %d tables, below line %d and line %d: give one of them", len(heads), heads[0], heads[1])
	}
	out := make([][]byte, len(lines))
	for i := heads[0] - 1; bar(i) || ruled.Match(bytes.TrimSpace(lines[min(i, len(lines)-1)])) && i < len(lines); i++ {
		if bar(i) {
			out[i] = lines[i]
		}
	}
	return bytes.Join(out, []byte("\n")), nil
}

// bars cuts a line between bars.
func bars(line string) []string {
	line = strings.TrimSpace(line)
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i, c := range cells {
		cells[i] = strings.Trim(strings.TrimSpace(c), "*`")
	}
	return cells
}

// secondHeader takes what stands below the names and above the numbers into the names: units, or the second line of a
// heading of which a cell of the first stands over several columns.
func (t *Table) secondHeader() {
	if !t.Named || len(t.Rows) < 2 {
		return
	}
	second, columns, units := t.Rows[0], 0, true
	for i, cell := range second {
		if v, err := parse(t.Rows[1][i]); err != nil || v != v {
			continue
		}
		bare := strings.ToLower(strings.Trim(cell, "()[]"))
		known := cell == "" || scale[bare].of != "" || slices.Contains([]string{"b", "1/s", "io/s"}, bare)
		if columns++; !known && (missing(cell) || likeNumber(cell)) {
			return
		}
		units = units && known
	}
	spans := slices.Contains(t.Names, "")
	if columns < 2 || !units && !spans || slices.IndexFunc(second, func(c string) bool { return c != "" }) < 0 {
		return
	}
	over := ""
	for i, cell := range second {
		if !units {
			if t.Names[i] != "" {
				over = t.Names[i]
			}
			t.Names[i] = strings.TrimSpace(over + " " + cell)
		} else if cell != "" {
			t.Names[i] += " (" + strings.Trim(cell, "()[]") + ")"
		}
	}
	t.Rows, t.Lines = t.Rows[1:], t.Lines[1:]
}

// foreign are names of columns in other languages.
var foreign = map[string]string{
	"zeit": "time", "uhrzeit": "time", "zeitstempel": "timestamp", "datum": "date", "sekunden": "seconds",
	"temps": "time", "heure": "time", "horodatage": "timestamp", "secondes": "seconds", "tiempo": "time",
	"hora":  "time",
	"fecha": "date", "segundos": "seconds", "tempo": "time", "ora": "time", "tijd": "time",
	"durchsatz": "throughput", "débit": "throughput", "debit": "throughput", "latenz": "latency", "latence": "latency",
	"latencia": "latency", "antwortzeit": "response_time", "temps de réponse": "response_time",
	"benutzer": "users", "nutzer": "users", "anwender": "users", "utilisateurs": "users", "usuarios": "users",
	"verbindungen": "connections", "connexions": "connections", "conexiones": "connections", "prozesse": "processes",
	"prüfung": "test", "système": "system", "systeme": "system", "sistema": "system", "prueba": "test", "essai": "test",
	"vorgang": "operation", "opération": "operation", "blockgröße": "block_size", "blockgrösse": "block_size",
	"lauf": "run", "durchlauf": "run", "wiederholung": "repeat", "répétition": "repeat",
}
