package result

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// WindowState says of a partial window what its workload was doing.
type WindowState string

// States of a partial window.
const (
	BetweenStarts WindowState = "between starts" // a pause
	VMsStart      WindowState = "VMs start"      // some of its VMs had not begun
	VMsEnd        WindowState = "VMs end"        // some had ended
)

// stateNames are the states as names of windows.
var stateNames = map[WindowState]string{
	BetweenStarts: "between its starts", VMsStart: "while its VMs start", VMsEnd: "while its VMs end",
}

// Circumstances are what a window differs by from the workload's others.
type Circumstances struct {
	// Beside are the other workloads that ran, sorted; none when it ran alone, and in a partial window.
	Beside []string `json:"beside,omitempty"`
	// State is of a partial window, "" of one in which all VMs worked.
	State WindowState `json:"state,omitempty"`
	// Round is the start of the workload in which it lies, from 1; 0 where there is one start only, or it holds
	// several.
	Round int `json:"round,omitempty"`
	// After is the text of the annotation or fault with which it begins, "" when it begins with none.
	After string `json:"after,omitempty"`
	// Again is which one it is of several that agree in all of these: 0 for the first, 2 for the second, and so on.
	Again int `json:"again,omitempty"`
}

// Name is how a window is called: what compare and reports show. Such names are made nowhere else.
func (c Circumstances) Name() string { return c.NameWith(strings.Join(c.Beside, " and ")) }

// NameWith is Name with other words for the workloads beside.
func (c Circumstances) NameWith(beside string) string {
	name, partial := stateNames[c.State]
	switch {
	case partial:
	case len(c.Beside) > 0:
		name = "with " + beside
	default:
		name = "alone"
	}
	if c.Round > 0 {
		name += fmt.Sprintf(" in start %d", c.Round)
	}
	if since := c.Since(); since != "" {
		return name + ", " + since
	}
	return name + c.again()
}

// Since is the moment with which a window begins, in words: `after "node 1 off"`; "" when it begins with none.
func (c Circumstances) Since() string {
	if c.After == "" {
		return ""
	}
	return fmt.Sprintf("after %q", c.After) + c.again()
}

func (c Circumstances) again() string {
	if c.Again < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d)", c.Again)
}

// InCompany reports whether both ran beside the same workloads, in the same state and start.
func (c Circumstances) InCompany(o Circumstances) bool {
	return slices.Equal(c.Beside, o.Beside) && c.State == o.State && c.Round == o.Round
}

// Once is the circumstances without which one it is of several.
func (c Circumstances) Once() Circumstances {
	c.Again = 0
	return c
}

// Parts of a name: which one of several, and in which start.
var (
	againPart = regexp.MustCompile(` \((\d+)\)$`)
	roundPart = regexp.MustCompile(` in start (\d+)$`)
)

// CircumstancesOf reads the name of a window that was collected before its circumstances were kept; false when it is
// none of ours. A workload whose own name looks like a part of a window's is taken for that.
func CircumstancesOf(name string) (Circumstances, bool) {
	var c Circumstances
	left := name
	number := func(part *regexp.Regexp, least int) int {
		if m := part.FindStringSubmatch(left); m != nil {
			if n, _ := strconv.Atoi(m[1]); n >= least {
				left = strings.TrimSuffix(left, m[0])
				return n
			}
		}
		return 0
	}
	c.Again = number(againPart, 2)
	if before, after, marked := strings.Cut(left, ", after "); marked {
		text, err := strconv.Unquote(after)
		if err != nil {
			return Circumstances{}, false
		}
		left, c.After = before, text
	}
	c.Round = number(roundPart, 1)
	for state, said := range stateNames {
		if left == said {
			c.State = state
		}
	}
	if names, with := strings.CutPrefix(left, "with "); with {
		c.Beside = strings.Split(names, " and ")
	}
	return c, c.Name() == name
}

// tellWindows finds the circumstances of windows, and the VM groups of results, in data that were collected before
// these were kept: in their names and queries.
func (d *Data) tellWindows() {
	for i := range d.Workloads {
		for k := range d.Workloads[i].Windows {
			w := &d.Workloads[i].Windows[k]
			if w.Circumstances.Name() == w.Name {
				continue
			}
			if c, ok := CircumstancesOf(w.Name); ok {
				w.Circumstances = c
			}
		}
	}
	for i := range d.Panels {
		p := &d.Panels[i]
		if group, ok := strings.CutPrefix(p.Group, "VMGroupResult_"); ok && p.Kind == "vm_group" && p.VMGroup == "" {
			p.VMGroup = group
			if strings.Contains(p.Query, "sum by (vm_group)") {
				p.Aggregate = "sum"
			}
		}
	}
}
