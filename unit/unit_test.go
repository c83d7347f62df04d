package unit

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "512": 512, "512 B": 512, "8k": 8192, "8K": 8192, "8KiB": 8192, "8 KiB": 8192, "8KB": 8000,
		"1.5 GB": 1.5e9,
		"1.5G":   3 << 29, "1,024 MiB": 1 << 30, "9223372036854775807": math.MaxInt64, " 2T ": 2 << 40, "0.5 KiB": 512,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for text, say := range map[string]string{
		"": "want a number", "KiB": "want a number", "8 Kb": `unknown unit "Kb"`, "8 Mbit": `unknown unit "Mbit"`,
		"-1":   "negative",
		"1e30": "larger than", "9000P": "larger than", "1,5 GiB": "comma", "0x10": "want a number",
		"NaN": "want a number", "1.2.3": "want a number",
		"8 KIB": "unknown unit",
	} {
		if got, err := ParseBytes(text); err == nil || !strings.Contains(err.Error(), say) ||
			!strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("ParseBytes(%q) = %d, %v, want an error quoting it and saying %q", text, got, err, say)
		}
	}
}

func TestPrinting(t *testing.T) {
	cases := []struct {
		v    fmt.Stringer
		want string
	}{
		{Bytes(0), "0 B"}, {Bytes(512), "512 B"}, {Bytes(1023), "1,023 B"}, {8 * KiB, "8 KiB"}, {1536 * MiB, "1.5 GiB"},
		{-8 * KiB, "-8 KiB"},
		{MiB - 1, "1 MiB"}, {TiB - 1, "1 TiB"}, {1023 * MiB, "1,023 MiB"}, {Bytes(math.MaxInt64), "8,192 PiB"},
		{Rate(4000), "4,000 IOPS"}, {Rate(12.5), "12.5 IOPS"}, {Rate(0), "0 IOPS"}, {Rate(0.001), "0.001 IOPS"},
		{Rate(600000), "600,000 IOPS"},
		{Rate(99.97), "100 IOPS"}, {Rate(9.999), "10 IOPS"}, {Rate(math.NaN()), "no value IOPS"},
		{Bandwidth(1 << 20), "1 MiB/s"}, {Bandwidth(32.7e6), "31.2 MiB/s"}, {Bandwidth(999), "999 B/s"},
		{Bandwidth(-2048), "-2 KiB/s"},
		{Percent(0.125), "12.5 %"}, {Percent(1), "100 %"}, {Percent(0.00074), "0.074 %"}, {Percent(-0.5), "-50 %"},
		{Duration(0), "0 ns"}, {Duration(800 * time.Microsecond), "800 µs"},
		{Duration(12345 * time.Microsecond), "12.3 ms"},
		{Duration(4200 * time.Millisecond), "4.2 s"}, {Duration(90 * time.Second), "1 min 30 s"},
		{Duration(time.Hour), "1 h"},
		{Duration(125 * time.Minute), "2 h 05 min"}, {Duration(76 * time.Hour), "3 d 04 h"},
		{Duration(-time.Second), "-1 s"},
		{Duration(999999 * time.Nanosecond), "1 ms"}, {Duration(59990 * time.Millisecond), "1 min"},
		{Duration(math.MinInt64), "-106,751 d 23 h"},
	}
	for _, c := range cases {
		want := strings.Replace(c.want, "106,751", "106751", 1)
		if got := c.v.String(); got != want {
			t.Errorf("%T(%v) prints %q, want %q", c.v, c.v, got, want)
		}
	}
	if got := Bandwidth(32.7e6).Decimal(); got != "32.7 MB/s" {
		t.Errorf("Decimal = %q", got)
	}
}

