//go:build unix

package result

import (
	"io/fs"
	"syscall"
)

// diskBytes is the smaller of a file's logical size and what it occupies, so that sparse disk images count what they
// cost.
func diskBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), st.Blocks*512)
	}
	return info.Size()
}
