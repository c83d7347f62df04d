package convert

import (
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/kit/lazyregexp"
)

// found holds what stands in a command before fio, and behind it.
type found struct {
	program   string
	args      []string // of fio
	before    []string // programs that it is run by, and settings, but for those that are no part of anything
	shell     string   // the text that another shell is to run
	elsewhere string   // the program that has it run somewhere else
	again     bool
	beside    bool   // the next is started before it ends
	open      string // a mark in the place of a program
}

// Programs that run another, with the letters of their options that have a word of their own; and how many words of
// their own stand before it.
var (
	runners = map[string]string{"sudo": "ugpCDhrtTU", "doas": "uC", "time": "fo", "exec": "a", "command": "",
		"nohup": "", "env": "uCS", "nice": "n", "ionice": "cnpPu", "chrt": "TPD", "taskset": "", "numactl": "NmCipS",
		"timeout": "ks", "stdbuf": "ioe", "setsid": "", "unbuffer": "", "strace": "eopsaEPSuU", "ltrace": "eopsau",
		"perf": "eoaCpti", "systemd-run": "pEu", "systemd-inhibit": "",
		"cgexec": "g", "prlimit": "", "caffeinate": "t", "start": ""}
	operands = map[string]int{"taskset": 1, "timeout": 1, "chrt": 1, "perf": 1}
	shells   = strings.Fields("bash sh zsh dash ash ksh cmd powershell pwsh")
	remotes  = strings.Fields("docker podman nerdctl kubectl oc crictl ctr ssh pdsh clush ansible srun mpirun mpiexec " +
		"lxc virsh vagrant salt k3s microk8s minikube parallel xargs chroot nsenter ip unshare docker-compose singularity " +
		"apptainer gcloud az aws adb multipass toolbox distrobox")
)

// look finds fio behind what runs it.
func (f *found) look(words []string) {
	for i := 0; i < len(words); {
		base := strings.ToLower(words[i])
		base = strings.TrimSuffix(base[strings.LastIndexAny(base, `/\`)+1:], ".exe")
		letters, runs := runners[base]
		switch {
		case strings.TrimSuffix(base, "64") == f.program && (i+1 < len(words) || base != "fio"):
			f.args = append([]string{}, words[i+1:]...)
			return
		case setting.MatchString(words[i]):
			f.before = append(f.before, words[i])
			i++
			continue
		case slices.Contains(shells, base):
			for k, w := range words[i+1:] {
				if (strings.HasPrefix(w, "-") && strings.HasSuffix(w, "c") || strings.EqualFold(w, "/c") ||
					strings.EqualFold(w, "-command")) && i+k+2 < len(words) {
					f.shell = words[i+k+2]
					return
				}
			}
			return
		case slices.Contains(remotes, base):
			f.elsewhere = base
			return
		case base == "watch":
			f.again = true
			return
		case mark.MatchString(words[i]):
			f.open = words[i]
			return
		case !runs || base == "command" && i+1 < len(words) && strings.HasPrefix(words[i+1], "-"):
			return
		}
		begin := i
		i++
		if f.beside = f.beside || base == "start"; base == "start" {
			for i < len(words) && (words[i] == "" || strings.HasPrefix(words[i], "/")) {
				i++
			}
		}
		left := operands[base]
		for ; i < len(words); i++ {
			if w := words[i]; strings.HasPrefix(w, "-") && w != "--" {
				if len(w) == 2 && strings.ContainsRune(letters, rune(w[1])) || strings.HasPrefix(w, "--") &&
					!strings.Contains(w, "=") && i+1 < len(words) && number.MatchString(words[i+1]) {
					i++
				}
				continue
			} else if left <= 0 || isProgram(w) || w == "--" {
				break
			}
			left--
		}
		if i < len(words) && words[i] == "--" {
			i++
		}
		if !slices.Contains([]string{"sudo", "doas", "time", "exec", "command", "nohup", "start"}, base) {
			f.before = append(f.before, words[begin:min(i, len(words))]...)
		}
	}
}

var number = lazyregexp.New(`^[\d.,:x-]+[smh]?$`)

func isProgram(word string) bool {
	base := strings.TrimSuffix(word[strings.LastIndexAny(word, `/\`)+1:], ".exe")
	_, runs := runners[base]
	return runs || base == "fio" || base == "diskspd"
}

// note says what is not the same without what runs fio.
func (f *found) note() string {
	if slices.Contains(f.before, "timeout") {
		return "what ends fio before its time is no part of a job: --runtime says how long it runs"
	}
	return "it says how fio's own processes run"
}

// alone is fio's command line of a command that runs it elsewhere.
func alone(words []string) string {
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--name"):
		case isProgram(w) && strings.HasSuffix(strings.TrimSuffix(w, ".exe"), "fio") && i+1 < len(words) &&
			strings.HasPrefix(words[i+1], "-") && (i == 0 || words[i-1] != "run"): // but kubectl run NAME
			return diskspd.Join(append([]string{"fio"}, words[i+1:]...))
		case fioNamed.MatchString(w) && strings.Contains(w, " -"):
			return w[strings.Index(w, "fio"):]
		case i > 0 && strings.HasPrefix(w, "--name"): // an image whose program is fio
			return diskspd.Join(append([]string{"fio"}, words[i:]...))
		}
	}
	return "fio --name=..."
}
