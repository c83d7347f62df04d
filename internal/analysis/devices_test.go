package analysis

import "testing"

// TestLinkCeilings holds the published ceilings in MB/s, and refuses what names none.
func TestLinkCeilings(t *testing.T) {
	for text, want := range map[string]float64{
		"SATA 6 Gb/s": 600, "SATA-3": 600, "SATA 3 Gb/s": 300, "SAS-3": 1200, "SAS 12 Gb/s": 1200, "SAS-3 x4": 4800, "SAS-3 x8": 8400,
		"PCIe-3 x1": 1000, "PCIe-3 x4": 4000, "PCIe Gen3 x8": 8000, "PCIe 3.0 x40": 40000, "PCI Express 4 x4": 8000, "10GbE": 1250, "25 GbE": 3125, "2.5GbE": 312.5, "0.1GbE": 12.5, "PCIe-3 x2, could be PCIe-4 x4": 2000, "SAS 12 Gb/s x2": 2400, "540 MB/s": 540,
		"": -1, "fast": -1, "PCIe-9 x4": -1, "PCIe-3 x0": -1, "x4": -1,
	} {
		got, ok := linkCeiling(text)
		if !ok {
			got = -megabyte
		}
		if got != want*megabyte {
			t.Errorf("%q: %g MB/s, want %g", text, got/megabyte, want)
		}
	}
}
