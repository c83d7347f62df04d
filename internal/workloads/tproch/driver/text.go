package tproch

import (
	"strconv"
	"strings"
)

// poolBytes is the size of the text that all comments are cut from.
const poolBytes = 300 << 20

// wheel is a set of words to draw from: one place for each unit of weight.
type wheel []string

// newWheel reads words with their weights; each word gets an ending.
func newWheel(text, ending string) (w wheel) {
	for group := range strings.SplitSeq(text, "/") {
		weight, words, _ := strings.Cut(group, " ")
		n, _ := strconv.Atoi(weight) // constants of this package
		for word := range strings.SplitSeq(words, ",") {
			for range n {
				w = append(w, word+ending)
			}
		}
	}
	return w
}

func (w wheel) draw(s *stream) string { return w[s.upTo(len(w))] }

// textPool writes the text: sentences of a small grammar, one after the other, all drawn from one stream.
func textPool() []byte {
	s := newStream(textStream)
	sentence, noun, verb := newWheel(sentences, ""), newWheel(nounPhrases, ""), newWheel(verbPhrases, "")
	words := ['Z']wheel{'N': newWheel(nouns, " "), 'V': newWheel(verbs, " "), 'J': newWheel(adjectives, " "),
		'C': newWheel(adjectives, ", "), 'D': newWheel(adverbs, " "), 'X': newWheel(auxiliaries, " ")}
	preposition, terminator := newWheel(prepositions, " the "), newWheel(terminators, " ")
	pool := make([]byte, 0, poolBytes+1000) // no sentence has as many bytes
	phrase := func(form string) {
		for i := range len(form) {
			pool = append(pool, words[form[i]].draw(&s)...)
		}
	}
	for len(pool) < poolBytes {
		form := sentence.draw(&s)
		for i := range len(form) {
			switch form[i] {
			case 'V':
				phrase(verb.draw(&s))
			case 'P':
				pool = append(pool, preposition.draw(&s)...)
				fallthrough
			case 'N':
				phrase(noun.draw(&s))
			default:
				pool = append(pool[:len(pool)-1], terminator.draw(&s)...)
			}
		}
	}
	return pool[:poolBytes:poolBytes]
}
