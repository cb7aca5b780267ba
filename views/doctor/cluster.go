package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// oldestKubernetes is the oldest minor version in the tests of "make test-skew".
const oldestKubernetes = 30

// App is an app in Git or on the state branch.
type App struct {
	Name     string
	Known    bool            // the app has a recorded commit (is deployed or adopted)
	Render   *rollout.Render // nil if the render fails
	Has      []rollout.Ref
	Restarts bool // the promotion file requests a restart

	Encrypted map[string][]byte // content of each file in Render.Unopened
	unread    error             // why Encrypted lacks a file
}

// Cluster is the cluster to examine, with the apps in Git.
type Cluster struct {
	Config *rest.Config
	As     string // account to check; "": Config's account
	Name   string // the cluster's name in Git
	UID    string // of the cluster on the state branch; "" if not recorded
	Apps   []App  // nil if Git cannot be read
	Wait   time.Duration

	Namespaces   []string // namespaces that gitrollout may use; empty means all
	IdentifiedBy string   // namespace whose uid identifies the cluster on the state branch

	// OtherOwners returns signs that other controllers manage the objects, or nil if the objects cannot be read.
	OtherOwners func(ctx context.Context, objects []rollout.Object, now time.Time) ([]rollout.Foreign, error)
}

type clients struct {
	http          *http.Client
	authorization *authorization.AuthorizationV1Client
	core          *core.CoreV1Client
	discovery     *discovery.DiscoveryClient
}

func newClients(config *rest.Config) (c clients, err error) {
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return c, err
	}
	var errs [3]error
	c.authorization, errs[0] = authorization.NewForConfigAndClient(config, c.http)
	c.core, errs[1] = core.NewForConfigAndClient(config, c.http)
	c.discovery, errs[2] = discovery.NewDiscoveryClientForConfigAndClient(config, c.http)
	return c, cmp.Or(errs[:]...)
}

// Examine adds findings about the cluster to e. now() returns this machine's time.
func (c Cluster) Examine(ctx context.Context, e *Examination, now func() time.Time) {
	config := rest.CopyConfig(c.Config)
	config.QPS, config.Timeout = -1, c.Wait
	if c.As != "" { // otherwise, the kubeconfig's impersonation stays
		config.Impersonate = rest.ImpersonationConfig{UserName: c.As}
	}
	client, err := newClients(config)
	if err != nil {
		e.Add("cluster", Problem, "", "%v", err)
		return
	}
	version, err := client.discovery.ServerVersion()
	if err != nil {
		fix := "check the kubeconfig, the network, and that the API server runs"
		if c.As != "" {
			fix = "check that --as is spelled right, and that you may impersonate: kubectl auth can-i impersonate users"
		}
		e.Add("cluster", Problem, fix, "%s does not answer: %v", config.Host, err)
		return
	}
	minor, _ := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if version.Major == "1" && minor < oldestKubernetes {
		e.Add("cluster.version", Warning, fmt.Sprintf("upgrade to 1.%d or later", oldestKubernetes),
			"%s runs Kubernetes %s, which is not tested", config.Host, version.GitVersion)
	} else {
		e.Add("cluster.version", Healthy, "", "%s runs Kubernetes %s", config.Host, version.GitVersion)
	}
	if host, _, err := rest.DefaultServerUrlFor(config); err != nil {
		e.Add("clock.cluster", Unknown, "", "%v", err)
	} else {
		Clock(ctx, e, "clock.cluster", "the API server", client.http, host.JoinPath("version").String(), now)
	}
	if c.Apps == nil {
		e.Add("cluster.rights", Unknown, "", "which rights are needed depends on the apps, and Git cannot be read")
		return
	}
	x := &rightsExam{e: e, client: client, who: cmp.Or(c.As, "this account"), namespaces: c.Namespaces}
	x.needs(c.Apps, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.discovery)))
	x.ask(ctx)
	c.examineSecrets(ctx, e, client)
	c.examineKeys(ctx, e, client)
	c.examineHands(ctx, e, now())
	c.examineUID(ctx, e, client)
}

func (c Cluster) examineHands(ctx context.Context, e *Examination, now time.Time) {
	if c.OtherOwners == nil {
		e.Add("cluster.controllers", Unknown, "", "whether other controllers own objects of the apps cannot be determined")
		return
	}
	free := true
	for _, app := range c.Apps {
		if app.Render == nil {
			continue
		}
		signs, err := c.OtherOwners(ctx, hook.Without(app.Render.Objects), now)
		if err != nil {
			e.Add("cluster.controllers", Unknown, "", "whether other controllers own objects of %s cannot be determined: %v",
				app.Name, err)
			return
		}
		for _, sign := range signs {
			status := Problem
			if sign.Warns || app.Known {
				status = Warning
			}
			e.Add("cluster.controllers", status, sign.Fix, "app %s: %s", app.Name, sign)
			free = false
		}
	}
	if free {
		e.Add("cluster.controllers", Healthy, "", "no other controller owns the objects of the apps")
	}
}

