package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/fleet"
)

var _ target.PlainPlacer = (*cluster)(nil)

// plainHow describes a place beside a pod.
const plainHow = "a privileged pod without limits, at the node's own device of each disk"

// plainFolder is where the devices are in it: the node's own, such as its /dev/sdb, are below /dev.
const plainFolder = "/plain/"

// Plain implements target.PlainPlacer.
func (c *cluster) Plain(ctx context.Context, name string) (*target.PlainPlace, error) {
	v, err := c.get(name)
	if err != nil {
		return nil, err
	}
	beside := &vm{Name: name + " (beside it)", Short: v.Short + "-plain", Group: v.Group, Node: v.Node, Image: v.Image,
		Plain: true}
	disks := c.Disks(name)
	for i := range disks {
		disks[i].Path = strings.Replace(disks[i].Path, "/dev/", plainFolder, 1)
	}
	remove := func(ctx context.Context) error {
		return c.api.remove(ctx, pods, beside.Short, c.state.Run, new(int64(1)))
	}
	h, err := c.life(ctx, beside, disks)
	if err != nil {
		return nil, errors.Join(err, remove(context.WithoutCancel(ctx)))
	}
	end := func(ctx context.Context) error { return errors.Join(h.Close(), remove(ctx)) }
	for i, d := range disks {
		if err := c.sameDevice(ctx, v, beside, fleet.Device(i), d.Path); err != nil {
			return nil, errors.Join(err, end(context.WithoutCancel(ctx)))
		}
	}
	return &target.PlainPlace{Host: h, How: plainHow, End: end}, nil
}

// sameDevice makes the device that a machine has as a disk in the place beside it.
func (c *cluster) sameDevice(ctx context.Context, v, beside *vm, device, to string) error {
	number, err := c.say(ctx, v, fmt.Sprintf("stat -L -c '%%t %%T' %s", device))
	var major, minor int
	if err == nil {
		_, err = fmt.Sscanf(number, "%x %x", &major, &minor)
	}
	if err == nil {
		_, err = c.say(ctx, beside, fmt.Sprintf("mkdir -p %s && mknod %s b %d %d && dd if=%[2]s of=/dev/null bs=4096 count=1",
			plainFolder, to, major, minor))
	}
	if err != nil {
		return fmt.Errorf("disk %s: the node's device is not reached: %w", device, err)
	}
	return nil
}

// say returns what a command prints in a machine's pod.
func (c *cluster) say(ctx context.Context, v *vm, line string) (string, error) {
	w, err := c.api.way(v.Short)(ctx)
	if err != nil {
		return "", err
	}
	out, err := w.Command(ctx, time.Minute, nil, line)
	return out, errors.Join(err, w.Close())
}
