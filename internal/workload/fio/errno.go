package fio

import "strconv"

// errnoNames are the error numbers of Linux that storage gives. The host may run another kernel than we do, so the
// numbers are spelled out here rather than taken from package syscall.
var errnoNames = map[uint64]string{
	1: "operation not permitted", 2: "no such file or directory", 5: "input/output error",
	6: "no such device or address",
	9: "bad file descriptor", 11: "try again", 12: "out of memory", 13: "permission denied",
	16: "device or resource busy",
	19: "no such device", 22: "invalid argument", 27: "file too large", 28: "no space left on device",
	30: "read-only file system", 61: "no data available", 84: "data differ from what was written (verify)",
	95: "operation not supported", 110: "timed out", 121: "remote I/O error", 122: "disk quota exceeded",
}

func errnoText(code uint64) string {
	if name, ok := errnoNames[code]; ok {
		return strconv.FormatUint(code, 10) + " (" + name + ")"
	}
	return strconv.FormatUint(code, 10)
}
