package report

import (
	"html/template"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"plimsoll/internal/kit/visible"
)

// Elements of an author's description that survive. Images, forms and frames are dropped with their attributes;
// of the contents of script, style and the like nothing is kept.
var (
	allowed = []atom.Atom{
		atom.P, atom.Br, atom.B, atom.Strong, atom.I, atom.Em, atom.U, atom.Code, atom.Pre, atom.Ul, atom.Ol, atom.Li,
		atom.Sub, atom.Sup,
		atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Table, atom.Thead, atom.Tbody,
		atom.Tr, atom.Th, atom.Td, atom.Hr, atom.A,
	}
	swallowed = []atom.Atom{
		atom.Script, atom.Style, atom.Iframe, atom.Object, atom.Embed, atom.Svg, atom.Math, atom.Template,
		atom.Noscript, atom.Textarea, atom.Title,
		atom.Select, atom.Noembed, atom.Noframes, atom.Xmp, atom.Plaintext, atom.Head,
	}
)

// maxDescription bounds the work done for a description, in bytes.
const maxDescription = 256 << 10

// sanitise keeps the allowed elements of an author's HTML, without attributes but for http(s) links, and closes what
// was left open. Everything is parsed and printed again; nothing is copied as it stood.
func sanitise(text string) template.HTML {
	if len(text) > maxDescription {
		text = text[:maxDescription]
	}
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(strings.NewReader(strings.ToValidUTF8(text, "")), body)
	if err != nil {
		return template.HTML(template.HTMLEscapeString(visible.Text(text)))
	}
	var b strings.Builder
	for _, n := range nodes {
		clean(&b, n, 0)
	}
	return template.HTML(strings.TrimSpace(b.String()))
}

// maxNesting bounds recursion; what lies deeper is dropped.
const maxNesting = 100

func clean(b *strings.Builder, n *html.Node, depth int) {
	if depth > maxNesting {
		return
	}
	switch n.Type {
	case html.TextNode:
		b.WriteString(html.EscapeString(visible.Text(n.Data)))
		return
	case html.ElementNode:
	default:
		return // comments, doctypes
	}
	if slices.Contains(swallowed, n.DataAtom) || n.Namespace != "" {
		return
	}
	keep := slices.Contains(allowed, n.DataAtom)
	name := n.DataAtom.String()
	if len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6' {
		name = "h4" // below the report's own headings
	}
	if keep {
		b.WriteString("<" + name)
		if n.DataAtom == atom.A {
			if href, ok := link(n); ok {
				b.WriteString(` href="` + html.EscapeString(href) + `" rel="noopener noreferrer"`)
			}
		}
		b.WriteString(">")
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		clean(b, c, depth+1)
	}
	if keep && n.DataAtom != atom.Br && n.DataAtom != atom.Hr {
		b.WriteString("</" + name + ">")
	}
}

// link is the target of an anchor when it is an absolute web address that shows whole, without a user name, which is
// easily taken for the host.
func link(n *html.Node) (string, bool) {
	for _, a := range n.Attr {
		if a.Key != "href" {
			continue
		}
		u, err := url.Parse(strings.TrimSpace(a.Val))
		web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
		if web && visible.Line(u.String()) == u.String() {
			return u.String(), true
		}
	}
	return "", false
}
