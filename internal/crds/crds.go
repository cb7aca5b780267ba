// Package crds installs CustomResourceDefinitions of routers and of OpenKruise into a test's cluster. It
// reads the definitions of the Gateway API, Istio, Traefik and OpenKruise from the module cache, in the
// versions that internal/traefik and internal/peers/kruise require. The definitions of other kinds, in the
// folder "documented", follow these kinds' documentation. The product does not use this package.
package crds

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Set is a set of definitions that one project publishes.
type Set struct {
	name   string
	module string // the Go module with the definitions; "" for this package
	of     string // folder with the go.mod that requires module; "" for internal/traefik
	files  string // a pattern below the module's folder
	group  string // replaces the group of the definitions; "" keeps it
}

// GatewayAPI has the experimental channel, because only this channel has TCPRoutes. OldTraefik has the
// same definitions as Traefik, but in the API group of Traefik 2.
var (
	GatewayAPI = Set{name: "the Gateway API", module: "sigs.k8s.io/gateway-api", files: "config/crd/experimental/gateway.networking.*.yaml"}
	Istio      = Set{name: "Istio", module: "istio.io/api", files: "kubernetes/customresourcedefinitions.gen.yaml"}
	Traefik    = Set{name: "Traefik", module: "github.com/traefik/traefik/v3", files: traefikFile}
	OldTraefik = Set{name: "Traefik 2", module: "github.com/traefik/traefik/v3", files: traefikFile, group: "traefik.containo.us"}
	Kruise     = Set{name: "OpenKruise", module: "github.com/openkruise/kruise", of: "internal/peers/kruise", files: "config/crd/bases/*.yaml"}
	Documented = Set{name: "folder documented", files: "internal/crds/documented/*.yaml"}
)

const traefikFile = "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"

// servedWithin limits the time until all kinds are served. The limit is high, because test packages share few cores.
const servedWithin = 3 * time.Minute

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Apply applies the sets to a cluster and waits until their kinds are served. Tests that share a
// cluster may all call Apply, because applying a definition again does not change it.
func Apply(tb testing.TB, config *rest.Config, sets ...Set) {
	tb.Helper()
	if err := Install(context.Background(), config, sets...); err != nil {
		tb.Fatal(err)
	}
}

// Install applies the sets and waits until their kinds are served. Programs that are not tests call Install.
func Install(ctx context.Context, config *rest.Config, sets ...Set) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client for CustomResourceDefinitions: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	var applied []*unstructured.Unstructured
	for _, set := range sets {
		all, err := set.read()
		if err != nil {
			return fmt.Errorf("read the definitions of %s: %w", set.name, err)
		}
		for _, definition := range all {
			if _, err := client.Resource(definitions).Apply(ctx, definition.GetName(), definition,
				metav1.ApplyOptions{FieldManager: "crds", Force: true}); err != nil {
				return fmt.Errorf("apply the definitions of %s: %s: %w", set.name, definition.GetName(), err)
			}
		}
		applied = append(applied, all...)
	}
	for _, definition := range applied {
		if err := await(ctx, client, definition); err != nil {
			return err
		}
	}
	return nil
}

// await waits until the definition is established. It then waits some milliseconds, until the kind can be listed.
func await(ctx context.Context, client dynamic.Interface, definition *unstructured.Unstructured) error {
	resource := served(definition)
	for {
		current, err := client.Resource(definitions).Get(ctx, definition.GetName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("wait for %s: %w", definition.GetName(), err)
		}
		if established(current) {
			_, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil {
				return nil
			}
			if !apierrors.IsNotFound(err) && !apierrors.IsServiceUnavailable(err) {
				return fmt.Errorf("wait for %s: %w", definition.GetName(), err)
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: not established: %v", definition.GetName(), current.Object["status"])
		}
	}
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Established" && m["status"] == "True"
	})
}

// served returns the resource of a definition, in its first served version.
func served(definition *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			name, _ := v["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
		}
	}
	return schema.GroupVersionResource{Group: group, Resource: plural}
}
