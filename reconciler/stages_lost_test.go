package reconciler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// TestStageBeforeLosesTheApp checks that prod waits while staging no longer lists an app with a release in flight, as after a typo. Prod
// takes the change when the app's record in staging is gone, as after `gitrollout remove`.
func TestStageBeforeLosesTheApp(t *testing.T) {
	c := newClusters(t)
	c.push(baseAt("v2"))
	c.run(3)
	if c.staging.state().Release == nil {
		t.Fatalf("staging is %s", c.staging.state().Phase)
	}
	try := func() {
		for range 300 {
			c.staging.passes(1)
			c.prod.passes(1)
		}
	}
	c.push(map[string]string{rollout.ConfigPath("staging"): strings.Replace(plainConfig, "apps/*", "stagng/*", 1)})
	try()
	held := c.prod.state().Held
	compare.CheckNamed(t, "pods of v1 in prod", 4, c.prod.pods("v1"))
	compare.Contains(t, fmt.Sprintf("%+v", held), "staging of stage staging: no longer lists the app, whose objects remain")
	c.prod.recordsNothing(func() { c.prod.passes(100) })
	c.prod.git.commit(rollout.StateBranch("staging"), "shop removed", map[string]string{rollout.StatePath("shop"): ""})
	try()
	compare.CheckNamed(t, "pods of v2 in prod", 4, c.prod.pods("v2"))
	compare.Contains(t, strings.Join(c.prod.git.messages, "\n"), "; stage staging has no app shop")
	c.prod.recordsNothing(func() { c.prod.passes(100) })
}

// TestStageBeforeLosesTheAppWithAChange checks that prod waits if the commit of a change also removes the app from staging's configuration,
// as by a typo. Prod also waits during an outage of Git. When the app is back, prod takes the change after the soak time in staging.
func TestStageBeforeLosesTheAppWithAChange(t *testing.T) {
	c := newClusters(t)
	files, config := baseAt("v2"), strings.Replace(plainConfig, "apps/*", "staging/*", 1)
	files[rollout.ConfigPath("staging")] = strings.Replace(config, "staging/*", "stagng/*", 1)
	c.push(files)
	run := func() {
		for range 100 {
			c.staging.passes(1)
			c.prod.passes(1)
		}
	}
	run()
	compare.CheckNamed(t, "pods of v1 in prod", 4, c.prod.pods("v1"))
	compare.Contains(t, fmt.Sprintf("%+v", c.prod.state().Held), "staging of stage staging: no longer lists the app, whose objects remain")
	c.failed = errors.New("no route")
	run()
	compare.CheckNamed(t, "pods of v1 in prod", 4, c.prod.pods("v1"))
	c.failed = nil
	c.push(map[string]string{rollout.ConfigPath("staging"): config})
	run()
	c.want("v2", "v2", "")
	c.prod.recordsNothing(run)
}

// TestStageBeforeRecordsNothing checks that prod does not wait for a cluster that has no state branch and does not list the app.
func TestStageBeforeRecordsNothing(t *testing.T) {
	c := newClusters(t)
	stages := strings.Replace(stagesFile, "[staging]", "[dev, staging]", 1)
	c.push(map[string]string{rollout.ConfigPath("dev"): strings.Replace(plainConfig, "apps/*", "dev/*", 1), rollout.FleetPath: stages})
	c.push(baseAt("v2"))
	for range 100 {
		c.staging.passes(1)
		c.prod.passes(1)
	}
	c.want("v2", "v2", "")
}

// failing is a renderer that fails for apps of the cluster staging.
type failing struct {
	reconciler.Renderer
	err error
}

func (f *failing) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	if f.err != nil && strings.HasPrefix(app.Path, "staging/") {
		return nil, f.err
	}
	return f.Renderer.Render(tree, app, commit)
}

// TestContentThatCannotBeRead checks that prod logs once why the content of staging cannot be built, and continues when a later build
// succeeds.
func TestContentThatCannotBeRead(t *testing.T) {
	c := newClusters(t)
	o := c.prod.r.Options
	f := &failing{o.Renderer, errors.New("no space left on device")}
	var log bytes.Buffer
	o.Renderer, o.Log = f, slog.New(slog.NewTextHandler(&log, nil))
	c.prod.r = reconciler.New(o)
	c.push(baseAt("v2"))
	for range 90 {
		c.staging.passes(1)
	}
	c.prod.recordsNothing(func() { c.prod.passes(60) })
	compare.Contains(t, log.String(), `of="app shop in cluster staging" error="no space left on device"`)
	compare.CheckNamed(t, "lines of the error", 1, strings.Count(log.String(), "no space left"))
	f.err = nil
	c.prod.passes(100)
	c.want("v2", "v2", "")
}

