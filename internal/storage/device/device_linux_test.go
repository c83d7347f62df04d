package device_test

import (
	"encoding/json"
	"strings"
	"testing"

	"plimsoll/internal/storage/device"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/golden"
)

// TestMachines holds all that is said of the devices of the machines in testdata, whole.
func TestMachines(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		machine, look := devicetest.Machine(t, name)
		p, err := device.Find(machine, look)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d, err := device.Read(machine, p.Device)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(struct {
			device.Place
			Found device.Device `json:"device"`
		}{p, d}); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/machines/"+name+".json", []byte(b.String()))
	}
}
