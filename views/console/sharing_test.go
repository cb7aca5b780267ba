package console

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestSharing checks that Sharing finds all apps that wait for the same file content as a given app. A listing counts these apps.
func TestSharing(t *testing.T) {
	repo := gittest.New(t)
	files := map[string]string{rollout.ConfigPath("prod"): config, "base/config.yaml": configMap, "other/config.yaml": configMap}
	bases := map[string]string{"cart": "base", "shop": "base", "mail": "other", "till": "base"}
	for app, base := range bases {
		files[base+"/kustomization.yaml"] = "resources: [config.yaml]\n"
		files["apps/"+app+"/kustomization.yaml"] = "nameSuffix: -" + app + "\nresources: [../../" + base + "]\n"
	}
	head := repo.CommitFiles("apps", files)
	var w *Session
	for _, app := range []string{"cart", "mail", "shop", "till"} {
		s := rollout.State{App: app, Path: "apps/" + app, Phase: rollout.Healthy, Source: head}
		if app != "till" {
			s.Held = &rollout.Held{Reason: rollout.HeldCohort, Commit: head, Message: fmt.Sprintf(
				"the change of %.7s by Ann waits for cohort 2 of 3 (%s/config.yaml)", head, bases[app])}
		}
		if w == nil {
			w = worldOf(t, repo, s)
		} else {
			record(t, repo, s, "state")
		}
	}
	w.Now, w.Command = time.Now, func(command string) string { return command }
	_, err := w.Refresh(t.Context())
	must(t, err)
	for name, want := range map[string][]string{"cart": {"cart", "shop"}, "mail": {"mail"}} {
		all, err := Sharing(t.Context(), w, []string{name})
		must(t, err)
		compare.CheckNamed(t, "with "+name, want, all)
	}
	_, err = Sharing(t.Context(), w, []string{"cart", "till"})
	compare.CheckError(t, "an app that does not wait", err, "till does not wait for a shared change")
	l, err := w.Listing(t.Context(), nil, time.Now())
	must(t, err)
	if len(l.Changes) != 2 || l.Changes[0].File != "base/config.yaml" || l.Changes[0].Apps != 2 || l.Changes[0].Cohort != 2 {
		t.Errorf("changes: %+v", l.Changes)
	}
}
