// Package lab is the place of QEMU guests on the nodes of a miniature cluster: `--target lab`.
//
// Package internal/lab has made the nodes, with network, storage and power controllers; internal/guest the images;
// internal/qemu runs the guests, as processes of their nodes; internal/remote works inside them. A guest's disks lie on
// the nodes' storage in a folder of the run, what its process needs lies in the run's state folder, both written down
// before they are made, so that Destroy finds all of it from a fresh process.
//
// It refuses a lab that is not there, nodes that are off, folders of other runs, and machines other than Linux.
package lab

import "plimsoll/internal/target"

// Provider makes places of guests. The zero value is ready for use.
type Provider struct{}

var _ target.Provider = Provider{}

// Name implements target.Provider.
func (Provider) Name() string { return "lab" }

// Summary implements target.Provider.
func (Provider) Summary() string {
	return "QEMU guests on the nodes that plimsoll lab up has made on this machine"
}

// Options implements target.Provider.
func (Provider) Options() []target.Option {
	return []target.Option{
		{Name: "dir", Help: "the folder of the lab, as given to plimsoll lab up (default: as there)"},
		{Name: "cache", Help: "the folder of guest images (default: that of plimsoll lab image)"},
		{Name: "agent", Help: "the file plimsoll-agent-linux-amd64 (default: beside plimsoll)"},
		{Name: "image", Type: target.Choice, Choices: []string{"worker", "debian"}, Default: "worker",
			Help: "what guests boot"},
		{Name: "memory", Type: target.Bytes,
			Help: "memory of each guest, whatever the scenario gives it (default: what it gives)"},
		{Name: "ha", Type: target.Choice, Choices: []string{"on", "off"}, Default: "on",
			Help: "whether guests of a node that is lost are started on another one"},
	}
}
