//go:build linux

// Up starts a Kubernetes of two nodes on this machine, for tests and for people: see package k8s. It says how to use
// and to stop it:
//
//	go run ./internal/testkit/k8s/up
package main

import (
	"os"

	"plimsoll/internal/testkit/k8s"
)

func main() { os.Exit(k8s.Main(os.Args[1:])) }
