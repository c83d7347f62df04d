package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/storage/device"
	"plimsoll/internal/testkit/devicetest"
	vioperf "plimsoll/internal/workloads/vioperf/driver"
)

// A device is written over with its consent only; what is read back is right, and the next run may do it again.
func TestVioperfOnADevice(t *testing.T) {
	loop, _ := devicetest.Loop(t, 32<<20)
	line := []string{"vioperf", loop, "--duration", "20s", "--thread-count", "2", "--verify", "--json"}
	a, _, errs := quiet(t)
	if code := a.main(line); code != exit.Refused || !strings.Contains(errs.String(), "--consent") {
		t.Fatalf("without consent: exit code %d\n%s", code, errs)
	}
	d, err := device.Read(os.DirFS("/"), filepath.Base(loop))
	if err != nil {
		t.Fatal(err)
	}
	line = append(line, "--consent", d.Identity.Phrase)
	for range 2 {
		a, out, errs := quiet(t)
		code := a.main(line)
		var res vioperf.Result
		if err := json.Unmarshal(out.Bytes(), &res); err != nil || code != exit.Done {
			t.Fatalf("exit code %d, %v\n%s", code, err, errs)
		}
		if res.Ended != vioperf.Full || res.Bytes < 16<<20 || res.Verification.Wrong() > 0 || res.DeviceSaw == nil ||
			res.Device != filepath.Base(loop) {
			t.Errorf("%+v, %+v", res, res.Verification)
		}
	}
	a, _, errs = quiet(t)
	if code := a.main(append(line, "--keep")); code != exit.Failed || !strings.Contains(errs.String(),
		"no files to keep") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	a, _, errs = quiet(t)
	if code := a.main(append(line, "--compare-fio")); code != exit.Usage || !strings.Contains(errs.String(),
		"not on a device") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
