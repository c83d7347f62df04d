//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/storage/device"
	"plimsoll/internal/storage/device/guard"
	"plimsoll/internal/storage/written"
	"plimsoll/result"
	"plimsoll/unit"
)

// rawDisk is a block device that is a data disk as a whole. The guard's claim on it is held for as long as the cluster
// is open; nothing but commands of sandboxes writes to it, and clean-up never touches it.
type rawDisk struct {
	claim *guard.Claim
	device.Device
}

// checkDevices says everything that stands against writing to the devices, and what they are.
func (p *place) checkDevices(ctx context.Context, keep ...string) (disks []target.Disk, problems error) {
	for _, name := range p.blocks {
		if p.reading {
			claim, err := guard.OpenRead(ctx, p.system, name)
			if err != nil {
				problems = errors.Join(problems, err)
				continue
			}
			d := claim.Device()
			problems = errors.Join(problems, claim.Release())
			disks = append(disks, target.Disk{Path: name, ID: d.Identity.Phrase, Bytes: d.SizeBytes})
			continue
		}
		d, objections, err := guard.Check(ctx, p.system, name, keep...)
		if no := guard.Consent(d, p.consentTo(d)); no != nil && len(d.Name) > 0 {
			objections = append(objections, *no)
		}
		if len(objections) > 0 {
			err = errors.Join(err, &guard.Refusal{Path: name, Objections: objections})
		}
		problems = errors.Join(problems, err)
		disks = append(disks, target.Disk{Path: name, ID: d.Identity.Phrase, Bytes: d.SizeBytes})
	}
	return disks, problems
}

// consentTo is the consent for a device among those that were given, or the first of them where none is for it.
func (p *place) consentTo(d device.Device) string {
	for _, c := range p.consents {
		if guard.Consent(d, c) == nil {
			return c
		}
	}
	return strings.Join(p.consents[:min(1, len(p.consents))], "")
}

// takeDevices claims all devices, or none.
func (p *place) takeDevices(ctx context.Context, keep ...string) (disks []*rawDisk, err error) {
	for _, name := range p.blocks {
		if p.reading {
			claim, e := guard.OpenRead(ctx, p.system, name)
			if err = errors.Join(err, e); e == nil {
				disks = append(disks, &rawDisk{claim, claim.Device()})
			}
			continue
		}
		d, _ := device.Find(p.system, name) // what is wrong with it is Take's to say
		known, _ := device.Read(p.system, d.Device)
		claim, e := guard.ForWriting(ctx, p.system, name, p.consentTo(known), keep...)
		if err = errors.Join(err, e); e == nil {
			disks = append(disks, &rawDisk{claim, claim.Device()})
		}
	}
	if err != nil {
		return nil, errors.Join(err, releaseAll(disks))
	}
	return disks, nil
}

func releaseAll(disks []*rawDisk) (err error) {
	for _, r := range disks {
		err = errors.Join(err, r.claim.Release())
	}
	return err
}

// open opens the device beside the claim; to write, after it was checked once more.
func (r *rawDisk) open(ctx context.Context, flag int) (*os.File, error) {
	if flag != os.O_RDONLY {
		if err := r.claim.Recheck(ctx); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(r.claim.Path(), flag, 0)
	if err != nil {
		return nil, explain(err, r.claim.Path(), 0)
	}
	var ours, claimed unix.Stat_t
	err = errors.Join(unix.Fstat(int(f.Fd()), &ours), unix.Fstat(int(r.claim.File().Fd()), &claimed))
	if err == nil && ours.Rdev != claimed.Rdev {
		err = errors.New("leads to another device by now")
	}
	if err != nil {
		return nil, errors.Join(explain(err, r.claim.Path(), 0), f.Close())
	}
	return f, nil
}

// isRaw reports whether data disks are devices.
func (p *place) isRaw() bool { return len(p.blocks) > 0 }

// assign gives a new member a device for each of its disks: the first that nobody has and that is large enough.
func (c *cluster) assign(b *sandbox, template []target.Disk) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := map[*rawDisk]bool{}
	for _, other := range c.boxes {
		for _, r := range other.raw {
			taken[r] = true
		}
	}
	var raw []*rawDisk
	for i, d := range template {
		free := slices.IndexFunc(c.raw, func(r *rawDisk) bool { return !taken[r] && r.SizeBytes >= d.Bytes })
		if len(c.deals) > 0 { // then the jobs say how far they reach, each on its own
			if free = c.deals[i%len(c.deals)]; taken[c.raw[free]] {
				return fmt.Errorf("vm %q: disk %s: %s is another disk's", b.name, d.Device, c.raw[free].Node)
			}
		}
		if free < 0 {
			return fmt.Errorf("vm %q: disk %s: no device of %v or more is left of %s: give more with --disk, larger "+
				"ones, or a smaller size scale", b.name, d.Device, unit.Bytes(d.Bytes),
				unit.Plural(len(c.raw), "device"))
		}
		r := c.raw[free]
		taken[r] = true
		raw = append(raw, r)
		b.disks = append(b.disks, target.Disk{Device: d.Device, Path: c.nodeOf(b, i, r), Bytes: r.SizeBytes,
			ID: r.Identity.Phrase})
	}
	b.raw = raw
	return nil
}

