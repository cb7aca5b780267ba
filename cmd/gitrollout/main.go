// Command gitrollout is the program: the reconciler that runs beside a cluster
// and the commands that people and CI systems use. It is the only package that
// wires the others together, and with the loop the only one that logs.
//
// Where to look: one file per command, named after it. root.go reads the
// command line and exit.go says what an error means for the exit code;
// options.go, wire.go and adapters.go connect Git and the cluster to the loop;
// world.go reads everything that a command shows; status.go is what get and
// list show as data, view.go and table.go how they draw it.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // release windows name time zones, and an image may have none
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
