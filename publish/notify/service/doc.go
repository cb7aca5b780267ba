// Package service sends messages, one file and one line of the table per service, once: notify/worker retries by the
// Failure. No error holds a credential, nor an address that is one.
package service
