package tprocc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/contract/worker"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// A user's transactions are the same for the same seed.
func ExampleUser_Next() {
	user := tprocc.NewUser(3, 2, 1)
	fmt.Println("at home in warehouse", user.Warehouse, "district", user.District)
	for range 3 {
		in := user.Next()
		fmt.Println(in.Kind, "in warehouse", in.Warehouse, "with", len(in.Lines), "lines")
	}
	// Output:
	// at home in warehouse 2 district 2
	// new_order in warehouse 2 with 11 lines
	// payment in warehouse 2 with 0 lines
	// payment in warehouse 2 with 0 lines
}

func TestInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		warehouses := rapid.IntRange(1, 20).Draw(t, "warehouses")
		u := tprocc.NewUser(rapid.IntRange(0, 500).Draw(t, "user"), warehouses, rapid.Uint64().Draw(t, "seed"))
		var kinds [tprocc.Kinds]int
		within := func(what string, n, low, high int) {
			if n < low || n > high {
				t.Fatalf("%s is %d, not within %d and %d", what, n, low, high)
			}
		}
		for range 23 * 4 {
			in := u.Next()
			kinds[in.Kind]++
			within("warehouse", in.Warehouse, u.Warehouse, u.Warehouse)
			within("district", in.District, 1, 10)
			if in.Last == "" && in.Kind <= tprocc.OrderStatus {
				within("customer", in.Customer, 1, 3000)
			}
			switch in.Kind {
			case tprocc.NewOrder:
				within("lines", len(in.Lines), 5, 15)
				lines := in.Lines
				if in.Invalid() {
					within("the last item", lines[len(lines)-1].Item, 100_001, 100_001)
					lines = lines[:len(lines)-1]
				}
				if !slices.IsSortedFunc(lines, func(a, b tprocc.Line) int {
					return 1000*1000*(a.Supply-b.Supply) + a.Item - b.Item
				}) {
					t.Fatalf("%v are locked in no order", lines)
				}
				for _, l := range lines {
					within("item", l.Item, 1, 100_000)
					within("supplier", l.Supply, 1, warehouses)
					within("quantity", l.Quantity, 1, 10)
				}
			case tprocc.Payment:
				within("cents", in.Cents, 100, 500_000)
				within("the customer's warehouse", in.CustomerWarehouse, 1, warehouses)
				within("the customer's district", in.CustomerDistrict, 1, 10)
			case tprocc.Delivery:
				within("carrier", in.Carrier, 1, 10)
			case tprocc.StockLevel:
				within("threshold", in.Threshold, 10, 20)
				within("district", in.District, u.District, u.District)
			}
		}
		if want := [tprocc.Kinds]int{40, 40, 4, 4, 4}; kinds != want {
			t.Fatalf("mix %v, want %v", kinds, want)
		}
	})
}

// The shares that TPC-C asks for, to within five standard deviations.
func TestShares(t *testing.T) {
	u := tprocc.NewUser(1, 5, 7)
	var payments, remote, named, orders, invalid, lines, foreign int
	for range 23 * 4000 {
		switch in := u.Next(); in.Kind {
		case tprocc.Payment:
			payments++
			if in.CustomerWarehouse != in.Warehouse {
				remote++
			}
			if in.Last != "" {
				named++
			}
		case tprocc.NewOrder:
			orders++
			if in.Invalid() {
				invalid++
			}
			for _, l := range in.Lines {
				lines++
				if l.Supply != in.Warehouse {
					foreign++
				}
			}
		}
	}
	for what, c := range map[string]struct {
		n, of int
		share float64
	}{"remote payments": {remote, payments, 0.15}, "payments by name": {named, payments, 0.6},
		"rolled back": {invalid, orders, 0.01}, "lines from elsewhere": {foreign, lines, 0.01}} {
		got := float64(c.n) / float64(c.of)
		if off := math.Abs(got - c.share); off > 5*math.Sqrt(c.share*(1-c.share)/float64(c.of)) {
			t.Errorf("%s: %.4f, want %.2f", what, got, c.share)
		}
	}
}

