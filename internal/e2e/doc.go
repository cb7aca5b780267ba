// Package e2e tests the whole program on a real control plane with a real Git server. Each test has its own repository,
// namespace and gitrollout process, and watches its pods from their creation to their deletion.
package e2e
