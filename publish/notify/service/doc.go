// Package service makes one attempt to send a message to a service. A table lists the services. Each service has a
// file, a template of its messages, or both. A Failure tells the caller whether a retry can help. Errors contain no
// credentials and no secret addresses.
package service
