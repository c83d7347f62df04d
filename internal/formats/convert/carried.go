package convert

import (
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/kit/lazyregexp"
)

var (
	places    = lazyregexp.New(`^(?:\d{1,4}(?:-\d{1,4})?)(?:,\d{1,4}(?:-\d{1,4})?)*$`)
	ioClasses = []string{"none", "realtime", "best-effort", "idle"}
	ofNumactl = map[string]string{"C": "cpus_allowed=", "N": "numa_cpu_nodes=", "m": "numa_mem_policy=bind:",
		"i": "numa_mem_policy=interleave:", "p": "numa_mem_policy=prefer:", "l": "numa_mem_policy=local", "a": ""}
	shortFlags = map[string]string{"physcpubind": "C", "cpunodebind": "N", "membind": "m", "interleave": "i",
		"preferred": "p", "localalloc": "l", "all": "a", "cpu-list": "c", "class": "c", "classdata": "n",
		"ignore": "t", "adjustment": "n"}
)

// carried are fio's own options for what the programs that run it ask of its processes: on which processors and memory
// they work, and before whom. What fio has no option for is the rest.
func carried(before []string) (options, taken, rest []string) {
	for i := 0; i < len(before); {
		end := i + 1
		for end < len(before) && runners[before[end]] == "" && before[end] != "timeout" && before[end] != "setsid" {
			end++
		}
		group := before[i:end]
		if of, ok := carry(group[0][strings.LastIndexByte(group[0], '/')+1:], group[1:]); ok {
			options, taken = append(options, of...), append(taken, group...)
		} else {
			rest = append(rest, group...)
		}
		i = end
	}
	return options, taken, rest
}

// carry reads what one of the programs asks for; not ok where fio has nothing like it.
func carry(program string, args []string) (options []string, ok bool) {
	if !slices.Contains([]string{"taskset", "numactl", "nice", "ionice"}, program) {
		return nil, false
	}
	lists, own := program == "taskset", ""
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			continue
		}
		flag, value, joined := strings.Cut(args[i], "=")
		flag = strings.TrimLeft(flag, "-")
		switch long, is := shortFlags[flag]; {
		case !strings.HasPrefix(args[i], "-"):
			flag, value = "", args[i]
		case is:
			flag = long
		case program == "nice" && places.MatchString(flag): // -10
			flag, value, joined = "n", flag, true
		case !joined && len(flag) > 1 && !strings.HasPrefix(args[i], "--"):
			flag, value, joined = flag[:1], flag[1:], true
		}
		if !joined && flag != "" && strings.Contains(runners[program], flag) {
			if i++; i >= len(args) {
				return nil, false
			}
			value = args[i]
		}
		option := ""
		switch program + " " + flag {
		case "taskset c":
			own = "list"
			continue
		case "taskset ":
			if own != "list" {
				value = processorsOf(value)
			}
			option = "cpus_allowed=" + value
		case "nice n":
			own = value
			continue
		case "ionice c":
			if k := slices.Index(ioClasses, value); k >= 0 {
				value = strconv.Itoa(k)
			}
			option, lists = "prioclass="+value, true
		case "ionice n":
			option, lists = "prio="+value, true
		case "ionice t":
			continue
		default:
			as, known := ofNumactl[flag]
			if program != "numactl" || !known {
				return nil, false
			}
			if option = as; !strings.HasSuffix(as, "=") && !strings.HasSuffix(as, ":") {
				value = ""
			}
			lists = value != "" && value != "all"
			option += value
		}
		if lists && !places.MatchString(value) {
			return nil, false
		}
		if option != "" {
			options = append(options, option)
		}
	}
	if program == "nice" {
		if own == "" {
			own = "10"
		}
		if _, err := strconv.Atoi(own); err != nil {
			return nil, false
		}
		options = []string{"nice=" + own}
	}
	return options, len(options) > 0
}

// processorsOf lists the processors of a mask in hexadecimal digits.
func processorsOf(mask string) string {
	bits, err := strconv.ParseUint(strings.TrimPrefix(mask, "0x"), 16, 64)
	if err != nil {
		return ""
	}
	var list []string
	for i := range 64 {
		if bits>>i&1 == 1 {
			list = append(list, strconv.Itoa(i))
		}
	}
	return strings.Join(list, ",")
}
