package agent

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/exporters/host"
	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device/guard"
)

// run does one command line.
func run(args []string, in io.Reader, out io.Writer) error {
	if err := os.Setenv("PATH", searchPath); err != nil {
		return err
	}
	switch {
	case args[0] == "session" && len(args) == 2:
		return session(args[1], in, out)
	case args[0] == "end" && len(args) == 3:
		return end(args[1], args[2], endMarked)
	case args[0] == "unit" && len(args) == 3:
		return supervise(args[1], args[2], in)
	case args[0] == "launch" && len(args) == 1:
		return launchTold()
	case args[0] == "hold" && len(args) == 3:
		return hold(args[1], args[2], out)
	}
	return fmt.Errorf("%q is no command of it: see plimsoll-agent help", args)
}

// end ends all that a run has started from a folder, and removes the folder.
func end(folder, tag string, kill func(mark string) error) error {
	have, err := os.ReadFile(filepath.Join(folder, TagFile))
	if err != nil || tag == "" || string(have) != tag {
		return fmt.Errorf("%s: it is not the folder of this run: its tag is another", folder)
	}
	// Until the program is gone somebody may begin a unit; and it stays until none lives, since a clean-up that finds
	// no program ends nothing.
	for range 2 {
		if err := kill(folder + "#"); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(folder, Program)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// The tag goes last, so that a clean-up which was cut short can be done again.
	for _, name := range []string{work, units, leaseFile, ""} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// hold claims devices, says so, and keeps them until it is ended.
func hold(folder, disks string, out io.Writer) error {
	var list []Disk
	if err := json.Unmarshal([]byte(disks), &list); err != nil {
		return err
	}
	var claims []*guard.Claim
	var objections []error
	for _, d := range list {
		c, err := guard.ForWriting(context.Background(), nil, d.Path, d.Consent, folder)
		objections = append(objections, err)
		claims = append(claims, c)
	}
	if err := errors.Join(objections...); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "claimed\n"); err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM)
	<-told
	for _, c := range claims {
		objections = append(objections, c.Release())
	}
	return errors.Join(objections...)
}

// session speaks with the run whose folder that is, until the other side hangs up.
func session(folder string, in io.Reader, out io.Writer) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	for _, name := range []string{work, units} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	root, err := os.OpenRoot(filepath.Join(folder, work))
	if err != nil {
		return err
	}
	k := keeper{folder}
	counted, err := exporter.New(Version, own{}, &generators{keeper: k}, host.New(os.DirFS("/"), nil, host.CPU,
		host.Load, host.Memory, host.Network, host.Disk, host.Kernel, host.Paging, host.Pressure, host.Quota,
		host.Groups))
	if err != nil {
		return err
	}
	s := &server{keeper: k, root: root, page: counted}
	near, far := net.Pipe()
	server := &http.Server{Handler: s.handler(), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 10_000}, ReadHeaderTimeout: time.Minute}
	server.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan error, 3)
	go func() { _, err := io.Copy(out, near); done <- err }()
	go func() {
		_, err := io.Copy(near, &heard{Reader: in, lease: filepath.Join(folder, leaseFile)})
		done <- err
	}()
	go func() { done <- server.Serve(&once{conn: far, ended: make(chan struct{})}) }()
	err = <-done
	if errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	return errors.Join(err, near.Close(), far.Close(), server.Close(), root.Close())
}

// heard touches the lease when something comes, at most once a second.
type heard struct {
	io.Reader
	lease string
	last  time.Time
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if now := time.Now(); n > 0 && now.Sub(h.last) > time.Second {
		h.last = now
		if err := os.Chtimes(h.lease, now, now); err != nil {
			_ = os.WriteFile(h.lease, nil, 0o600) // a folder that is gone needs none
		}
	}
	return n, err
}

// once is a listener with one connection.
type once struct {
	conn  net.Conn
	taken atomic.Bool
	ended chan struct{}
	stop  sync.Once
}

