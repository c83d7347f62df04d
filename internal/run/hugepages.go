package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// hugePagesFile is in the folder of a run that changed how many huge pages this machine keeps: the pages' size in kB,
// their number before, and the number that the run set. The scenario db-hugepages writes it.
const hugePagesFile = "hugepages.before"

// kernelPages is where the kernel has the numbers.
const kernelPages = "/sys/kernel/mm/hugepages"

// restoreHugePages sets a number back that a dead run has left, when it is still the one that the run set. It returns
// what remains to be done, "" for nothing.
func restoreHugePages(folder, kernel string) string {
	file := filepath.Join(folder, hugePagesFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	remains := func(format string, args ...any) string {
		return fmt.Sprintf("huge pages: "+format+"; see to it and remove "+file, args...)
	}
	if err != nil {
		return remains("%v", err)
	}
	var numbers [3]int64 // size, before, set
	words := strings.Fields(string(text))
	for i, w := range words {
		if n, err := strconv.ParseInt(w, 10, 64); err == nil && n >= 0 && i < len(numbers) {
			numbers[i] = n
			continue
		}
		words = nil
		break
	}
	if len(words) != len(numbers) {
		return remains("%q: want the size in kB, the number before and the number set", text)
	}
	size, before, set := numbers[0], numbers[1], numbers[2]
	number := filepath.Join(kernel, fmt.Sprintf("hugepages-%dkB", size), "nr_hugepages")
	is, err := os.ReadFile(number)
	if err != nil {
		return remains("%v", err)
	}
	switch strings.TrimSpace(string(is)) {
	case strconv.FormatInt(before, 10):
	case strconv.FormatInt(set, 10):
		text := strconv.FormatInt(before, 10) + "\n"
		if err := os.WriteFile(number, []byte(text), 0o644); err != nil { // the kernel's own
			return remains("%d of %d kB are kept and it were %d: %v", set, size, before, err)
		}
	default:
		return remains("%s of %d kB are kept, neither the %d of before nor the %d that the run set: somebody else has "+
			"changed it", strings.TrimSpace(string(is)), size, before, set)
	}
	if err := os.Remove(file); err != nil {
		return remains("%v", err)
	}
	return ""
}