type rightsExam struct {
	e      *Examination
	client clients
	who    string
	wanted map[right]bool

	namespaces []string
}

func (x *rightsExam) needs(apps []App, mapper meta.RESTMapper) {
	x.wanted = map[right]bool{}
	var as wants = func(account, namespace, group, resource string, verbs ...string) {
		// A watch needs rights in the whole cluster or in each of Cluster.Namespaces.
		places := []string{namespace}
		switch {
		case len(x.namespaces) == 0 || resource == "nodes":
		case namespace == "":
			places = x.namespaces
		case !slices.Contains(x.namespaces, namespace):
			return // the app is held, because gitrollout may not use the namespace
		}
		for _, verb := range verbs {
			for _, place := range places {
				x.wanted[right{account, place, group, resource, verb}] = true
			}
		}
	}
	for _, kind := range rollout.WorkloadKinds {
		as("", "", kind.Group, strings.ToLower(kind.Kind)+"s", "list", "watch")
	}
	as("", "", "apps", "replicasets", "list", "watch")
	as("", "", "apps", "controllerrevisions", "list", "watch")
	as("", "", "", "pods", "list", "watch")
	missing := map[string]bool{}
	for _, app := range apps {
		x.needsOfApp(app, mapper, as, missing)
	}
	for _, kind := range slices.Sorted(maps.Keys(missing)) {
		x.e.Add("cluster.kinds", Problem, "install the CRD, or remove the object; otherwise the app is held",
			"the cluster has no kind %s, but Git has such an object", kind)
	}
	if len(missing) == 0 {
		x.e.Add("cluster.kinds", Healthy, "", "the cluster knows every kind that the apps have")
	}
}

// needsOfApp collects an app's rights. It also records the kinds that the API server does not serve.
func (x *rightsExam) needsOfApp(app App, mapper meta.RESTMapper, as wants, missing map[string]bool) {
	account := ""
	writes := func(ref rollout.Ref, version ...string) error {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind}, version...)
		if err != nil {
			return err
		}
		namespace := ref.Namespace
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			if namespace = ""; len(x.namespaces) > 0 {
				return nil // the app is held
			}
		}
		as("", "", ref.Group, mapping.Resource.Resource, "list", "watch")
		as(account, namespace, ref.Group, mapping.Resource.Resource, "get", "create", "patch", "delete")
		return nil
	}
	if app.Render != nil {
		account = app.Render.App.ServiceAccount
		if app.Render.App.Decryption != "" {
			as(account, app.Render.App.Namespace, "", "secrets", "get")
		}
		for _, o := range app.Render.Objects {
			if hook.Is(o) {
				as.jobs(account, o.Namespace())
				if o.Annotation(rollout.AnnotationHookLog) != "" {
					as(account, o.Namespace(), "", "pods/log", "get")
				}
				continue
			}
			gvk := schema.FromAPIVersionAndKind(o.APIVersion(), o.Kind())
			if meta.IsNoMatchError(writes(o.Ref(), gvk.Version)) {
				missing[gvk.GroupVersion().String()+" "+gvk.Kind] = true
			}
		}
		for w := range app.Render.Templates {
			as("", w.Namespace, "events.k8s.io", "events", "create")
		}
		for _, spec := range app.Render.Specs {
			needsOfRelease(spec, account, app.Restarts, as)
		}
	}
	for _, ref := range app.Has { // a kind that no longer exists has no objects to prune
		_ = writes(ref)
	}
}

// needsOfRelease collects a release's rights, except the rights to write the app's objects.
func needsOfRelease(spec rollout.Spec, account string, restarts bool, as wants) {
	namespace := spec.Workload.Namespace
	if spec.Canary != nil && spec.Canary.Traffic != nil {
		as("", namespace, "discovery.k8s.io", "endpointslices", "list")
	}
	if spec.Canary != nil && len(spec.Canary.NodeOrder) > 0 {
		as("", "", "", "nodes", "list", "watch")
	}
	p := spec.Partition
	// A restart deletes pods. With Ordered, gitrollout also deletes unready pods that the controller would keep.
	if spec.Workload.Kind != "" && (p == nil || p.Ordered) || restarts || !spec.RestartAt.IsZero() {
		as("", namespace, "", "pods", "delete")
	}
	if spec.StableMetadata+spec.NewMetadata != "" {
		as(account, namespace, "", "pods", "patch")
	}
	for _, m := range spec.Metrics() {
		if m.Provider == "job" {
			as.jobs(account, namespace)
		}
		if len(m.Secrets) > 0 {
			as(account, namespace, "", "secrets", "get")
		}
	}
}

