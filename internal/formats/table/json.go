package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"plimsoll/internal/kit/untyped"
	"plimsoll/unit"
)

// readJSON reads a list of numbers, of lists or of objects; the same as JSON lines; or an object of equally long lists.
func (t *Table) readJSON(data []byte) error {
	values, err := jsonValues(data)
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	list := values
	if len(values) == 1 {
		if columns, ok := untyped.Of(values[0]); ok {
			return t.fromColumns(columns)
		}
		list, _ = values[0].([]any)
	}
	for i, item := range list {
		if err := t.element(i, item); err != nil {
			return err
		}
	}
	return nil
}

// jsonValues are all values of a text: one, or one after the other.
func jsonValues(data []byte) ([]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out []any
	for {
		var v any
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			at := d.InputOffset()
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				at = syntax.Offset
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("it ends early, as a file does that was cut short")
			}
			return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(data[:max(0, min(int(at), len(data)))], []byte("\n")),
				err)
		}
		if out = append(out, v); len(out) > maxRows {
			return nil, fmt.Errorf("more than %d elements", maxRows)
		}
	}
}

// element adds a row.
func (t *Table) element(i int, item any) error {
	var cells []string
	add := func(name string, v any) error {
		c, ok := cell(v)
		if !ok {
			return fmt.Errorf("element %d: %s holds a list or an object, where a number is wanted", i+1, name)
		}
		cells = append(cells, c)
		return nil
	}
	var err error
	if list, ok := item.([]any); ok {
		for j, c := range list {
			err = Join(err, add(fmt.Sprintf("value %d", j+1), c))
		}
	} else if of, ok := untyped.Of(item); !ok {
		err = add("it", item)
	} else if i > 0 && !t.Named {
		return fmt.Errorf("element %d is an object, and the first is none", i+1)
	} else if err = t.fields(i, of); err != nil {
		return err
	} else {
		for _, name := range t.Names {
			err = Join(err, add(Quote(name), of[name]))
		}
	}
	if err != nil {
		return err
	}
	if i == 0 && !t.Named {
		for j := range cells {
			t.Names = append(t.Names, fmt.Sprintf("column %d", j+1))
		}
	}
	if len(cells) != len(t.Names) {
		return fmt.Errorf("element %d has %s, the first has %d", i+1, unit.Plural(len(cells), "value"), len(t.Names))
	}
	t.Rows, t.Lines = append(t.Rows, cells), append(t.Lines, i+1)
	return nil
}

// fields takes the names of the columns from the first object; a later one may lack some and have no others.
func (t *Table) fields(i int, item untyped.Object) error {
	if i == 0 {
		t.Named = true
		for name := range item {
			t.Names = append(t.Names, name)
		}
		slices.Sort(t.Names)
		return nil
	}
	var unknown []string
	for name := range item {
		if _, known := slices.BinarySearch(t.Names, name); !known {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("element %d has what those before it lack: %s", i+1, QuoteAll(unknown))
}

func (t *Table) fromColumns(columns untyped.Object) error {
	t.Named = true
	for name := range columns {
		t.Names = append(t.Names, name)
	}
	slices.Sort(t.Names)
	for j, name := range t.Names {
		list, ok := columns[name].([]any)
		if !ok {
			return fmt.Errorf("%s is not a list of numbers", Quote(name))
		}
		if j == 0 {
			t.Rows, t.Lines = make([][]string, len(list)), make([]int, len(list))
		}
		if len(list) != len(t.Rows) {
			return fmt.Errorf("%s has %s, %s has %d", Quote(name), unit.Plural(len(list), "value"), Quote(t.Names[0]),
				len(t.Rows))
		}
		for i, v := range list {
			c, ok := cell(v)
			if !ok {
				return fmt.Errorf("element %d of %s is a list or an object, where a number is wanted", i+1, Quote(name))
			}
			t.Rows[i], t.Lines[i] = append(t.Rows[i], c), i+1
		}
	}
	return nil
}

// cell prints a JSON value as a cell; null is an empty one. ok is false for lists and objects.
func cell(v any) (text string, ok bool) {
	if v == nil || !untyped.Plain(v) {
		return "", v == nil
	}
	return fmt.Sprint(v), true
}
