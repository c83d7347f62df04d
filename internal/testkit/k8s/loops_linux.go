package k8s

import (
	"bytes"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loops are the loop devices that carry a name which begins so, as the CSI driver gives it to them, and those above
// them: the kubelet puts one on each block device of a pod, and only it takes that off again.
func loops(begin string) (devices []string) {
	type place struct{ device, inode uint64 }
	ours := map[place]bool{}
	under := map[string]place{}
	list, _ := filepath.Glob("/sys/block/loop*/loop")
	for _, dir := range list {
		device := "/dev/" + filepath.Base(filepath.Dir(dir))
		fd, err := unix.Open(device, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		info, err := unix.IoctlLoopGetStatus64(fd)
		var itself unix.Stat_t
		if err == nil && unix.Fstat(fd, &itself) == nil {
			under[device] = place{info.Device, info.Inode}
			name, _, _ := bytes.Cut(info.File_name[:], []byte{0})
			if strings.HasPrefix(string(name), begin) {
				ours[place{itself.Dev, itself.Ino}] = true
				devices = append(devices, device)
			}
		}
		unix.Close(fd)
	}
	for device, on := range under {
		if ours[on] {
			devices = append(devices, device)
		}
	}
	return devices
}

// freeLoops detaches them.
func freeLoops(begin string) {
	for _, device := range loops(begin) {
		fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		_ = unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0) // one that is in use goes when it no longer is
		unix.Close(fd)
	}
}
