package importer

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

// What ends anywhere is read as far as it goes or refused, and what is read can be read again.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	for name, text := range map[string]string{
		"rados": radosWrite + radosRead, "ior": iorBoth, "bonnie++": bonnieLine, "k6": k6Old, "k6 1": k6New,
		"k6 json": k6Exported,
		"fio":     fioTwo + fioTwo, "diskspd": diskspdCall("2026/02/03 08:00:00", 30, 10, true), "diskspd of " +
			"Linux": diskspdLinux,
		"vdbench": intervals(""), "dd": "1024+0 in\n1024+0 out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.5 s, 429 MB/s\n",
		"odd numbers": strings.NewReplacer("1", "99999999999999999999", ".",
			",").Replace(radosWrite + iorBoth + k6Old + fioTwo),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := 1; cut <= len(text); cut += 1 + len(text)/400 {
				data := []byte(text[:cut])
				all, err := Prepare("x.txt", bytes.NewReader(data), changed, Options{})
				if err != nil {
					continue
				}
				for _, d := range all {
					if !d.End.After(d.Start) || d.Reports == 0 {
						t.Errorf("cut at %d: read without figures or time: %+v", cut, d)
					}
					var rec workloadtest.Recorder
					if _, err := Engines()[d.Engine].Parse(d.Declared, bytes.NewReader(data),
						&rec); len(rec.Reports) == 0 {
						t.Errorf("cut at %d: it is not read again: %v", cut, err)
					}
					holds(t, name, d.Declared, rec.Reports)
				}
			}
		})
	}
}
