package target

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"time"
)

// Host is access to one machine: the place where an engine puts files and runs commands, whatever lies between us and
// it. Files are named relative to a working folder of the run's own, which nothing given here can lead out of. Methods
// may be called from several goroutines. An error wraps ErrNotAccessible when the machine does not answer.
//
// What not every place can do is a small interface found by assertion: Follower (of its processes), ServiceKeeper,
// Networked, Discarder, SocketDialer, DiskReader, DiskPurger, Stager, ClockReader, Patient.
type Host interface {
	Name() string
	Node() int
	// Disks are the data disks in device order with the paths that reach them.
	Disks() []Disk
	// Accessible returns nil when commands can be run now, else an error wrapping ErrNotAccessible with the reason.
	Accessible(context.Context) error
	// Start runs a command in the host's working folder. The command and all its children are one unit, killed
	// together: by Kill, by a VM or node power-off, and when the command ends and has left children behind.
	Start(context.Context, Command) (Process, error)
	// Put writes a file; parents are made. The stream is passed on as it comes, so neither its length nor its whole
	// has to be known. The file takes its name when it is whole: until then, and after an error, what had that name
	// before is there. One that is being executed can be replaced.
	Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error
	// Get gives what a file holds from offset on, up to the end that it has now: nothing beyond it. An absent file is
	// an error that is fs.ErrNotExist. The stream is closed by who called; it obeys ctx.
	Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
	// Remove deletes a file or folder below the working folder; absent is fine.
	Remove(ctx context.Context, name string) error
}

// Modes of files that are put on a host.
const (
	PlainFile fs.FileMode = 0o644
	Program   fs.FileMode = 0o755
)

// WriteFile puts a small file on a host.
func WriteFile(ctx context.Context, h Host, name string, data []byte) error {
	return h.Put(ctx, name, PlainFile, bytes.NewReader(data))
}

// ReadFile returns what a file on a host holds from offset on, at most limit bytes: nil at its end.
func ReadFile(ctx context.Context, h Host, name string, offset int64, limit int) ([]byte, error) {
	r, err := h.Get(ctx, name, offset)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)))
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return data, nil
}

// Disk is a data disk of a machine.
type Disk struct {
	Device string // as the scenario's files name it: /dev/sdb
	Path   string // what a command on the host must open
	// ID tells the disk from every other one of the place and stays with it through power cycles and changes of its
	// device's name: a serial number or world wide name, as /dev/disk/by-id has it. "" is not known.
	ID    string
	Bytes int64 // as the machine itself sees it, not as it was asked for
	File  bool  // a regular file, not a block device
}

// Command is something to run on a host.
type Command struct {
	Argv   []string
	Env    []string // added to a minimal environment
	Stdout string   // file relative to the working folder; "" discards
	Stderr string   // the same file as Stdout takes both, in the order they were written
	Label  string   // for operators and for the state file, e.g. the workload's name
	User   string   // on the machine; "" is the default one; places without users of their own ignore it
	// Listens and Dials are the TCP ports that it opens to machines of the cluster, and those that it connects to
	// there. A place that keeps commands from the network lets them have these; elsewhere they mean nothing.
	Listens, Dials []int
	// Loopback says that it listens on loopback, on a port that the system picks, for processes of its own. A place
	// that keeps commands from the network lets it have that, and no port of its choice.
	Loopback bool
	// Outside are servers beyond the cluster that it connects to, HOST:PORT or the folder of a unix socket: those that
	// the operator named. A place that keeps commands from the network lets them reach these, and says so.
	Outside []string
	// ReadOnly says that it writes none of the machine's data disks: a place that can gives them to it for reading
	// only, so that a mistake in what it was told cannot write.
	ReadOnly bool
}

// Process is a started command.
type Process interface {
	// Wait returns when the command has ended or ctx is done (ctx.Err(); the command goes on).
	Wait(context.Context) (Exit, error)
	// Kill ends the whole unit at once; ended already is fine.
	Kill() error
	// Usage is the unit's resource use so far, or in all once it has ended.
	Usage() Usage
}

// Follower is implemented by processes whose host hands over a file as it grows. Elsewhere the file is asked for again
// and again with Host.Get.
type Follower interface {
	// Follow gives a file that the process writes, from offset on. Read waits until there is more, and returns io.EOF
	// when the process has ended and everything was read. The end of ctx, and Close, end a Read that waits. An absent
	// file is an error that is fs.ErrNotExist.
	Follow(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// Patient is implemented by hosts whose machine may be silent for a while without loss of what runs on it. A command is
// lost when its own Wait says so, not when Accessible fails.
type Patient interface {
	// Patience is for how long the machine may be silent.
	Patience() time.Duration
}

// StandTeller is implemented by hosts that can look at the processes of their commands.
type StandTeller interface {
	// Stands names what stands of the commands of that label at this moment, stopped or hanging in the kernel, in
	// words; nothing where all of it comes on.
	Stands(label string) []string
}

// Exit is how a command ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // "killed", ...
	Lost   bool   // the machine went away under it (power-off, node loss), so Code means nothing
	// Starved is how many processes the kernel killed for want of memory while it ran: in the machine, or in its part
	// of one where that has a limit of its own.
	Starved int `json:",omitempty"`
}

// Usage holds what a command has cost.
type Usage struct {
	User, System time.Duration
	MaxRSSBytes  int64
}

// Networked is implemented by hosts that other hosts of the cluster reach over a network, claimed as PeerNetwork.
type Networked interface {
	// Address is where the ports of the machine's commands are reached from the other machines and from itself: an IP
	// address or a name, without a port. It stays the same while the machine is on. How it is reached from here, if it
	// is at all, is another matter: see VMAddressed.
	Address(context.Context) (string, error)
}

// Discarder is implemented by hosts that can give back the space of a file's beginning, so that the output of a
// command that runs for a day does not fill a disk. The file keeps its length; what was given back reads as zeros.
type Discarder interface {
	// Discard gives back the bytes before upto. Where the file system cannot, it does nothing and returns nil.
	Discard(ctx context.Context, name string, upto int64) error
}

// SocketDialer is implemented by hosts of which the unix sockets of commands can be reached from here.
type SocketDialer interface {
	// DialSocket connects to a socket, named relative to the working folder, which no link leads out of.
	DialSocket(ctx context.Context, name string) (net.Conn, error)
}

// DiskReader is implemented by hosts whose data disks can be read without a command on the machine, to see what they
// hold.
type DiskReader interface {
	// OpenDisk opens a data disk, given by its Device, for reading only. What is read of it is what the disk holds when
	// no command writes to it, and does not stay in a cache for those that come.
	OpenDisk(ctx context.Context, device string) (DiskFile, error)
}

// DiskFile is a data disk open for reading. It is closed by who opened it.
type DiskFile interface {
	io.ReaderAt
	io.Closer
	// Size is in bytes.
	Size() int64
	// Written is how many bytes from one offset to another hold what was written once: neither holes nor space that is
	// only reserved. It is false where the place does not know.
	Written(from, to int64) (bytes int64, known bool, err error)
}

// DiskPurger is implemented by hosts that can empty data disks, claimed as DiskPurge.
type DiskPurger interface {
	// PurgeDisk gives back everything that a data disk, given by its Device, holds, and says how. It reads as zeros
	// then. Where the place cannot that is an error, and the disk is as it was.
	PurgeDisk(ctx context.Context, device string) (how string, err error)
}
