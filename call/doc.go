// Package call sends HTTP requests to third-party servers for analysis/provider, publish/forge and
// publish/notify/service.
//
// No credential gets into an error or to another host, and responses are bounded. Transient errors are retried, and a
// refusal is reported with the server's message.
package call
