package call

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Clients returns a function for Caller.Client. The clients use proxies from the environment.
func Clients() func(insecure bool) *http.Client {
	return clientsOf(&net.Dialer{})
}

// ClientsWithin is like Clients, but the clients connect only to addresses that r allows. Use ClientsWithin for URLs
// from users.
func ClientsWithin(r Reach) func(insecure bool) *http.Client {
	return clientsOf(&net.Dialer{Control: r.control})
}

func clientsOf(dialer *net.Dialer) func(insecure bool) *http.Client {
	dialer.Timeout, dialer.KeepAlive = 10*time.Second, 30*time.Second
	clients := map[bool]*http.Client{}
	for _, insecure := range []bool{false, true} {
		clients[insecure] = &http.Client{Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        90 * time.Second,
			MaxIdleConnsPerHost:    4,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
			// Request.Insecure disables verification.
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure},
		}}
	}
	return func(insecure bool) *http.Client { return clients[insecure] }
}

var errRedirect = errors.New("it redirects")

// redirects returns a function that refuses redirects to another host or with another method, so that no other host
// gets credentials. Only a GET without headers, signature and userinfo may go to another host.
func redirects(r Request, first *http.Request) func(next *http.Request, via []*http.Request) error {
	bare := r.Method == http.MethodGet && r.Sign == nil && len(r.Header) == 0 && first.URL.User == nil
	return func(next *http.Request, via []*http.Request) error {
		from := first.URL
		same := next.URL.Host == from.Host && (next.URL.Scheme == from.Scheme || next.URL.Scheme == "https")
		to := next.URL.Scheme + "://" + next.URL.Host
		switch {
		case len(via) > 5:
			return fmt.Errorf("%w too often", errRedirect)
		case !same && !bare:
			return fmt.Errorf("%w to another host, %s; use this address instead", errRedirect, to)
		case next.Method != r.Method:
			return fmt.Errorf("%w to %s; use this address instead", errRedirect, to)
		case !same:
			next.Header.Del("Referer")
		}
		return nil
	}
}
