package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// record holds what is known of a volume or a snapshot, beside its file.
type record struct {
	Name, ID string
	Size     int64
	Node     string // the only one that reaches it; "" when all do
	Source   string // what it was copied from
	Block    bool   // it may be used as a device
	Made     time.Time
}

const topologyKey = "topology.csi.plimsoll.test/node"

// wanted are the ids that this driver gives: whatever else comes names no file.
var wanted = regexp.MustCompile(`^(vol|snap)-[0-9a-f]{16}$`)

func identify(kind, name string) string {
	return fmt.Sprintf("%s-%x", kind, sha256.Sum256([]byte(name)))[:len(kind)+17]
}

func (d *driver) file(id string) string { return filepath.Join(d.volumes, id) }

// read gives a record, nil of one that is not there.
func (d *driver) read(id string) (*record, error) {
	if !wanted.MatchString(id) {
		return nil, nil
	}
	data, err := os.ReadFile(d.file(id) + ".json")
	if os.IsNotExist(err) {
		return nil, nil
	}
	r := new(record)
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return r, nil
}

// make makes the file, empty or as a copy, and then its record: one without a record is none.
func (d *driver) make(r *record) error {
	var err error
	if r.Source != "" {
		var out []byte
		copied := exec.Command("cp", "--sparse=always", "--reflink=auto", d.file(r.Source), d.file(r.ID))
		if out, err = copied.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	} else {
		err = os.WriteFile(d.file(r.ID), nil, 0o600)
	}
	if err == nil {
		err = os.Truncate(d.file(r.ID), r.Size)
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(r)
	}
	if err == nil {
		err = os.WriteFile(d.file(r.ID)+".json.new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(d.file(r.ID)+".json.new", d.file(r.ID)+".json")
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (d *driver) remove(id, kind string) error {
	if id == "" {
		return status.Errorf(codes.InvalidArgument, "no %s is named", kind)
	}
	if !wanted.MatchString(id) || !strings.HasPrefix(id, kind) {
		return nil // it was never made
	}
	for _, name := range []string{d.file(id) + ".json", d.file(id)} {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return status.Error(codes.Internal, err.Error())
		}
	}
	return nil
}

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (
	*csi.ControllerGetCapabilitiesResponse, error) {
	r := &csi.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS, csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER} {
		r.Capabilities = append(r.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}}})
	}
	return r, nil
}

// fits says what is wrong with how a volume is to be used.
func fits(all []*csi.VolumeCapability, block bool) error {
	if len(all) == 0 {
		return status.Error(codes.InvalidArgument, "no capability is asked for")
	}
	for _, c := range all {
		if c.GetBlock() != nil && !block {
			return status.Error(codes.InvalidArgument, "the class has no Block volumes (parameter block: no)")
		}
		if c.GetMount() != nil && !slices.Contains([]string{"", "ext4"}, c.GetMount().FsType) {
			return status.Errorf(codes.InvalidArgument, "file system %q: want ext4", c.GetMount().FsType)
		}
		switch c.GetAccessMode().GetMode() {
		case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
			csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:
			if c.GetBlock() == nil {
				return status.Error(codes.InvalidArgument, "a file system is written from one node only")
			}
		}
	}
	return nil
}

func (d *driver) CreateVolume(_ context.Context, q *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if q.Name == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume has no name")
	}
	r := &record{Name: q.Name, ID: identify("vol", q.Name), Block: q.Parameters["block"] != "no", Made: time.Now(),
		Size: max(q.GetCapacityRange().GetRequiredBytes(), 1<<20)}
	if err := fits(q.VolumeCapabilities, r.Block); err != nil {
		return nil, err
	}
	r.Size = (r.Size + 4095) &^ 4095
	if limit := q.GetCapacityRange().GetLimitBytes(); limit > 0 && r.Size > limit {
		return nil, status.Errorf(codes.OutOfRange, "%d bytes are more than the limit of %d", r.Size, limit)
	}
	if free := d.free(); r.Size > free {
		return nil, status.Errorf(codes.ResourceExhausted, "%d bytes are more than the %d that are free", r.Size, free)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Source = q.VolumeContentSource.GetSnapshot().GetSnapshotId() + q.VolumeContentSource.GetVolume().GetVolumeId()
	if r.Source != "" {
		from, err := d.read(r.Source)
		switch {
		case err != nil:
			return nil, err
		case from == nil:
			return nil, status.Errorf(codes.NotFound, "%s is not there", r.Source)
		case q.Parameters["sources"] == "no":
			return nil, status.Error(codes.InvalidArgument, "the class makes neither clones nor volumes of snapshots")
		case from.Size > r.Size:
			return nil, status.Errorf(codes.OutOfRange, "%s has %d bytes, more than the %d that are asked for",
				r.Source, from.Size, r.Size)
		}
	}
	if q.Parameters["local"] == "yes" {
		for _, t := range slices.Concat(q.GetAccessibilityRequirements().GetPreferred(),
			q.GetAccessibilityRequirements().GetRequisite()) {
			if r.Node == "" {
				r.Node = t.Segments[topologyKey]
			}
		}
	}
	before, err := d.read(r.ID)
	switch {
	case err != nil:
		return nil, err
	case before == nil:
		if err := d.make(r); err != nil {
			return nil, err
		}
	case before.Source != r.Source || before.Size < q.GetCapacityRange().GetRequiredBytes() ||
		before.Size > r.Size:
		return nil, status.Errorf(codes.AlreadyExists, "%s is there, and other: %d bytes from %q", q.Name, before.Size,
			before.Source)
	default:
		r = before
	}
	v := &csi.Volume{VolumeId: r.ID, CapacityBytes: r.Size, ContentSource: q.VolumeContentSource}
	if r.Node != "" {
		v.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{topologyKey: r.Node}}}
	}
	return &csi.CreateVolumeResponse{Volume: v}, nil
}

