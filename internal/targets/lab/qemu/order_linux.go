package qemu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Monitor connects to its monitor, for more than the methods here do. Only one connection is served at a time.
func (m *Machine) Monitor(ctx context.Context) (*Monitor, error) {
	monitor, err := dialMonitor(ctx, m.Folder)
	return monitor, m.fails("monitor", err)
}

func (m *Machine) withMonitor(ctx context.Context, do func(*Monitor) error) error {
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		ctx = limited
	}
	monitor, err := m.Monitor(ctx)
	if err != nil {
		return err
	}
	return errors.Join(m.fails("monitor", do(monitor)), monitor.Close())
}

func (m *Machine) order(ctx context.Context, command string, arguments, result any) error {
	return m.withMonitor(ctx, func(monitor *Monitor) error { return monitor.Do(ctx, command, arguments, result) })
}

type values map[string]any

// State is QEMU's word for what the machine does: "running", "paused", "inmigrate", "postmigrate", "shutdown",
// "io-error", ... (RunState in QEMU's manual); "off" when it has no process.
func (m *Machine) State(ctx context.Context) (string, error) {
	if on, err := m.Running(); err != nil || !on {
		return "off", err
	}
	var s struct{ Status string }
	err := m.order(ctx, "query-status", nil, &s)
	if on, second := m.Running(); err != nil && second == nil && !on {
		return "off", nil // it ended meanwhile
	}
	return s.Status, err
}

// PowerButton presses the button for a moment (ACPI): a guest that heeds it shuts down, and Gone waits for that.
func (m *Machine) PowerButton(ctx context.Context) error {
	return m.order(ctx, "system_powerdown", nil, nil)
}

// Reset is the reset button: the guest starts anew at once, its process goes on.
func (m *Machine) Reset(ctx context.Context) error { return m.order(ctx, "system_reset", nil, nil) }

// Pause stops its CPUs, Resume lets them go on.
func (m *Machine) Pause(ctx context.Context) error { return m.order(ctx, "stop", nil, nil) }

// Resume ends a Pause.
func (m *Machine) Resume(ctx context.Context) error { return m.order(ctx, "cont", nil, nil) }

// Grow makes a disk of the running machine larger; the guest is told.
func (m *Machine) Grow(ctx context.Context, disk int, bytes int64) error {
	return m.order(ctx, "block_resize", values{"node-name": DiskName(disk), "size": bytes}, nil)
}

// Limits of a disk, per second; 0 is none.
type Limits struct {
	IOPS, Bytes int64
}

// Limit holds a disk of the running machine to limits, from now on.
func (m *Machine) Limit(ctx context.Context, disk int, l Limits) error {
	return m.order(
		ctx,
		"block_set_io_throttle",
		values{"id": DiskName(disk), "iops": l.IOPS, "iops_rd": 0, "iops_wr": 0,
			"bps": l.Bytes, "bps_rd": 0, "bps_wr": 0},
		nil,
	)
}

// CopyDisks copies disks of a running machine, by their numbers in its Spec, into new qcow2 images: all as they are at
// one moment, as a power cut at that moment would leave them.
func (m *Machine) CopyDisks(ctx context.Context, disks []int, to []string) error {
	err := m.withMonitor(ctx, func(monitor *Monitor) error {
		var actions []values
		waiting := map[string]bool{}
		for i, n := range disks {
			job := "copy-" + DiskName(n)
			waiting[job] = true
			actions = append(actions, values{"type": "drive-backup", "data": values{"device": DiskName(n),
				"job-id": job, "target": to[i], "format": Qcow2, "sync": "full"}})
		}
		if err := monitor.Do(ctx, "transaction", values{"actions": actions}, nil); err != nil {
			return err
		}
		for len(waiting) > 0 {
			e, err := monitor.Event(ctx)
			if err != nil {
				return err
			}
			if e.Name != "BLOCK_JOB_COMPLETED" && e.Name != "BLOCK_JOB_CANCELLED" {
				continue
			}
			var job struct {
				Device, Error string
			}
			if err := json.Unmarshal(e.Data, &job); err != nil {
				return err
			}
			if job.Error != "" || e.Name == "BLOCK_JOB_CANCELLED" {
				return fmt.Errorf("%s: %s", job.Device, cmp.Or(job.Error, "it was cancelled"))
			}
			delete(waiting, job.Device)
		}
		return nil
	})
	return m.fails("copy disks", err)
}

