package catalogue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/result"
)

// LoadsOf are the sets of conditions by which one workload of a run is known: the merged one of its group, not a
// machine's. machines is on how many VMs it ran, version what stands for the text of its scenario. A set of which a
// condition is not known is left out.
func LoadsOf(m result.Manifest, w result.Workload, machines int, version string) (loads []Load) {
	facts := map[string]string{}
	for _, f := range m.Environment {
		if f.Group == w.Name || f.Group == "load "+w.Name {
			facts[f.Name] = f.Value
		}
	}
	for _, l := range []Load{inScenario(m, w, version), blocks(w, machines, facts), scripts(w, facts), orders(w, facts),
		iozone(w, facts), ior(w, facts)} {
		if l == nil {
			continue
		}
		known := true
		for _, v := range l {
			known = known && v != ""
		}
		if known {
			loads = append(loads, l)
		}
	}
	return loads
}

func inScenario(m result.Manifest, w result.Workload, version string) Load {
	if m.Target == result.ImportTarget || m.Scenario.Name == "" {
		return nil
	}
	l := Load{"load": "scenario " + m.Scenario.Name, "workload": w.Name, "version": version,
		"nodes": strconv.Itoa(len(m.Nodes)), "time_scale": number(m.TimeScale), "size_scale": number(m.SizeScale)}
	for _, v := range m.Scenario.Vars {
		l["variable_"+v.Name] = fmt.Sprintf("%q", v.Value)
	}
	return l
}

// MarkOf are the conditions of a search for a mark: those of its scenario, without what it varied, and what it asked.
func MarkOf(m result.Manifest, workload, varied string, limits []string, condition, version string) Load {
	l := inScenario(m, result.Workload{Name: workload}, version)
	if l == nil || version == "" {
		return nil
	}
	l["load"] = "mark of " + l["load"]
	l["varied"] = varied
	l["limits"] = strings.Join(slices.Sorted(slices.Values(limits)), " and ")
	l["condition"] = cmp.Or(condition, "as it is written")
	return l
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// blocks is block I/O that goes as fast as it can, of one kind in all its streams.
func blocks(w result.Workload, machines int, facts map[string]string) Load {
	var first result.Stream
	var depth int
	var extent int64
	for i, l := range w.Streams {
		if l.Rate > 0 || l.OpenLoop || l.Pauses || l.Stage != 0 || l.Verifies || l.ZeroData ||
			l.Skew != (result.Skew{}) {
			return nil
		}
		if i == 0 {
			first = l
		} else if l.Reads != first.Reads || l.Writes != first.Writes || l.Random != first.Random ||
			l.ReadShare != first.ReadShare || l.ReadBytes != first.ReadBytes || l.WriteBytes != first.WriteBytes ||
			l.Direct != first.Direct {
			return nil
		}
		depth += l.Depth
		extent += l.Bytes
	}
	if len(w.Streams) == 0 || !first.Reads && !first.Writes || len(w.Ops) == 0 || depth == 0 {
		return nil
	}
	if flushes := facts["flushes"]; flushes != "" && flushes != "none" {
		return nil
	}
	if rate := facts["rate"]; rate != "" && rate != "none" {
		return nil
	}
	if size, err := strconv.ParseInt(strings.TrimSuffix(facts["size"], " bytes"), 10, 64); err == nil && extent == 0 {
		extent = size * int64(len(w.Streams))
	}
	bytes := first.ReadBytes
	operations := "reads"
	switch {
	case first.Reads && first.Writes && first.ReadBytes != first.WriteBytes:
		return nil
	case first.Reads && first.Writes:
		operations = fmt.Sprintf("%.0f %% reads", 100*first.ReadShare)
	case first.Writes:
		operations, bytes = "writes", first.WriteBytes
	}
	return Load{
		"load":        "block I/O",
		"operations":  operations,
		"access":      access(first.Random),
		"block_bytes": positive(bytes),
		"outstanding": strconv.Itoa(depth),
		"machines":    strconv.Itoa(machines),
		"extent":      Extent(extent),
		"page_cache":  map[bool]string{true: "bypassed", false: "used"}[first.Direct],
	}
}

func access(random float64) string {
	switch random {
	case 0:
		return "sequential"
	case 1:
		return "random"
	}
	return fmt.Sprintf("%.0f %% random", 100*random)
}

func positive(v float64) string {
	if v <= 0 {
		return ""
	}
	return number(v)
}

// Extent is the range that a size lies in, each four times the one before: 1 GiB is in that of 512 MiB to 2 GiB. "" is
// of a size that is not known. Smaller and larger extents are not alike: caches and the way of a disk's arm make them
// differ.
func Extent(bytes int64) string {
	if bytes <= 0 {
		return ""
	}
	// Powers of 4 in KiB, each the middle of its range.
	n := math.Round(math.Log2(float64(bytes)/1024) / 2)
	low := math.Exp2(2*n - 1)
	say := func(kib float64) string {
		names := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
		i := 0
		for ; kib >= 1024 && i < len(names)-1; i++ {
			kib /= 1024
		}
		return fmt.Sprintf("%g %s", kib, names[i])
	}
	return say(low) + " to " + say(4*low)
}

// scripts are of pgbench, by whatever driver.
func scripts(w result.Workload, facts map[string]string) Load {
	if w.Engine != "pg" && w.Engine != "pgbench" && !strings.HasPrefix(w.Tool, "pgbench") || facts["rate"] != "" {
		return nil
	}
	var names []string
	for _, o := range w.Operations {
		if o.Name == "" || facts["script "+o.Name] != "" && facts["script "+o.Name] != "built in" {
			return nil
		}
		names = append(names, o.Name)
	}
	script := strings.Join(names, " and ")
	if script == "transaction" { // how pgbench's own text and logs name all
		script = facts["script"]
	}
	return Load{"load": "pgbench", "script": script, "scale": facts["scale"], "mode": facts["mode"],
		"clients": cmp.Or(facts["clients"], facts["concurrency"])}
}

// orders are of TPROC-C, by HammerDB or the driver of this program.
func orders(w result.Workload, facts map[string]string) Load {
	if w.Engine != "tprocc" && w.Engine != "hammerdb" && !strings.HasPrefix(w.Tool, "HammerDB") ||
		facts["query_set"] != "" {
		return nil
	}
	server := cmp.Or(w.Server, facts["database"])
	database, _, _ := strings.Cut(server, " ")
	if strings.HasPrefix(server, "SQL Server") {
		database = "SQL Server"
	}
	return Load{"load": "TPROC-C", "database": database, "warehouses": cmp.Or(facts["warehouses"], facts["scale"]),
		"users": cmp.Or(facts["users"], facts["clients"], facts["concurrency"])}
}

func iozone(w result.Workload, facts map[string]string) Load {
	if !strings.HasPrefix(w.Tool, "iozone") {
		return nil
	}
	test, _, _ := strings.Cut(strings.TrimPrefix(w.Name, "iozone "), ",")
	return Load{"load": "iozone", "test": test, "record": facts["record"], "file": facts["file size"],
		"threads": facts["concurrency"], "page_cache": facts["page cache"]}
}

func ior(w result.Workload, facts map[string]string) Load {
	if !strings.HasPrefix(strings.ToLower(w.Tool), "ior") || len(w.Operations) != 1 {
		return nil
	}
	return Load{"load": "IOR", "operation": w.Operations[0].Name, "transfer": facts["transfer size"],
		"access": facts["access"], "tasks": facts["tasks"], "nodes": facts["nodes"]}
}
