// Package guard is the one way by which anything of ours gets to write to a block device.
//
// Check says what stands against it, all of it at once, and changes nothing. Claim looks at the same things with the
// device held exclusively, so that nobody can mount, assemble or swap on it between the look and the write, and wants
// the consent that a user typed: the model and the serial number of this very device. Recheck looks again just before
// the write. OpenRead is for those who only read: it can write nothing, so that a device in use will do.
//
// A device is refused that somebody uses or has marked as theirs, at any level: the device, what it is made of, what is
// made of it. No consent overrides that; the message says how to free it by hand. What our own tools write leaves no
// mark, so that a device that was tested once can be tested again. It sits on package device, which tells what a
// device is, and is called by the targets and the commands; nothing here writes.
package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/storage/device"
)

// Kind is a reason to refuse.
type Kind string

// The kinds, each with a message of its own.
const (
	NotBlock    Kind = "no block device"
	Gone        Kind = "gone"
	LinkChanged Kind = "link changed"
	ReadOnly    Kind = "read-only"
	Partitioned Kind = "partitioned"
	Sibling     Kind = "sibling in use"
	Held        Kind = "held"
	Swap        Kind = "swap"
	Mounted     Kind = "mounted"
	Marked      Kind = "signature"
	BacksLoop   Kind = "behind a loop device"
	System      Kind = "system"
	Open        Kind = "open for writing"
	Busy        Kind = "busy"
	Unseen      Kind = "not seen"
	Nameless    Kind = "no identity"
	NoConsent   Kind = "no consent"
	OtherDevice Kind = "consent for another device"
	Changed     Kind = "changed"
)

// Objection is one thing that stands against writing to a device.
type Objection struct {
	Kind  Kind   `json:"kind"`
	About string `json:"about"` // the device or file that it is about: not always the one that was asked for
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // what frees the device, or what to do instead
}

// String is the objection on a line.
func (o Objection) String() string {
	text := o.About + ": " + o.Text
	if o.Do != "" {
		text += ": " + o.Do
	}
	return text
}

// Refusal is the error of a device that may not be written to, with every objection.
type Refusal struct {
	Path       string
	Objections []Objection
}

// mostMounts is how many mounts of a device an error tells by themselves.
const mostMounts = 5

// Error has a line for each objection. A device of the system is mounted in many places: of most the number.
func (r *Refusal) Error() string {
	var lines []string
	mounts := 0
	for _, o := range r.Objections {
		if o.Kind == Mounted {
			if mounts++; mounts > mostMounts {
				continue
			}
		}
		lines = append(lines, "device guard: "+o.String())
	}
	if more := mounts - mostMounts; more > 0 {
		lines = append(lines, fmt.Sprintf("device guard: and %d more mounts of it", more))
	}
	return strings.Join(lines, "\n")
}

// ExitCode implements exit.Coded.
func (r *Refusal) ExitCode() int { return exit.Refused }

// Has reports whether err is a refusal for a reason of that kind, among others.
func Has(err error, k Kind) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && slices.ContainsFunc(r.Objections, func(o Objection) bool { return o.Kind == k })
}

// refusal is the error of some objections, nil of none.
func refusal(path string, list []Objection) error {
	if len(list) == 0 {
		return nil
	}
	return &Refusal{path, list}
}

// Consent compares what a user typed with the device; nil when it is the consent to overwrite this device. Blanks
// between words do not count, everything else does.
func Consent(d device.Device, typed string) *Objection {
	phrase := d.Identity.Phrase
	switch {
	case phrase == "":
		return nil // said as Nameless
	case strings.TrimSpace(typed) == "":
		return &Objection{NoConsent, d.Node, "whatever is on it would be overwritten, and nobody has consented",
			fmt.Sprintf("after making sure that this is the device, give --consent %q", phrase)}
	case strings.Join(strings.Fields(typed), " ") != phrase:
		return &Objection{OtherDevice, d.Node, fmt.Sprintf("the consent is for %q, and this is %q", typed, phrase),
			"look at it with plimsoll device inspect " + d.Node + "; the path may lead to another device by now"}
	}
	return nil
}
