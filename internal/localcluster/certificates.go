package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// These are the names of the files in the folder pki/ of a state directory.
const (
	caCert            = "ca.crt"
	caKey             = "ca.key"
	apiServerCert     = "apiserver.crt"
	apiServerKey      = "apiserver.key"
	serviceAccountKey = "service-account.key"
)

// certificates is the folder with the cluster's certificate authority and certificates. It stays after a run,
// so that a restarted cluster still accepts earlier kubeconfigs and service account tokens.
type certificates struct {
	dir string
}

func (c certificates) path(name string) string { return filepath.Join(c.dir, name) }

// ensureCertificates creates the files of a new cluster. It does not change existing files.
func ensureCertificates(dir string) (certificates, error) {
	certs := certificates{dir: dir}
	if _, err := os.Stat(certs.path(caCert)); err == nil {
		return certs, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return certs, fmt.Errorf("look for the cluster's certificates: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return certs, fmt.Errorf("create the certificate folder: %w", err)
	}
	if err := certs.create(); err != nil {
		return certs, fmt.Errorf("create the cluster's certificates in %s: %w", dir, err)
	}
	return certs, nil
}

func (c certificates) create() error {
	authority := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "localcluster"},
		IsCA:     true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authorityPEM, authorityKey, err := sign(authority, nil, nil)
	if err != nil {
		return err
	}
	serving := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	}
	servingPEM, servingKey, err := sign(serving, authority, authorityKey)
	if err != nil {
		return err
	}
	tokenKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := errors.Join(
		c.writeKey(caKey, authorityKey),
		c.writeKey(apiServerKey, servingKey),
		c.writeKey(serviceAccountKey, tokenKey),
		os.WriteFile(c.path(apiServerCert), servingPEM, 0o600),
	); err != nil {
		return err
	}
	// The authority's certificate is written last: if it exists, ensureCertificates assumes that all files exist.
	return os.WriteFile(c.path(caCert), authorityPEM, 0o600)
}

func (c certificates) writeKey(name string, key crypto.Signer) error {
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(c.path(name), encoded, 0o600)
}

// clientIdentity is a client's certificate and key, with the cluster's authority.
type clientIdentity struct {
	authority, certificate, key []byte
}

// identify creates a client certificate for a user. All users, and all parts of this control plane, are cluster administrators.
func (c certificates) identify(user string) (clientIdentity, error) {
	authorityPEM, err := os.ReadFile(c.path(caCert))
	if err != nil {
		return clientIdentity{}, fmt.Errorf("read the cluster's authority: %w", err)
	}
	authority, authorityKey, err := c.loadAuthority(authorityPEM)
	if err != nil {
		return clientIdentity{}, fmt.Errorf("load the cluster's authority from %s: %w", c.dir, err)
	}
	certificate, key, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, authorityKey)
	if err != nil {
		return clientIdentity{}, fmt.Errorf("sign a client certificate for %s: %w", user, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return clientIdentity{}, fmt.Errorf("encode the key of %s: %w", user, err)
	}
	return clientIdentity{authority: authorityPEM, certificate: certificate, key: encoded}, nil
}

func (c certificates) loadAuthority(certificate []byte) (*x509.Certificate, crypto.Signer, error) {
	authorities, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return nil, nil, fmt.Errorf("parse %s: %w", caCert, err)
	}
	key, err := keyutil.PrivateKeyFromFile(c.path(caKey))
	if err != nil {
		return nil, nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("%s holds a %T, which cannot sign", caKey, key)
	}
	return authorities[0], signer, nil
}

// sign creates a key, completes the template and signs the certificate with the authority's key. If
// authority is nil, the certificate is self-signed. sign returns the certificate as PEM, and its key.
func sign(template, authority *x509.Certificate, authorityKey crypto.Signer) ([]byte, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if authority == nil {
		authority, authorityKey = template, key
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.AddDate(10, 0, 0)
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}
