// Command gitrollout is the program: the reconciler that runs beside a cluster and the commands that people and CI
// systems use. It is the only package that wires the others together, and with the loop the only one that logs.
//
// Where to look: one file per command, named after it. root.go reads the command line and exit.go says what an error
// means for the exit code; options.go and source.go say which repository and cluster are meant, and wire.go connects
// both to the loop; viewer.go is where that comes from which get and list show, and world.go reads Git for them.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // release windows name time zones, and an image may have none
)

func main() {
	os.Exit(run(context.Background(), commandLine(), os.Stdin, os.Stdout, os.Stderr))
}
