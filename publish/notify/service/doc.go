// Package service makes one attempt to send a message to a service. A table lists the services, and each service has
// one file. A Failure tells the caller whether a retry can help. Errors contain no credentials and no secret addresses.
package service