func TestHomes(t *testing.T) {
	taken := map[[2]int]int{} // by users of several machines
	for machine := range 3 {
		for _, u := range tprocc.NewRun(machine*4, 4, 5, 1, 7).Users {
			taken[[2]int{u.Warehouse, u.District}]++
		}
	}
	if want := 12; len(taken) != want {
		t.Errorf("%d users have %d homes: %v", want, len(taken), taken)
	}
	seats := map[[2]int]int{}
	for n := range 60 {
		w, d := tprocc.Home(n, 3)
		seats[[2]int{w, d}]++
	}
	if len(seats) != 30 || slices.ContainsFunc(slices.Collect(values(seats)), func(n int) bool { return n != 2 }) {
		t.Errorf("%v", seats)
	}
}

func values(m map[[2]int]int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

var data = tprocc.Data{Seed: 7, Time: "2026-01-02 03:04:05"}

func table(t *testing.T, name string, w int) [][]string {
	t.Helper()
	r, err := data.Read(name, w)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}

// Every table has its rows and columns, and orders agree with their lines.
func TestRows(t *testing.T) {
	orders, lines := map[string]string{}, map[string]int{}
	for _, tab := range append([]tprocc.Table{tprocc.ItemTable}, tprocc.WarehouseTables...) {
		rows := table(t, tab.Name, 3)
		for i, row := range rows {
			if len(row) != len(tab.Columns) || slices.Contains(row, "") {
				t.Fatalf("%s, row %d: %q, want %d columns", tab.Name, i+1, row, len(tab.Columns))
			}
			switch tab.Name {
			case "orders":
				orders[row[1]+" "+row[2]] = row[5]
			case "order_line":
				lines[row[1]+" "+row[2]]++
			}
		}
		if tab.Name != "order_line" && len(rows) != tab.Rows {
			t.Errorf("%s has %d rows, want %d", tab.Name, len(rows), tab.Rows)
		}
	}
	for order, n := range lines {
		if orders[order] != fmt.Sprint(n) {
			t.Fatalf("order %s has %d lines and says %s", order, n, orders[order])
		}
	}
	if got, want := table(t, "warehouse", 3)[0], table(t, "warehouse", 4)[0]; cmp.Equal(got[1:], want[1:]) {
		t.Error("warehouses are the same")
	}
	customers := table(t, "customer", 1)
	for c, want := range map[int]string{1: "BARBARBAR", 372: "PRICALLYOUGHT", 1000: "EINGEINGEING"} {
		if got := customers[c-1][12]; got != want {
			t.Errorf("customer %d is called %s, want %s", c, got, want)
		}
	}
	if _, err := data.Read("nothing", 1); err == nil {
		t.Error("rows of a table that there is not")
	}
	one, _ := data.Read("stock", 2)
	two, _ := data.Read("stock", 2)
	a, _ := io.ReadAll(one)
	b, _ := io.ReadAll(two)
	if !bytes.Equal(a, b) {
		t.Error("the same seed gives other rows")
	}
}

// terminal answers as it is told to.
type terminal func(*tprocc.Input) tprocc.Outcome

func (f terminal) Do(in *tprocc.Input) (tprocc.Outcome, error) {
	how := f(in)
	if how == tprocc.Committed || how == tprocc.RolledBack {
		return how, nil
	}
	return how, errors.New("because")
}
func (terminal) Close() error { return nil }

// With keying and thinking, users do what their times allow, whoever answers within them, and all is on schedule.
func TestKeying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users = 1000
		r := tprocc.NewRun(0, users, 100, 2, 7)
		r.Keying, r.Duration = true, 20*time.Minute
		err := r.Block(t.Context(), func(context.Context) (tprocc.Terminal, error) {
			return terminal(func(in *tprocc.Input) tprocc.Outcome {
				time.Sleep(50 * time.Millisecond)
				if in.Invalid() {
					return tprocc.RolledBack
				}
				return tprocc.Committed
			}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c := r.Counts()
		// 23 transactions take 476 s of keying and thinking on the average, and 23 times 50 ms.
		want := users * 20 * 60 / ((476 + 23*0.05) / 10) * 0.99
		if got := float64(c.Committed[tprocc.NewOrder]); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%v new orders, want about %.0f", got, want)
		}
		for k := range c.Times {
			if p, _ := c.Times[k].Percentile(0.99); math.Abs(float64(p)/5e7-1) > 0.01 {
				t.Errorf("%v: %v", tprocc.Kind(k), time.Duration(p))
			}
		}
		if c.Late != 0 || c.Errors() != 0 {
			t.Errorf("%d late, %d errors", c.Late, c.Errors())
		}
	})
}

