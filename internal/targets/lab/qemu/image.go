package qemu

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Image holds what qemu-img tells of a disk image. Sizes are in bytes.
type Image struct {
	Path         string     `json:"filename"`
	Format       string     `json:"format"`
	VirtualBytes int64      `json:"virtual-size"` // as the guest sees it
	ActualBytes  int64      `json:"actual-size"`  // on the storage
	Backing      string     `json:"full-backing-filename"`
	Snapshots    []Snapshot `json:"snapshots"`
}

// Snapshot is one inside an image.
type Snapshot struct {
	Tag         string `json:"name"`
	SecondsUnix int64  `json:"date-sec"`
}

// qemuImg runs the tool; its words are part of an error.
func qemuImg(ctx context.Context, path string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "qemu-img", args...)
	var words strings.Builder
	c.Stderr = &words
	out, err := c.Output()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return out, fmt.Errorf("image %s: qemu-img %s: %w: %s", path, args[0], err,
			strings.TrimPrefix(strings.TrimSpace(words.String()), "qemu-img: "))
	}
	return out, nil
}

// CreateImage makes an empty qcow2 image. One that is there is overwritten.
func CreateImage(ctx context.Context, path string, bytes int64) error {
	_, err := qemuImg(ctx, path, "create", "-q", "-f", Qcow2, path, strconv.FormatInt(bytes, 10))
	return err
}

// CloneImage makes a qcow2 image that holds what differs from another one, which must not change as long as this is
// there, and which it names relative to its own folder. It takes no time and little space. It has at least the size of
// the other one.
func CloneImage(ctx context.Context, path, backing, backingFormat string) error {
	backing, err := filepath.Rel(filepath.Dir(path), backing)
	if err != nil {
		return fmt.Errorf("image %s: %w", path, err)
	}
	_, err = qemuImg(ctx, path, "create", "-q", "-f", Qcow2, "-b", backing, "-F", backingFormat, path)
	return err
}

// CopyImage makes a qcow2 image with all that another one shows, which depends on nothing.
func CopyImage(ctx context.Context, path, from, fromFormat string) error {
	_, err := qemuImg(ctx, path, "convert", "-q", "-f", fromFormat, "-O", Qcow2, from, path)
	return err
}

// SnapshotImage keeps what an image holds now under a tag inside it. Of running machines see SnapshotAll.
func SnapshotImage(ctx context.Context, path, tag string) error {
	_, err := qemuImg(ctx, path, "snapshot", "-q", "-c", tag, path)
	return err
}

// RestoreImage puts an image back to what a tag keeps. The image must not be in use.
func RestoreImage(ctx context.Context, path, tag string) error {
	_, err := qemuImg(ctx, path, "snapshot", "-q", "-a", tag, path)
	return err
}
