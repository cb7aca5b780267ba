// Package e2e tests the whole program on a real control plane with a real Git server. Each test has its repository,
// namespace and gitrollout process, and watches every pod from its first event to its last.
package e2e
