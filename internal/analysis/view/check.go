package view

import "plimsoll/result"

// Check is one question asked of a run, as a value: package analysis lists all that are asked.
type Check struct {
	Name string // of its findings, result.Finding.Check; of the first kind where it gives several
	// Rank is where its findings stand among those of equal severity, lower ones first: from 100 what the run was made
	// to find out, which reports begin with, from 200 what can make its figures meaningless, from 400 what they must be
	// read with, from 500 what is good to know. No two checks have the same one.
	Rank int
	// Run gives the findings, none where the question does not arise: it changes nothing, takes damaged data (gaps,
	// NaN, nothing at all) for what it is, and says of what is in order that it is (result.Passed).
	Run func(*Run) []result.Finding
}
