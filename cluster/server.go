package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/rollout"
)

// server sends requests about objects of any kind. Each has requestTimeout.
type server struct {
	raw     rest.Interface
	dynamic dynamic.Interface
}

// patch is one PATCH request: a server-side apply unless it has another form.
type patch struct {
	kind    *kind
	ref     rollout.Ref
	form    types.PatchType // default apply
	body    []byte
	manager string // default ours
	force   bool
	dryRun  bool
}

// patch sends one PATCH and returns the object as it then is, and whether it was created.
func (s *server) patch(ctx context.Context, p patch) (u *unstructured.Unstructured, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := p.kind.at(s.raw.Patch(cmp.Or(p.form, types.ApplyPatchType)), p.ref).Body(p.body)
	request.Param("fieldManager", cmp.Or(p.manager, manager))
	if p.force {
		request.Param("force", "true")
	}
	if p.dryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	var code int
	u, err = answer(request.Do(ctx).StatusCode(&code))
	return u, code == http.StatusCreated, err
}

// answer reads an object. Only Error reads the API server's own message out of a refusal; Raw alone says "unknown".
func answer(result rest.Result) (*unstructured.Unstructured, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, u); err != nil {
		return nil, fmt.Errorf("read the API server's answer: %w", err)
	}
	return u, nil
}

// at gives a request the path of an object. The request fails without being sent if a name is no path segment: "../" in
// it would name an object of another kind or namespace.
func (k *kind) at(request *rest.Request, ref rollout.Ref) *rest.Request {
	if k.resource.Group == "" {
		request = request.AbsPath("/api", k.resource.Version)
	} else {
		request = request.AbsPath("/apis", k.resource.Group, k.resource.Version)
	}
	return request.NamespaceIfScoped(ref.Namespace, k.namespaced).Resource(k.resource.Resource).Name(ref.Name)
}

func (s *server) get(ctx context.Context, k *kind, ref rollout.Ref) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return answer(k.at(s.raw.Get(), ref).Do(ctx))
}

// delete deletes exactly the object that was looked at: a new one of the same name has another uid.
func (s *server) delete(ctx context.Context, k *kind, l *live) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := s.dynamic.Resource(k.resource).Namespace(l.namespace).Delete(ctx, l.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &l.uid}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// rawClient sends bodies as they are. Unlike the dynamic client it tells whether an apply created the object.
func rawClient(config *rest.Config, shared *http.Client) (rest.Interface, error) {
	raw := dynamic.ConfigFor(config)
	raw.APIPath, raw.GroupVersion = "/", &schema.GroupVersion{}
	return rest.RESTClientForConfigAndClient(raw, shared)
}
