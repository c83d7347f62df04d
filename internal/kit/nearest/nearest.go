// Package nearest finds what a user may have meant by a name that does not exist. It is used wherever names are typed:
// flags, scenarios, options of a target.
package nearest

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

// Distance is the number of bytes to insert, delete or replace to turn a into b (Levenshtein). It takes as many steps
// as one has bytes times those of the other: who is given names of any length cuts them before.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(corner+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
