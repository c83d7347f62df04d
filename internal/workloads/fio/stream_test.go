package fio

import (
	"fmt"
	"strings"

	"plimsoll/hist"
)

// status describes one report to be written the way fio 3 lays it out.
type status struct {
	stampMS   int64
	runtimeMS int64
	eta       int64
	reads     int // completed, spread over bins
	errors    int
	issued    int // in the ramp: operations nothing is known of but their number
	spread    int // number of bins, at least 1
	extra     string
	options   string
	version   string
}

// String writes the report. The bins hold exactly reads operations.
func (s status) String() string {
	spread := max(1, s.spread)
	var bins strings.Builder
	left, sum := s.reads, uint64(0)
	for i := range spread {
		n := s.reads / spread
		if i == spread-1 {
			n = left
		}
		left -= n
		key := hist.Middle(900 + 3*i)
		sum += key * uint64(n)
		if n > 0 {
			fmt.Fprintf(&bins, "            \"%d\" : %d,\n", key, n)
		}
	}
	mean := 0.0
	if s.reads > 0 {
		mean = float64(sum) / float64(s.reads)
	}
	binText := ""
	if s.reads > 0 {
		binText = fmt.Sprintf(",\n          \"bins\" : {\n%s\n          }", strings.TrimSuffix(bins.String(), ",\n"))
	}
	version := s.version
	if version == "" {
		version = "fio-3.33"
	}
	return fmt.Sprintf(`{
  "fio version" : "%s",
  "timestamp" : %d,
  "timestamp_ms" : %d,
  "global options" : {
    "direct" : "1"%s
  },
  "jobs" : [
    {
      "jobname" : "load",
      "groupid" : 0,
      "error" : 0,
      "eta" : %d,
      "elapsed" : %d,
      "read" : {
        "io_bytes" : %d,
        "io_kbytes" : %d,
        "runtime" : %d,
        "total_ios" : %d,
        "clat_ns" : {
          "mean" : %f,
          "N" : %d,
          "percentile" : {
            "99.000000" : 7
          }
        },
        "lat_ns" : {
          "min" : %d,
          "max" : %d,
          "mean" : %f,
          "stddev" : 1.000000,
          "N" : %d%s
        }
      },
      "job_runtime" : %d,
      "usr_cpu" : 1.000000,
      "sys_cpu" : 3.000000,
      "total_err" : %d
    }%s
  ]
}
`, version, s.stampMS/1000, s.stampMS, s.options, s.eta, s.runtimeMS/1000, (s.reads+s.issued)*4096, (s.reads+s.issued)*4, s.runtimeMS, s.reads+s.issued+3,
		mean, s.reads, hist.Middle(900), hist.Middle(900+3*(spread-1)), mean, s.reads, binText, s.runtimeMS, s.errors,
		s.extra)
}

// steadyStream is n seconds of a steady job, with its last report right after the one before.
func steadyStream(n, spread int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(status{stampMS: 1_700_000_000_000 + int64(i)*1000, runtimeMS: int64(i) * 1000, eta: int64(n - i),
			reads: i * 1000, spread: spread}.String())
	}
	b.WriteString(status{stampMS: 1_700_000_000_000 + int64(n)*1000 + 140, runtimeMS: int64(n)*1000 + 140,
		reads: n*1000 + 140, spread: spread}.String())
	return b.String()
}
