// Package console is what a person has of a cluster's releases: it sees what the loop sees, and pushes what people ask
// for, under their names. The commands and the page of the dashboard work through it. Gathering is reconciler/source's,
// what a push says reconciler/propose's, and what is shown views/status'.
package console
