package analysis

import (
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// served is a run of a load of 32 clients on a database server on a machine of its own, or at an address. Its
// sessions at work are given by what they wait for.
func served(seed uint64, clients int, sessions map[string]float64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 300, 1)
	s.Load(reporttest.Database(reporttest.Load{Name: "Orders", To: 300, Rate: flatRate(2000), Noise: 0.02,
		Depth: clients}))
	asked(s, "DB_0000", sessions)
	return s
}

// asked adds what a server said of itself.
func asked(s *reporttest.Synthetic, machine string, sessions map[string]float64) {
	server := func(measure, part, unit string, value func(int) float64, noise float64) {
		head := result.Series{Name: machine, Machine: machine, Part: part, Measure: measure, Unit: unit}
		if part != "" {
			head.Name += ", " + part
		}
		s.Series(head, value, noise)
	}
	server(result.DatabaseTransactions, "", "ops/s", flatRate(2000), 20)
	server(result.DatabaseConnections, "", "%", flatRate(34), 0)
	server(result.DatabaseDurable, "", "count", flatRate(1), 0)
	for _, part := range []string{"CPU", "Client", "IO", "LWLock", "Lock"} {
		server(result.DatabaseSessions, part, "count", flatRate(sessions[part]), 0)
	}
	for _, event := range []string{"IO DataFileRead", "IO WALSync", "LWLock WALWrite", "LWLock WALInsert",
		"LWLock BufferContent", "Lock transactionid", "Lock tuple"} {
		if sessions[event] > 0 {
			server(result.DatabaseWaits, event, "count", flatRate(sessions[event]), 0)
		}
	}
}

// logged is a server whose log stands still for so many seconds after each checkpoint's writes, which take so much of
// every minute.
func logged(seed uint64, stands, writes int, spread float64) *reporttest.Synthetic {
	s := served(seed, 8, map[string]float64{"CPU": 7})
	one := func(measure, unit string, value func(int) float64, noise float64) {
		s.Series(result.Series{Name: "DB_0000", Machine: "DB_0000", Measure: measure, Unit: unit}, value, noise)
	}
	wait(s, func(t int) bool { return t%60 >= writes && t%60 < writes+stands })
	one(result.DatabaseLog, "bytes/s", func(t int) float64 {
		switch at := t % 60; {
		case at >= writes && at < writes+stands:
			return 1000
		case at < writes: // whole pages
			return 8e6
		}
		return 1e6
	}, 3e4)
	one(result.DatabaseCheckpoints, "bytes/s", func(t int) float64 {
		if t%60 < writes {
			return 5e7
		}
		return 0
	}, 0)
	one(result.DatabaseSpread, "ratio", flatRate(spread), 0)
	return s
}

// wait has transactions be few while they wait.
func wait(s *reporttest.Synthetic, waits func(t int) bool) {
	for _, one := range s.Data.Series {
		for t := range one.Values {
			if few := 20.0; one.Measure == result.DatabaseTransactions && waits(t) {
				one.Values[t] = &few
			}
		}
	}
}

// batched is a load of 2,000 transactions a second on a server that counts so many requests.
func batched(seed uint64, requests float64) *reporttest.Synthetic {
	s := served(seed, 8, nil)
	s.Series(result.Series{Name: "192.0.2.7:1433", Machine: "192.0.2.7:1433", Measure: result.DatabaseBatches,
		Unit: "ops/s"}, func(t int) float64 { return requests * min(1, float64(t)/30) }, requests/100)
	return s
}

// rising is a load that grows, on a server that counts the same, half a minute at a time.
func rising(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 120, 1)
	s.Load(reporttest.Database(reporttest.Load{Name: "Orders", To: 120, Rate: func(t int) float64 {
		return 500 + 20*float64(t)
	}, Depth: 8}))
	asked(s, "DB_0000", nil)
	s.Series(result.Series{Name: "192.0.2.7:1433", Machine: "192.0.2.7:1433", Measure: result.DatabaseBatches,
		Unit: "ops/s"}, func(t int) float64 { return 500 + 20*(float64(t)-15) }, 10)
	return s
}

func onMachine(s *reporttest.Synthetic, busy float64) *reporttest.Synthetic {
	onThisHost(s)
	s.Data.VMs = append(s.Data.VMs, result.VM{Name: "DB_0000", Group: "DB", CPUs: 2})
	s.Percent(result.HostCPUs, "host", flatRate(busy), 0.2)
	return s
}

func drawn(s *reporttest.Synthetic) *reporttest.Synthetic {
	for i := range s.Data.Workloads {
		if w := &s.Data.Workloads[i]; w.VM != "" {
			busy := 0.99
			w.ThreadBusy = &busy
		}
	}
	return s
}

func crowded(s *reporttest.Synthetic) *reporttest.Synthetic {
	s.Percent(result.DatabaseConnections, "DB_0001", flatRate(99), 0)
	s.Series(result.Series{Name: "DB_0001", Machine: "DB_0001", Measure: result.DatabaseTransactions, Unit: "ops/s"},
		flatRate(10), 0)
	return s
}

func loose(s *reporttest.Synthetic) *reporttest.Synthetic {
	for _, one := range s.Data.Series {
		for i := range one.Values {
			if zero := 0.0; one.Measure == result.DatabaseDurable {
				one.Values[i] = &zero
			}
		}
	}
	return s
}

