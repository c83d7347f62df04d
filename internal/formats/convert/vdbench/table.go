package vdbench

import (
	"fmt"
	"strings"

	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/nearest"
)

// use holds what becomes of a parameter.
type use struct {
	name   string
	why    string // it has no part in the load: noted
	refuse string // it cannot be done: objected to
}

func taken(names string) (all []use) {
	for name := range strings.FieldsSeq(names) {
		all = append(all, use{name: name})
	}
	return all
}

const (
	reports    = "it says what vdbench reports, not what it does"
	otherHosts = "a job file is of one machine; write a file for each host, and start them together"
	ownJava    = "it says how vdbench's own processes run"
	noCommands = "a converted file runs no commands"
	noReplay   = "a recorded trace is no description of a load"
	noCheck    = "fio cannot keep vdbench's record of what each block holds; test for lost and wrong blocks apart from speed"
)

// tables lists the parameters of each kind of definition, in the order in which vdbench looks for one that begins as
// the keyword does.
var tables = map[string][]use{
	"general": append(
		taken("compression compratio dedupratio dedupunit dedupsets deduphotsets dedupflipflop dedup"),
		use{name: "compressionseed", why: "which random data are written has no part in their compression"},
		use{name: "port", why: ownJava},
		use{name: "pattern", refuse: "its files and formats are vdbench's own"},
		use{name: "data_errors", why: "fio ends at its first error"},
		use{name: "dataerrors", why: "fio ends at its first error"},
		use{name: "swat", why: reports},
		use{name: "validate", refuse: noCheck},
		use{name: "journal", refuse: noCheck},
		use{name: "startcmd", refuse: noCommands},
		use{name: "start_cmd", refuse: noCommands},
		use{name: "endcmd", refuse: noCommands},
		use{name: "end_cmd", refuse: noCommands},
		use{name: "heartbeat_error", refuse: noCommands},
		use{name: "debug", why: ownJava},
		use{name: "unix2windows", refuse: otherHosts},
		use{name: "formatxfersize", why: "files are laid out as the one who runs the job does it"},
		use{name: "create_anchors", why: "folders are made by the one who runs the job"},
		use{name: "formatsds", why: "targets are filled by the one who runs the job"},
		use{name: "report", why: reports},
		use{name: "report_run_totals", why: reports},
		use{name: "histogram", why: reports},
		use{name: "psrset", why: ownJava},
		use{name: "auxreport", why: reports},
		use{name: "monitor", why: reports},
		use{name: "concatenatesds", refuse: "one target made of several is not known to fio; give each its own stream"},
		use{name: "messagescan", why: "which system messages vdbench shows"},
		use{name: "abort_failed_skew", why: "whether the rates asked for were reached is seen in the results"},
		use{name: "misc", why: ownJava},
		use{name: "pattern_buffer", why: ownJava},
		use{name: "showlba", why: reports},
		use{name: "loop", why: "it runs once; plimsoll run --repeat runs it more often"},
		use{
			name: "javaparms",
			why:  ownJava,
		},
		use{name: "ios_per_jvm", why: ownJava},
		use{name: "timeout", why: ownJava},
		use{name: "fwd_thread_adjust", why: ownJava},
	),
	"hd": append(taken("hd host"),
		use{name: "system", why: "the load runs where the job is started"}, use{name: "vdbench", why: ownJava},
		use{name: "shell", why: ownJava}, use{name: "user", why: ownJava}, use{name: "jvms", why: ownJava},
		use{name: "master", why: "it says under which address the hosts find the one that starts them"},
		use{name: "clients", refuse: otherHosts}, use{name: "mount", refuse: noCommands}),
	"rg": {{name: "rg", refuse: noReplay}, {name: "devices", refuse: noReplay}},
	"sd": append(taken("sd host hd lun count size threads hitarea offset align"),
		use{name: "kstat", why: reports}, use{name: "instance", why: reports},
		use{name: "replay", refuse: noReplay}, use{name: "journal", refuse: noCheck},
		use{name: "resetlun", refuse: "a device is not reset"}, use{name: "resetbus", refuse: "a bus is not reset"},
		use{name: "openflags"}, use{name: "range"}, use{name: "dedupratio"}, use{name: "dedupunit"},
		use{name: "dedupsets"}, use{name: "deduphotsets"}, use{name: "dedupflipflop"}, use{name: "dedup"},
		use{name: "streams", refuse: "it has become a parameter of workload definitions"}),
	"fsd": append(
		taken("fsd anchor width depth sizes shared wss workingsetsize total_size totalsize files distribution "+
			"openflags count"),
		use{name: "journal", refuse: noCheck},
		use{name: "log", why: reports},
		use{name: "host", refuse: otherHosts},
		use{name: "hd", refuse: otherHosts},
		use{
			name: "cleanup",
			why:  "vdbench itself has given it up",
		},
		use{name: "mask", refuse: "names of files are the job's own"},
	),
	"wd": append(
		taken("wd sd skew xfersize readpct rdpct writepct wrpct range hotband seekpct stride"),
		use{
			name: "priority",
			why:  "a fixed rate goes before all others in any case; the order of the others is not kept",
		},
		use{name: "iorate"},
		use{name: "rhpct"},
		use{name: "whpct"},
		use{name: "host"},
		use{name: "hd"},
		use{name: "openflags"},
		use{name: "user", refuse: "a class of its author's is not run"},
		use{name: "threads"},
		use{name: "streams"},
	),
	"fwd": append(
		taken("fwd fsd readpct rdpct"),
		use{name: "stopafter", refuse: "fio stops a file only at its end"},
		use{
			name: "operations",
		},
		use{name: "fileselect"},
		use{name: "fileio"},
		use{name: "xfersizes"},
		use{name: "skew"},
		use{name: "threads"},
		use{name: "openflags"},
		use{name: "host"},
		use{name: "hd"},
	),
	"rd": append(
		taken("rd wd sd fsd fwd iorate maxdata maxdataread maxdatawritten maxdata_read maxdata_written curve"),
		use{name: "stopcurve", why: "the points of the curve are all run"},
		use{name: "elapsed"},
		use{name: "interval", why: reports},
		use{name: "warmup"},
		use{name: "replay", refuse: noReplay},
		use{name: "pause"},
		use{name: "forxfersize"},
		use{name: "forthreads"},
		use{name: "forrdpct"},
		use{name: "forrhpct"},
		use{name: "forwhpct"},
		use{name: "forseekpct"},
		use{name: "forhitarea"},
		use{name: "forcompratio"},
		use{name: "forcompression"},
		use{name: "fordepth"},
		use{name: "forwidth"},
		use{name: "forfiles"},
		use{name: "forsizes"},
		use{name: "fortotalsize"},
		use{name: "forwss"},
		use{name: "forworkingsetsize"},
		use{name: "foroperations"},
		use{name: "foriorate"},
		use{name: "forfwdrate"},
		use{name: "xfersize"},
		use{name: "threads"},
		use{name: "rdpct"},
		use{name: "rhpct"},
		use{name: "whpct"},
		use{
			name: "seekpct",
		},
		use{name: "hitarea"},
		use{name: "compratio"},
		use{name: "compression"},
		use{name: "depth"},
		use{name: "width"},
		use{name: "files"},
		use{name: "sizes"},
		use{name: "totalsize"},
		use{name: "wss"},
		use{name: "workingsetsize"},
		use{name: "distribution"},
		use{name: "startcmd", refuse: noCommands},
		use{name: "start_cmd", refuse: noCommands},
		use{name: "endcmd", refuse: noCommands},
		use{name: "end_cmd", refuse: noCommands},
		use{name: "fwdrate"},
		use{name: "operations"},
		use{name: "format", why: "files and targets are laid out and filled by the one who runs the job"},
		use{name: "openflags"},
		use{name: "mount", refuse: noCommands},
		use{name: "skew", refuse: "it is a parameter of workload definitions"},
	),
}

