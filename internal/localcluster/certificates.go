package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// These are the names of certificates (.crt) and keys (.key) in the folder pki/ of a state directory.
const (
	authorityName      = "ca"
	apiServerName      = "apiserver"
	serviceAccountName = "service-account"
)

const keyType = kubeadm.EncryptionAlgorithmECDSAP256

// certificates is the folder with the cluster's certificate authority and certificates. It stays after a run,
// so that a restarted cluster still accepts earlier kubeconfigs and service account tokens.
type certificates struct {
	dir string
}

func (c certificates) path(name string) string { return filepath.Join(c.dir, name) }

// ensureCertificates creates the files of a new cluster. It does not change existing files.
func ensureCertificates(dir string) (certificates, error) {
	certs := certificates{dir: dir}
	if _, err := os.Stat(certs.path(authorityName + ".crt")); err == nil {
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
	authority, authorityKey, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
		Config: cert.Config{CommonName: "localcluster"}, EncryptionAlgorithm: keyType,
	})
	if err != nil {
		return err
	}
	serving, servingKey, err := pkiutil.NewCertAndKey(authority, authorityKey, &pkiutil.CertConfig{
		Config: cert.Config{
			CommonName: "kube-apiserver",
			Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			AltNames: cert.AltNames{
				DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
				IPs:      []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
			},
		},
		NotAfter: expiry(authority.NotAfter), EncryptionAlgorithm: keyType,
	})
	if err != nil {
		return err
	}
	tokenKey, err := pkiutil.NewPrivateKey(keyType)
	if err != nil {
		return err
	}
	if err := errors.Join(
		pkiutil.WriteKey(c.dir, authorityName, authorityKey),
		pkiutil.WriteCertAndKey(c.dir, apiServerName, serving, servingKey),
		pkiutil.WriteKey(c.dir, serviceAccountName, tokenKey),
	); err != nil {
		return err
	}
	// The authority's certificate is written last, because ensureCertificates takes this file as the sign that all
	// files exist.
	return pkiutil.WriteCert(c.dir, authorityName, authority)
}

// identify creates a client certificate for a user, and returns the configuration of the user's client. All users, and
// all parts of this control plane, are cluster administrators.
func (c certificates) identify(server, user string) (*rest.Config, error) {
	authority, authorityKey, err := pkiutil.TryLoadCertAndKeyFromDisk(c.dir, authorityName)
	if err != nil {
		return nil, fmt.Errorf("load the cluster's authority from %s: %w", c.dir, err)
	}
	certificate, key, err := pkiutil.NewCertAndKey(authority, authorityKey, &pkiutil.CertConfig{
		Config: cert.Config{
			CommonName: user, Organization: []string{"system:masters"},
			Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
		NotAfter: expiry(authority.NotAfter), EncryptionAlgorithm: keyType,
	})
	if err != nil {
		return nil, fmt.Errorf("sign a client certificate for %s: %w", user, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key of %s: %w", user, err)
	}
	return &rest.Config{
		Host: server,
		QPS:  -1, // no rate limit: this cluster's apiserver needs no protection from its own parts
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   pkiutil.EncodeCertPEM(authority),
			CertData: pkiutil.EncodeCertPEM(certificate),
			KeyData:  encoded,
		},
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}, nil
}
