// Package call sends HTTP requests to third-party servers for analysis/provider, publish/forge and
// publish/notify/service.
// It keeps credentials out of errors and away from other hosts. It bounds responses and retries transient errors. Its
// errors contain the server's message.
package call
