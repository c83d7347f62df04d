package report

import (
	"io/fs"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var variable = regexp.MustCompile(`--([a-z0-9-]+):\s*#([0-9a-f]{6})`)

// TestContrast: every text colour reads on every ground it stands on, in light, dark and print (WCAG 2.2, 1.4.3: 4.5 to
// 1; lines of charts, 1.4.11: 3 to 1).
func TestContrast(t *testing.T) {
	css, err := fs.ReadFile(embedded, "assets/report.css")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(css), ":root {")[1:]
	if len(blocks) != 3 {
		t.Fatalf("%d sets of colours, want light, dark and print", len(blocks))
	}
	for i, name := range []string{"light", "dark", "print"} {
		c := map[string]string{}
		for _, m := range variable.FindAllStringSubmatch(blocks[i][:strings.Index(blocks[i], "}")], -1) {
			c[m[1]] = m[2]
		}
		check := func(ink, paper string, least float64) {
			if c[ink] == "" || c[paper] == "" {
				t.Errorf("%s: no colour %q or %q", name, ink, paper)
				return
			}
			if got := contrast(c[ink], c[paper]); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, ink, paper, got, least)
			}
		}
		for _, paper := range []string{"paper", "sheet"} {
			for _, ink := range []string{"ink", "soft", "accent", "invalid", "warning", "info", "passed"} {
				check(ink, paper, 4.5)
			}
		}
		for _, s := range []string{"invalid", "warning", "info", "passed"} {
			check(s, s+"-bg", 4.5)
		}
		for s := range paletteSize {
			check("s"+strconv.Itoa(s), "paper", 3)
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(hex string) float64 {
	n, _ := strconv.ParseUint(hex, 16, 32)
	part := func(shift uint) float64 {
		v := float64(n>>shift&255) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

// TestLockFile: what is fetched is pinned by content and names no registry.
func TestLockFile(t *testing.T) {
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"version": "1.6.32"`, `"integrity": "sha512-`} {
		if !strings.Contains(string(lock), want) {
			t.Errorf("the lock file has no %s", want)
		}
	}
	if strings.Contains(string(lock), "resolved") || strings.Contains(string(lock), "://") {
		t.Error("the lock file names a registry")
	}
}

// TestTight: a number stays with its unit, and what only looks like one is left.
func TestTight(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"4,000 IOPS (95 %: 3.9 to 4 µs).": "4,000\u00a0IOPS (95\u00a0%: 3.9 to 4\u00a0µs).",
		"1 h 30 min, 2 GiB/s, 8 MB":       "1\u00a0h 30\u00a0min, 2\u00a0GiB/s, 8\u00a0MB",
		"Worker 1 had 2 stalls and 5 VMs": "Worker 1 had 2 stalls and 5 VMs",
	} {
		if got := Tight(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
