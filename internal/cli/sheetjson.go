package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// readJSON reads a list of numbers, of lists or of objects; the same as JSON lines; or an object of equally long lists.
func (s *sheet) readJSON(data []byte) error {
	values, err := jsonValues(data)
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	list := values
	if len(values) == 1 {
		if columns, ok := values[0].(map[string]any); ok {
			return s.fromColumns(columns)
		}
		list, _ = values[0].([]any)
	}
	for i, item := range list {
		if err := s.element(i, item); err != nil {
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
			return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(data[:max(0, min(int(at), len(data)))], []byte("\n")), err)
		}
		if out = append(out, v); len(out) > maxSheetRows {
			return nil, fmt.Errorf("more than %d elements", maxSheetRows)
		}
	}
}

// element adds a row.
func (s *sheet) element(i int, item any) error {
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
	switch item := item.(type) {
	case map[string]any:
		if i > 0 && !s.named {
			return fmt.Errorf("element %d is an object, and the first is none", i+1)
		}
		if err = s.fields(i, item); err != nil {
			return err
		}
		for _, name := range s.names {
			err = oneLine(err, add(quoted(name), item[name]))
		}
	case []any:
		for j, c := range item {
			err = oneLine(err, add(fmt.Sprintf("value %d", j+1), c))
		}
	default:
		err = add("it", item)
	}
	if err != nil {
		return err
	}
	if i == 0 && !s.named {
		for j := range cells {
			s.names = append(s.names, fmt.Sprintf("column %d", j+1))
		}
	}
	if len(cells) != len(s.names) {
		return fmt.Errorf("element %d has %s, the first has %d", i+1, plural(len(cells), "value"), len(s.names))
	}
	s.rows, s.lines = append(s.rows, cells), append(s.lines, i+1)
	return nil
}

// fields takes the names of the columns from the first object; a later one may lack some and have no others.
func (s *sheet) fields(i int, item map[string]any) error {
	if i == 0 {
		s.named = true
		for name := range item {
			s.names = append(s.names, name)
		}
		slices.Sort(s.names)
		return nil
	}
	var unknown []string
	for name := range item {
		if _, known := slices.BinarySearch(s.names, name); !known {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("element %d has what those before it lack: %s", i+1, columnList(unknown))
}

func (s *sheet) fromColumns(columns map[string]any) error {
	s.named = true
	for name := range columns {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	for j, name := range s.names {
		list, ok := columns[name].([]any)
		if !ok {
			return fmt.Errorf("%s is not a list of numbers", quoted(name))
		}
		if j == 0 {
			s.rows, s.lines = make([][]string, len(list)), make([]int, len(list))
		}
		if len(list) != len(s.rows) {
			return fmt.Errorf("%s has %s, %s has %d", quoted(name), plural(len(list), "value"), quoted(s.names[0]), len(s.rows))
		}
		for i, v := range list {
			c, ok := cell(v)
			if !ok {
				return fmt.Errorf("element %d of %s is a list or an object, where a number is wanted", i+1, quoted(name))
			}
			s.rows[i], s.lines[i] = append(s.rows[i], c), i+1
		}
	}
	return nil
}

// cell prints a JSON value as a cell; null is an empty one. ok is false for lists and objects.
func cell(v any) (text string, ok bool) {
	switch v.(type) {
	case nil:
		return "", true
	case []any, map[string]any:
		return "", false
	}
	return fmt.Sprint(v), true
}