// lookUp finds a parameter in the table of its definition: vdbench takes any beginning of a name, of two letters or
// more, for the first that begins so.
func lookUp(kind, key string) (use, bool) {
	for _, u := range tables[kind] {
		if u.name == key {
			return u, true
		}
	}
	for _, u := range tables[kind] {
		if strings.HasPrefix(u.name, key) {
			return u, true
		}
	}
	return use{}, false
}

// unknown objects to a parameter that is not in the table, and names the nearest that is.
func unknown(kind string, p param) string {
	what := "a " + strings.ToUpper(kind)
	switch kind {
	case "general":
		what = "the general parameters"
	case "hd":
		what = "an HD"
	}
	if _, is := begins[p.key]; is {
		return fmt.Sprintf(
			"%.60s: definitions stand in the order general parameters, HD, RG, SD or FSD, WD or FWD, RD",
			p.text,
		)
	}
	hint := ""
	for _, other := range []string{kind, "general", "sd", "wd", "rd", "fsd", "fwd", "hd"} {
		names := make([]string, 0, len(tables[other]))
		for _, u := range tables[other] {
			names = append(names, u.name)
		}
		near := ""
		if elsewhere := belongs(p.key); elsewhere != "" && other != elsewhere {
			continue
		}
		if len(p.key) <= 40 {
			near = nearest.Of(p.key, names)
		}
		switch {
		case near == "":
			continue
		case other == kind:
			hint = fmt.Sprintf("; did you mean %s?", near)
		case other == "general":
			hint = fmt.Sprintf("; did you mean %s? It is a general parameter, and these come first", near)
		default:
			hint = fmt.Sprintf("; did you mean %s? It belongs to definitions of %s", near, strings.ToUpper(other))
		}
		break
	}
	return fmt.Sprintf("%.60s: no parameter of %s has this name%s", p.text, what, hint)
}

// belongs is the first kind of definition that has a parameter of just this name.
func belongs(key string) string {
	for _, kind := range []string{"general", "sd", "wd", "rd", "fsd", "fwd", "hd"} {
		if u, ok := lookUp(kind, key); ok && u.name == key {
			return kind
		}
	}
	return ""
}

// ask is a parameter as its author put it.
func (p param) ask() load.Ask { return load.Ask{Text: p.text, At: p.at} }
