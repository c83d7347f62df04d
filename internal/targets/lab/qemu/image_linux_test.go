package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
)

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
