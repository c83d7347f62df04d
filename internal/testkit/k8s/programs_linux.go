package k8s

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// version is that of Kubernetes, as programs/go.mod has it.
const version = "v1.36.3"

// ldflags are the same for all the programs: with others Go compiles their common half twice.
const ldflags = "-s -w -X k8s.io/component-base/version.gitVersion=" + version +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" +
	" -X k8s.io/client-go/pkg/version.gitVersion=" + version

// errCannot is of a machine on which no cluster can be.
var errCannot = errors.New("no Kubernetes can be started here")

// programs builds Kubernetes and what is beside it from the nested module, and gives the folder where they are kept.
func programs(ctx context.Context, source string, say func(string)) (string, error) {
	return built(ctx, filepath.Join(source, "programs"), "k8s",
		"github.com/kubernetes-csi/external-snapshotter/client/v8",
		"config/crd/*snapshot.storage.k8s.io_*.yaml", []string{"./..."},
		func() { say("Kubernetes " + version + " is compiled: some 830 seconds of one processor, once") })
}

// built builds the programs of a nested module, with files that one of its modules has beside them in the folder crd,
// and gives the folder where they are kept. It is this process's until it ends: what nobody has goes when others are
// built.
func built(ctx context.Context, module, name, of, files string, packages []string, say func()) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.New()
	fmt.Fprintln(key, ldflags)
	for _, pattern := range []string{"go.*", "*/*.go"} {
		names, _ := filepath.Glob(filepath.Join(module, pattern)) // in order
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(key, filepath.Base(name), len(text))
			key.Write(text)
		}
	}
	dir := filepath.Join(cache, "plimsoll-tests", fmt.Sprintf("%s-%x", name, key.Sum(nil)[:6]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	inUse = append(inUse, lock)
	for _, how := range []int{syscall.LOCK_SH, syscall.LOCK_EX} {
		if err := syscall.Flock(int(lock.Fd()), how); err != nil {
			return "", err
		}
		if _, err := os.Stat(dir); err == nil {
			return dir, syscall.Flock(int(lock.Fd()), syscall.LOCK_SH)
		}
	}
	outdated(dir, name)
	say()
	begun := dir + ".unfinished"
	if err := errors.Join(os.RemoveAll(begun), os.Mkdir(begun, 0o755)); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags",
		ldflags, "-o", begun + "/", "tool"}, packages...)...)
	build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: go build in %s: %w: %s", errCannot, module, err, last(string(out)))
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", of)
	list.Dir, list.Env = module, build.Env
	out, err := list.Output()
	if err != nil {
		return "", err
	}
	definitions, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), files))
	if len(definitions) == 0 {
		return "", fmt.Errorf("%s has no %s", out, files)
	}
	if err := os.Mkdir(begun+"/crd", 0o755); err != nil {
		return "", err
	}
	for _, name := range definitions {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(begun, "crd", filepath.Base(name)), text, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	return dir, errors.Join(os.Rename(begun, dir), syscall.Flock(int(lock.Fd()), syscall.LOCK_SH))
}

// inUse are the locks of folders of programs, so that the collector does not close them.
var inUse []*os.File

// outdated removes the programs of other sources that nobody uses.
func outdated(but, name string) {
	folders, _ := filepath.Glob(filepath.Join(filepath.Dir(but), name+"-*[0-9a-f]"))
	for _, dir := range folders {
		lock, err := os.OpenFile(dir+".lock", os.O_RDWR, 0)
		if dir == but || err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // they are built again where they are wanted
		}
		lock.Close()
	}
}

// last are the last lines of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
