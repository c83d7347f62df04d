package guard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device"
)

// probe looks for marks in an open device or file: ours, and those that libblkid knows, which knows more formats, where
// its programs are installed. The programs look at what was opened, whatever its name leads to by now.
func probe(ctx context.Context, f fs.File, size int64) ([]device.Signature, error) {
	content, ok := f.(io.ReaderAt)
	if !ok {
		return nil, errors.New("cannot be read at places")
	}
	found, err := inTime(func() ([]device.Signature, error) { return device.Probe(content, size) })
	real, ok := f.(*os.File)
	if err != nil || !ok || size == 0 {
		return found, err
	}
	theirs, err := wipefs(ctx, real)
	also, e := blkid(ctx, real)
	return merge(found, append(theirs, also...)), errors.Join(err, e)
}

// merge adds to our marks the kinds of which we have found none in any of their places. What is named without a place
// is added where nothing of its family was found.
func merge(found, theirs []device.Signature) []device.Signature {
	known := map[string]bool{}
	for _, s := range theirs {
		known[s.Name] = known[s.Name] || slices.ContainsFunc(found, func(o device.Signature) bool {
			return s.Offset == o.Offset
		})
	}
	for _, s := range theirs {
		if known[s.Name] || s.Offset < 0 && slices.ContainsFunc(found, func(o device.Signature) bool {
			return s.Family == o.Family || s.Name == several
		}) {
			continue
		}
		known[s.Name] = true
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(a, b device.Signature) int { return cmp.Compare(a.Offset, b.Offset) })
	return found
}

// several names content that blkid takes for more than one thing.
const several = "several formats"

// patience bounds how long a look may take, ours or a program's: it reads some megabytes. Tests have less.
var patience = 20 * time.Second

// errSilent is of a device that does not answer, or of a program that does not.
var errSilent = errors.New("what is on it is not known")

// inTime is do's answer, unless it hangs in the kernel, as on a device that does not answer: then it is left there.
func inTime[T any](do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := do()
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-time.After(patience + 2*killed):
		var none T
		return none, fmt.Errorf("it was not read within %v: %w", patience, errSilent)
	}
}

// killed is how long the output of a program that was killed is waited for.
const killed = time.Second

// ask runs a program of util-linux on an open file. ok is false where it is not installed.
func ask(ctx context.Context, f *os.File, name string, args ...string) (out []byte, code int, ok bool, err error) {
	program, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} { // which users' paths leave out
		if err != nil {
			program, err = exec.LookPath(dir + name)
		}
	}
	if err != nil {
		return nil, 0, false, nil
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, program, append(args, "/dev/fd/3")...)
	cmd.ExtraFiles = []*os.File{f}
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = killed
	var text, wrong bounded
	cmd.Stdout, cmd.Stderr = &text, &wrong
	if err = cmd.Start(); err == nil {
		_, err = inTime(func() (any, error) { return nil, cmd.Wait() })
	}
	if limited.Err() != nil && ctx.Err() == nil {
		stands := ""
		for _, s := range procfs.Stands(cmd.Process.Pid) { // none, as a rule: it was killed
			stands += ", " + s.String()
		}
		return nil, 0, true, fmt.Errorf("%s has not ended within %v%s: %w", program, patience, stands, errSilent)
	}
	if exited, is := errors.AsType[*exec.ExitError](err); is && exited.Exited() && limited.Err() == nil {
		// One without these options, as of busybox or long ago, is as good as none.
		ok := !strings.Contains(wrong.String(), "option")
		return text.Bytes(), exited.ExitCode(), ok, fmt.Errorf("%s: %s", name, cmp.Or(wrong.line(), err.Error()))
	}
	if err != nil {
		return nil, 0, true, fmt.Errorf("%s: %w", name, cmp.Or(limited.Err(), err))
	}
	return text.Bytes(), 0, true, nil
}

// bounded keeps the beginning of what a program prints.
type bounded struct{ bytes.Buffer }

const mostPrinted = 1 << 20

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), mostPrinted-b.Len())])
	return len(p), nil
}

func (b *bounded) line() string {
	line, _, _ := strings.Cut(strings.TrimSpace(b.String()), "\n")
	return line
}

// wipefs lists all marks that libblkid finds, with their places.
func wipefs(ctx context.Context, f *os.File) (found []device.Signature, err error) {
	out, _, ok, err := ask(ctx, f, "wipefs", "--no-act", "--json", "--output", "OFFSET,TYPE,USAGE")
	switch {
	case !ok:
		return nil, nil
	case err != nil:
		return nil, err
	}
	var list struct {
		Signatures []struct{ Offset, Type, Usage string }
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("wipefs: what it prints is not understood: %w", err)
	}
	for _, s := range list.Signatures {
		at, err := strconv.ParseInt(s.Offset, 0, 64)
		if err != nil || s.Type == "" {
			return nil, fmt.Errorf("wipefs: what it prints is not understood: %q at %q", s.Type, s.Offset)
		}
		found = append(found, device.Signature{Name: s.Type, Family: family(s.Usage), Offset: at, By: "wipefs"})
	}
	return found, nil
}

// What blkid exits with when it finds nothing, and when it finds several things that exclude each other.
const (
	nothingFound = 2
	ambivalent   = 8
)

// blkid names what libblkid takes the content for, without the place.
func blkid(ctx context.Context, f *os.File) (found []device.Signature, err error) {
	out, code, ok, err := ask(ctx, f, "blkid", "--probe", "--output", "udev")
	switch {
	case !ok, code == nothingFound:
		return nil, nil
	case code == ambivalent:
		return []device.Signature{{Name: several, Family: device.FileSystem, Offset: -1, By: "blkid"}}, nil
	case err != nil:
		return nil, err
	}
	value := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			value[name] = text
		}
	}
	if name := value["ID_FS_TYPE"]; name != "" {
		found = append(found, device.Signature{Name: name, Family: family(value["ID_FS_USAGE"]), Offset: -1,
			By: "blkid"})
	}
	if name := value["ID_PART_TABLE_TYPE"]; name != "" {
		found = append(found, device.Signature{Name: name, Family: device.PartitionTable, Offset: -1, By: "blkid"})
	}
	return found, nil
}

// family is ours by libblkid's usage.
func family(usage string) device.Family {
	switch usage {
	case "filesystem":
		return device.FileSystem
	case "partition-table":
		return device.PartitionTable
	}
	return device.Member
}
