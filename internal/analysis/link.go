package analysis

import (
	"regexp"
	"strconv"
	"strings"

	"plimsoll/unit"
)

// Megabyte, as vendors and buses count.
const megabyte = 1e6

// perLane is the usable bandwidth of one lane in bytes per second. SATA and SAS carry 8 bits in 10, so 6 Gb/s are 600 MB/s; PCIe from
// generation 3 on 128 in 130, published rounded as 1,000 MB/s.
var perLane = map[string]float64{
	"sata-1": 150 * megabyte, "sata-2": 300 * megabyte, "sata-3": 600 * megabyte,
	"sas-1": 300 * megabyte, "sas-2": 600 * megabyte, "sas-3": 1200 * megabyte, "sas-4": 2400 * megabyte,
	"pcie-1": 250 * megabyte, "pcie-2": 500 * megabyte, "pcie-3": 1000 * megabyte, "pcie-4": 2000 * megabyte, "pcie-5": 4000 * megabyte, "pcie-6": 8000 * megabyte,
}

// asPublished are ceilings that differ from lanes times one lane: an eight-lane SAS-3 adapter sits on a PCIe-3 x8 slot and is published with
// 8,400 MB/s.
var asPublished = map[string]float64{"sas-3 x8": 8400 * megabyte}

var (
	linkForm    = regexp.MustCompile(`(?i)\b(sata|sas|pcie|pci express)[\s_-]*(?:gen(?:eration)?)?[\s_-]*([1-6])(?:\.0)?\b(?:[\s,]*x\s*(\d{1,2}))?`)
	speedForm   = regexp.MustCompile(`(?i)\b(sata|sas)\b[^0-9]*(1\.5|3|6|12|22\.5|24)(?:\.0)?\s*(?:gb/s|gbps|gbit/s|g\b)(?:[\s,]*x\s*(\d{1,2}))?`)
	networkForm = regexp.MustCompile(`(?i)\b(\d{1,3})\s*(?:gbe|gbase|gbit/s ethernet|gb/s ethernet)`)
)

var speedGeneration = map[string]string{
	"sata 1.5": "sata-1", "sata 3": "sata-2", "sata 6": "sata-3", "sas 3": "sas-1", "sas 6": "sas-2", "sas 12": "sas-3", "sas 22.5": "sas-4", "sas 24": "sas-4",
}

// linkCeiling is the theoretical bandwidth in bytes per second of a link as facts name it: "PCIe-3 x4", "SATA 6 Gb/s", "25GbE",
// or a bandwidth as such.
func linkCeiling(text string) (float64, bool) {
	kind, lanes := "", ""
	if m := speedForm.FindStringSubmatch(text); m != nil {
		kind, lanes = speedGeneration[strings.ToLower(m[1])+" "+m[2]], m[3]
	} else if m := linkForm.FindStringSubmatch(text); m != nil {
		family := strings.ToLower(m[1])
		if family == "pci express" {
			family = "pcie"
		}
		kind, lanes = family+"-"+m[2], m[3]
	}
	if one, ok := perLane[kind]; ok {
		n := 1.0
		if lanes != "" {
			n, _ = strconv.ParseFloat(lanes, 64)
		}
		if v, ok := asPublished[kind+" x"+lanes]; ok {
			return v, true
		}
		return one * n, n > 0
	}
	if m := networkForm.FindStringSubmatch(text); m != nil {
		gigabits, _ := strconv.ParseFloat(m[1], 64)
		return gigabits * 1e9 / 8, gigabits > 0
	}
	b, err := unit.ParseBandwidth(strings.TrimSpace(text))
	return float64(b), err == nil && b > 0
}
