package recognise

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"

	"plimsoll/internal/formats/importer"
	"plimsoll/internal/formats/table"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/plaintext"
	"plimsoll/internal/kit/regular"
)

// Table reads a table, or what a tool counted of a machine as one. A stream that holds what a load generator
// printed is refused with what to do.
func Table(phase, label string, in io.Reader, decimal string) (*table.Table, error) {
	b := bufio.NewReaderSize(plaintext.Reader(in), importer.HeadBytes)
	head, err := b.Peek(importer.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	name, host, known, advice := importer.Recognise(head)
	switch {
	case !known:
		return table.Read(b, decimal)
	case advice != "":
		return nil, exit.Errorf(exit.Failed, advice, "%s: %s: it is output of a tool (%s) that is no table", phase,
			label, name)
	case !host:
		return nil, exit.Errorf(exit.Failed, "save it to a file and give that",
			"%s: %s: it is output of %s, which stands for a run", phase, label, name)
	}
	const most = 256 << 20
	data, err := io.ReadAll(io.LimitReader(b, most+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > most:
		return nil, regular.TooLarge(most)
	}
	names, rows, _, err := importer.HostTable(bytes.NewReader(data), label)
	if err != nil {
		return nil, err
	}
	t := &table.Table{Source: label, Named: true, Names: names, Unit: "sample"}
	for i, row := range rows {
		cells := make([]string, len(row))
		for j, v := range row {
			if cells[j] = strconv.FormatFloat(v, 'f', -1, 64); v != v { // NaN: a gap
				cells[j] = ""
			}
		}
		t.Rows, t.Lines = append(t.Rows, cells), append(t.Lines, i+1)
	}
	if len(t.Rows) == 0 {
		return nil, errors.New("no samples")
	}
	return t, nil
}
