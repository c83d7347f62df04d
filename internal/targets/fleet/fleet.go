package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"plimsoll/internal/contract/target"
)

// Machines are those of a cluster that were asked for. The zero value is ready for use.
type Machines struct {
	mu sync.Mutex
	of map[string]*Machine
}

// Get is access to a machine of an owner by its name, the same each time; whether there is one is the owner's to know.
func (m *Machines) Get(owner Owner, name string) *Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of[name]
	if h == nil {
		if m.of == nil {
			m.of = map[string]*Machine{}
		}
		h = &Machine{owner: owner, name: name}
		m.of[name] = h
	}
	return h
}

// Drop forgets a machine that was deleted.
func (m *Machines) Drop(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, name)
}

// all are the machines in the order of their names.
func (m *Machines) all() (list []*Machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.of {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *Machine) int { return strings.Compare(a.name, b.name) })
	return list
}

// Forget ends what goes on with machines that are off.
func (m *Machines) Forget() {
	for _, h := range m.all() {
		h.Forget()
	}
}

// Endpoints are the pages of the agents of machines that live.
func (m *Machines) Endpoints() (list []target.Endpoint) {
	for _, h := range m.all() {
		if h.Alive() {
			list = append(list, target.Endpoint{Name: "agent", VM: h.name, Get: h.Page})
		}
	}
	return list
}

// Close lets go of all of them. What runs there goes on.
func (m *Machines) Close() (err error) {
	for _, h := range m.all() {
		err = errors.Join(err, h.Begin(nil))
	}
	return err
}

// Named are the machines of these names, as get gives each, and what was wrong with the others.
func Named[V any](names []string, get func(string) (V, error)) (list []V, err error) {
	for _, name := range names {
		v, e := get(name)
		if e == nil {
			list = append(list, v)
		}
		err = errors.Join(err, e)
	}
	return list, err
}

// MostDisks of a machine have letters for names, after that of the system.
const MostDisks = 25

// Device is the name of a data disk by its number from 0 on, as job files have it.
func Device(i int) string { return "/dev/sd" + string(rune('b'+i)) }

// Disks are the data disks of a machine that has them under the names of job files.
func Disks(machine string, bytes []int64) (list []target.Disk) {
	for i, n := range bytes {
		list = append(list, target.Disk{Device: Device(i), Path: Device(i), ID: fmt.Sprintf("%s:data%d", machine, i+1),
			Bytes: n})
	}
	return list
}

// CheckDisks objects to sizes of data disks that cannot be.
func CheckDisks(bytes []int64) (err error) {
	for i, n := range bytes {
		if n < 1 {
			err = errors.Join(err, fmt.Errorf("disk %s: %d bytes: want more than 0", Device(i), n))
		}
	}
	if len(bytes) > MostDisks {
		err = errors.Join(err, fmt.Errorf("%d disks: want at most %d", len(bytes), MostDisks))
	}
	return err
}

// Save writes what a fresh process needs to remove a run into its state folder, whole or not at all.
func Save(dir, name string, state any) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	part := filepath.Join(dir, name+".part")
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(dir, name))
}

// Load reads it again; there is none where nothing was made. Check objects to what is not of a run.
func Load[S any](dir, name string, check func(S) error) (s S, made bool, err error) {
	file := filepath.Join(dir, name)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil {
		err = check(s)
	}
	if err != nil {
		return s, true, fmt.Errorf("destroy: %s: %w", file, err)
	}
	return s, true, nil
}
