// Package call sends HTTP requests to third-party servers. Errors contain the server's message, but no credentials, and
// no other host gets credentials after a redirect. Responses are limited, and transient errors retried.
package call
