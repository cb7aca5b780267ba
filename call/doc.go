// Package call sends HTTP requests to third-party servers for the packages analysis/provider, publish/forge and
// publish/notify/service. It keeps credentials out of errors, and does not send them to another host after a redirect.
// It limits the size of responses and retries after transient errors. Its errors contain the server's message.
package call
