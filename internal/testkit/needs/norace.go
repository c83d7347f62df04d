//go:build !race

package needs

// Race is true under the race detector, which makes simulations ten times slower: those that measure coverage make
// fewer sets then.
const Race = false
