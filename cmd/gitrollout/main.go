// Command gitrollout is the program: the reconciler that runs for a cluster, and the commands for users and CI systems.
// Only this package wires the other packages together. Only packages main and reconciler log.
//
// Each command has a file of the same name. root.go parses the command line, exit.go maps errors to exit codes.
// options.go and source.go select repository and cluster, and wire.go connects both to the loop. viewer.go provides the
// data of get and list; world.go reads Git for them.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // release windows name time zones, and an image may lack the database
)

func main() {
	os.Exit(run(context.Background(), commandLine(), os.Stdin, os.Stdout, os.Stderr))
}
