//go:build !linux

package host

func usageBelow(string) Usage { return nil }
