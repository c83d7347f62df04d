package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Image is what qemu-img tells of a disk image. Sizes are in bytes.
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

// GrowImage makes an image larger that no machine has open; else see Machine.Grow.
func GrowImage(ctx context.Context, path, format string, bytes int64) error {
	_, err := qemuImg(ctx, path, "resize", "-q", "-f", format, path, strconv.FormatInt(bytes, 10))
	return err
}

// CheckImage looks for damage. Space that is lost to nothing, as a power cut leaves it, is none. It returns nil for
// formats that cannot tell. The image must not be in use.
func CheckImage(ctx context.Context, path, format string) error {
	if format == Raw {
		return nil
	}
	const leaks = 3 // exit status: nothing but clusters that are marked as used
	_, err := qemuImg(ctx, path, "check", "-q", "-f", format, path)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == leaks {
		return nil
	}
	return err
}

// ImageInfo tells of an image, also of one in use.
func ImageInfo(ctx context.Context, path string) (i Image, err error) {
	out, err := qemuImg(ctx, path, "info", "-U", "--output=json", path)
	if err == nil {
		err = json.Unmarshal(out, &i)
	}
	if i.Backing != "" {
		i.Backing = filepath.Clean(i.Backing)
	}
	return i, err
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
