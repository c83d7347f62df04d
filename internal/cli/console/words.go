package console

import (
	"fmt"
	"slices"
	"strings"
)

// OneLine is an error of many lines, as of a server with several addresses.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// FirstOf are the first of a list.
func FirstOf(list []string) string {
	const most = 10
	if len(list) > most {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, "; ")
}
