package scenario

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of the language.
const (
	MaxGroupName = 18     // characters of a VM group's name
	MaxGroupSize = 10_000 // members of a VM group
	maxVMName    = 61
)

// Place returns the node index of each member of the group on a cluster of the given size, in order of member
// number. Members go round-robin over the selected nodes; without any count there is one per selected node.
// An empty selection and more than MaxGroupSize members are errors.
func (g Group) Place(nodes int) ([]int, error) {
	selected, err := g.selector().Resolve(nodes)
	if err != nil {
		return nil, fmt.Errorf("vm group %q: %w", g.Name, err)
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("vm group %q: nodes %q selects no node on a cluster of %d; use a larger cluster or "+
			"another selector",
			g.Name, g.selector().Text, nodes)
	}
	total := int64(len(selected))
	switch {
	case g.CountPerCluster != 0:
		total = int64(g.CountPerCluster)
	case g.CountPerNode != 0:
		total = min(int64(g.CountPerNode), MaxGroupSize+1) * int64(len(selected))
	}
	if total < 0 || total > MaxGroupSize {
		return nil, fmt.Errorf("vm group %q: %d members on %d nodes; allowed are up to %d", g.Name, total, nodes,
			MaxGroupSize)
	}
	placed := make([]int, total)
	for i := range placed {
		placed[i] = selected[i%len(selected)]
	}
	return placed, nil
}

// Grown returns the group as it is after a vm_group.Grow step with the given arguments: the new count replaces both
// old ones, the node selection stays.
func (g Group) Grown(args Args) Group {
	g.CountPerNode, g.CountPerCluster = args.Int("count_per_node"), args.Int("count_per_cluster")
	return g
}

func (g Group) selector() Selector {
	if g.Nodes.Text == "" {
		return Selector{Text: ":"}
	}
	return g.Nodes
}

// Sanitise replaces every run of characters other than digits, letters, "." and "-" by one "_".
func Sanitise(s string) string {
	var b strings.Builder
	replaced := false
	for _, r := range s {
		kept := r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '.' || r == '-'
		if kept {
			b.WriteRune(r)
		} else if !replaced {
			b.WriteByte('_')
		}
		replaced = !kept
	}
	return b.String()
}

// VMName returns the visible name of member i of a group, at most 61 characters. It is for people; members are
// identified by record, since the cut can make two names equal.
func VMName(id int64, group string, i int) string {
	return cut(fmt.Sprintf("__curie_test_%d_%s_%04d", id, Sanitise(group), i))
}

// TemplateName returns the name of the group's template VM, at most 61 characters.
func TemplateName(id int64, image, group string) string {
	return cut(fmt.Sprintf("__curie_goldimage_%d_%s_%s", id, Sanitise(image), Sanitise(group)))
}

// EntityName returns the name of anything else a scenario makes, such as a snapshot.
func EntityName(id int64, text string) string { return fmt.Sprintf("__curie_%d_%s", id, text) }

func cut(name string) string {
	if utf8.RuneCountInString(name) <= maxVMName {
		return name
	}
	return string([]rune(name)[:maxVMName])
}
