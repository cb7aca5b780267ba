package wire

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// TLS configures https. Each request reads the files again, because mounted Secrets may change.
type TLS struct {
	CAFile            string // PEM certificates of additional authorities
	CertFile, KeyFile string // PEM files of a client; CertFile may contain the key
	Proxy             string // http, https or socks5 URL; default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY
}

// Clients makes HTTP clients. It is safe for concurrent use.
type Clients struct {
	how   TLS
	proxy func(*http.Request) (*url.URL, error)

	client Parsed[*http.Client]
}

// NewClients checks the URL of the proxy, and reads the files.
func NewClients(how TLS) (*Clients, error) {
	how.KeyFile = cmp.Or(how.KeyFile, how.CertFile)
	if how.CertFile == "" && how.KeyFile != "" {
		return nil, errors.New("the client key has no client certificate; name both")
	}
	c := &Clients{how: how, proxy: http.ProxyFromEnvironment}
	if how.Proxy != "" {
		u, err := url.Parse(how.Proxy)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
			return nil, errors.New("the proxy is not a URL such as http://proxy.example.com:3128")
		}
		c.proxy = http.ProxyURL(u)
	}
	_, err := c.Client()
	return c, err
}

// Client returns a client that uses the current files.
func (c *Clients) Client() (*http.Client, error) {
	files := []File{
		{"CA file", c.how.CAFile}, {"client certificate", c.how.CertFile}, {"client key", c.how.KeyFile},
	}
	return c.client.Read(files, func(data [][]byte, previous *http.Client) (*http.Client, error) {
		config, err := c.config(data[0], data[1], data[2])
		if err != nil {
			return nil, err
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy, transport.TLSClientConfig = c.proxy, config
		if previous != nil {
			previous.CloseIdleConnections()
		}
		return &http.Client{Transport: transport, CheckRedirect: checkRedirect}, nil
	})
}

func (c *Clients) config(ca, cert, key []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.how.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("CA file %s holds no PEM certificate", c.how.CAFile)
		}
		config.RootCAs = pool
	}
	if c.how.CertFile != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil { // err does not quote the key
			return nil, fmt.Errorf("client certificate %s with key %s: %w", c.how.CertFile, c.how.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