// TestTruthOfDatabases holds the words about what database servers said of themselves.
func TestTruthOfDatabases(t *testing.T) {
	const limit = "database-limit"
	holdTruths(t, "testdata/truth-databases.txt", []truth{
		{"row locks", served(40, 32, map[string]float64{"CPU": 2, "Lock": 28, "IO": 1, "Lock transactionid": 20,
			"Lock tuple": 8}), limit},
		{"row locks on a machine that has no CPU left", onMachine(served(40, 32, map[string]float64{"CPU": 10,
			"Lock": 18, "Lock tuple": 18}), 99), limit},
		{"commits that wait for the log", served(41, 32, map[string]float64{"CPU": 3, "IO": 9, "LWLock": 18,
			"IO WALSync": 9, "LWLock WALWrite": 17}), limit},
		{"data that are not in memory", served(42, 32, map[string]float64{"CPU": 4, "IO": 26, "IO DataFileRead": 26}),
			limit},
		{"I/O of events that nobody knows", served(42, 32, map[string]float64{"CPU": 4, "IO": 26}), limit},
		{"buffers that all want",
			served(43, 32, map[string]float64{"CPU": 9, "LWLock": 20, "LWLock BufferContent": 19}), limit},
		{"room in the log's buffers that all want",
			served(54, 32, map[string]float64{"CPU": 9, "LWLock": 20, "LWLock WALInsert": 19}), limit},
		{"the log's files and others", served(55, 32, map[string]float64{"CPU": 10, "IO": 18, "IO WALSync": 11,
			"IO DataFileRead": 7}), limit},
		{"a slow client", served(44, 32, map[string]float64{"CPU": 4, "Client": 20}), limit},
		{"all CPUs busy", onMachine(served(45, 8, map[string]float64{"CPU": 7.6, "LWLock": 0.2}), 98), limit},
		{"CPUs with room", onMachine(served(46, 8, map[string]float64{"CPU": 3, "IO": 1}), 60), limit},
		{"a server that waits for its clients", served(47, 64, map[string]float64{"CPU": 1.5, "Lock": 0.2}), limit},
		{"a client whose one thread is busy", drawn(served(47, 64, map[string]float64{"CPU": 1.5})), limit},
		{"connections that run out", crowded(served(48, 8, map[string]float64{"CPU": 7})), limit},
		{"commits that nothing keeps", loose(served(49, 8, map[string]float64{"CPU": 7})), "durable-commits"},
		{"commits that are kept", served(49, 8, map[string]float64{"CPU": 7}), "durable-commits"},
		{"log stalls at checkpoints", logged(50, 4, 25, 0.5), "log-stalls"},
		{"checkpoints that are spread", logged(51, 0, 54, 0.9), "log-stalls"},
		{"checkpoints that stall although they are spread", logged(52, 3, 15, 0.9), "log-stalls"},
		{"requests that agree", batched(53, 2003), "server-agrees"},
		{"requests of others as well", batched(54, 2600), "server-agrees"},
		{"another instance is counted", batched(55, 40), "server-agrees"},
		{"a server whose rate rises with the load's", rising(56), "server-agrees"},
		{"no server was asked", numa(16, 52, 48), limit + " log-stalls durable-commits server-agrees"},
	})
}

// A log that stands still now and then, whatever checkpoints do, is not told of as their doing.
func TestFalseAlarmsOfDatabases(t *testing.T) {
	rounds := needs.Draws(50, 200)
	alarms := 0
	for i := range rounds {
		rng := rand.New(rand.NewPCG(uint64(i), 9))
		s := served(uint64(i), 8, map[string]float64{"CPU": 7})
		still := map[int]bool{}
		for range 6 {
			still[rng.IntN(300)] = true
		}
		wait(s, func(t int) bool { return still[t] })
		writes := 5 + rng.IntN(50)
		for measure, value := range map[string]func(int) float64{
			result.DatabaseLog: func(t int) float64 {
				if still[t] {
					return 0
				}
				return 8e6
			},
			result.DatabaseCheckpoints: func(t int) float64 {
				if t%60 < writes {
					return 5e7
				}
				return 0
			},
		} {
			s.Series(result.Series{Name: "DB_0000", Machine: "DB_0000", Measure: measure, Unit: "bytes/s"}, value, 0)
		}
		for _, f := range findingsOf(s, "log-stalls") {
			if f.Severity != result.Passed {
				alarms++
			}
		}
	}
	t.Logf("%d of %d", alarms, rounds)
	if alarms > rounds*2/100 {
		t.Errorf("%d of %d runs with stalls by chance are told as checkpoints'", alarms, rounds)
	}
}

// TestServerOnABusyHost: a server whose CPUs are all busy is not called idle because few of its sessions were seen at
// work; and counters that are missing, because nobody was given a CPU to read them, are told.
func TestServerOnABusyHost(t *testing.T) {
	t.Parallel()
	find := func(s *reporttest.Synthetic, check string) (found result.Finding) {
		for _, f := range Run(s.Manifest, s.Data) {
			if f.Check == check {
				found = f
			}
		}
		return found
	}
	few := map[string]float64{"CPU": 1}
	for _, c := range []struct {
		busy float64
		want string
	}{{97, "CPU was the limit, whoever used it"}, {40, "so this is not the server's limit"}} {
		got := find(onMachine(served(61, 32, few), c.busy), "database-limit")
		if !strings.Contains(got.Sentence, c.want) {
			t.Errorf("%g %% busy: %q; want %q", c.busy, got.Sentence, c.want)
		}
	}
	s := onMachine(served(62, 32, few), 60)
	if got := find(s, "host-cpu"); got.Check != "" {
		t.Errorf("all is there, and it says %q", got.Sentence)
	}
	for i := range s.Data.Series {
		if one := &s.Data.Series[i]; one.Measure == result.HostCPUs {
			for k := range one.Values {
				if k > 100 {
					one.Values[k] = nil
				}
			}
		}
	}
	if got := find(s, "host-cpu"); !strings.Contains(got.Sentence, "plimsoll itself was not given a CPU") {
		t.Errorf("counters are missing, and it says %q", got.Sentence)
	}
}