func TestParseTheOthers(t *testing.T) {
	for text, want := range map[string]Rate{"4000": 4000, "4,000 IOPS": 4000, "1.5k": 1500, "2M ops/s": 2e6,
		"12/s": 12} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]Bandwidth{"200 MiB/s": 200 << 20, "210MB/s": 210e6, "5 B/s": 5, "1K/s": 1024} {
		if got, err := ParseBandwidth(text); err != nil || got != want {
			t.Errorf("ParseBandwidth(%q) = %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "1h30m": 90 * time.Minute,
		"1 h 30 min": 90 * time.Minute,
		"250 ms":     250 * time.Millisecond, "2 d": 48 * time.Hour, "3 d 04 h": 76 * time.Hour, "-1s": -time.Second,
		"800 us": 800 * time.Microsecond, "800 µs": 800 * time.Microsecond,
	} {
		if got, err := ParseDuration(text); err != nil || time.Duration(got) != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{"", "fast", "-5", "1 Gbit/s", "7 MB"} {
		if got, err := ParseBandwidth(text); err == nil {
			t.Errorf("ParseBandwidth(%q) = %v, want an error", text, got)
		}
	}
	for _, text := range []string{"", "many", "-5", "5 MB/s", "1e400"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", text, got)
		}
	}
	for _, text := range []string{"", "soon", "1 fortnight", "NaN", "Inf", "1e300", "xd", "d", "0x10"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, time.Duration(got))
		}
	}
}

func TestScale(t *testing.T) {
	cases := []struct {
		size   Bytes
		factor float64
		step   Bytes
		want   Bytes
	}{
		{100 * GiB, 0.01, MiB, GiB}, {100 * GiB, 0.002, MiB, 204 * MiB}, {GiB, 1e-9, MiB, MiB}, {512, 0.001, MiB, 512},
		{GiB, 1, MiB, GiB},
		{0, 0.5, MiB, 0}, {PiB, 1e9, KiB, math.MaxInt64 / KiB * KiB}, {10, 0.55, 0, 5},
	}
	for _, c := range cases {
		if got := c.size.Scale(c.factor, c.step); got != c.want {
			t.Errorf("%d.Scale(%g, %d) = %d, want %d", c.size, c.factor, c.step, got, c.want)
		}
	}
}

// What is printed for people parses back to within half of the last digit shown, and Exact without loss.
func TestRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Range(0, math.MaxInt64).Draw(t, "bytes"))
		if got, err := ParseBytes(b.Exact()); err != nil || got != b {
			t.Fatalf("%d: Exact %q parses to %d, %v", b, b.Exact(), got, err)
		}
		b = min(b, math.MaxInt64-5*PiB) // the largest few print as 8,192 PiB, which is out of range
		near(t, b.String(), float64(b), func(s string) (float64, error) {
			v, err := ParseBytes(s)
			return float64(v), err
		})
		d := Duration(rapid.Int64().Draw(t, "duration"))
		if got, err := ParseDuration(d.Exact()); err != nil || got != d {
			t.Fatalf("%d: Exact %q parses to %d, %v", d, d.Exact(), got, err)
		}
		r := math.Pow(10, rapid.Float64Range(-6, 12).Draw(t, "exponent"))
		near(t, Rate(r).String(), r, func(s string) (float64, error) { v, err := ParseRate(s); return float64(v), err })
		near(t, Bandwidth(r).String(), r, func(s string) (float64, error) {
			v, err := ParseBandwidth(s)
			return float64(v), err
		})
		near(t, Bandwidth(r).Decimal(), r, func(s string) (float64, error) {
			v, err := ParseBandwidth(s)
			return float64(v), err
		})
	})
}

