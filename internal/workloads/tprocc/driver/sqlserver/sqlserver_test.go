package sqlserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mssql "github.com/microsoft/go-mssqldb"

	"plimsoll/internal/testkit/needs"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// Every row that is loaded has, for every column, what the column's type in the schema wants.
func TestValues(t *testing.T) {
	needs.Time(t)
	data := tprocc.Data{Seed: 7, Time: "2026-01-02 03:04:05"}
	for _, table := range append([]tprocc.Table{tprocc.ItemTable}, tprocc.WarehouseTables...) {
		_, body, ok := strings.Cut(schema, "CREATE TABLE tprocc."+table.Name+" (")
		if !ok {
			t.Fatalf("%s is not in the schema", table.Name)
		}
		rows, err := data.Read(table.Name, 1)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(rows)
		for n := 0; n < 1000 && lines.Scan(); n++ {
			row, err := values(table, lines.Text())
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range row {
				kind := regexp.MustCompile(`\b` + table.Columns[i] + ` ([A-Z]+)[0-9]?`).FindStringSubmatch(body)
				want := map[string]string{"INT": "int", "DATETIME": "time.Time"}[kind[1]]
				if want == "" {
					want = "string"
				}
				if got := fmt.Sprintf("%T", v); got != want && v != nil {
					t.Fatalf("%s.%s, %s: %s", table.Name, table.Columns[i], kind[1], got)
				}
			}
		}
	}
	table := tprocc.Table{Name: "orders", Columns: []string{"o_id", "o_entry_d", "o_carrier_id"}}
	got, err := values(table, "1\t2026-01-02 03:04:05\t\\N")
	if diff := cmp.Diff([]any{1, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), nil}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, bad := range []string{"", "1\t2", "x\t2026-01-02 03:04:05\t1", "1\tx\t1", "1\t2026-01-02 03:04:05\t1\t1"} {
		if got, err := values(table, bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestOutcome(t *testing.T) {
	invalid := &tprocc.Input{Kind: tprocc.NewOrder, Lines: []tprocc.Line{{Item: 100_001}}}
	for _, test := range []struct {
		in   *tprocc.Input
		err  error
		want tprocc.Outcome
	}{
		{invalid, mssql.Error{Number: 50404}, tprocc.RolledBack},
		{&tprocc.Input{}, mssql.Error{Number: 50404}, tprocc.Failed},
		{&tprocc.Input{}, fmt.Errorf("x: %w", mssql.Error{Number: 1205}), tprocc.Deadlock},
		{&tprocc.Input{}, mssql.Error{Number: 3960}, tprocc.Serialization},
		{&tprocc.Input{}, mssql.Error{Number: 4002, Class: 20}, tprocc.Lost},
		{&tprocc.Input{}, &net.OpError{Err: errors.New("reset")}, tprocc.Lost},
		{&tprocc.Input{}, io.EOF, tprocc.Lost},
		{&tprocc.Input{}, mssql.Error{Number: 8134}, tprocc.Failed},
	} {
		if got := outcome(test.in, test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}

// Each procedure is a batch of its own, and every BEGIN has its END.
func TestScript(t *testing.T) {
	var names []string
	for _, batch := range (Dialect{}).Script(tprocc.Procedures) {
		names = append(names, regexp.MustCompile(`PROCEDURE tprocc\.(\w+) `).FindStringSubmatch(batch)[1])
		words := map[string]int{}
		for _, w := range regexp.MustCompile(`\w+`).FindAllString(batch, -1) {
			words[w]++
		}
		if ends := words["BEGIN"] - words["TRANSACTION"] + words["CASE"]; ends != words["END"] ||
			words["TRANSACTION"] != words["COMMIT"] {
			t.Errorf("%s: %d ends for %d beginnings", names[len(names)-1], words["END"], ends)
		}
	}
	if diff := cmp.Diff([]string{"new_order", "named", "payment", "order_status", "delivery", "stock_level"},
		names); diff != "" {
		t.Error(diff)
	}
	if n := len(Dialect{}.Script(tprocc.Tables)); n != len(tprocc.WarehouseTables)+2 {
		t.Errorf("%d tables", n)
	}
}

func TestRefused(t *testing.T) {
	d := Dialect{Server{Address: "127.0.0.1:1", User: "app", Password: "horse", Database: "bench"}}
	_, err := d.Connect(context.Background())
	if err == nil || !strings.Contains(err.Error(), `user "app", database "bench" at 127.0.0.1:1`) ||
		strings.Contains(fmt.Sprintf("%v %+v %#v", err, d, d), "horse") {
		t.Errorf("%v", err)
	}
}
