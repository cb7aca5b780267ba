// Package service makes an attempt to send a message to a service. A table lists the services. Each service has a file,
// a template of its messages, or both. A Failure tells the caller whether a retry may succeed. Errors contain neither
// credentials nor secret addresses.
package service
