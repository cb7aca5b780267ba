// Package call sends HTTP requests to third-party servers for analysis/provider, publish/forge and
// publish/notify/service.
//
// It keeps credentials out of errors and away from other hosts, and bounds responses. It retries transient errors, and
// reports a refusal with the server's message.
package call