// A server that stalls shows in response times and in sends that come late, not in the number of users.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tprocc.NewRun(0, 200, 20, 2, 7)
		r.Keying, r.Duration = true, 5*time.Minute
		begin := time.Now()
		err := r.Block(t.Context(), func(context.Context) (tprocc.Terminal, error) {
			return terminal(func(*tprocc.Input) tprocc.Outcome {
				if at := time.Since(begin); at > time.Minute && at < 90*time.Second {
					time.Sleep(90*time.Second - at)
				}
				return tprocc.Committed
			}), nil
		})
		c := r.Counts()
		longest := time.Duration(c.Times[tprocc.Payment].Max())
		if err != nil || longest < 29*time.Second || longest > 30*time.Second {
			t.Errorf("longest %v, %v", longest, err)
		}
	})
}

// What fails is tried again by rule, or counted, and connections are made again.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name      string
		how       func(n int) tprocc.Outcome
		want      tprocc.Counts
		done, err uint64
	}{
		{"deadlock once", func(n int) tprocc.Outcome { return pick(n == 3, tprocc.Deadlock) },
			tprocc.Counts{Outcomes: [9]uint64{tprocc.Deadlock: 1}}, 99, 0},
		{"always in the way", func(n int) tprocc.Outcome { return pick(n >= 11, tprocc.Serialization) },
			tprocc.Counts{Outcomes: [9]uint64{tprocc.Serialization: 90}, GivenUp: 9}, 10, 9},
		{"lost", func(n int) tprocc.Outcome { return pick(n == 5, tprocc.Lost) },
			tprocc.Counts{Outcomes: [9]uint64{tprocc.Lost: 1, tprocc.Refused: 2}}, 99, 1},
		{"cancelled", func(n int) tprocc.Outcome { return pick(n == 5, tprocc.Cancelled) },
			tprocc.Counts{Outcomes: [9]uint64{tprocc.Cancelled: 1}}, 99, 1},
		{"other", func(n int) tprocc.Outcome { return pick(n == 5, tprocc.Failed) },
			tprocc.Counts{Outcomes: [9]uint64{tprocc.Failed: 1}}, 99, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var words strings.Builder
				r := tprocc.NewRun(0, 1, 1, 1, 7)
				r.Duration, r.Words = time.Hour, &words
				n, connects := 0, 0
				ctx, cancel := context.WithCancel(t.Context())
				err := r.Block(ctx, func(context.Context) (tprocc.Terminal, error) {
					if connects++; connects == 2 || connects == 3 {
						return nil, errors.New("not yet")
					}
					return terminal(func(*tprocc.Input) tprocc.Outcome {
						if n++; n > 100 {
							cancel()
						}
						time.Sleep(time.Millisecond)
						return test.how(n)
					}), nil
				})
				c := r.Counts()
				var done uint64
				for k := range c.Times {
					done += c.Times[k].Count()
				}
				got := tprocc.Counts{Outcomes: c.Outcomes, GivenUp: c.GivenUp, Late: c.Late}
				got.Outcomes[tprocc.Committed] = 0
				if diff := cmp.Diff(test.want.Outcomes, got.Outcomes); diff != "" || got.GivenUp != test.want.GivenUp ||
					done != test.done || c.Errors() != test.err || err != nil || c.Late != 0 {
					t.Errorf("%s %d given up, %d done, %d errors, %v", diff, got.GivenUp, done, c.Errors(), err)
				}
				if n := strings.Count(words.String(), "first "); n < 1 || n > 2 {
					t.Errorf("%s", words.String())
				}
			})
		})
	}
}

func pick(is bool, how tprocc.Outcome) tprocc.Outcome {
	if is {
		return how
	}
	return tprocc.Committed
}

