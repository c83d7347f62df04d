// Package docs carries the pages that the program prints. They are Markdown and meant to be read as they are.
//
// The folder is documentation; this file only embeds a part of it. Tests beside it keep what the pages say about the
// program true.
package docs

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed scenario-language.md
var language string

var (
	comment = regexp.MustCompile(`(?m)^<!--.*-->\n+`)
	printed = regexp.MustCompile(`(?m)^<!--printed: (.*)-->\n`)
	step    = regexp.MustCompile(`(?m)^### (\S+)\n\n`)
)

// ScenarioLanguage is the reference of the scenario language, with the parts that the program prints in their places:
// where a marker names them, and of a step below its heading.
func ScenarioLanguage(parts map[string]string) Page {
	whole := printed.ReplaceAllStringFunc(language, func(m string) string {
		return parts[printed.FindStringSubmatch(m)[1]]
	})
	whole = step.ReplaceAllStringFunc(whole, func(heading string) string {
		if text, ok := parts["step "+step.FindStringSubmatch(heading)[1]]; ok {
			return heading + text + "\n"
		}
		return heading
	})
	return Page(comment.ReplaceAllString(whole, ""))
}

// Page is a page in Markdown.
type Page string

// Sections are the headings of the page below its title, in order.
func (p Page) Sections() []string {
	var names []string
	p.each(func(_ int, heading, _ string) { names = append(names, heading) })
	return names
}

// Section is the part of the page below a heading, with the heading and what is deeper; case is ignored.
func (p Page) Section(name string) (text string, ok bool) {
	within := 0
	p.each(func(depth int, heading, body string) {
		if within > 0 && depth <= within {
			within = -1 // over
		}
		if within == 0 && strings.EqualFold(heading, name) {
			within = depth
		}
		if within > 0 {
			text += body
		}
	})
	return strings.TrimSpace(text) + "\n", within != 0
}

// each calls f for every heading below the title, with all that stands before the next.
func (p Page) each(f func(depth int, heading, body string)) {
	lines := strings.SplitAfter(string(p), "\n")
	var starts []int
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "##") {
			starts = append(starts, i)
		}
	}
	for i, start := range starts {
		end := slices.Concat(starts, []int{len(lines)})[i+1]
		hashes, heading, _ := strings.Cut(strings.TrimSpace(lines[start]), " ")
		f(len(hashes), heading, strings.Join(lines[start:end], ""))
	}
}
