// Package guest builds the images that machines of the lab boot, from Debian's packages, and gives each machine that
// boots one an identity of its own.
//
// There are two kinds. A worker is a kernel and an initramfs with busybox, a static fio, an SSH server and the agent:
// it boots in seconds in 128 MiB. A Debian is a whole one, with systemd, OpenSSH, Python, PostgreSQL and fio, for
// playbooks and databases. Both begin with the same first program (files/init), which names disks in the order of
// their devices and takes the identity from the first SCSI disk; that disk is always /dev/sda, so data disks are
// /dev/sdb onward.
//
// The package stands below the emulator and the lab's nodes: it starts no machine. It refuses to build what it cannot
// name exactly (every package is fetched by the checksum that apt knows), to boot a machine with an incomplete
// identity, and to put a secret anywhere but into a file of mode 0600. An image has the hash of all that went in as its
// ID and is taken from the cache when it is there; an interrupted build leaves nothing that a later one would take for
// whole.
package guest
