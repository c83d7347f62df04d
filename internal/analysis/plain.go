package analysis

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

// numbered is the end of the name of a group's member, which plimsoll gave it.
var numbered = lazyregexp.New(`_[0-9]{4,}`)

// members say machines as who wrote the scenario knows them: by their groups, which alone have names of theirs.
type members struct {
	groups []string       // the longest first
	count  map[string]int // of machines, by group
	names  map[string]bool
}

func membersOf(d *result.Data) members {
	m := members{count: map[string]int{}, names: map[string]bool{}}
	add := func(name, group string) {
		name = result.PlainNames(name)
		number, of := strings.CutPrefix(name, group)
		if of && group != "" && !m.names[name] && numbered.FindString(number) == number && number != "" {
			m.names[name] = true
			m.count[group]++
		}
	}
	for _, vm := range d.VMs {
		add(vm.Name, vm.Group)
	}
	for _, w := range d.Workloads {
		add(w.VM, w.Group)
	}
	for g := range m.count {
		m.groups = append(m.groups, g)
	}
	slices.SortFunc(m.groups, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return m
}

// finding is a finding that names no machine by a name that only plimsoll gave it.
func (m members) finding(f result.Finding) result.Finding {
	for _, text := range []*string{&f.Sentence, &f.NoInterval, &f.Basis, &f.Subject} {
		*text = m.say(*text)
	}
	f.Evidence, f.Warnings = slices.Clone(f.Evidence), slices.Clone(f.Warnings)
	for i := range f.Evidence {
		f.Evidence[i].Name = m.say(f.Evidence[i].Name)
	}
	for i := range f.Warnings {
		f.Warnings[i] = m.say(f.Warnings[i])
	}
	return f
}

// say puts "the VM of Load" for the only machine of a group, "VM 3 of Database" for one of several, and "VMs 0, 1 and 3
// of Database" for a list.
func (m members) say(s string) string {
	var out strings.Builder
	var group, list string // begun, and its numbers
	s = result.PlainNames(s)
	done := 0
	end := func() {
		switch {
		case list == "":
		case strings.ContainsAny(list, " "):
			out.WriteString("VMs " + list + " of " + group)
		default:
			out.WriteString("VM " + list + " of " + group)
		}
		list = ""
	}
	for _, at := range numbered.FindAllIndex([]byte(s), -1) {
		of := m.group(s, at[0], at[1])
		if of == "" {
			continue
		}
		from := at[0] - len(of)
		between := s[done:from]
		goesOn := list != "" && of == group && (between == ", " || between == " and ")
		done = at[1]
		if goesOn {
			list += between
		} else {
			end()
			out.WriteString(between)
		}
		if m.count[of] == 1 {
			the := "the"
			if out.Len() == 0 {
				the = "The"
			}
			out.WriteString(the + " VM of " + of)
			continue
		}
		number := strings.TrimLeft(s[at[0]+1:at[1]], "0")
		group, list = of, list+cmp.Or(number, "0")
	}
	end()
	return out.String() + s[done:]
}

// group is that of the machine whose number stands in a text; "" where that is part of another name, as of a file.
func (m members) group(s string, from, to int) string {
	inName := func(r rune) bool {
		return r == '_' || r == '/' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if after, _ := utf8.DecodeRuneInString(s[to:]); inName(after) {
		return ""
	}
	for _, g := range m.groups {
		before, is := strings.CutSuffix(s[:from], g)
		last, _ := utf8.DecodeLastRuneInString(before)
		if is && m.names[g+s[from:to]] && !inName(last) {
			return g
		}
	}
	return ""
}