// A server that takes connections and ends them is not asked again without a pause.
func TestLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tprocc.NewRun(0, 1, 1, 1, 7)
		r.Duration = time.Minute
		connects := 0
		err := r.Block(t.Context(), func(context.Context) (tprocc.Terminal, error) {
			if connects++; connects > 1000 {
				return nil, errors.New("enough")
			}
			return terminal(func(*tprocc.Input) tprocc.Outcome { return tprocc.Lost }), nil
		})
		if lost := r.Counts().Outcomes[tprocc.Lost]; err != nil || connects > 61 || lost < 59 {
			t.Errorf("%d connections, %d lost, %v", connects, lost, err)
		}
	})
}

// A service time runs from the first try; the wait for a connection before that is no part of it.
func TestServiceTime(t *testing.T) {
	r := tprocc.NewRun(0, 1, 1, 1, 7)
	r.Duration = time.Hour
	rec, u := r.Recorder(0), r.Users[0]
	rec.First(u)
	for _, end := range []struct {
		sent time.Duration
		how  tprocc.Outcome
	}{{0, tprocc.Lost}, {time.Minute, tprocc.Deadlock}, {time.Minute + time.Second, tprocc.Committed}} {
		rec.Sent(u, end.sent)
		rec.Done(u, end.how, errors.New("because"), end.sent+time.Second)
	}
	var most uint64
	c := r.Counts()
	for k := range c.Times {
		most = max(most, c.Times[k].Max())
	}
	if got := time.Duration(most); got < 2*time.Second || got > 2100*time.Millisecond {
		t.Errorf("%v, want the 2s since the first try", got)
	}
}

func TestUnreachable(t *testing.T) {
	r := tprocc.NewRun(0, 40, 1, 2, 7)
	r.Duration = time.Hour
	err := r.Block(t.Context(), func(context.Context) (tprocc.Terminal, error) { return nil, errors.New("too many") })
	if err == nil || err.Error() != "too many" {
		t.Errorf("%v", err)
	}
}

func TestCheckOfJobs(t *testing.T) {
	got := tprocc.Job{Warehouses: 0, Users: -1, Threads: 2000}.Check()
	want := []string{"warehouses: 0: want a whole number from 1 to 100000",
		"users: -1: want a whole number from 1 to 100000", "threads: 2000: want a whole number from 1 to 1024"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// database is a dialect that answers as it is told to.
type database struct {
	check time.Duration // that a condition of consistency takes
	work  func() int    // the server's transactions
	drive func(context.Context, *tprocc.Run) error
}

func (database) Name() string                       { return "none" }
func (database) Script(tprocc.Part) []string        { return nil }
func (database) Find(tprocc.Session) (int, error)   { return 1, nil }
func (database) Finish(tprocc.Session, int) error   { return nil }
func (database) Drop(tprocc.Session) error          { return nil }
func (database) Lock() string                       { return "lock" }
func (database) Work() string                       { return "work" }
func (database) Create(tprocc.Session, int) error   { return nil }
func (database) Schema() string                     { return "" }
func (database) Exec(string) error                  { return nil }
func (database) Copy(tprocc.Table, io.Reader) error { return nil }
func (database) Close() error                       { return nil }
func (database) Claim(context.Context, string, bool) (io.Closer, error) {
	return tprocc.Unclaimed{}, nil
}

func (d database) Drive(ctx context.Context, r *tprocc.Run) error {
	r.Begin()
	return d.drive(ctx, r)
}

func (d database) Connect(ctx context.Context) (tprocc.Session, error) { return connected{d, ctx}, nil }

type connected struct {
	database
	ctx context.Context // of Connect
}

func (c connected) Rows(sql string) ([][]string, error) {
	switch {
	case strings.Contains(sql, "load_state"):
		return [][]string{{"-1", "loaded"}}, nil
	case sql == "work" && c.work != nil:
		return [][]string{{strconv.Itoa(c.work())}}, nil
	case strings.Contains(sql, "LEFT JOIN"), strings.Contains(sql, "HAVING"):
		time.Sleep(c.check)
		return nil, c.ctx.Err()
	}
	return [][]string{{"1"}}, nil
}

// After the end transactions are waited for, for a minute; the check of the data may take as long as it takes.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		database
		want string
	}{
		"a long check": {database{check: time.Hour, drive: func(_ context.Context, r *tprocc.Run) error {
			time.Sleep(r.Duration)
			return nil
		}}, "<nil>"},
		"a server that hangs": {database{drive: func(ctx context.Context, _ *tprocc.Run) error {
			<-ctx.Done()
			return ctx.Err()
		}}, "transactions were under way 1m0s after the end: the server does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job := strings.NewReader(`{"dialect":"none","warehouses":1,"users":1,"threads":1,"duration_ns":1000000000}`)
				err := tprocc.Work(t.Context(), job, io.Discard, func(tprocc.Job) (tprocc.Dialect, error) {
					return test.database, nil
				})
				if fmt.Sprint(err) != test.want {
					t.Errorf("%v, want %s", err, test.want)
				}
			})
		})
	}
}

