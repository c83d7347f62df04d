package qemu

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/scratch"
)

// Accelerators.
const (
	TCG = "tcg" // emulation: works everywhere, and is slow
	KVM = "kvm" // the processor's own
)

// Proof is which accelerator to use on this machine, and why.
type Proof struct {
	Accel  string        `json:"accel"`
	Reason string        `json:"reason"` // a sentence for people
	Took   time.Duration `json:"took_ns"`
	Cached bool          `json:"-"`
}

const (
	proofLimit = 30 * time.Second
	device     = "/dev/kvm"
)

// booted are the words with which Linux says on its console that it is through: it starts the first program, or there
// is none to start.
var booted = [][]byte{[]byte("as init process"), []byte("Unable to mount root fs")}

// Accelerator tells whether this machine's hardware can be used: only if a guest with the kernel really boots with it.
// That there is a /dev/kvm proves nothing. What was found is kept in the cache folder and holds for this kernel, this
// QEMU and this boot of the machine; an empty cache keeps nothing. It is an error only when nothing could be found out.
func Accelerator(ctx context.Context, kernel, cache string) (Proof, error) {
	if _, err := os.Stat(device); err != nil {
		return Proof{Accel: TCG, Reason: "emulation: there is no " + device}, nil
	}
	key, err := proofKey(ctx, kernel)
	if err != nil {
		return Proof{}, fmt.Errorf("accelerator: %w", err)
	}
	file := filepath.Join(cache, "accelerator-"+key+".json")
	if data, err := regular.Read(file, os.O_RDONLY, regular.Document); err == nil && cache != "" {
		p := Proof{Cached: true}
		if json.Unmarshal(data, &p) == nil && (p.Accel == TCG || p.Accel == KVM) {
			return p, nil
		}
	}
	p, err := prove(ctx, kernel, proofLimit)
	if err != nil {
		return Proof{}, fmt.Errorf("accelerator: %w", err)
	}
	if cache == "" {
		return p, nil
	}
	data, err := json.Marshal(p)
	if err == nil {
		err = os.MkdirAll(cache, 0o755)
	}
	if err == nil {
		err = os.WriteFile(file+".part", data, 0o644)
	}
	if err == nil {
		err = os.Rename(file+".part", file)
	}
	return p, err
}

// proofKey returns what a proof holds for.
func proofKey(ctx context.Context, kernel string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	info, err := os.Stat(kernel)
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, "qemu-system-x86_64", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("qemu-system-x86_64: %w (apt-get install qemu-system-x86)", err)
	}
	text := fmt.Sprintf("%s %s %s %d %d", boot, version, kernel, info.Size(), info.ModTime().UnixNano())
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16], nil
}

// prove boots a guest.
func prove(ctx context.Context, kernel string, limit time.Duration) (p Proof, err error) {
	temporary, err := scratch.Make("accelerator")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, temporary.Remove()) }()
	folder := temporary.Path
	kernel, err = filepath.Abs(kernel)
	if err != nil {
		return p, err
	}
	m, err := Create(folder, Spec{Name: "accelerator", Accel: KVM, CPUs: 1, MemoryBytes: 128 * mebibyte, Kernel: kernel,
		Append: "console=ttyS0 panic=-1", NoReboot: true})
	if err != nil {
		return p, err
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	why := m.Start(limited, nil)
	defer func() { err = errors.Join(err, m.Kill()) }()
	for why == nil {
		said, err := os.ReadFile(filepath.Join(folder, SerialFile))
		if err == nil && (bytes.Contains(said, booted[0]) || bytes.Contains(said, booted[1])) {
			took := time.Since(began)
			return Proof{Accel: KVM, Took: took,
				Reason: fmt.Sprintf("hardware: a guest booted with it in %v", took.Round(time.Millisecond))}, nil
		}
		on, err := m.Running()
		switch {
		case err != nil:
			return p, err
		case !on:
			why = errors.New("QEMU ended before the guest had booted")
		case limited.Err() != nil:
			why = fmt.Errorf("a guest had not booted with it after %v", limit)
		}
		time.Sleep(pollEvery)
	}
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	return Proof{Accel: TCG, Took: time.Since(began),
		Reason: fmt.Sprintf("emulation: there is a %s, but %s", device,
			strings.Join(strings.Fields(why.Error()), " "))}, nil
}
