//go:build !linux

package host

import "io/fs"

func usageBelow(string) Usage { return nil }

func deviceNumber(fs.FileInfo) (number string, ok bool) { return "", false }
