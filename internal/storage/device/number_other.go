//go:build !linux

package device

import "io/fs"

// NumberOf knows no numbers but Linux's.
func NumberOf(fs.FileInfo) (string, bool) { return "", false }

// FileOf knows no files but Linux's.
func FileOf(fs.FileInfo) (File, bool) { return File{}, false }
