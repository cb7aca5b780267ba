// Package contract says what the reconciler relies on, as tests: what a
// Repository does, and what an Observer and an Applier do. The real ones are held
// to it in cmd/gitrollout, against a Git server and an API server, and those in
// memory in package simulate, so that what the simulator proves is about the
// world as it is.
package contract
