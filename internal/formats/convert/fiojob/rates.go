package fiojob

import (
	"fmt"
	"math"
	"strconv"

	"plimsoll/internal/formats/convert/load"
)

// rates says how many operations there are a second: fio counts reads and writes apart, and each process.
func (w *writer) rates(processes int) {
	s := w.stream
	each := func(asked, times float64) string {
		total := asked * times
		per := func(share float64) int64 {
			return int64(math.Max(math.Round(total*share/100/float64(processes)), 1))
		}
		if s.Reads > 0 && s.Reads < 100 {
			whole := load.Whole([]float64{total * s.Reads / 100 / float64(processes),
				total * (100 - s.Reads) / 100 / float64(processes)})
			reads, writes := max(whole[0], 1), max(whole[1], 1)
			w.rateNote(asked, float64((reads+writes)*int64(processes))/times)
			return fmt.Sprintf("%d,%d", reads, writes)
		}
		w.rateNote(asked, float64(per(100)*int64(processes))/times)
		return strconv.FormatInt(per(100), 10)
	}
	perOperation, perByte := 1.0, 1.0 // fio counts both in blocks of the smallest size
	if s.Even {
		perOperation = s.Uneven()
	} else {
		perByte = 1 / s.Uneven()
	}
	if s.Rate > 0 {
		w.set("rate_iops", each(s.Rate, perOperation))
		if !s.Even {
			w.set("rate_process", "poisson")
		}
	}
	if s.Bytes > 0 {
		w.set("rate", each(float64(s.Bytes), perByte))
	}
}

func (w *writer) rateNote(asked, got float64) {
	if math.Abs(asked-got) > asked*0.005 {
		got = math.Round(got*1000) / 1000
		w.Note(w.stream.Asked("Rate", load.Number(asked)), load.Number(got)+" a second for the job",
			"fio takes a whole number for each process, reads and writes apart; %s is asked for this stream",
			load.Number(math.Round(asked*1000)/1000))
	}
}

// data says what is written.
func (w *writer) data() {
	s := w.stream
	switch s.Data.Kind {
	case load.Zeros:
		w.flag("zero_buffers")
	case load.Repeated:
		w.set("buffer_pattern", "0x"+s.Data.Pattern)
	case load.Unique:
		w.flag("refill_buffers")
	}
	if s.Data.Compressed > 0 {
		percent := math.Round(s.Data.Compressed)
		w.number("buffer_compress_percentage", int64(percent))
		if s.Data.Kind != load.Repeated {
			w.set("buffer_pattern", "0xdeadbeef")
		}
		w.Note(
			s.Asked("Compressed", "compressible data"),
			fmt.Sprintf("buffer_compress_percentage=%.0f", percent),
			"of every 512 bytes a part is one pattern and the rest random: another compressor than one that finds such runs "+
				"may get another ratio",
		)
	}
	if s.Data.Duplicate > 0 {
		percent := math.Round(s.Data.Duplicate)
		w.number("dedupe_percentage", int64(percent))
		unit := s.Data.Unit
		switch {
		case len(s.Sizes) > 1 || unit > 0 && unit != s.Sizes[0].Bytes:
			w.Note(s.Asked("Duplicate", "duplicate blocks"), fmt.Sprintf("dedupe_percentage=%.0f", percent),
				"whole operations are copies of others, not blocks of %s", load.Size(max(unit, 512)))
		default:
			w.Note(s.Asked("Duplicate", "duplicate blocks"), fmt.Sprintf("dedupe_percentage=%.0f", percent),
				"which blocks are copies of which is left to chance")
		}
	}
}

// flows are the weights of streams that share what there is, as small whole numbers; nil when none is asked.
func (w *writer) flows(st *load.Stage) []int64 {
	weights, n := make([]float64, len(st.Streams)), 0
	for i, s := range st.Streams {
		if weights[i] = s.Weight; s.Weight > 0 {
			n++
		}
	}
	if n < 2 {
		return nil
	}
	var sum float64
	for _, v := range weights {
		sum += v
	}
	for i := range weights {
		weights[i] *= 100 / sum
	}
	flows := load.Whole(weights)
	for i := range flows {
		s := &st.Streams[i]
		if s.Weight > 0 {
			flows[i] = max(flows[i], 1)
			w.Note(s.Asked("Weight", "a share"), fmt.Sprintf("flow=%d", flows[i]),
				"fio holds a stream back while it is ahead of the others, the share is reached only on the whole")
		}
	}
	return flows
}
