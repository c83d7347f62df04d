package report

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestSanitise(t *testing.T) {
	for in, want := range map[string]string{
		`plain & <b>bold</b>`:                                                   `plain &amp; <b>bold</b>`,
		`<p onclick="x()" style="color:red" class=c>a</p>`:                      `<p>a</p>`,
		`<script>alert(1)</script>after`:                                        `after`,
		`<img src=x onerror=alert(1)>text`:                                      `text`,
		`<a href="javascript:alert(1)">x</a>`:                                   `<a>x</a>`,
		`<a href=" JaVaScRiPt:alert(1)">x</a>`:                                  `<a>x</a>`,
		`<a href="//host/path">x</a>`:                                           `<a>x</a>`,
		`<a href="https://example.org/?a=1&b=2" target=x>x</a>`:                 `<a href="https://example.org/?a=1&amp;b=2" rel="noopener noreferrer">x</a>`,
		`<svg><script>alert(1)</script></svg>ok`:                                `ok`,
		`<div><section>kept</section></div>`:                                    `kept`,
		`<h1>Title</h1>`:                                                        `<h4>Title</h4>`,
		`<ul><li>one<li>two`:                                                    `<ul><li>one</li><li>two</li></ul>`,
		`<scr<script>ipt>alert(1)</script>`:                                     `ipt&gt;alert(1)`,
		`<!-- <script> -->x`:                                                    `x`,
		`<math><mtext></mtext><mglyph><style></math><img src onerror=alert(1)>`: ``,
	} {
		if got := string(sanitise(in)); got != want {
			t.Errorf("sanitise(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

var handler = regexp.MustCompile(`(?i)^on`)

// FuzzSanitise: what comes out, read again as a browser would, holds allowed elements and safe links only, and passes
// unchanged.
func FuzzSanitise(f *testing.F) {
	for _, s := range []string{`<p>x</p>`, `<a href="https://e.org">x</a>`, `<svg><style><img src=x onerror=y>`,
		`<table><tr><td><script>`, "\x00<\xff", `<plaintext><script>`,
		`<noscript><p title="</noscript><img src=x onerror=alert(1)>">`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := string(sanitise(in))
		if strings.Contains(strings.ToLower(out), "<script") {
			t.Fatalf("script survived: %q -> %q", in, out)
		}
		z := html.NewTokenizer(strings.NewReader(out))
		for z.Next() != html.ErrorToken {
			tok := z.Token()
			for _, a := range tok.Attr {
				if handler.MatchString(a.Key) || a.Key != "href" && a.Key != "rel" || a.Key == "href" &&
					!strings.HasPrefix(a.Val, "http://") && !strings.HasPrefix(a.Val, "https://") {
					t.Fatalf("attribute %s=%q survived: %q -> %q", a.Key, a.Val, in, out)
				}
			}
		}
	})
}