// SnapshotAll keeps what the writable disks of several machines hold at one moment, under a tag inside each image.
// Those that run are paused for it, all before the first is taken, and go on afterwards whatever happens; paused is
// for how long. Every disk must be qcow2. After an error some disks may have the tag.
func SnapshotAll(ctx context.Context, tag string, machines []*Machine) (paused time.Duration, err error) {
	var running []*Machine
	var began time.Time
	defer func() {
		for _, m := range running {
			err = errors.Join(err, m.Resume(context.WithoutCancel(ctx)))
		}
		if len(running) > 0 {
			paused = time.Since(began)
		}
	}()
	var off []*Machine
	for _, m := range machines {
		for i, d := range m.Spec.Disks {
			if !d.ReadOnly && d.Format != Qcow2 {
				return 0, m.fails(
					"snapshot",
					fmt.Errorf("disk %d, %s: format %q keeps none: use %q", i, d.Path, d.Format, Qcow2),
				)
			}
		}
		switch state, err := m.State(ctx); {
		case err != nil:
			return 0, err
		case state == "off":
			off = append(off, m)
		case state != "running":
			return 0, m.fails("snapshot", fmt.Errorf("it is %q: want it running or off", state))
		default:
			if len(running) == 0 {
				began = time.Now()
			}
			running = append(running, m) // QEMU may do what it has no time to answer
			if err := m.Pause(ctx); err != nil {
				return 0, err
			}
		}
	}
	for _, m := range running {
		err = errors.Join(err, m.snapshot(ctx, tag))
	}
	for _, m := range off {
		for _, d := range m.Spec.Disks {
			if !d.ReadOnly {
				err = errors.Join(err, m.fails("snapshot", SnapshotImage(ctx, d.Path, tag)))
			}
		}
	}
	return paused, err
}

// snapshot takes those of all disks of a running machine, or none.
func (m *Machine) snapshot(ctx context.Context, tag string) error {
	var actions []values
	for i, d := range m.Spec.Disks {
		if !d.ReadOnly {
			actions = append(actions, values{"type": "blockdev-snapshot-internal-sync",
				"data": values{"device": DiskName(i), "name": tag}})
		}
	}
	if len(actions) == 0 {
		return nil
	}
	return m.order(ctx, "transaction", values{"actions": actions}, nil)
}

// Restore puts the disks of a machine that is off back to what SnapshotAll kept.
func (m *Machine) Restore(ctx context.Context, tag string) error {
	if on, err := m.Running(); err != nil || on {
		if err == nil {
			err = errors.New("it runs: power it off first")
		}
		return m.fails("restore", err)
	}
	for _, d := range m.Spec.Disks {
		if !d.ReadOnly {
			if err := RestoreImage(ctx, d.Path, tag); err != nil {
				return m.fails("restore", err)
			}
		}
	}
	return nil
}

// Migrated is how a live migration went.
type Migrated struct {
	Total, Downtime time.Duration
	MemoryBytes     int64 // that were sent
}

