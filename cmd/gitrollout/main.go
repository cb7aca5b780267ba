// Command gitrollout is the reconciler of a cluster, and the commands for users and CI systems. Only this package wires
// the other packages together. Only the packages main and reconciler write to the log.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // for release windows, because a container image may lack the time zones
)

func main() {
	os.Exit(run(context.Background(), commandLine(), os.Stdin, os.Stdout, os.Stderr))
}
