package result

import "encoding/json"

// Folders of version 1 hold block operations only and name a series by one word. They are read as if written today.

// version1Raw is the name of raw output in folders of version 1, whatever made it.
const version1Raw = "fio.out.zst"

// upgrade gives data of version 1 the operations and measures that its documents imply; doc is the document.
func (d *Data) upgrade(doc []byte) error {
	if d.Version > 1 {
		return nil
	}
	var old struct {
		Series []struct {
			Metric string `json:"metric"`
		} `json:"series"`
	}
	if err := json.Unmarshal(doc, &old); err != nil {
		return err
	}
	for i := range d.Series {
		d.Series[i].Op, d.Series[i].Measure = version1Metric(old.Series[i].Metric)
	}
	for i := range d.Workloads {
		d.Workloads[i].Operations = BlockOperations()
	}
	return nil
}

// version1Metric is what a name of version 1 stands for.
func version1Metric(name string) (op, measure string) {
	for _, o := range BlockOperations() {
		for _, m := range []string{Rate, Bandwidth, LatencyMean, LatencyP50, LatencyP99, LatencyP999} {
			if name == (Series{Op: o.Name, Measure: m, Unit: OperationsUnit}).Metric() {
				return o.Name, m
			}
		}
	}
	return "", name
}

func (j *RawJob) upgrade() {
	if j.Version == 1 {
		j.Operations = BlockOperations()
	}
}
