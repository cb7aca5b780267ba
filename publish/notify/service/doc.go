// Package service makes one attempt to send a message to a service. Each service has a file, a template, or both.
// Errors contain neither credentials nor secret addresses.
package service
