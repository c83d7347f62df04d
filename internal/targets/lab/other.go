//go:build !linux

package lab

import (
	"errors"

	"plimsoll/internal/contract/target"
)

func open(settings) (target.Target, error) {
	return nil, errors.New("target lab: needs Linux: choose another target, such as sim or ssh")
}
