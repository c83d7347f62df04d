//go:build !linux

package device

import "io/fs"

// NumberOf knows no numbers but Linux's.
func NumberOf(fs.FileInfo) (string, bool) { return "", false }

func inodeOf(fs.FileInfo) uint64 { return 0 }
