// Package service makes one attempt to send a message to a service. Errors contain neither credentials nor secret
// addresses.
package service
