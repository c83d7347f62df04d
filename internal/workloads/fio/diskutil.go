package fio

import (
	"fmt"
	"strings"

	"plimsoll/unit"
)

// diskUse holds what fio's disk_util counted, of all disks together: of one that lies on others, both.
type diskUse struct {
	names   []string
	count   [2]float64 // reads and writes, with those that were merged into others
	bytes   [2]float64
	inBytes bool // bytes are told, as from fio 3.36 on
}

const (
	mostNames = 64
	// fewClaimed is a number of operations below which file systems and others drown a comparison.
	fewClaimed = 1000
	// missesDisks is which share of what was claimed the disks must have counted.
	missesDisks = 0.5
)

// disks reads disk_util.
func (d *document) disks(s *scanner) error {
	return s.array(func() error {
		return s.object(func(key []byte) (err error) {
			n := uint64(0)
			switch string(key) {
			case "name":
				var name string
				if name, err = s.word(); len(d.disk.names) < mostNames {
					d.disk.names = append(d.disk.names, name)
				}
			case "read_ios", "read_merges":
				n, err = s.whole()
				d.disk.count[0] += float64(n)
			case "write_ios", "write_merges":
				n, err = s.whole()
				d.disk.count[1] += float64(n)
			case "read_sectors":
				d.disk.inBytes = true
				n, err = s.whole()
				d.disk.bytes[0] += 512 * float64(n)
			case "write_sectors":
				n, err = s.whole()
				d.disk.bytes[1] += 512 * float64(n)
			default:
				err = s.skip()
			}
			return err
		})
	})
}

// unseen says how much of what its jobs report fio's own counts of the disks lack, "" where they have it or too little
// was done to tell. Counts lack what was gathered to fewer operations; bytes what never came, or came later.
func (d *document) unseen() string {
	if len(d.disk.names) == 0 || len(d.clients) > 0 {
		return ""
	}
	var lacks []string
	for i, name := range []string{"reads", "writes"} {
		ios, bytes := 0.0, 0.0
		for j := range d.jobs {
			ios += float64(d.jobs[j].dirs[i].ios)
			bytes += float64(d.jobs[j].dirs[i].bytes)
		}
		few := d.disk.count[i] < missesDisks*ios
		short := d.disk.inBytes && d.disk.bytes[i] < missesDisks*bytes
		if ios < fewClaimed || !few && !short {
			continue
		}
		lack := fmt.Sprintf("%.0f %s of %.0f", d.disk.count[i], name, ios)
		if d.disk.inBytes {
			lack += fmt.Sprintf(" (%s of %s)", sized(d.disk.bytes[i]), sized(bytes))
		}
		lacks = append(lacks, lack)
	}
	if len(lacks) == 0 {
		return ""
	}
	return fmt.Sprintf("fio's own counts of %s (disk_util) show %s that all its jobs report: the page cache, or another "+
		"layer above the disks, served, gathered or kept the others, so its rates are not those of the disks",
		strings.Join(d.disk.names, ", "), strings.Join(lacks, " and "))
}

func sized(bytes float64) unit.Bytes { return unit.Bytes(min(bytes, 1<<62)) }
