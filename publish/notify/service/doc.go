// Package service sends a message to a service, in one attempt. Errors contain neither credentials nor secret
// addresses.
package service
