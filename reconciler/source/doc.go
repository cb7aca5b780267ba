// Package source reads the users' branch and the state branch. Commands and pages also use [Gatherer].
package source
