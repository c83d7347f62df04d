package worker_test

import (
	"testing"

	"plimsoll/internal/contract/worker"
)

func TestReadCPUs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "3,1": "1,3", "0-3,8": "0-3,8", "2,1,0": "0-2", " 1 , 1": "1", "1023": "1023",
		"": "", "a": "", "3-1": "", "-1": "", "0-": "", "1024": "", "0,,1": "", "0-99999999999": "",
	} {
		got, err := worker.ReadCPUs(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzReadCPUs(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := worker.ReadCPUs(text)
		if err != nil {
			return
		}
		if again, err := worker.ReadCPUs(got); err != nil || again != got {
			t.Fatalf("%q is read as %q, and that as %q, %v", text, got, again, err)
		}
	})
}
