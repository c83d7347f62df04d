package procfs

import (
	"encoding/binary"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// IdleStates is where the first CPU's idle states are, below /.
const IdleStates = "sys/devices/system/cpu/cpu0/cpuidle"

// DeepestIdle is the deepest idle state that the first CPU may enter, and how many microseconds the kernel says that
// waking from it takes; "" where none may be entered. States may be switched off, or be too slow for what a program has
// asked the kernel for, such as tuned.
func DeepestIdle(system fs.FS) (deepest string, wake float64) {
	number := func(file string) (float64, bool) {
		data, err := fs.ReadFile(system, file)
		v, err2 := strconv.ParseFloat(strings.TrimSpace(string(data)), 64)
		return v, err == nil && err2 == nil
	}
	most := math.Inf(1)
	if data, err := fs.ReadFile(system, "dev/cpu_dma_latency"); err == nil && len(data) == 4 {
		most = float64(int32(binary.NativeEndian.Uint32(data))) // it is a signed number there
	}
	all, _ := fs.Glob(system, IdleStates+"/state*")
	wake = -1
	for _, state := range all {
		off, _ := number(state + "/disable")
		us, ok := number(state + "/latency")
		name, err := fs.ReadFile(system, state+"/name")
		if ok && err == nil && off == 0 && us <= most && us > wake {
			deepest, wake = strings.TrimSpace(string(name)), us
		}
	}
	return deepest, max(wake, 0)
}
