package cluster

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// FuzzPath checks for any namespace and name that a request is sent only to the path of the object with this namespace and name.
func FuzzPath(f *testing.F) {
	for _, name := range []string{"web", "system:node", "../../payments/secrets/s", "..", ".", "a/b", "a%2fb", "a?x=y", "a#b", "ä",
		"", "a//b", "a;b"} {
		f.Add("shop", name)
		f.Add(name, "web")
	}
	var sent *url.URL
	client, err := dynamic.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1/prefix",
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r.URL
			return nil, errors.New("no network")
		})})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		for _, k := range []*kind{
			{resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, namespaced: true},
			{resource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}},
		} {
			sent = nil
			if _, _ = (&server{dynamic: client}).get(t.Context(), k, rollout.Ref{Namespace: namespace, Name: name}); sent == nil {
				continue
			}
			want := "/prefix/apis/rbac.authorization.k8s.io/v1/clusterroles/" + url.PathEscape(name)
			switch {
			case k.namespaced && namespace == "":
				want = "/prefix/api/v1/secrets/" + url.PathEscape(name) // the API server does not serve this path
			case k.namespaced:
				want = "/prefix/api/v1/namespaces/" + url.PathEscape(namespace) + "/secrets/" + url.PathEscape(name)
			}
			if wanted, _ := url.PathUnescape(want); sent.Path != wanted || strings.Count(sent.EscapedPath(), "/") != strings.Count(want, "/") {
				t.Errorf("%q in %q is asked for at %s, want %s", name, namespace, sent.EscapedPath(), want)
			}
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestErrorOfSeveralVersions checks that find always returns the error of the same version if several versions of a group do not answer.
func TestErrorOfSeveralVersions(t *testing.T) {
	l := &look{mapper: meta.NewDefaultRESTMapper(nil), unseen: map[schema.GroupVersion]error{}}
	for _, version := range []string{"v3", "v1", "v2", "v4"} {
		l.unseen[schema.GroupVersion{Group: "metrics.k8s.io", Version: version}] = errors.New("503")
	}
	for range 100 {
		_, err := l.find(schema.GroupVersionKind{Group: "metrics.k8s.io", Kind: "NodeMetrics"})
		if err == nil || !strings.Contains(err.Error(), "metrics.k8s.io/v1") {
			t.Fatalf("error %v, want one about v1", err)
		}
	}
}