// TestHistoryThatCannotBeRead checks that prod reports why it cannot read the history. When the history is readable again, prod takes v2,
// which staging has proven, although v3 is the head.
func TestHistoryThatCannotBeRead(t *testing.T) {
	c := newClusters(t)
	past := &pastOf{mirror: c.prod.git, then: func() error { return errors.New("a corrupt pack") }}
	c.prod.restart(past)
	c.push(baseAt("v2"))
	for range 90 {
		c.staging.passes(1)
	}
	c.push(baseAt("v3"))
	for range 20 {
		c.staging.passes(1)
	}
	c.prod.recordsNothing(func() { c.prod.passes(60) })
	compare.Contains(t, fmt.Sprint(c.prod.once()), "read the history of shop: a corrupt pack")
	if past.lines > 100 {
		t.Errorf("%d reads of the history", past.lines)
	}
	past.then = nil
	c.prod.passes(100)
	c.want("v3", "v2", "waits for stage staging")
}

// locked is a renderer that has no key for v2 of prod's app.
type locked struct {
	reconciler.Renderer
	key bool
}

func (l *locked) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	r, err := l.Renderer.Render(tree, app, commit)
	if err != nil || l.key || !strings.HasPrefix(app.Path, "prod/") || !strings.Contains(fmt.Sprint(r.Objects), "shop:v2") {
		return r, err
	} else if !app.Sealed {
		return nil, &rollout.InvalidError{Reason: rollout.HeldUndecryptable, File: "base/secret.yaml", Msg: "has no key"}
	}
	sealed := *r
	sealed.Unopened = []string{"base/secret.yaml"}
	return &sealed, nil
}

// TestOlderCommitWithoutAKey checks an older proven commit with a Secret that prod cannot decrypt. The app is held, and takes the commit
// when the key arrives.
func TestOlderCommitWithoutAKey(t *testing.T) {
	c := newClusters(t)
	o := c.prod.r.Options
	l := &locked{Renderer: o.Renderer}
	o.Renderer = l
	c.prod.r = reconciler.New(o)
	c.push(baseAt("v2"))
	for range 90 {
		c.staging.passes(1)
	}
	c.push(baseAt("v3"))
	for range 20 {
		c.staging.passes(1)
	}
	c.prod.passes(10)
	c.want("v3", "v1", "Undecryptable: base/secret.yaml: cannot be decrypted at commit ")
	c.prod.recordsNothing(func() {
		for range 100 {
			c.prod.now = c.prod.now.Add(time.Second)
			for _, pump := range []reconciler.Pump{reconciler.PumpIn, reconciler.PumpApps, reconciler.PumpOut} {
				must(t, c.prod.r.Turn(t.Context(), pump, c.prod.clock))
			}
		}
	})
	l.key = true
	c.prod.passes(100)
	c.want("v3", "v2", "waits for stage staging")
}

// tripping is a Git server whose first Bring panics.
type tripping struct {
	*refusing
	brings int
}

func (g *tripping) Bring(ctx context.Context, commits []string) ([]string, error) {
	if g.brings++; g.brings == 1 {
		panic("index out of range")
	}
	return g.refusing.Bring(ctx, commits)
}

// TestPanicWhileBringing checks that apps request commits again after a panic during a fetch of commits.
func TestPanicWhileBringing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.commit("v2", shopAt("v2"))
		time.Sleep(time.Until(w.now))
		g := &tripping{refusing: &refusing{mirror: mirrorIn(w.git.Server, "prod")}}
		o := w.r.Options
		o.Repository, o.Past = g, g
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
		defer stop()
		must(t, reconciler.New(o).Run(ctx, 30*time.Second))
		if g.brings < 2 || len(g.messages) == 0 {
			t.Errorf("%d fetches of commits, records: %q", g.brings, g.messages)
		}
	})
}