func (d *driver) DeleteVolume(_ context.Context, q *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, d.remove(q.VolumeId, "vol")
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, q *csi.ValidateVolumeCapabilitiesRequest) (
	*csi.ValidateVolumeCapabilitiesResponse, error) {
	if q.VolumeId == "" || len(q.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "want a volume and capabilities")
	}
	v, err := d.volume(q.VolumeId)
	if err != nil {
		return nil, err
	}
	if err := fits(q.VolumeCapabilities, v.Block); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: q.VolumeCapabilities}}, nil
}

// volume is one that must be there.
func (d *driver) volume(id string) (*record, error) {
	v, err := d.read(id)
	if err == nil && (v == nil || !strings.HasPrefix(id, "vol-")) {
		err = status.Errorf(codes.NotFound, "volume %q is not there", id)
	}
	return v, err
}

func (d *driver) free() int64 {
	var fs unix.Statfs_t
	if unix.Statfs(d.volumes, &fs) != nil {
		return 0
	}
	return int64(fs.Bavail) * fs.Bsize
}

func (d *driver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: d.free()}, nil
}

func (r *record) snapshot() *csi.Snapshot {
	return &csi.Snapshot{SnapshotId: r.ID, SourceVolumeId: r.Source, SizeBytes: r.Size, ReadyToUse: true,
		CreationTime: timestamppb.New(r.Made)}
}

func (d *driver) CreateSnapshot(_ context.Context, q *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if q.Name == "" || q.SourceVolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "want a name and a volume")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.read(identify("snap", q.Name))
	if err != nil {
		return nil, err
	}
	if r != nil && r.Source != q.SourceVolumeId {
		return nil, status.Errorf(codes.AlreadyExists, "%s is there, of %s", q.Name, r.Source)
	}
	if r == nil {
		from, err := d.volume(q.SourceVolumeId)
		if err != nil {
			return nil, err
		}
		r = &record{Name: q.Name, ID: identify("snap", q.Name), Size: from.Size, Source: from.ID, Made: time.Now()}
		if err := d.make(r); err != nil {
			return nil, err
		}
	}
	return &csi.CreateSnapshotResponse{Snapshot: r.snapshot()}, nil
}

func (d *driver) DeleteSnapshot(_ context.Context, q *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, d.remove(q.SnapshotId, "snap")
}

func (d *driver) ListSnapshots(_ context.Context, q *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	names, err := filepath.Glob(d.file("snap-*.json"))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	sort.Strings(names)
	from, err := strconv.Atoi("0" + q.StartingToken)
	if err != nil || from > len(names) {
		return nil, status.Errorf(codes.Aborted, "the list has no place %q", q.StartingToken)
	}
	answer := &csi.ListSnapshotsResponse{}
	for i, name := range names[from:] {
		r, err := d.read(strings.TrimSuffix(filepath.Base(name), ".json"))
		if err != nil {
			return nil, err
		}
		if r == nil || q.SnapshotId != "" && r.ID != q.SnapshotId ||
			q.SourceVolumeId != "" && r.Source != q.SourceVolumeId {
			continue
		}
		if q.MaxEntries > 0 && len(answer.Entries) == int(q.MaxEntries) {
			answer.NextToken = strconv.Itoa(from + i)
			break
		}
		answer.Entries = append(answer.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: r.snapshot()})
	}
	return answer, nil
}