func (o *once) Accept() (net.Conn, error) {
	if o.taken.CompareAndSwap(false, true) {
		return o.conn, nil
	}
	<-o.ended
	return nil, net.ErrClosed
}

func (o *once) Close() error   { o.stop.Do(func() { close(o.ended) }); return nil }
func (o *once) Addr() net.Addr { return o.conn.LocalAddr() }

// server answers a run.
type server struct {
	keeper
	root  *os.Root
	page  *exporter.Exporter
	count atomic.Int64 // of files that are not whole yet
	turn  sync.Mutex   // of services that are started
}

func (s *server) handler() http.Handler {
	m := http.NewServeMux()
	answer := func(pattern string, do func(w http.ResponseWriter, r *http.Request) (any, error)) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(Hours, strconv.FormatInt(now().UnixNano(), 10))
			value, err := do(w, r)
			switch {
			case err != nil:
				w.Header().Del("Content-Length")
				w.WriteHeader(http.StatusConflict)
				value = Failure{reason(err), errors.Is(err, fs.ErrNotExist)}
			case value == nil:
				return
			}
			_ = json.NewEncoder(w).Encode(value) // who does not hear it asks again
		})
	}
	answer("GET /hello", func(http.ResponseWriter, *http.Request) (any, error) { return Version, nil })
	answer("POST /look", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		var l Looking
		if err := json.NewDecoder(r.Body).Decode(&l); err != nil {
			return nil, err
		}
		return look(r.Context(), s.folder, l), nil
	})
	answer("PUT /file", s.put)
	answer("GET /file", s.get)
	answer("DELETE /file", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		name := r.FormValue("name")
		if err := local(name); err != nil {
			return nil, err
		}
		return true, s.root.RemoveAll(name)
	})
	answer("POST /make", s.make)
	answer("POST /discard", s.discard)
	answer("POST /unit/{id}", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		var start Start
		if err := json.NewDecoder(r.Body).Decode(&start); err != nil {
			return nil, err
		}
		id, err := unitID(r)
		if err != nil {
			return nil, err
		}
		return s.start(id, start)
	})
	answer("GET /unit/{id}", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		id, err := unitID(r)
		if err != nil {
			return nil, err
		}
		return s.used(id)
	})
	answer("GET /unit/{id}/stands", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		id, err := unitID(r)
		if err != nil {
			return nil, err
		}
		return s.stands(id), nil
	})
	answer("POST /unit/{id}/release", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		id, err := unitID(r)
		if err != nil {
			return nil, err
		}
		at, err := strconv.ParseInt(r.FormValue("at"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no moment", r.FormValue("at"))
		}
		return s.release(r.Context(), id, at)
	})
	answer("GET /unit/{id}/end", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		id, err := unitID(r)
		if err != nil {
			return nil, err
		}
		return s.wait(r.Context(), id)
	})
	answer("POST /unit/{id}/stop", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		id, err := unitID(r)
		if err != nil {
			return nil, err
		}
		return s.stop(r.Context(), id, grace(r))
	})
	answer("GET /unit/{id}/follow", s.follow)
	answer("POST /service/{name}", s.startService)
	answer("GET /service/{name}", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		id, err := s.service(r.PathValue("name"))
		if id == "" || err != nil {
			return State{}, err
		}
		return s.state(id)
	})
	answer("POST /service/{name}/stop", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		id, err := s.service(r.PathValue("name"))
		if id == "" || err != nil {
			return State{}, err
		}
		return s.stop(r.Context(), id, grace(r))
	})
	answer("GET /metrics", func(w http.ResponseWriter, r *http.Request) (any, error) {
		w.Header().Set("Content-Type", exporter.Text)
		_, err := s.page.Page(r.Context(), w, exporter.Text)
		return nil, err
	})
	return m
}

func grace(r *http.Request) time.Duration {
	d, _ := time.ParseDuration(r.FormValue("grace"))
	return d
}

