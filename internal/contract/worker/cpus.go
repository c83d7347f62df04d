package worker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CPUsVariable names, in the environment of a worker, the CPUs that it may use, as ReadCPUs gives them.
const CPUsVariable = "PLIMSOLL_CPUS"

// mostCPUs is how many a list can name: those of the kernel's sets.
const mostCPUs = 1024

// ReadCPUs reads numbers of CPUs, such as 0-3,8, and gives them as the kernel writes them: in order, none twice.
func ReadCPUs(text string) (string, error) {
	there, err := cpusOf(text)
	return sayCPUs(func(i int) bool { return there[i] }), err
}

// cpusOf is the set that a list names.
func cpusOf(text string) (there [mostCPUs]bool, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		a, err := strconv.ParseUint(from, 10, 16)
		b, err2 := strconv.ParseUint(to, 10, 16)
		if err != nil || err2 != nil || a > b || b >= mostCPUs {
			return [mostCPUs]bool{}, fmt.Errorf("%q is no list of CPUs such as 0-3,8, with numbers below %d", text,
				mostCPUs)
		}
		for i := a; i <= b; i++ {
			there[i] = true
		}
	}
	return there, nil
}

// sayCPUs writes a set of CPUs as a list.
func sayCPUs(there func(int) bool) string {
	var parts []string
	for i := 0; i < mostCPUs; i++ {
		if !there(i) {
			continue
		}
		first := i
		for i+1 < mostCPUs && there(i+1) {
			i++
		}
		ends := slices.Compact([]string{strconv.Itoa(first), strconv.Itoa(i)})
		parts = append(parts, strings.Join(ends, "-"))
	}
	return strings.Join(parts, ",")
}
