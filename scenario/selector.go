package scenario

// Selector is a node selector as written, e.g. ":n/2". Resolve gives the node indices on a cluster of n nodes.
type Selector struct {
	Text string
}
