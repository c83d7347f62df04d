package load_test

import (
	"fmt"

	"plimsoll/internal/formats/convert/load"
)

// What there is to say about a file is collected, each thing once, with its place.
func Example() {
	at := load.Place{File: "my.vdb", Line: 3, Col: 12}
	var t load.Teller
	for range 2 {
		t.Note(load.Ask{Text: "port=5000", At: at}, "", "it says how vdbench's own processes run")
		t.Object(at, "rdpct=%d is no percentage", 120)
	}
	fmt.Println(t.Notes[0], len(t.Notes))
	fmt.Println(t.Err())
	fmt.Println(load.Size(48<<10), load.Whole([]float64{37.5, 12.5}))
	// Output:
	// my.vdb:3:12: port=5000: left out: it says how vdbench's own processes run 1
	// my.vdb:3:12: rdpct=120 is no percentage
	// 48k [38 12]
}
