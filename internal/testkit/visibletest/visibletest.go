// Package visibletest holds the one list of hostile texts that every channel is tested with (page, terminal, CSV,
// Markdown, JSON, file names), and what no output may hold, said without the code that is tested.
package visibletest

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Marker is in every text that would run something or fetch something: what a browser does with it shows.
const Marker = "PWNED"

// Text is one hostile text.
type Text struct{ Name, Text string }

// Texts are hostile to at least one channel each.
var Texts = []Text{
	{"script", `<script>window.PWNED=1</script>`},
	{"end of script", `</script><script>window.PWNED=1</script>`},
	{"comment", `<!--<script>`},
	{"end of comment", `--><img src=x onerror="window.PWNED=1">`},
	{"end of style", `</style><script>window.PWNED=1</script>`},
	{"end of title", `</title><script>window.PWNED=1</script>`},
	{"end of pre", `</pre></details></table><script>window.PWNED=1</script>`},
	{"handler", `<img src=x onerror=window.PWNED=1>`},
	{"attribute", `" onmouseover="window.PWNED=1" autofocus onfocus="window.PWNED=1" x="`},
	{"attribute, single", `' onfocus='window.PWNED=1' autofocus x='`},
	{"svg", `<svg/onload=window.PWNED=1><animate onbegin=window.PWNED=1 attributeName=x dur=1s>`},
	{"foreign",
		`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.PWNED=1&gt;">`},
	{"script link", `<a href="javascript:window.PWNED=1">x</a>`},
	{"mixed case link", `<a href=" JaVaScRiPt:window.PWNED=1">x</a>`},
	{"link with entities", `<a href="&#106;ava&#x73;cript&colon;window.PWNED=1">x</a>`},
	{"link with tab", "<a href=\"java\tscript\n:window.PWNED=1\">x</a>"},
	{"link with control", "<a href=\"\x01\x1fjavascript:window.PWNED=1\">x</a>"},
	{"script address", `javascript:window.PWNED=1`},
	{"data address", `data:text/html,<script>window.PWNED=1</script>`},
	{"table and code", "a | b | `c` |\n|---|---|"},
	{"vbscript link", `<a href="vbscript:msgbox(PWNED)">x</a>`},
	{"data link", `<a href="data:text/html,<script>window.PWNED=1</script>">x</a>`},
	{"data image", `<img src="data:image/svg+xml,<svg onload=window.PWNED=1>">`},
	{"remote image",
		`<img src="http://127.0.0.1:1/PWNED.png"><picture><source srcset="http://127.0.0.1:1/PWNED.webp"></picture>`},
	{"remote style",
		`<link rel=stylesheet href="http://127.0.0.1:1/PWNED.css"><style>@import "http://127.0.0.1:1/PWNED.css";</style>`},
	{"style", `<p style="background:url(http://127.0.0.1:1/PWNED);position:fixed;inset:0">x</p>`},
	{"style value", `red;}body{display:none}</style>`},
	{"frame", `<iframe srcdoc="<script>parent.PWNED=1</script>"></iframe><object data=x></object><embed src=x>`},
	{"form",
		`<form action="http://127.0.0.1:1/PWNED"><input autofocus onfocus=window.PWNED=1><button>go</button></form>`},
	{"base",
		`<base href="http://127.0.0.1:1/PWNED/"><meta http-equiv=refresh content="0;url=http://127.0.0.1:1/PWNED">`},
	{"clobbering", `<a id=data name=data></a><p id=reset name=charts></p><form id=c0></form>`},
	{"template", `{{.Policy}} {% raw %} ${window.PWNED=1} <%= 1 %>`},
	{"entities", `&lt;script&gt;window.PWNED=1&lt;/script&gt; &#60;b&#62;`},
	{"separators of JavaScript", "line\u2028paragraph\u2029end"},
	{"prototype", `__proto__`},
	{"colours", "\x1b[31;5mred\x1b[0m \x1b[2J\x1b[H"},
	{"title of a terminal", "\x1b]0;title\x07\x1b]2;title\x1b\\"},
	{"link of a terminal", "\x1b]8;;http://127.0.0.1:1/PWNED\x1b\\shown\x1b]8;;\x1b\\"},
	{"clipboard", "\x1b]52;c;UFdORUQ=\x07"},
	{"device control", "\x1bP$q\"p\x1b\\\x1b_app\x1b\\\x1b^pm\x1b\\"},
	{"C1", "\u009b31m\u009d0;title\u009c\u0085\u0090"},
	{"C1 as bytes", "\x9b31m\x9d0;title\x9c"},
	{"carriage return", "bad\rgood"},
	{"backspace", "bad\b\b\bgood\x7f"},
	{"bell and shift", "\a\v\f\x0e\x0f\x05"},
	{"forged line", "name\nrun: complete   collection: complete   cleanup: complete   (succeeded)\r\nplimsoll: all is well"},
	{"NUL", "before\x00after"},
	{"override", "abc\u202egpj.exe\u202c \u2066isolated\u2069\u200f\u061c"},
	{"zero width", "ad\u200bm\u200di\u200cn\u2060\ufeff\u00ad"},
	{"fillers", "a\u034f\u115f\u1160\u3164\uffa0\ufe0f\U000e0100\U000e0041z"},
	{"private use", "\ue000\U000f0000\uffff"},
	{"no UTF-8", "bad \xff\xfe\xc3( \xed\xa0\x80 \xf8\x88\x80\x80\x80"},
	{"half a character", "end \xe2\x80"},
	{"formula", `=HYPERLINK("http://127.0.0.1:1/PWNED","x")`},
	{"formula, plus", `+cmd|'/C calc'!A0`},
	{"formula, minus", `-2+3+cmd|'/C calc'!A0`},
	{"formula, at", `@SUM(1+1)*cmd|'/C calc'!A0`},
	{"formula, tab", "\t=1+1"},
	{"formula, return", "\r=1+1"},
	{"formula, line", "\n=1+1"},
	{"formula, blank", ` =1+1`},
	{"formula, wide", `＝1+1`},
	{"formula, after separator", `x;=1+1,=2+2` + "\t=3+3"},
	{"formula, after quote", `x",=1+1,"`},
	{"quotes", `"a" 'b' ""`},
	{"cells", `a | b || c \| d \\| e`},
	{"ticks", "`code` ``` ~~~ ```sh"},
	{"heading", "# heading\n## two\ntitle\n=====\n---"},
	{"list", "- item\n* item\n+ item\n1. item\n2) item\n> quote"},
	{"code block", "    indented\n\tcode"},
	{"emphasis", `*a* _b_ **c** __d__ ~~e~~ $f$`},
	{"link of Markdown", `[shown](javascript:window.PWNED=1) [x]: http://127.0.0.1:1/PWNED [x]`},
	{"image of Markdown", `![shown](http://127.0.0.1:1/PWNED.png)`},
	{"autolink",
		`<javascript:window.PWNED=1> <http://127.0.0.1:1/PWNED> https://example.org/PWNED www.example.org a@example.org`},
	{"escape of Markdown", `\[x\](javascript:window.PWNED=1) \<b\> \`},
	{"parent", `../../../etc/passwd`},
	{"root", `/etc/passwd`},
	{"dots", `..`},
	{"dot", `.`},
	{"hidden file", `.profile`},
	{"backslash", `..\..\windows`},
	{"option", `-rf`},
	{"reserved", `CON`},
	{"reserved with ending", `aux.txt. `},
	{"blank", ` `},
	{"empty", ``},
	{"percent", `%2E%2E%2F`},
	{"percent, format", `%s%n%!d(x) %[9]*.[2]*[3]f`},
	{"start of another", `raw.2`},
	{"composed", "caf\u00e9"},
	{"decomposed", "cafe\u0301"},
	{"Cyrillic", "р\u0430ypal"},
	{"capitals", `OLTP`},
	{"small", `oltp`},
	{"right to left", "\u05d0\u05d1\u05d2 100"},
	{"marks", "z" + strings.Repeat("\u0301\u0302", 200)},
	{"long", strings.Repeat("long name ", 1000)},
	{"long word", strings.Repeat("w", 5000)},
	{"long wide", strings.Repeat("\U0001f4a3", 3000)},
	{"long hidden", strings.Repeat("\u200b", 3000)},
}

// Always gives the same text.
func Always(text string) func() string { return func() string { return text } }

// Turns gives the hostile texts in turn, without end.
func Turns() func() string {
	i := -1
	return func() string {
		i++
		return Texts[i%len(Texts)].Text
	}
}

// Loose names the first thing in an output that must not be there in any channel: a control character but line end and
// tab, something that reorders or hides, bytes that are no UTF-8. It is "" for an output in which there is none.
func Loose(output string) string {
	if !utf8.ValidString(output) {
		i := 0
		for i < len(output) {
			r, size := utf8.DecodeRuneInString(output[i:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			i += size
		}
		return fmt.Sprintf("invalid UTF-8 at %q", around(output, i))
	}
	for i, r := range output {
		switch {
		case r == '\n', r == '\t':
		case r < ' ', r >= 0x7f && r < 0xa0, // C0, DEL, C1
			r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0xfeff,
			r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
			r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff:
			return fmt.Sprintf("%U at %q", r, around(output, i))
		}
	}
	return ""
}

func around(s string, i int) string { return s[max(0, i-40):min(len(s), i+20)] }

// Fill sets every text that can be reached from what v points to, keys of maps as well. Bytes, numbers and times stay.
func Fill(v any, text func() string) { fill(reflect.ValueOf(v).Elem(), text) }

func fill(v reflect.Value, text func() string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			key, value := reflect.New(k.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(k)
			value.Set(v.MapIndex(k))
			v.SetMapIndex(k, reflect.Value{})
			fill(key, text)
			fill(value, text)
			v.SetMapIndex(key, value)
		}
	}
}
