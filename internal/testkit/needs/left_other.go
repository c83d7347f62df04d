//go:build !linux

package needs

import "testing"

// Folder is a temporary folder of a test.
func Folder(t testing.TB) string {
	t.Helper()
	return t.TempDir()
}
