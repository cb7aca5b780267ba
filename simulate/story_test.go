package simulate

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// Paths of files in twoApps, and a proposal's branch.
const (
	shopFile, tillFile = "apps/shop/app.yaml", "apps/till/app.yaml"
	shopPromotion      = ".gitrollout/sim/promote/shop.yaml"
	shopProposal       = "gitrollout/promote/sim/shop"
)

// twoApps returns the files of two apps. Each app has a Deployment, and a pause that waits for a promotion.
func twoApps(version string) map[string]string {
	return map[string]string{
		".gitrollout/sim/config.yaml":  "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n",
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", shopFile: appFile("shop", version),
		"apps/till/kustomization.yaml": "resources: [app.yaml]\n", tillFile: appFile("till", version),
	}
}

// appFile returns the manifests of an app: a Deployment and its Rollout document.
func appFile(app, version string) string {
	return strings.NewReplacer("APP", app, "VERSION", version).Replace(`apiVersion: apps/v1
kind: Deployment
metadata: {name: APP}
spec:
  replicas: 2
  selector: {matchLabels: {app: APP}}
  template:
    metadata: {labels: {app: APP}}
    spec: {containers: [{name: app, image: "APP:VERSION"}]}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: APP}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: APP}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
`)
}

// edits returns files as the edits of a commit.
func edits(files map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for name, content := range files {
		out[name] = []byte(content)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// story is a Story with the test and the reconciler's log.
type story struct {
	*Story
	t   *testing.T
	log bytes.Buffer
}

// newStory returns a story with the files in its repository. No process runs yet.
func newStory(t *testing.T, files map[string]string) *story {
	t.Helper()
	p := &story{t: t}
	var err error
	p.Story, err = NewStory(StoryOptions{Cluster: testCluster, Files: files, Options: reconciler.Options{
		Renderer: render.New(render.InProcess{}), Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	}})
	must(t, err)
	return p
}

// atGates returns a story in which the releases of v2 are paused in both apps. Each app has a proposal of its promotion.
func atGates(t *testing.T) *story {
	t.Helper()
	p := newStory(t, twoApps("v1"))
	p.start()
	p.settle()
	p.files("v2 of both", twoApps("v2"))
	if got := p.state("shop"); got.Phase != rollout.Paused || p.git.Head(shopProposal) == "" {
		t.Fatalf("it is %s, and its proposal is at %q", got.Phase, p.git.Head(shopProposal))
	}
	return p
}

func (p *story) settle() {
	p.t.Helper()
	for range 3 { // after one fetch, another fetch may be necessary
		p.event = &Event{}
		p.touch()
		must(p.t, p.rest())
	}
}

// tick advances the clock by minutes. After each minute, it runs passes until nothing changes.
func (p *story) tick(minutes int) {
	p.t.Helper()
	for range minutes {
		must(p.t, p.wait(time.Minute))
		p.settle()
	}
}

// edit pushes edits to main, and runs passes until nothing changes.
func (p *story) edit(message string, edits map[string][]byte) {
	p.t.Helper()
	p.commit(message, edits)
	p.settle()
}

// files pushes files to main, and runs passes until nothing changes.
func (p *story) files(message string, files map[string]string) {
	p.t.Helper()
	p.edit(message, edits(files))
}

// slip pushes a configuration file that cannot be parsed.
func (p *story) slip() {
	p.t.Helper()
	p.files("a slip", map[string]string{rollout.ConfigPath(testCluster): "apps: ["})
}

// decision pushes a promotion file for shop's release, with the given fields.
func (p *story) decision(rest string) {
	p.t.Helper()
	p.files(rest, promotionOf(p.state("shop").Release.Hash, rest))
}

func promotionOf(release rollout.Hash, rest string) map[string]string {
	return map[string]string{
		shopPromotion: "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: " + string(release) + "\n" + rest,
	}
}

// promoted merges the promotion of shop's release, and waits until the release has ended.
func (p *story) promoted() {
	p.t.Helper()
	must(p.t, p.merge([]string{"shop", "promote"}))
	p.settle()
	p.tick(1)
}

// rewritten replaces the history of main by one commit with the same files and the given files.
func (p *story) rewritten(more map[string]string) {
	files := edits(p.git.Files(p.head()))
	for name, content := range more {
		files[name] = []byte(content)
	}
	made := p.git.Make("", memgit.Change{Author: "Ann", Message: "a new beginning", When: p.cluster.Kube.Now, Edits: files})
	p.git.Set("Ann", Branch, made)
}

func (p *story) checkPhase(app string, want rollout.Phase) {
	p.t.Helper()
	if is := p.state(app); is.Phase != want {
		p.t.Errorf("%s is %s, want %s; held %+v", app, is.Phase, want, is.Held)
	}
}

func (p *story) checkServes(deployment, want string) {
	p.t.Helper()
	if is := p.serving(deployment); is != want {
		p.t.Errorf("%s serves, want %s", is, want)
	}
}

// serving returns the image of a Deployment.
func (p *story) serving(deployment string) string {
	for _, d := range p.cluster.Kube.Deployments {
		if d.Workload.Name == deployment {
			_, image, _ := strings.Cut(d.Template, `"image":"`)
			image, _, _ = strings.Cut(image, `"`)
			return image
		}
	}
	return ""
}

// pods returns the names of all pods in the cluster, sorted.
func (p *story) pods() string {
	var all []string
	for _, d := range p.cluster.Kube.Deployments {
		for _, set := range d.Sets {
			for _, pod := range set.Pods {
				all = append(all, pod.Name)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
