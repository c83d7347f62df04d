package importer

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A line of fio's log of IOPS with a size is one I/O and has the value 1; with a rate it was counted as one.
func TestRatesThatLookLikeSingleIOs(t *testing.T) {
	t.Parallel()
	for value, refused := range map[int]bool{1: false, 700: true} {
		text := ""
		for i := range 20 {
			text += fmt.Sprintf("%d, %d, 0, 8192, 0\n", 500*(i+1), value)
		}
		_, err := Prepare("x_iops.1.log", strings.NewReader(text), time.Unix(1_700_000_200, 0), Options{})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "single I/O and a rate") {
			t.Errorf("of the value %d: %v", value, err)
		}
	}
}
