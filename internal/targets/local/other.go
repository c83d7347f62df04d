//go:build !linux

package local

import (
	"errors"

	"plimsoll/internal/contract/target"
)

func open(settings) (target.Target, error) {
	return nil, errors.New("target local: needs Linux: choose another target, such as ssh, and let a Linux host do " +
		"the work")
}
