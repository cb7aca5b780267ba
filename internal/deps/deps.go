// Package deps is temporary: it keeps go.mod whole until each package imports its own libraries.
package deps

import (
	_ "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	_ "github.com/go-git/go-git/v5"
	_ "github.com/go-git/go-git/v5/plumbing/format/packfile"
	_ "github.com/go-git/go-git/v5/plumbing/transport/client"
	_ "github.com/go-git/go-git/v5/plumbing/transport/http"
	_ "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/crypto/ssh"
	_ "golang.org/x/term"
	_ "k8s.io/api/apps/v1"
	_ "k8s.io/apimachinery/pkg/api/meta"
	_ "k8s.io/client-go/discovery/cached/memory"
	_ "k8s.io/client-go/dynamic/dynamicinformer"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/restmapper"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/client-go/tools/events"
	_ "k8s.io/client-go/tools/record"
	_ "k8s.io/client-go/util/csaupgrade"
	_ "sigs.k8s.io/kustomize/api/krusty"
	_ "sigs.k8s.io/kustomize/kyaml/filesys"
	_ "sigs.k8s.io/yaml"
)
