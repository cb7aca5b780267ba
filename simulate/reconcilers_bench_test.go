package simulate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/giteatest"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

var reconcilers = flag.Int("reconcilers", 100, "how many reconcilers BenchmarkReconcilers runs")

// BenchmarkReconcilers runs a reconciler for each of many simulated clusters. All reconcilers use one repository on a real Gitea server.
// They release the same two commits at the same time, and each reconciler pushes to its own state branch. The output has the pushes' times,
// conflicts and other failures. No measured time fails the benchmark.
func BenchmarkReconcilers(b *testing.B) {
	server := giteatest.Start(b)
	owner, bot := server.User("owner"), server.User("bot")
	url := server.CloneURL(bot, server.Repository(owner, "deploy", bot))
	repo := gittest.New(b)
	repo.Write(map[string]string{"apps/shop/kustomization.yaml": "resources: [app.yaml]\n"})
	var all []*pusher
	for i := range *reconcilers {
		p := newPusher(b, url, fmt.Sprintf("c%03d", i))
		repo.Write(map[string]string{rollout.ConfigPath(p.name): "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n" +
			"apps:\n- path: apps/shop\n  namespace: shop\n"})
		all = append(all, p)
	}
	for i, what := range []string{"first versions", "a new version"} {
		repo.Write(map[string]string{"apps/shop/app.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:v%d"}]}
`, i+1)})
		commit := repo.Commit(what)
		repo.Git("push", "-q", url, "HEAD:main")
		began := time.Now()
		var wave sync.WaitGroup
		for _, p := range all {
			wave.Go(func() { p.follow(b.Context(), commit) })
		}
		wave.Wait()
		printPushes(what, time.Since(began), all)
	}
	b.ReportMetric(0, "ns/op")
}

// pusher is one cluster's reconciler, which measures the pushes to its repository.
type pusher struct {
	adapters.Repository
	b       *testing.B
	name    string
	cluster *Cluster
	*reconciler.Reconciler

	times             []time.Duration // of successful pushes
	conflicts, failed int
	stable            string // the newest recorded stable commit
	problem           error
}

func newPusher(b *testing.B, url, name string) *pusher {
	b.Helper()
	mirror, err := git.Open(b.Context(), git.Options{URL: url, Branch: "main", Cluster: name})
	must(b, err)
	p := &pusher{b: b, name: name, Repository: adapters.Repository{Repo: mirror}}
	p.cluster = NewCluster(rand.New(rand.NewPCG(1, 1)), time.Now())
	view := p.cluster.View(name, func(Effect) Outcome { return Outcome{} })
	p.Reconciler = reconciler.New(reconciler.Options{
		Cluster: name, UID: name, Source: rollout.Source{Repo: "deploy", Branch: "main"}, Writer: name, Repository: p,
		Past: &p.Repository, Observer: view, Applier: view, Annotations: view, Jobs: view, Nodes: view.Nodes, Know: view.Know,
		Renderer: render.New(render.InProcess{}), Log: slog.New(slog.DiscardHandler),
	})
	view.Wants = p.Wants
	return p
}

// Push implements reconciler.Repository.
func (p *pusher) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	began := time.Now()
	made, err := p.Repository.Push(ctx, updates)
	switch {
	case errors.Is(err, rollout.ErrConflict):
		p.conflicts++
	case err != nil:
		p.failed++
		p.problem = err
	default:
		p.times = append(p.times, time.Since(began))
		for _, u := range updates {
			s, err := rollout.ParseState("state", u.Edits[rollout.StatePath("shop")])
			if err == nil && s.Phase == rollout.Healthy {
				p.stable = s.Source
			}
		}
	}
	return made, err
}

// follow makes passes until the commit is recorded as healthy.
func (p *pusher) follow(ctx context.Context, commit string) {
	for began := time.Now(); p.stable != commit; time.Sleep(time.Second) {
		if time.Since(began) > 10*time.Minute {
			p.b.Errorf("%s has not recorded %s: %v", p.name, commit, p.problem)
			return
		}
		p.cluster.Kube.Now = time.Now()
		for p.cluster.Kube.Micro() {
			p.Touch("shop")
		}
		if err := p.RunOnce(ctx, time.Now, true); err != nil {
			p.problem = err
		}
	}
}

// printPushes prints the pushes since the last call.
func printPushes(what string, took time.Duration, all []*pusher) {
	var times []time.Duration
	conflicts, failed, problems := 0, 0, map[string]bool{}
	for _, p := range all {
		times, conflicts, failed = append(times, p.times...), conflicts+p.conflicts, failed+p.failed
		if p.problem != nil {
			problems[strings.ReplaceAll(p.problem.Error(), p.name, "NAME")] = true
		}
		p.times, p.conflicts, p.failed, p.problem = nil, 0, 0, nil
	}
	slices.Sort(times)
	at := func(percent int) string { return ofSeconds(times[(len(times)-1)*percent/100]) }
	fmt.Printf("\n%s: %d reconcilers recorded it in %s. %d state pushes: median %s, 99 %% within %s; %d conflicts, %d other failures\n",
		what, len(all), ofSeconds(took), len(times), at(50), at(99), conflicts, failed)
	for text := range problems {
		fmt.Println("  problem:", text)
	}
}

func ofSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
