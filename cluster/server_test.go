package cluster

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// FuzzPath: a request is about the object that its reference names, whatever is in the reference, or is not sent.
func FuzzPath(f *testing.F) {
	for _, name := range []string{"web", "system:node", "../../payments/secrets/s", "..", ".", "a/b", "a%2fb", "a?x=y", "a#b", "ä", "", "a//b", "a;b"} {
		f.Add("shop", name)
		f.Add(name, "web")
	}
	raw, err := rawClient(&rest.Config{Host: "https://127.0.0.1:1/prefix"}, http.DefaultClient)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		for _, k := range []*kind{
			{resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, namespaced: true},
			{resource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}},
		} {
			request := k.at(raw.Get(), rollout.Ref{Namespace: namespace, Name: name})
			if request.Error() != nil {
				continue
			}
			want := "/prefix/apis/rbac.authorization.k8s.io/v1/clusterroles/" + url.PathEscape(name)
			switch {
			case k.namespaced && namespace == "":
				want = "/prefix/api/v1/secrets/" + url.PathEscape(name) // which the API server does not serve
			case k.namespaced:
				want = "/prefix/api/v1/namespaces/" + url.PathEscape(namespace) + "/secrets/" + url.PathEscape(name)
			}
			sent, err := url.Parse(request.URL().String())
			if err != nil {
				t.Fatalf("%q: %v", request.URL(), err)
			}
			if wanted, _ := url.PathUnescape(want); sent.Path != wanted || strings.Count(sent.EscapedPath(), "/") != strings.Count(want, "/") {
				t.Errorf("%q in %q is asked for at %s, want %s", name, namespace, sent.EscapedPath(), want)
			}
		}
	})
}