// reason is an error without what only says that a system call was made.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e == err { //nolint:errorlint // the outermost
		return e.Err.Error()
	}
	return err.Error()
}

func unitID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", fmt.Errorf("%q is no id of a unit", id)
	}
	return id, nil
}

// used is the state of a unit with what it has used so far.
func (s *server) used(id string) (State, error) {
	state, err := s.state(id)
	if err != nil || !state.Running {
		return state, err
	}
	data, err := os.ReadFile(filepath.Join(s.dir(id), beganFile))
	if pid, err2 := strconv.Atoi(string(data)); err == nil && err2 == nil {
		_, state.Usage = below(pid)
	}
	return state, nil
}

// stands names what stands of a unit, as target.StandTeller has it.
func (s *server) stands(id string) (names []string) {
	data, err := os.ReadFile(filepath.Join(s.dir(id), beganFile))
	pid, err2 := strconv.Atoi(string(data))
	if err != nil || err2 != nil {
		return nil
	}
	list, _ := below(pid)
	for _, p := range list {
		for _, standing := range procfs.Stands(p) {
			names = append(names, standing.String())
		}
	}
	return names
}

// service is the latest unit of a service that was begun, "" for none. Its units are called service-NAME-NUMBER-NONCE.
func (s *server) service(name string) (string, error) {
	prefix := "service-" + hex.EncodeToString([]byte(name)) + "-"
	entries, err := os.ReadDir(filepath.Join(s.folder, units))
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) { // sorted, and numbers have as many digits
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if state, err := s.state(e.Name()); err != nil || state.Failed == "" {
			return e.Name(), err
		}
	}
	return "", nil
}

// startService starts a service anew, unless it runs. Asked again with the same nonce it tells what it did.
func (s *server) startService(_ http.ResponseWriter, r *http.Request) (any, error) {
	var start Start
	if err := json.NewDecoder(r.Body).Decode(&start); err != nil {
		return nil, err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	name, nonce := r.PathValue("name"), r.FormValue("nonce")
	id, err := s.service(name)
	if err != nil {
		return nil, err
	}
	number := 0
	if id != "" {
		state, err := s.state(id)
		switch {
		case err != nil || strings.HasSuffix(id, "-"+nonce):
			return state, err
		case state.Running:
			return nil, errors.New("it runs already")
		}
		number, _ = strconv.Atoi(strings.Split(id, "-")[2])
	}
	id = fmt.Sprintf("service-%s-%06d-%s", hex.EncodeToString([]byte(name)), number+1, nonce)
	return s.start(id, start)
}

func (s *server) put(_ http.ResponseWriter, r *http.Request) (any, error) {
	name := r.FormValue("name")
	mode, err := strconv.ParseUint(r.FormValue("mode"), 8, 9)
	if err != nil {
		return nil, fmt.Errorf("mode: %w", err)
	}
	part := fmt.Sprintf("%s.part%d-%d", name, os.Getpid(), s.count.Add(1))
	if err := local(name); err != nil {
		return nil, err
	}
	f, err := create(s.root, part, 0o600, 0)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, r.Body)
	if err = errors.Join(err, f.Chmod(fs.FileMode(mode)), f.Sync(), f.Close()); err == nil {
		err = s.root.Rename(part, name)
	}
	if err == nil {
		err = s.keep(filepath.Dir(name)) // the file stays when the power goes, under its name
	}
	if err != nil {
		return nil, errors.Join(err, s.root.Remove(part))
	}
	return true, nil
}

