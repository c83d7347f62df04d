// Package arch holds no program, only tests: the rules of docs/architecture.md, checked against the source. Which
// room may import which, what pure packages may not touch, where Prometheus ends, that every package says what it
// is, that nothing registers itself, what the shipped binary links, and that no tracked file names the machine it was
// written on. Each failure says the rule and the reason for it.
package arch
