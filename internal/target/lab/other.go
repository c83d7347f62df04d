//go:build !linux

package lab

import (
	"errors"

	"plimsoll/internal/target"
)

// New implements target.Provider: network namespaces, on which a lab stands, are Linux's.
func (Provider) New(target.Config) (target.Target, error) {
	return nil, errors.New("target lab: only on Linux")
}