// keep has the names in a folder outlast a loss of power.
func (s *server) keep(folder string) error {
	f, err := s.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// opened opens a file at the offset that was asked for.
func (s *server) opened(r *http.Request) (f *os.File, offset int64, err error) {
	name := r.FormValue("name")
	if err := local(name); err != nil {
		return nil, 0, err
	}
	offset, err = strconv.ParseInt(r.FormValue("offset"), 10, 64)
	if err == nil && offset < 0 {
		err = fmt.Errorf("offset %d is below 0", offset)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err = s.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	return f, offset, err
}

func (s *server) get(w http.ResponseWriter, r *http.Request) (any, error) {
	f, offset, err := s.opened(r)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return nil, err
	}
	size := max(info.Size()-offset, 0)
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if _, err := io.Copy(w, io.NewSectionReader(f, offset, size)); err != nil {
		panic(http.ErrAbortHandler) // the other side sees that it is not whole
	}
	return nil, nil
}

// make makes a file of a size with all its space, to be a data disk. One that has the size is left as it is.
func (s *server) make(_ http.ResponseWriter, r *http.Request) (any, error) {
	size, err := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
	if err != nil || size < 0 {
		return nil, fmt.Errorf("%q is no size", r.FormValue("bytes"))
	}
	name := r.FormValue("name")
	if err := local(name); err != nil {
		return nil, err
	}
	if err := s.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the next line tells what can go wrong
	if err = unix.Fallocate(int(f.Fd()), 0, 0, size); errors.Is(err, unix.EOPNOTSUPP) {
		err = f.Truncate(size)
	}
	return true, err
}

func (s *server) discard(_ http.ResponseWriter, r *http.Request) (any, error) {
	upto, err := strconv.ParseInt(r.FormValue("upto"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no offset", r.FormValue("upto"))
	}
	name := r.FormValue("name")
	if err := local(name); err != nil {
		return nil, err
	}
	f, err := s.root.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) || upto <= 0 {
		return true, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, upto)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	return true, err
}

// follow hands over a file as it grows, until its unit has ended.
func (s *server) follow(w http.ResponseWriter, r *http.Request) (any, error) {
	id, err := unitID(r)
	if err != nil {
		return nil, err
	}
	f, offset, err := s.opened(r)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if err := control.Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
	for {
		state, err := s.state(id)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for { // until the end that it has now
			info, err := f.Stat()
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			n, err := io.Copy(w, io.NewSectionReader(f, offset, max(info.Size()-offset, 0)))
			if offset += n; err != nil {
				panic(http.ErrAbortHandler)
			}
			if n == 0 {
				break
			}
		}
		if !state.Running {
			return nil, nil
		}
		if control.Flush() != nil {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-time.After(10 * pause):
		}
	}
}

// own holds what the agent itself costs: its sessions and supervisors are told apart by the queries that add them.
type own struct{}

// Describe implements exporter.Collector.
func (own) Describe() exporter.Description {
	return exporter.Description{Name: "agent", Help: "What the agent of the run costs.", Families: []exporter.Family{
		{Name: "plimsoll_agent_cpu_seconds_total", Type: exporter.Counter, Unit: "seconds",
			Help: "CPU time of this session of the agent."},
		{Name: "plimsoll_agent_resident_memory_bytes", Type: exporter.Gauge, Unit: "bytes",
			Help: "Memory of this session of the agent."},
		{Name: "plimsoll_agent_supervisors", Type: exporter.Gauge,
			Help: "Commands and services that are being looked after."},
		{Name: "plimsoll_agent_supervisors_resident_memory_bytes", Type: exporter.Gauge, Unit: "bytes",
			Help: "Memory of the processes that look after them."},
	}}
}

// Collect implements exporter.Collector.
func (own) Collect(_ context.Context, emit exporter.Emit) error {
	var cost unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &cost); err != nil {
		return err
	}
	emit("plimsoll_agent_cpu_seconds_total", float64(cost.Utime.Nano()+cost.Stime.Nano())/1e9)
	emit("plimsoll_agent_resident_memory_bytes", resident(os.Getpid()))
	var count, memory float64
	for _, pid := range processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.HasPrefix(line, []byte(Program+"\x00unit\x00")) {
			count++
			memory += resident(pid)
		}
	}
	emit("plimsoll_agent_supervisors", count)
	emit("plimsoll_agent_supervisors_resident_memory_bytes", memory)
	return nil
}

func resident(pid int) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize())
}
