// Package call sends HTTP requests to third-party servers: metric providers, forges, and notification services.
//
// It implements the rules for all of these servers: no credential gets into an error or to another host, and responses
// are bounded. Transient errors are retried, and a refusal is reported with the server's message. Its callers are
// analysis/provider, publish/forge and publish/notify/service.
package call
