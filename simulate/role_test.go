package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

const (
	canaryRole = `{"labels":{"role":"canary"}}`
	stableRole = `{"labels":{"role":"stable"},"annotations":{"team":"shop"}}`
)

// withRoles returns the files of twoApps. In app "shop", canary and stable pods get different metadata.
func withRoles(version string) map[string]string {
	files := twoApps("v1")
	files[shopFile] = strings.Replace(appFile("shop", version), "{canary: {",
		"{canary: {canaryMetadata: {labels: {role: canary}}, stableMetadata: {labels: {role: stable}, annotations: {team: shop}}, ", 1)
	return files
}

// roles returns the image tag and the role of each pod of an app, sorted.
func (p *story) roles(app string) string {
	var all []string
	for w, d := range p.cluster.Kube.Deployments {
		for _, set := range d.Sets {
			for _, pod := range set.Pods {
				if w.Name == app && !pod.Terminating {
					_, version, _ := strings.Cut(set.Template, `"image":"`+app+":")
					all = append(all, version[:2]+" "+pod.Role)
				}
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (p *story) checkRoles(when string, want ...string) {
	p.t.Helper()
	if is := p.roles("shop"); is != strings.Join(want, ", ") {
		p.t.Errorf("%s, the pods are %s, want %v", when, is, want)
	}
	if is := p.roles("till"); strings.Contains(is, "{") {
		p.t.Errorf("%s, an app without roles has pods %s", when, is)
	}
}

// TestRoles releases, aborts and promotes a version with metadata by role. A new process continues after each stage.
func TestRoles(t *testing.T) {
	p := newStory(t, withRoles("v1"))
	anew := func() {
		p.start()
		p.settle()
		p.tick(1)
	}
	anew()
	p.checkRoles("after the first deployment", "v1 "+stableRole, "v1 "+stableRole)
	p.files("v2", withRoles("v2"))
	anew()
	p.checkPhase("shop", rollout.Paused)
	p.checkRoles("in a release", "v1 "+stableRole, "v2 "+canaryRole)
	must(t, p.command("abort", []string{"shop"}))
	anew()
	p.checkRoles("after an abort", "v1 "+stableRole, "v1 "+stableRole)
	p.files("v3", withRoles("v3"))
	anew()
	p.promoted()
	anew()
	p.checkPhase("shop", rollout.Healthy)
	p.checkRoles("after the promotion", "v3 "+stableRole, "v3 "+stableRole)

	version := p.cluster.version
	anew()
	if now := p.cluster.version; now != version {
		t.Errorf("at rest, the cluster changes %d times", now-version)
	}
	p.files("no roles", map[string]string{shopFile: appFile("shop", "v3")})
	anew()
	p.checkRoles("without roles in Git", "v3 ", "v3 ")
}

// refusals refuses all patches of pods while the flag is set.
type refusals struct {
	*View
	refusing *bool
}

func (r refusals) SetRole(ctx context.Context, namespace string, pod rollout.Pod, role string) error {
	if *r.refusing {
		return fmt.Errorf("%w: no right to patch %s", rollout.ErrUnlabelled, pod.Name)
	}
	return r.View.SetRole(ctx, namespace, pod, role)
}

// TestRefusedRolesStopNothing refuses each patch of a pod. The release still begins and ends. After the refusals, the pods get their role.
func TestRefusedRolesStopNothing(t *testing.T) {
	p := newStory(t, withRoles("v1"))
	refusing := true
	p.parts.Wrap = func(process *Process, o *reconciler.Options) { o.Annotations = refusals{process.View, &refusing} }
	p.start()
	p.settle()
	p.tick(1)
	p.files("v2", withRoles("v2"))
	p.tick(2)
	p.checkPhase("shop", rollout.Paused)
	told := func(when, text string) {
		t.Helper()
		compare.CheckNamed(t, when+", the refusal is told", true, strings.HasPrefix(text, "cannot set labels and annotations of pods: no right"))
	}
	told("in a release", p.state("shop").Reason)
	p.promoted()
	p.tick(2)
	told("at rest", p.state("shop").Unhealthy)
	p.checkRoles("without the right", "v2 ", "v2 ")
	serial := p.state("shop").Serial
	p.tick(3)
	compare.CheckNamed(t, "records of a lasting refusal", serial, p.state("shop").Serial)
	refusing = false
	p.tick(3)
	p.checkRoles("with the right", "v2 "+stableRole, "v2 "+stableRole)
	compare.CheckNamed(t, "the problem at the end", "", p.state("shop").Unhealthy)
}
