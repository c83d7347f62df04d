package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
)

// TestPutIsNeverWholeInMemory moves 64 MiB in and out and looks at what that took of the heap.
func TestPutIsNeverWholeInMemory(t *testing.T) {
	_, h := sandboxes(t, target.Options{}, 1<<20)
	const size = 64 << 20
	sums := [2]hash.Hash{sha256.New(), sha256.New()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	source := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), size), sums[0])
	if err := h.Put(t.Context(), "big", target.PlainFile, source); err != nil {
		t.Fatal(err)
	}
	r, err := h.Get(t.Context(), "big", 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(sums[1], r)
	if err := errors.Join(err, r.Close()); err != nil || n != size || !bytes.Equal(sums[0].Sum(nil), sums[1].Sum(nil)) {
		t.Errorf("%d bytes came back, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("it took %d bytes of memory", took)
	}
}

// A socket of a command is reached by a name below the working folder, however long its path is; what is none, as a
// link is, is not.
func TestDialSocket(t *testing.T) {
	_, h := sandboxes(t, target.Options{}, 1<<20)
	deep := strings.Repeat("deep/", 30)
	if err := h.Put(t.Context(), deep+"file", target.PlainFile, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "s")
	listen := func(path string) {
		t.Helper()
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("here"))
				_ = c.Close()
			}
		}()
	}
	listen(outside)
	t.Chdir(filepath.Join(h.dir(), deep))
	listen("s")
	for name, target := range map[string]string{"out": outside, "link": "s"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"s": "", "link": "it is no socket", "file": "it is no socket", "none": "no such file", "out": "it is no socket",
	} {
		c, err := h.DialSocket(t.Context(), deep+name)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if said, err := io.ReadAll(c); err != nil || string(said) != "here" {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		_ = c.Close()
	}
}

// TestReleased holds a program open for writing, as a forked child does until its exec: that is waited for.
func TestReleased(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("p", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	writer, err := root.OpenFile("p", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := released(over, root, "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a writer: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- released(t.Context(), root, "p") }()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if err := exec.Command(filepath.Join(root.Name(), "p")).Run(); err != nil {
		t.Error(err)
	}
}

// TestPutReplacesARunningProgram: a binary of this machine is put, runs, and another one takes its name meanwhile.
func TestPutReplacesARunningProgram(t *testing.T) {
	_, h := sandboxes(t, target.Options{}, 1<<20)
	put := func(program string) {
		t.Helper()
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := h.Put(t.Context(), "bin/tool", target.Program, f); err != nil {
			t.Fatal(err)
		}
	}
	put("sleep")
	p, err := h.Start(t.Context(), target.Command{Argv: []string{"bin/tool", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	put("echo")
	q, err := h.Start(t.Context(), target.Command{Argv: []string{"bin/tool", "hello"}, Stdout: "o"})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := q.Wait(t.Context()); exit != (target.Exit{}) || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	if out, err := target.ReadFile(t.Context(), h, "o", 0, 100); string(out) != "hello\n" || err != nil {
		t.Errorf("printed %q, %v", out, err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Join(h.dir(), "bin"))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the program: %v, %v", left, err)
	}
}

// TestWhatIsNoFileKeepsNobodyWaiting: a command puts a named pipe where its output is looked for.
func TestWhatIsNoFileKeepsNobodyWaiting(t *testing.T) {
	_, h := sandboxes(t, target.Options{}, 1<<20)
	if err := errors.Join(unix.Mkfifo(filepath.Join(h.dir(), "pipe"), 0o666), os.Mkdir(filepath.Join(h.dir(),
		"folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	for name, word := range map[string]string{"pipe": "named pipe", "folder": "folder"} {
		_, err := h.Get(t.Context(), name, 0)
		if err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.Put(t.Context(), "folder", target.PlainFile, strings.NewReader("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if _, err := h.Get(t.Context(), "folder/.put", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestFollowOfABusyCommand: everything comes, in order, however fast it is printed, and the looks are few.
func TestFollowOfABusyCommand(t *testing.T) {
	_, h := sandboxes(t, target.Options{}, 1<<20)
	p, err := h.Start(t.Context(), target.Command{Stdout: "o",
		Argv: []string{"sh", "-c", `i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; sleep 0.3; echo end`}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.(target.Follower).Follow(t.Context(), "o", 0)
	if err != nil {
		t.Fatal(err)
	}
	began, reads := time.Now(), 0
	text, err := io.ReadAll(readerFunc(func(p []byte) (int, error) { reads++; return r.Read(p) }))
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 20001 || lines[19999] != "19999" || lines[20000] != "end" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	t.Logf("%d reads in %v", reads, time.Since(began))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
