// Package call sends HTTP requests to third-party servers. Errors contain the server's message, but no credentials.
// After a redirect, no other host gets credentials. Responses are limited in size, and transient errors are retried.
package call
