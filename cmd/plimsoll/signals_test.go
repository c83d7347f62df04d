package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// heard collects what a process says and tells when it has said a word.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	said chan struct{}
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := strings.Contains(h.text.String(), h.word)
	h.text.Write(p)
	if !before && strings.Contains(h.text.String(), h.word) {
		close(h.said)
	}
	return len(p), nil
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// startUntil starts a process and waits until it has said a word; ended is told how it ends.
func startUntil(t *testing.T, cmd *exec.Cmd, word string) (says *heard, ended <-chan error) {
	t.Helper()
	says = &heard{word: word, said: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = says, says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }()
	select {
	case <-says.said:
	case err := <-end:
		t.Fatalf("it never said %q: %v: %s", word, err, says)
	}
	return says, end
}

// signalled runs plimsoll until it has said a word, sends signals, and returns its exit code and what it said.
func signalled(t *testing.T, s session, word string, signals []os.Signal, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := s.command(ctx, args...)
	says := &heard{word: word, said: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = says, says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-says.said:
	case <-ctx.Done():
	}
	for i, sig := range signals {
		if i > 0 { // two signals that are pending at once are one
			time.Sleep(50 * time.Millisecond)
		}
		_ = cmd.Process.Signal(sig)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v, %v: %s", err, ctx.Err(), says)
	}
	return cmd.ProcessState.ExitCode(), says.String()
}

// Signals that ask to stop leave nothing behind, at the beginning, in the prefill and under load; SIGQUIT says where
// everything was. A second one leaves at once, and a clean-up finds what that left.
func TestSignals(t *testing.T) {
	t.Parallel()
	needs.Fio(t)
	args := []string{"run", tiny(t), "--nodes", "2", "--size-scale", "0.01", "--set", "seconds=60"}
	stacks := regexp.MustCompile(`stacks of all goroutines: (\S+)`)
	ways := map[string][]os.Signal{
		"INT": {syscall.SIGINT}, "TERM": {syscall.SIGTERM}, "QUIT": {syscall.SIGQUIT},
		"INT twice": {syscall.SIGINT, syscall.SIGINT}, "TERM and QUIT": {syscall.SIGTERM, syscall.SIGQUIT},
		"HUP": {syscall.SIGHUP}, "TERM twice": {syscall.SIGTERM, syscall.SIGTERM},
		"TERM and HUP": {syscall.SIGTERM, syscall.SIGHUP},
	}
	for i, name := range slices.Sorted(maps.Keys(ways)) {
		signals := ways[name]
		for j, word := range []string{"about", "setup, step", "run, step", "Started workload"} {
			if !needs.All() && (i+j)%4 != 0 { // each way at one moment, each moment in two ways
				continue
			}
			t.Run(name+" at "+word, func(t *testing.T) {
				s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
				code, said := signalled(t, s, word, signals, args...)
				if code != 130 {
					t.Errorf("exit code %d: %s", code, said)
				}
				// It may have ended between the two, and then heard of the second or not.
				left := len(signals) == 2 && !strings.Contains(said, "   cleanup: ")
				if left && (name == "TERM twice" || name == "TERM and HUP") {
					t.Errorf("one request was taken for two: %s", said)
				}
				file := stacks.FindStringSubmatch(said)
				asked, sure := signals[len(signals)-1] == syscall.SIGQUIT, len(signals) == 1 || left
				if file != nil && !asked || file == nil && asked && sure {
					t.Errorf("stacks %t, asked for %t: %s", file != nil, asked, said)
				} else if file != nil {
					if data, err := os.ReadFile(file[1]); err != nil || !bytes.Contains(data, []byte("goroutine ")) {
						t.Errorf("%s: %v", file[1], err)
					}
					_ = os.Remove(file[1])
				}
				groups := controlGroups(t, s.runs)
				if left {
					if !strings.Contains(said, "plimsoll cleanup") {
						t.Errorf("it does not say what to do: %s", said)
					}
					s.must("cleanup")
				}
				s.nothingLives(groups)
				if out := s.cleaned(); out != "" {
					t.Errorf("a clean-up found something: %s", out)
				}
			})
		}
	}
}
