// Command gitrollout is the program: the reconciler that runs beside a cluster, and the commands for users and CI
// systems. It is the only package that wires the others together, and with the loop the only one that logs.
//
// There is one file per command, named after it. root.go parses the command line, exit.go maps errors to exit codes.
// options.go and source.go select repository and cluster, and wire.go connects both to the loop. viewer.go provides the
// data of get and list, and world.go reads Git for it.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // release windows name time zones, and an image may lack the database
)

func main() {
	os.Exit(run(context.Background(), commandLine(), os.Stdin, os.Stdout, os.Stderr))
}