func (x *rightsExam) ask(ctx context.Context) {
	wanted := map[right]bool{}
	for r := range x.wanted {
		r.account = ""
		wanted[r] = true
	}
	all := slices.SortedFunc(maps.Keys(wanted), right.compare)
	denied, errs := make([]bool, len(all)), make([]error, len(all))
	source.Each(len(all), 16, func(i int) {
		r := all[i]
		resource, part, _ := strings.Cut(r.resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: r.namespace, Group: r.group, Resource: resource, Subresource: part, Verb: r.verb,
			},
		}}
		answer, err := x.client.authorization.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if errs[i] = err; err == nil {
			denied[i] = !answer.Status.Allowed
		}
	})
	missing := map[right][]string{} // denied verbs; in the keys, the field verb is empty
	for i, r := range all {
		if errs[i] != nil {
			x.e.Add("cluster.rights", Unknown, "", "the API server does not report the rights of %s: %v", x.who, errs[i])
			return
		}
		if denied[i] {
			verb := r.verb
			r.verb = ""
			missing[r] = append(missing[r], verb)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(missing), right.compare) {
		where, kind := "in namespace "+p.namespace, "Role"
		if p.namespace == "" {
			where, kind = "in the whole cluster", "ClusterRole"
		}
		x.e.Add("cluster.rights", Problem,
			fmt.Sprintf("add to its %s: {apiGroups: [%q], resources: [%s], verbs: [%s]}", kind, p.group, p.resource,
				strings.Join(missing[p], ", ")),
			"%s may not %s %s %s", x.who, strings.Join(missing[p], ", "), strings.TrimSuffix(p.resource+"."+p.group, "."), where)
	}
	if len(missing) == 0 {
		x.e.Add("cluster.rights", Healthy, "", "%s has all %d rights that the apps need", x.who, len(all))
	}
}

func (c Cluster) examineSecrets(ctx context.Context, e *Examination, client clients) {
	type key struct{ namespace, secret, key string }
	seen := map[key]bool{}
	for _, app := range c.Apps {
		if app.Render == nil {
			continue
		}
		for _, spec := range app.Render.Specs {
			for _, m := range spec.Metrics() {
				for _, ref := range m.Secrets {
					k := key{spec.Workload.Namespace, ref.Name, ref.Key}
					if seen[k] {
						continue
					}
					seen[k] = true
					s, err := client.core.Secrets(k.namespace).Get(ctx, k.secret, metav1.GetOptions{})
					switch {
					case err != nil:
						e.Add("cluster.secrets", Problem, "create it, or allow reading it", "analysis of %s: Secret %s/%s: %v",
							app.Name, k.namespace, k.secret, err)
					case s.Labels[rollout.LabelAnalysis] != "true":
						e.Add("cluster.secrets", Problem,
							fmt.Sprintf("kubectl -n %s label secret %s %s=true", k.namespace, k.secret, rollout.LabelAnalysis),
							"analysis of %s: Secret %s/%s has no label %s: \"true\", and is not read", app.Name, k.namespace, k.secret,
							rollout.LabelAnalysis)
					case s.Data[k.key] == nil:
						e.Add("cluster.secrets", Problem, "add the key", "analysis of %s: Secret %s/%s has no key %s", app.Name,
							k.namespace, k.secret, k.key)
					default:
						e.Add("cluster.secrets", Healthy, "", "Secret %s/%s has %s", k.namespace, k.secret, k.key)
					}
				}
			}
		}
	}
}

func (c Cluster) examineUID(ctx context.Context, e *Examination, client clients) {
	of, role := c.IdentifiedBy, "its Role there"
	if of == metav1.NamespaceSystem {
		role = "its ClusterRole"
	}
	ns, err := client.core.Namespaces().Get(ctx, of, metav1.GetOptions{})
	switch {
	case err != nil:
		e.Add("cluster.uid", Problem,
			"add to "+role+`: {apiGroups: [""], resources: [namespaces], resourceNames: [`+of+`], verbs: [get]}`,
			"the uid of namespace "+of+", which identifies the cluster, cannot be read: %v", err)
	case c.UID != "" && string(ns.UID) != c.UID[strings.Index(c.UID, "/")+1:]:
		e.Add("cluster.uid", Problem,
			"select the right cluster with --context; if the cluster was recreated, run gitrollout state adopt",
			"this is not cluster %s: its uid is %s, and the state branch is for %s", c.Name, ns.UID, c.UID)
	default:
		e.Add("cluster.uid", Healthy, "", "the uid matches the state branch, or the state branch has no uid yet")
	}
}
