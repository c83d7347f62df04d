//go:build !linux

package run

// rssUnit is the unit of ru_maxrss in bytes, as Darwin has it.
const rssUnit = 1
