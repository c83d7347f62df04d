package console

import (
	"context"
	"os"
	"os/user"
	"runtime/debug"
	"strings"

	"plimsoll/internal/kit/exit"
	"plimsoll/result"
)

// StoppedOrFailed is the exit code of what failed, or was told to stop.
func StoppedOrFailed(ctx context.Context) int {
	if ctx.Err() != nil {
		return exit.Interrupted
	}
	return exit.Failed
}

// String is the program with its version, for the record.
func (v Version) String() string {
	text := v.Program
	if v.Revision != "" {
		text += " " + v.Revision[:min(12, len(v.Revision))]
	}
	if v.Modified {
		text += " (modified)"
	}
	return text
}

// Operator is who runs it; empty for a simulated run, which is the same whoever runs it.
func Operator(simulated bool) string {
	if simulated {
		return ""
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}

// Version holds what version --json prints.
type Version struct {
	Program   string `json:"program"`
	Revision  string `json:"revision,omitempty"`
	Modified  bool   `json:"modified,omitempty"`
	RunFolder int    `json:"run_folder_version"`
	Go        string `json:"go"`
}

// revision is set by make: what git calls the source.
var revision string

// BuildVersion reads what make and the Go toolchain have stamped into the binary.
func BuildVersion() Version {
	v := Version{Program: "plimsoll (unknown build)", RunFolder: result.FormatVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	v.Program = "plimsoll " + info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if revision != "" {
		clean, dirty := strings.CutSuffix(revision, "-dirty")
		v.Revision, v.Modified = clean, dirty
	}
	return v
}
