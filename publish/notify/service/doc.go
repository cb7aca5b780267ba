// Package service sends messages: one file for each service, with one line in the table. It tries once; notify/worker
// decides on retries, from the Failure.
//
// No error of this package holds a credential, nor an address that serves as a credential.
package service
