package reconciler_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// TestIdleLookIsFree checks that a fetch of an unchanged repository allocates no memory per app.
func TestIdleLookIsFree(t *testing.T) {
	allocations := func(apps int) float64 {
		files := map[string]string{configFile: plainConfig, "apps/shop/kustomization.yaml": "resources: [app.yaml]\n",
			"apps/shop/app.yaml": version("v1")}
		for i := range apps {
			files[fmt.Sprintf("apps/app%d/kustomization.yaml", i)] = fmt.Sprintf(
				"configMapGenerator:\n- name: app%d\n  literals: [colour=blue]\n", i)
		}
		w := worldOf(t, files, nil)
		return testing.AllocsPerRun(10, func() { must(t, w.r.Look(t.Context())) })
	}
	if one, many := allocations(1), allocations(31); many-one >= 15 {
		t.Errorf("%v allocations with 31 apps, %v with one app", many, one)
	}
}

// TestOlderConfiguration reverts the configuration to an older apiVersion. The record of an idle app must then be written with this
// apiVersion.
func TestOlderConfiguration(t *testing.T) {
	w := worldOf(t, map[string]string{configFile: strings.Replace(plainConfig, "v1alpha1", "v1beta1", 1),
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": version("v1")}, nil)
	was := w.state()
	compare.CheckNamed(t, "the record", rollout.APIVersion, was.APIVersion)
	w.commit("revert", map[string]string{configFile: plainConfig})
	must(t, w.r.RunOnce(t.Context(), w.clock, true))
	is := w.state()
	compare.CheckNamed(t, "the record after the revert", rollout.AlphaVersion, is.APIVersion)
	if !is.Equal(&was) {
		t.Errorf("the state has changed: %+v, was %+v", is, was)
	}
	w.recordsNothing(w.settle)
}

// TestOlderConfigurationAfterAPrune converts the configuration to v1beta1, prunes another app and reverts the conversion. cluster.yaml must
// be written again as v1alpha1, although no app's record was converted.
func TestOlderConfigurationAfterAPrune(t *testing.T) {
	w := worldOf(t, map[string]string{configFile: pruneConfig,
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": version("v1"),
		"apps/other/kustomization.yaml": "configMapGenerator:\n- name: other\n  literals: [a=b]\n"}, nil)
	want := func(version string) {
		t.Helper()
		branch := w.git.Server.Commits[w.git.Server.Head(rollout.StateBranch("prod"))]
		data, _, err := source.ReadFile(branch, rollout.ClusterPath)
		must(t, err)
		compare.Contains(t, string(data), "apiVersion: "+version)
	}
	w.follow("convert", map[string]string{configFile: strings.Replace(pruneConfig, "v1alpha1", "v1beta1", 1)})
	w.follow("remove", map[string]string{"apps/other/kustomization.yaml": ""})
	want(rollout.APIVersion)
	compare.CheckNamed(t, "the record", rollout.AlphaVersion, w.state().APIVersion)
	w.follow("revert", map[string]string{configFile: pruneConfig})
	want(rollout.AlphaVersion)
	w.recordsNothing(w.settle)
}

// TestOlderConfigurationWithoutAnAnswer reverts a conversion of the configuration while the dry run of an app's new version gets no answer.
// The app's former state must be written with the older apiVersion.
func TestOlderConfigurationWithoutAnAnswer(t *testing.T) {
	w := worldOf(t, map[string]string{configFile: strings.Replace(plainConfig, "v1alpha1", "v1beta1", 1),
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": version("v1")}, nil)
	was := w.state()
	w.cluster.check = errors.New("the API server does not answer")
	files := maps.Clone(shopAt("v2"))
	files[configFile] = plainConfig
	w.commit("v2, and revert the conversion", files)
	for range 5 {
		_ = w.r.RunOnce(t.Context(), w.clock, true)
	}
	is := w.state()
	compare.CheckNamed(t, "the record after the revert", rollout.AlphaVersion, is.APIVersion)
	if !is.Equal(&was) {
		t.Errorf("the state has changed: %+v, was %+v", is, was)
	}
	w.cluster.check = nil
	w.settle()
	compare.CheckNamed(t, "the serial increases once the server accepts", true, w.state().Serial > was.Serial)
}