// Migrate moves a running machine to one that Awaits it, over TCP to address, an IP address that the source reaches.
// The two have the same Spec, and disks that both reach. When it returns nil the destination runs and the source is
// gone; after an error the source goes on, if it can, and the destination is gone. Of a migration that ended on
// neither side the error says so.
func Migrate(ctx context.Context, source, destination *Machine, address string) (done Migrated, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(source.fails("migrate", err), destination.Kill())
		}
	}()
	port, err := destination.receive(ctx, address)
	if err != nil {
		return done, err
	}
	monitor, err := source.Monitor(ctx)
	if err != nil {
		return done, err
	}
	defer monitor.Close() //nolint:errcheck // the source is gone by then, or goes on
	if err := monitor.Do(ctx, "migrate", values{"uri": "tcp:" + net.JoinHostPort(address, port)}, nil); err != nil {
		return done, err
	}
	if done, err = watch(ctx, monitor); err != nil {
		return done, errors.Join(err, source.regain(context.WithoutCancel(ctx)))
	}
	// From here on the disks are the destination's: the source must not go on.
	after := context.WithoutCancel(ctx)
	var s struct{ Status string }
	if err := monitor.Do(after, "query-status", nil, &s); err != nil {
		return done, err
	}
	if s.Status != "postmigrate" {
		return done, fmt.Errorf("the source is %q after the migration: want %q", s.Status, "postmigrate")
	}
	if err := monitor.Do(after, "quit", nil, nil); err != nil && !errors.Is(err, io.EOF) {
		return done, err
	}
	limited, cancel := context.WithTimeout(after, endLimit)
	defer cancel()
	if err := source.Gone(limited); err != nil {
		return done, err
	}
	return done, destination.runs(limited)
}

// receive makes it listen, and gives the port.
func (m *Machine) receive(ctx context.Context, address string) (port string, err error) {
	err = m.withMonitor(ctx, func(monitor *Monitor) error {
		where := values{"uri": "tcp:" + net.JoinHostPort(address, "0")}
		if err := monitor.Do(ctx, "migrate-incoming", where, nil); err != nil {
			return err
		}
		var q struct {
			Sockets []struct{ Port string } `json:"socket-address"`
		}
		if err := monitor.Do(ctx, "query-migrate", nil, &q); err != nil {
			return err
		}
		if len(q.Sockets) != 1 || q.Sockets[0].Port == "" {
			return errors.New("it does not say where it listens")
		}
		port = q.Sockets[0].Port
		return nil
	})
	return port, err
}

// watch waits until a migration has ended. When ctx is done first it is given up.
func watch(ctx context.Context, monitor *Monitor) (done Migrated, err error) {
	after := context.WithoutCancel(ctx)
	gaveUp := false
	for {
		var q struct {
			Status   string
			Error    string `json:"error-desc"`
			Total    int64  `json:"total-time"` // ms
			Downtime int64  // ms
			RAM      struct{ Transferred int64 }
		}
		if err := monitor.Do(after, "query-migrate", nil, &q); err != nil {
			return done, err
		}
		switch q.Status {
		case "completed":
			return Migrated{Total: time.Duration(q.Total) * time.Millisecond,
				Downtime: time.Duration(q.Downtime) * time.Millisecond, MemoryBytes: q.RAM.Transferred}, nil
		case "failed":
			return done, fmt.Errorf("it failed: %s", q.Error)
		case "cancelled":
			return done, errors.Join(errors.New("it was given up"), ctx.Err())
		}
		if ctx.Err() != nil && !gaveUp {
			gaveUp = true
			if err := monitor.Do(after, "migrate_cancel", nil, nil); err != nil {
				return done, err
			}
		}
		time.Sleep(pollEvery)
	}
}

// regain sees that the source of a failed migration goes on.
func (m *Machine) regain(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := m.runs(limited); err != nil {
		return fmt.Errorf("and the machine runs on neither side: %w", err)
	}
	return nil
}

// runs waits until it is running.
func (m *Machine) runs(ctx context.Context) error {
	for {
		state, err := m.State(ctx)
		switch {
		case err != nil:
			return err
		case state == "running":
			return nil
		case state == "off":
			return m.fails("state", errors.New("its process has ended"))
		}
		select {
		case <-ctx.Done():
			return m.fails("state", fmt.Errorf("it is %q: %w", state, ctx.Err()))
		case <-time.After(pollEvery):
		}
	}
}
