package report

import (
	"slices"
	"strings"

	"plimsoll/result"
)

type serverChart struct {
	title, hint string
	measures    []string
	names       []string // of the measures, where there are two
}

// serverCharts are what is drawn of database servers, in order: the series of one measure each, or of two in one unit.
var serverCharts = []serverChart{
	{"Transactions per second, as the server counts them", "Of everybody, not of this load alone.",
		[]string{result.DatabaseTransactions}, nil},
	{"Log and checkpoints", "Bytes per second of the write-ahead log, and of data files that checkpoints wrote. A log " +
		"that drops to nothing while a checkpoint writes is a stall.",
		[]string{result.DatabaseLog, result.DatabaseCheckpoints}, []string{"log", "checkpoints"}},
	{"What sessions at work waited for", "Sessions, looked at once a second; CPU: they waited for nothing.",
		[]string{result.DatabaseSessions}, nil},
	{"Found in the server's memory", "Share of the blocks asked for.", []string{result.DatabaseHits}, nil},
}

// servers draws what database servers counted of themselves. These series are not drawn again among the machines'.
func (v *view) servers(budget int) {
	var machines []string
	for _, s := range v.Document.Series {
		if s.Measure == result.DatabaseTransactions && !slices.Contains(machines, s.Machine) {
			machines = append(machines, s.Machine)
		}
	}
	for _, c := range serverCharts {
		var lines []result.Series
		unit := ""
		for i, measure := range c.measures {
			for _, s := range v.Document.Series {
				if s.Measure != measure {
					continue
				}
				name := []string{}
				if len(machines) > 1 {
					name = append(name, strings.TrimPrefix(s.Machine, v.Prefix))
				}
				if c.names != nil {
					name = append(name, c.names[i])
				}
				if s.Part != "" {
					name = append(name, s.Part)
				}
				if s.Name, unit = strings.Join(name, ", "), s.Unit; s.Name == "" {
					s.Name = "server"
				}
				if measure == result.DatabaseTransactions {
					unit = "transactions/s"
				}
				lines = append(lines, s)
			}
		}
		if chart := v.place(newChart("", c.title, unit, v.origin, lines), budget); chart != nil {
			v.Servers = append(v.Servers, panelView{Panel: result.Panel{Title: c.title, Hint: c.hint}, Chart: chart})
		}
	}
}

// ofServers reports whether a series is drawn with the server, or is a setting, whose line says nothing.
func ofServers(s result.Series) bool {
	return s.Measure == result.DatabaseSpread || s.Measure == result.DatabaseDurable ||
		slices.ContainsFunc(serverCharts, func(c serverChart) bool { return slices.Contains(c.measures, s.Measure) })
}
