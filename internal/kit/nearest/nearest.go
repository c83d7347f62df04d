// Package nearest finds what a user may have meant by a name that does not exist. It is used wherever names are typed:
// flags, scenarios, options of a target.
package nearest

import "github.com/agnivade/levenshtein"

// Of is the candidate with the fewest letters to change, "" when all are far off: more than half of the word would
// change.
func Of(word string, candidates []string) string {
	best, distance := "", len(word)/2+1
	for _, c := range candidates {
		if d := Distance(word, c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// Distance is the number of letters to insert, delete or replace to turn a into b (Levenshtein). It takes as many steps
// as one has letters times those of the other: who is given names of any length cuts them before.
func Distance(a, b string) int { return levenshtein.ComputeDistance(a, b) }
