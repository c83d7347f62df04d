//go:build !linux

package pgwire

import "net"

func blocking(conn net.Conn) (socket, error) { return waiting{conn}, nil }
