package main

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the kubeconfig context that tests and users select.
const contextName = "local"

// writeKubeconfig writes a self-contained kubeconfig, readable only by its owner.
func writeKubeconfig(path, server, user string, identity clientIdentity) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: identity.authority,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: identity.certificate,
		ClientKeyData:         identity.key,
	}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: user}
	config.CurrentContext = contextName
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}

// clientConfig returns the configuration of a client inside this process with the given identity. The client
// needs no rate limit, because the apiserver has no other users.
func clientConfig(server, user string, identity clientIdentity) *rest.Config {
	return &rest.Config{
		Host:      server,
		UserAgent: user,
		QPS:       -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   identity.authority,
			CertData: identity.certificate,
			KeyData:  identity.key,
		},
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}
}