// Transactions that the run's own look at the server takes are not said to be another's. The server's count of them is
// told for each new order.
func TestOthersAtWork(t *testing.T) {
	for others, want := range map[int]bool{0: false, 18: false, 40: true} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			work := func() int { return 1 + (23+others)*int(time.Since(begin).Seconds()) }
			drive := func(_ context.Context, r *tprocc.Run) error {
				rec, u := r.Recorder(0), r.Users[0]
				for r.Now() < r.Duration-time.Second {
					time.Sleep(time.Second)
					for news := 0; news < 10; {
						rec.First(u)
						if rec.Sent(u, r.Now()).Kind == tprocc.NewOrder {
							rec.Done(u, tprocc.Committed, nil, r.Now())
							news++
						}
					}
				}
				return nil
			}
			job := strings.NewReader(`{"dialect":"none","warehouses":1,"users":1,"threads":1,"duration_ns":200000000000}`)
			var said bytes.Buffer
			err := tprocc.Work(t.Context(), job, &said, func(tprocc.Job) (tprocc.Dialect, error) {
				return database{work: work, drive: drive}, nil
			})
			if got := strings.Contains(said.String(), "something else uses it"); got != want {
				t.Errorf("%d others a second: said %t, want %t; %v", others, got, want, err)
			}
			lines := strings.Split(strings.TrimSpace(said.String()), "\n")
			var last worker.State
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
				t.Fatal(err)
			}
			if got, want := *last.Values[3], float64(23+others)/10; math.Abs(got-want) > 1e-9 {
				t.Errorf("%d others a second: %v transactions of the server for each order, want %v", others, got, want)
			}
		})
	}
}

func FuzzWork(f *testing.F) {
	f.Add([]byte(`{"dialect":"postgresql","warehouses":1,"users":1,"threads":1}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := tprocc.Work(t.Context(), bytes.NewReader(data), io.Discard, func(j tprocc.Job) (tprocc.Dialect, error) {
			if bad := j.Check(); bad != nil {
				t.Errorf("%+v: %q", j, bad)
			}
			return nil, errors.ErrUnsupported
		})
		if err == nil {
			t.Error("it worked")
		}
	})
}

func BenchmarkNext(b *testing.B) {
	u := tprocc.NewUser(1, 10, 7)
	b.ReportAllocs()
	for b.Loop() {
		u.Next()
	}
}

func BenchmarkRecord(b *testing.B) {
	r := tprocc.NewRun(0, 1, 1, 1, 7)
	r.Duration = time.Hour
	rec := r.Recorder(0)
	rec.First(r.Users[0])
	b.ReportAllocs()
	for b.Loop() {
		rec.Sent(r.Users[0], 1)
		rec.Done(r.Users[0], tprocc.Committed, nil, 1_000_000)
	}
}

func BenchmarkRows(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var n int64
		for _, t := range tprocc.WarehouseTables {
			r, err := data.Read(t.Name, 1)
			if err != nil {
				b.Fatal(err)
			}
			k, _ := io.Copy(io.Discard, r)
			n += k
		}
		b.SetBytes(n)
	}
}
