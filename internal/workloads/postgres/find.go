// Package postgres is what every engine of PostgreSQL shares: where its programs are, the server of a run's own or the
// one that a user named, its address and password, the mark on what we made there, and what is known of sizes.
//
// It stands below the engines and the commands, above workload and secret. It refuses to reconfigure a server that it
// did not start, and to drop or fill a database that does not carry our mark.
package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// FolderVariable is the environment variable that names the folder of PostgreSQL's programs, before every other place.
const FolderVariable = "PLIMSOLL_POSTGRES"

// Places are where packages put programs of PostgreSQL besides PATH, as patterns of the shell. Newest versions first.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin"}

// Folder finds the folder of initdb and postgres: FolderVariable, then PATH, where packages are, and what Fetch left.
func Folder() (string, error) {
	if own := os.Getenv(FolderVariable); own != "" {
		if !complete(own) {
			return "", fmt.Errorf("postgres: %s is %q, where initdb and postgres are not both", FolderVariable, own)
		}
		return own, nil
	}
	var folders []string
	for _, name := range []string{"postgres", "initdb", "psql"} {
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				folders = append(folders, filepath.Dir(path))
			}
		}
	}
	for _, pattern := range places {
		found, _ := filepath.Glob(pattern) // the patterns are right
		slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
		folders = append(folders, found...)
	}
	if i := slices.IndexFunc(folders, complete); i >= 0 {
		return folders[i], nil
	}
	return "", errors.New("postgres: initdb and postgres are neither in PATH nor where packages put them; " +
		"install postgresql, or name their folder in " + FolderVariable)
}

func complete(folder string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

var digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// version is 100 times the version in a path, 0 for none.
func version(path string) int {
	n, _ := strconv.ParseFloat(digits.FindString(strings.TrimPrefix(path, "/usr/pgsql-")), 64) // 0 where there is none
	return int(n * 100)
}