func near(t *rapid.T, text string, want float64, parse func(string) (float64, error)) {
	got, err := parse(text)
	if err != nil || math.Abs(got-want) > 0.00501*want+0.5*boolean(strings.HasSuffix(text, " B")) {
		t.Fatalf("%v prints %q, which parses to %v, %v", want, text, got, err)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"8KiB", "1.5 GB", "4,000 IOPS", "200 MiB/s", "12.5 %", "1 h 30 min", "2 d",
		"9223372036854775807", "-0", "1e3", "..", ",", "KMGTP", "5 µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := ParseBytes(s); err == nil {
			if again, err := ParseBytes(b.Exact()); b < 0 || err != nil || again != b {
				t.Errorf("%q: %d, again %d, %v", s, b, again, err)
			}
		}
		if d, err := ParseDuration(s); err == nil {
			if again, err := ParseDuration(d.Exact()); err != nil || again != d {
				t.Errorf("%q: %d, again %d, %v", s, d, again, err)
			}
		}
		if r, err := ParseRate(s); err == nil && (r < 0 || math.IsNaN(float64(r)) || math.IsInf(float64(r), 0)) {
			t.Errorf("%q: rate %v", s, r)
		}
		if b, err := ParseBandwidth(s); err == nil && (b < 0 || math.IsNaN(float64(b)) || math.IsInf(float64(b), 0)) {
			t.Errorf("%q: bandwidth %v", s, b)
		}
	})
}

func TestSetting(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"block_size", "4k", "block size 4k"}, {"condition", "with Batch", "with Batch"},
		{"rate_iops", "83838", "rate 83,838 IOPS per job"},
		{"rate_iops", "0", "no rate"}, {"rate_iops", "many", "rate many"}, {"bs,ba", "4k", "bs,ba 4k"},
	} {
		if got := Setting(c.name, c.value); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

// TestApart: ends of an interval that differ never read the same, and those that are plain to tell stay short.
func TestApart(t *testing.T) {
	for want, values := range map[string][]float64{
		"0.44 0.43 0.45":             {0.44, 0.43, 0.45},
		"0.4401 0.4396 0.4404":       {0.44012, 0.43961, 0.44038},
		"1 0.9993 1.001":             {0.999993, 0.99931, 1.0006},
		"105.2 104.9 105.4":          {105.2, 104.9, 105.4},
		"1,234 1,230 1,240":          {1234, 1230, 1240},
		"0.44 0.44":                  {0.44, 0.44},
		"-0.1 0.3":                   {-0.1, 0.3},
		"2 2":                        {2, 2.000001},
		"no value no value no value": {math.NaN(), math.Inf(1), math.Inf(-1)},
	} {
		if got := strings.Join(Apart(values...), " "); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}

// TestChanges: a change and the ends of its interval have at most two decimals below 1 %, and more only to tell the
// ends apart.
func TestChanges(t *testing.T) {
	for share, want := range map[float64]string{
		0: "±0 %", 0.00049: "±0 %", -0.000612: "−0.06 %", 0.00235: "+0.24 %", -0.00412: "−0.41 %", 0.00997: "+1 %",
		-0.0222: "−2.22 %", -0.5604: "−56 %", 0.99: "+99 %", 1.4: "×2.4", math.Inf(1): "no value",
	} {
		if got := Change(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
	for ends, want := range map[[2]float64]string{
		{-0.00451, 0.0033}:  "−0.45 % to +0.33 %",
		{-0.000972, 0.0222}: "−0.1 % to +2.22 %",
		{0.00061, 0.00064}:  "+0.061 % to +0.064 %",
		{-0.5604, -0.5601}:  "−56.04 % to −56.01 %",
		{0.24561, 0.24562}:  "+24.561 % to +24.562 %",
		{-0.1, 0.1}:         "−10 % to +10 %",
		{0.98, 1.04}:        "×1.98 to ×2.04",
		{-0.0001, 0.0002}:   "within ±0.05 %",
	} {
		if got := Changes(ends[0], ends[1]); got != want {
			t.Errorf("%v: %q, want %q", ends, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"none":                           "none",
		"512 bytes":                      "512 bytes",
		"17179869184 bytes":              "16 GiB",
		"size about 4096 bytes; depth 8": "size about 4 KiB; depth 8",
		"4096 bytes read, 8192 written":  "4 KiB read, 8 KiB written",
		"4096 bytes read, 8193 written":  "4 KiB read, 8,193 written",
		"17179869185 bytes, 10 %":        "17,179,869,185 bytes, 10 %",
		"-4096 bytes":                    "-4096 bytes",
		"4096 operations":                "4096 operations",
	} {
		if got := Sizes(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
