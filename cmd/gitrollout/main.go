// Command gitrollout is the program: the reconciler of a cluster, and the commands for users and CI systems. Only this
// package wires all other packages together. Only the packages main and reconciler write to the log.
//
// Each command has a file of the same name. root.go parses the command line, and exit.go maps errors to exit codes.
// options.go and source.go select the repository and the cluster, and wire.go creates the reconciler. viewer.go and
// world.go read the data for the commands "get" and "list".
package main

import (
	"context"
	"os"
	_ "time/tzdata" // release windows use time zones, and a container image may lack their database
)

func main() {
	os.Exit(run(context.Background(), commandLine(), os.Stdin, os.Stdout, os.Stderr))
}
