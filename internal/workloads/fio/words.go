package fio

import (
	"strconv"
	"strings"

	"plimsoll/result"
)

// authors puts the author's names of sections in place of our own.
func authors(line string, sections []string) string {
	return ownName.ReplaceAllStringFunc(line, func(name string) string {
		i := ownIndex(name)
		if i < 0 || i >= len(sections) {
			return name
		}
		return sections[i]
	})
}

// chatter tells fio's progress, its headings and pieces of broken reports from what it has to say.
func chatter(line string) bool {
	if strings.HasPrefix(line, `"`) || strings.Trim(line, "{}[], ") == "" {
		return true
	}
	for _, prefix := range []string{"Jobs: ", "Disk stats", "hostname=", "Starting ", "Run status group"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

const lacksEngine = "the host's fio or kernel lacks this ioengine; name another one in the job file, e.g. libaio " +
	"or psync"

// hints adds what to do about the refusals users meet most.
var hints = []struct{ says, do string }{
	{"Inappropriate ioctl", "the disks here are files, which cannot do what the job asks of a device, like trim; " +
		"take it out, or use a target with block devices"},
	{"does not support direct", "the file system of the disks has no direct I/O (tmpfs?); put the run folder on " +
		"another one"},
	{"direct=1", "the file system of the disks has no direct I/O (tmpfs?); put the run folder on another one"},
	{"Bad option", "the host's fio does not know this option; correct it or install a newer fio"},
	{"No space left", "the file system is full; free space or lower --size-scale"},
	{"size too small", "raise --size-scale, or the size in the job file"},
	{"Permission denied", "the user who runs fio may not open the disks"},
	{"Cannot allocate memory", "the host or the machine's memory limit leaves too little memory for this depth and " +
		"block size"},
	{"EAGAIN", "raise fs.aio-max-nr on the host"},
	{"io_queue_init", "raise fs.aio-max-nr on the host"},
	// Last, and not only "engine": a source line of fio's, ioengines.c, is in many of its messages.
	{"engine ", lacksEngine},
	{"load engine", lacksEngine},
}

func hint(message string) string {
	for _, h := range hints {
		if strings.Contains(message, h.says) {
			return h.do
		}
	}
	return ""
}

// jobError says with what error a job ended.
func jobError(e *entry) string {
	text := "job " + e.name + " ended with error " + errnoText(e.code)
	if e.host != "" {
		text += " on " + e.host
	}
	return text
}

// errnoNames are the error numbers of Linux that storage gives. The host may run another kernel than we do, so the
// numbers are spelled out here rather than taken from package syscall.
var errnoNames = map[uint64]string{
	1: "operation not permitted", 2: "no such file or directory", 5: "input/output error",
	6: "no such device or address",
	9: "bad file descriptor", 11: "try again", 12: "out of memory", 13: "permission denied",
	16: "device or resource busy",
	19: "no such device", 22: "invalid argument", 27: "file too large", 28: "no space left on device",
	30: "read-only file system", 61: "no data available", 84: result.DataDiffer,
	95: "operation not supported", 110: "timed out", 121: "remote I/O error", 122: "disk quota exceeded",
}

// ErrorText is an error number as fio ends with it, with what it means.
func ErrorText(code uint64) string { return errnoText(code) }

func errnoText(code uint64) string {
	if name, ok := errnoNames[code]; ok {
		return strconv.FormatUint(code, 10) + " (" + name + ")"
	}
	return strconv.FormatUint(code, 10)
}
