// Package live traces a block device while it works, by the kernel's own trace points of block I/O, read as text from
// tracefs.
//
// It stands beside internal/storage/trace/read, which understands the text. Start makes a tracefs instance of its own
// (instances/plimsoll-PID), so that nobody else's tracing is touched, and Close removes it; what a killed process left
// is removed by the next Start. Where tracefs is not mounted it is mounted for this process alone, detached from every
// folder, and is gone with it. It only looks on: it writes to no device. It refuses what is no block device, and says
// what is missing where tracing is not permitted. eBPF is not used: the trace points say the same, and want no
// compiler.
package live