// nodeOf is the path by which commands of a sandbox open a device: the device's own node, or, where they run as a user
// of their own who may not, a node of that user's in the sandbox's folder.
func (c *cluster) nodeOf(b *sandbox, i int, r *rawDisk) string {
	if c.wall.id == 0 {
		return r.claim.Path()
	}
	return filepath.Join(c.workDir, b.name, imageName(deviceName(i)))
}

// makeNodes makes the nodes of a sandbox's devices. It says which device commands use as which disk.
func (c *cluster) makeNodes(b *sandbox) error {
	for i, r := range b.raw {
		d := b.disks[i]
		c.log("disk %s of %s: %s (%s)", path.Base(d.Device), b.name, r.claim.Path(), r.Identity.Phrase)
		if d.Path == r.claim.Path() {
			continue
		}
		if err := c.makeNode(path.Join(b.name, imageName(d.Device)), r); err != nil {
			return explain(err, d.Path, 0)
		}
	}
	return nil
}

func (c *cluster) makeNode(name string, r *rawDisk) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(r.claim.File().Fd()), &st); err != nil {
		return err
	}
	dir, err := c.work.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Mknodat(int(dir.Fd()), name, unix.S_IFBLK|0o600, int(st.Rdev)); err != nil {
		return err
	}
	f, err := c.work.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: its file system is mounted without devices (nodev): put run folders elsewhere with --dir",
			unix.EACCES)
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), c.give(c.work, name))
}

// admits looks at a sandbox's devices once more before a command is let at them. Where they are only read it refuses
// commands that may write; the others can do no harm, in use or not.
func (c *cluster) admits(ctx context.Context, b *sandbox, r target.Command) (err error) {
	if c.reading && len(b.raw) > 0 {
		if !r.ReadOnly {
			return fmt.Errorf("%q may write, and its devices are only to be read (option devices=read)", r.Argv[0])
		}
		return nil
	}
	for _, r := range b.raw {
		err = errors.Join(err, r.claim.Recheck(ctx))
	}
	return err
}

// rawStorage is a device under the data disks as far as facts are concerned.
func (p *place) rawStorage(i int, name string) storage {
	st := storage{group: storageGroup, dir: name, free: -1, total: -1}
	if i > 0 {
		st.group = fmt.Sprintf("%s %d", storageGroup, i+1)
	}
	at, err := device.Find(p.system, name)
	if err == nil {
		var d device.Device
		if d, err = device.Read(p.system, at.Device); err == nil {
			st.raw, st.device, st.total = &d, device.Whole(p.system, d.Name), d.SizeBytes
			st.counted = d.Name
		}
	}
	if err != nil {
		st.problem = err.Error()
	}
	return st
}

// rawFacts are what is known of a device that is a data disk, before what is known of every device below disks.
func (s storage) rawFacts(l *factList) {
	add := func(name, value string) *result.Fact { return l.add(s.group, name, value, s.problem) }
	d := device.Device{}
	size := ""
	if s.raw != nil {
		d, size = *s.raw, unit.Bytes(s.raw.SizeBytes).String()
	}
	add("raw device", d.Node).Across = result.Volatile
	identity := add("identity", d.Identity.Phrase)
	identity.Identifies = result.Serial
	add("identity pinned by", d.Identity.By)
	add("media", d.Media)
	f := add("size", size)
	f.Kind, f.Number = result.StorageSize, float64(d.SizeBytes)
	add("page cache", "used by buffered I/O; jobs with direct=1 bypass it")
}

// sampledBlocks is how many blocks of a device that is only read are looked at for what was never written there.
const sampledBlocks = 256

// sampledFact looks at some blocks of a device that is only read: reads of what was never written or was trimmed
// are answered without the medium.
func (p *place) sampledFact(ctx context.Context, name string, l *factList, group string) {
	add := func(value, missing string) *result.Fact {
		f := l.add(group, "blocks sampled", value, missing)
		f.Kind, f.Across = result.SampledZeros, result.Volatile
		return f
	}
	claim, err := guard.OpenRead(ctx, p.system, name)
	if err != nil {
		add("", err.Error())
		return
	}
	defer claim.Release() //nolint:errcheck // it was only read
	size := claim.Device().SizeBytes
	look, err := written.Sample(ctx, readDevice{claim.File()}, []written.Range{{To: size}}, sampledBlocks, uint64(size))
	if err != nil || look.Blocks == 0 {
		add("", fmt.Sprintf("reading failed: %v", err))
		return
	}
	add(fmt.Sprintf("%d of %d hold nothing but zeros", look.Zero, look.Blocks), "").Number =
		float64(look.Zero) / float64(look.Blocks)
}

// readDevice is a device to be sampled; which of its blocks are mapped it does not tell.
type readDevice struct{ *os.File }

// Written implements written.Disk.
func (readDevice) Written(int64, int64) (int64, bool, error) { return 0, false, nil }

// rawNotes are what a user must know before devices are overwritten.
func rawNotes(sts []storage, reading bool, note func(string, ...any)) {
	var list []string
	for _, st := range sts {
		if st.raw != nil {
			list = append(list, fmt.Sprintf("%s (%s, %v)", st.raw.Node, st.raw.Identity.Phrase,
				unit.Bytes(st.raw.SizeBytes)))
		}
	}
	if reading {
		note("The data disks, and so the load, are whole devices, and they are only read: %s.", strings.Join(list, ", "))
		return
	}
	note("The data disks, and so the load, are whole devices, and what is on them will be lost: %s.",
		strings.Join(list, ", "))
}
