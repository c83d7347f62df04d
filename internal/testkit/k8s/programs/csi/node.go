package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node, AccessibleTopology: &csi.Topology{
		Segments: map[string]string{topologyKey: d.node}}}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (
	*csi.NodeGetCapabilitiesResponse, error) {
	r := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER} {
		r.Capabilities = append(r.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: kind}}})
	}
	return r, nil
}

// use checks what a node is asked to do with a volume.
func (d *driver) use(id, path string, how *csi.VolumeCapability) error {
	if id == "" || path == "" || how == nil {
		return status.Error(codes.InvalidArgument, "want a volume, a path and a capability")
	}
	v, err := d.volume(id)
	if err != nil {
		return err
	}
	if v.Node != "" && v.Node != d.node {
		return status.Errorf(codes.FailedPrecondition, "%s lies on %s, and this is %s", id, v.Node, d.node)
	}
	return fits([]*csi.VolumeCapability{how}, v.Block)
}

func (d *driver) NodeStageVolume(_ context.Context, q *csi.NodeStageVolumeRequest) (
	*csi.NodeStageVolumeResponse, error) {
	if err := d.use(q.VolumeId, q.StagingTargetPath, q.VolumeCapability); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	device, err := d.attach(q.VolumeId)
	if err == nil && q.VolumeCapability.GetMount() != nil && !mounted(q.StagingTargetPath) {
		if err = format(device); err == nil {
			if err = os.MkdirAll(q.StagingTargetPath, 0o750); err == nil {
				err = run(slices.Concat([]string{"mount", "-t", "ext4"}, flags(q.VolumeCapability),
					[]string{device, q.StagingTargetPath})...)
			}
		}
	}
	return &csi.NodeStageVolumeResponse{}, internal(err)
}

func (d *driver) NodeUnstageVolume(_ context.Context, q *csi.NodeUnstageVolumeRequest) (
	*csi.NodeUnstageVolumeResponse, error) {
	if q.VolumeId == "" || q.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "want a volume and a path")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := unmount(q.StagingTargetPath); err != nil {
		return nil, internal(err)
	}
	if f := d.attached[q.VolumeId]; f != nil {
		delete(d.attached, q.VolumeId)
		return &csi.NodeUnstageVolumeResponse{}, internal(f.Close()) // and with it the device, when no pod has it
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, q *csi.NodePublishVolumeRequest) (
	*csi.NodePublishVolumeResponse, error) {
	if err := d.use(q.VolumeId, q.TargetPath, q.VolumeCapability); err != nil {
		return nil, err
	}
	if q.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "want the path of the stage")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if mounted(q.TargetPath) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	from := q.StagingTargetPath
	err := os.MkdirAll(filepath.Dir(q.TargetPath), 0o750)
	if q.VolumeCapability.GetBlock() != nil {
		if err == nil {
			from, err = d.attach(q.VolumeId)
		}
		if err == nil {
			var f *os.File
			if f, err = os.OpenFile(q.TargetPath, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
				err = f.Close()
			}
		}
	} else if err == nil {
		err = os.MkdirAll(q.TargetPath, 0o750)
	}
	if err == nil {
		err = run("mount", "--bind", from, q.TargetPath)
	}
	if err == nil && q.Readonly {
		err = run("mount", "-o", "remount,bind,ro", q.TargetPath)
	}
	return &csi.NodePublishVolumeResponse{}, internal(err)
}

func (d *driver) NodeUnpublishVolume(_ context.Context, q *csi.NodeUnpublishVolumeRequest) (
	*csi.NodeUnpublishVolumeResponse, error) {
	if q.VolumeId == "" || q.TargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "want a volume and a path")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	err := unmount(q.TargetPath)
	if err == nil {
		if err = os.Remove(q.TargetPath); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, internal(err)
}

// attach gives the loop device of a volume on this node.
func (d *driver) attach(volume string) (string, error) {
	if f := d.attached[volume]; f != nil {
		return f.Name(), nil
	}
	file, err := os.OpenFile(d.file(volume), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	config := &unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	copy(config.Info.File_name[:unix.LO_NAME_SIZE-1], d.id+"/"+d.node+"/"+volume)
	for range 100 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return "", err
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return "", err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), config)
		if err == nil {
			d.attached[volume] = device
			return device.Name(), nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) { // another took it
			return "", err
		}
	}
	return "", errors.New("no loop device is free")
}

// format makes a file system where there is nothing yet.
func format(device string) error {
	f, err := os.Open(device)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 4096)
	if _, err := f.Read(head); err != nil {
		return err
	}
	if head[1080] == 0x53 && head[1081] == 0xef {
		return nil
	}
	return run("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1", device)
}

func flags(how *csi.VolumeCapability) []string {
	if list := how.GetMount().GetMountFlags(); len(list) > 0 {
		return []string{"-o", strings.Join(list, ",")}
	}
	return nil
}

func mounted(path string) bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(text), " "+path+" ")
}

func unmount(path string) error {
	for mounted(path) {
		if err := unix.Unmount(path, 0); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func run(argv ...string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

func internal(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.Internal, err.Error())
}
