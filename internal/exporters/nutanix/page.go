package nutanix

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"

	"plimsoll/internal/exporters/nutanix/prism"
)

// Format is how pages are written, as HTTP names it.
const Format = "text/plain; version=0.0.4; charset=utf-8"

// block holds what one poll of one kind became: the lines of its metrics, packed. Blocks one after the other are one
// page, packed or not, since packed files may follow each other.
type block struct {
	packed []byte   // gzip, as readers take it
	plain  [][]byte // the same for readers that take no gzip, in pieces by S2, which unpacks in a third of gzip's time
	series int
	part   prism.Part
}

// piece is the size of what is packed at a time, in bytes.
const piece = 256 << 10

// label appends name="value" to labels, which are without braces.
func label(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = append(append(b, name...), `="`...)
	for i := range len(value) {
		switch c := value[i]; c {
		case '\\', '"':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// labels are those of an entity's metrics. The ID is always there, since names may be had twice.
func labels(b []byte, cluster string, kind prism.Kind, e *prism.Entity) []byte {
	b = label(b, "cluster", cluster)
	switch kind {
	case prism.Cluster:
		b = label(b, "name", e.Name)
	case prism.Disk:
		b = label(label(b, "vm", e.VM), "disk", e.Address)
	default:
		b = label(b, kind.String(), e.Name)
	}
	return label(b, "uuid", e.ID)
}

// info are the further labels of nutanix_KIND_info.
func info(b []byte, kind prism.Kind, e *prism.Entity) []byte {
	if kind == prism.Disk {
		return label(label(b, "vm_uuid", e.VMID), "container_uuid", e.Container)
	}
	b = label(label(b, "host", e.Host), "state", e.State)
	if e.Controller {
		b = label(b, "controller_vm", "true")
	}
	return b
}

// series is one value of a poll.
type series struct {
	metric string
	help   string // of the first of a metric, else ""
	labels []byte // without braces; valid until the next
	value  float64
}

// each calls f with every series of a part, those of a metric one after the other.
func each(cluster string, kind prism.Kind, entities []prism.Entity, f func(series)) {
	all, at := make([][]byte, len(entities)), make([]int, len(entities))
	for i := range entities {
		all[i] = labels(nil, cluster, kind, &entities[i])
	}
	prefix, b := "nutanix_"+kind.String()+"_", []byte(nil)
	help := "What is known of it; always 1."
	for i := range entities {
		b = info(append(b[:0], all[i]...), kind, &entities[i])
		f(series{prefix + "info", help, b, 1})
		help = ""
	}
	metric := ""
	for c, counter := range prism.Counters {
		name := prefix + counter.Metric
		for i := range entities {
			values := entities[i].Values
			if at[i] == len(values) || int(values[at[i]].Counter) != c {
				continue
			}
			v := values[at[i]].V
			at[i]++
			help = ""
			if name != metric {
				metric, help = name, counter.Help+" Prism: "+counter.Prism
			}
			l := all[i]
			if key, value, ok := strings.Cut(counter.Label, "="); ok {
				l = label(append(b[:0], l...), key, value)
				b = l
			}
			f(series{name, help, l, v})
		}
	}
}

// render makes the block of a part.
func render(cluster string, kind prism.Kind, part prism.Part) block {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level exists
	n, line, plain := 0, make([]byte, 0, piece+4<<10), [][]byte(nil)
	flush := func() {
		_, _ = z.Write(line) // a buffer takes everything
		plain = append(plain, bytes.Clone(s2.Encode(nil, line)))
		line = line[:0]
	}
	each(cluster, kind, part.Entities, func(s series) {
		n++
		if s.help != "" {
			line = append(line, head(s.metric, "gauge", s.help)...)
		}
		line = append(append(append(append(line, s.metric...), '{'), s.labels...), "} "...)
		line = append(number(line, s.value), '\n')
		if len(line) > piece {
			flush()
		}
	})
	flush()
	_ = z.Close()
	return block{bytes.Clone(out.Bytes()), plain, n, part}
}

func head(metric, kind, help string) string {
	return "# HELP " + metric + " " + help + "\n# TYPE " + metric + " " + kind + "\n"
}

func number(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', 9, 64) // the API has whole microseconds, ppm and kB
}

// own are the metrics about the exporter itself.
type own struct {
	metric, kind, help string
	lines              []string
}

// page collects own metrics.
type page struct {
	all  []*own
	find map[string]*own
}

// add adds a series; labels are names and values in turn.
func (p *page) add(metric, kind, help string, v float64, pairs ...string) {
	if p.find == nil {
		p.find = map[string]*own{}
	}
	base := strings.TrimSuffix(strings.TrimSuffix(metric, "_sum"), "_count")
	if kind != "summary" {
		base = metric
	}
	o := p.find[base]
	if o == nil {
		o = &own{metric: base, kind: kind, help: help}
		p.find[base] = o
		p.all = append(p.all, o)
	}
	var l []byte
	for i := 0; i < len(pairs); i += 2 {
		l = label(l, pairs[i], pairs[i+1])
	}
	line := metric
	if len(l) > 0 {
		line += "{" + string(l) + "}"
	}
	o.lines = append(o.lines, string(number([]byte(line+" "), v)))
}

func (p *page) text() []byte {
	var b bytes.Buffer
	for _, o := range p.all {
		b.WriteString(head(o.metric, o.kind, o.help))
		for _, l := range o.lines {
			b.WriteString(l + "\n")
		}
	}
	return b.Bytes()
}

// write writes own metrics and blocks as one page; packed says whether the reader takes gzip.
func write(w io.Writer, own []byte, blocks []block, packed bool) error {
	if packed {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level exists
		if _, err := z.Write(own); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		for _, b := range blocks {
			if _, err := w.Write(b.packed); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := w.Write(own); err != nil {
		return err
	}
	text := make([]byte, 0, piece+4<<10)
	for _, b := range blocks {
		for _, p := range b.plain {
			t, err := s2.Decode(text[:cap(text)], p)
			if err != nil {
				return err
			}
			if _, err := w.Write(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// classic writes the lines of the script that this takes the place of: one label, which says all.
func classic(w io.Writer, blocks map[prism.Kind]block) error {
	names := []struct{ prism, name string }{{"controller_num_iops", "iops"}, {"controller_num_read_iops", "read_iops"},
		{"controller_num_write_iops", "write_iops"}, {"controller_io_bandwidth_kBps", "io_bandwidth_kBps"},
		{"controller_read_io_bandwidth_kBps", "read_io_bandwidth_kBps"},
		{"controller_write_io_bandwidth_kBps", "write_io_bandwidth_kBps"},
		{"controller_avg_io_latency_usecs", "avg_io_latency_usecs"},
		{"controller_avg_read_io_latency_usecs", "avg_read_io_latency_usecs"},
		{"controller_avg_write_io_latency_usecs", "avg_write_io_latency_usecs"}}
	var b []byte
	seen := map[string]bool{}
	for _, kind := range []prism.Kind{prism.Cluster, prism.Container} {
		for _, e := range blocks[kind].part.Entities {
			prefix := "cluster_"
			if kind == prism.Container {
				prefix = "container_" + e.Name + "_"
			}
			if seen[prefix] { // names may be had twice
				prefix += e.ID + "_"
			}
			seen[prefix] = true
			for _, n := range names {
				i := slices.IndexFunc(prism.Counters, func(c prism.Counter) bool { return c.Prism == n.prism })
				if v, ok := e.Get(n.prism); ok {
					b = append(append(b, "ntnx_bash{"...), label(nil, "metric", prefix+n.name)...)
					b = append(number(append(b, "} "...), math.Round(v/prism.Counters[i].Scale)), '\n')
				}
			}
		}
	}
	_, err := w.Write(b)
	return err
}

// since is the age of something in seconds, not below 0.
func since(now, t time.Time) float64 { return max(0, now.Sub(t).Seconds()) }

// UnknownError is a target that is not in the configuration.
type UnknownError string

func (e UnknownError) Error() string {
	return fmt.Sprintf("target %q is not in the configuration: name one of its clusters", string(e))
}
