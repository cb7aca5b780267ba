// Package source reads the users' branch and the state branch.
package source
