// Package service sends a message to a service, once. A table lists the services, and each service has one file. The
// caller decides by the Failure whether to retry. Errors contain no credentials and no secret addresses.
package service
