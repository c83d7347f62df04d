package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/visibletest"
)

// TestHostileTrace: whatever a trace calls its processes and devices, and whatever stands where an event should, steers
// no terminal and forges no line, in any format.
func TestHostileTrace(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for _, hostile := range visibletest.Texts {
		text := hostile.Text
		word := strings.NewReplacer("\n", "", "\r", "", ",", "", "\"", "").Replace(text)
		for name, content := range map[string]string{
			"processes": "  8,16   0        2     0.000000200   77  D   R 1000 + 8 [" + word + "]\n" +
				"  8,16   0        3     0.000100200   77  C   R 1000 + 8 [0]\n" + text + "\n",
			"devices": "time_ms,op,offset_bytes,size_bytes,device\n0,read,0,512," + word + "\n1,write,512,512," + word +
				"\n",
		} {
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, format := range []string{"text", "json", "csv", "html"} {
				a, out, errs := quiet(t)
				a.main([]string{"trace", file, "-o", format})
				for _, printed := range []string{out.String(), errs.String()} {
					if loose := visibletest.Loose(printed); loose != "" {
						t.Errorf("%s as %s of %q: %s", name, format, text, loose)
					}
				}
			}
		}
	}
}
