package reconciler_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// TestStagesAtRandom runs random pushes, reverts, restarts and errors in two clusters. Each base that prod takes must have soaked in
// staging, or have run in prod before. At the end, both clusters have the newest base, and record nothing more.
func TestStagesAtRandom(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 4
	}
	for seed := range uint64(seeds) {
		if failed := playStages(t, seed, func(p source.Peers) source.Peers { return p }); failed != "" {
			t.Errorf("seed %d: %s", seed, failed)
		}
	}
}

// TestStagesNoticeFalseEvidence checks that the random runs notice a reconciler that treats the present commit of each record as soaked.
func TestStagesNoticeFalseEvidence(t *testing.T) {
	for seed := range uint64(50) {
		failed := playStages(t, seed, func(p source.Peers) source.Peers { return believer{p} })
		if failed != "" {
			t.Logf("seed %d: %s", seed, failed)
			return
		}
	}
	t.Error("50 seeds do not notice it")
}

// believer reports the present commit of each record as soaked.
type believer struct{ source.Peers }

func (b believer) States(cluster string) (func(app string) (rollout.State, bool), error) {
	record, err := b.Peers.States(cluster)
	if err != nil {
		return nil, err
	}
	return func(app string) (rollout.State, bool) {
		s, is := record(app)
		s.Soaked = []rollout.Soaked{{Commit: s.Source}}
		return s, is
	}, nil
}

// playStages returns the rule that a random run broke, or "".
func playStages(t *testing.T, seed uint64, wrap func(source.Peers) source.Peers) (failed string) {
	c, rng := newClusters(t), rand.New(rand.NewPCG(seed, 5))
	believe := func() { c.prod.r.WrapPeers(wrap) }
	believe()
	for _, w := range []*world{c.staging, c.prod} {
		w.cluster.Fate = func(version string) kube.Lifetime { return kube.Lifetime{Never: strings.HasPrefix(version, "bad")} }
	}
	base := func(commit string) string {
		_, rest, _ := strings.Cut(c.prod.git.Server.Files(commit)["base/app.yaml"], "shop:")
		v, _, _ := strings.Cut(rest, `"`)
		return v
	}
	ran, at, versions := map[string]bool{"v1": true}, c.prod.state().Source, []string{"v1"}
	var trace []string
	listed := strings.Replace(plainConfig, "apps/*", "staging/*", 1)
	run := func(seconds int) {
		for range seconds {
			c.staging.passes(1)
			c.prod.passes(1)
			s := c.prod.state()
			if s.Source == at || failed != "" {
				continue
			}
			at = s.Source
			soaked := func(e rollout.Soaked) bool { return base(e.Commit) == base(at) }
			if !ran[base(at)] && !slices.ContainsFunc(c.staging.state().Soaked, soaked) {
				failed = fmt.Sprintf("prod takes %s, soaked in staging: %v\n%s", base(at), c.staging.state().Soaked,
					strings.Join(trace, "\n"))
			}
			ran[base(at)] = true
		}
	}
	push := func(what string, files map[string]string) {
		trace = append(trace, what)
		c.push(files)
	}
	for i := range 25 {
		switch rng.IntN(11) {
		case 0, 1, 2:
			v := fmt.Sprintf("%s%d", []string{"v", "v", "bad"}[rng.IntN(3)], i+2)
			versions = append(versions, v)
			push("base "+v, baseAt(v))
		case 3:
			if n := len(versions); n > 1 {
				versions = versions[:n-1]
			}
			push("revert to "+versions[len(versions)-1], baseAt(versions[len(versions)-1]))
		case 4:
			push("prod's content", map[string]string{"prod/shop/config.yaml": configMap + fmt.Sprintf("data: {a: n%d}\n", i)})
		case 5:
			push("staging's content", map[string]string{"staging/shop/config.yaml": configMap + fmt.Sprintf("data: {a: n%d}\n", i)})
		case 6:
			push("a comment", map[string]string{"staging/shop/config.yaml": configMap + fmt.Sprintf("# %d\n", i)})
		case 7:
			push("fleet.yaml", map[string]string{rollout.FleetPath: []string{stagesFile, "stages: [\n"}[rng.IntN(2)]})
		case 8:
			c.failed = []error{nil, errors.New("no answer")}[rng.IntN(2)]
		case 9:
			w := []*world{c.staging, c.prod}[rng.IntN(2)]
			trace = append(trace, "restart of "+w.r.Cluster)
			w.r = reconciler.New(w.r.Options)
			believe()
		case 10:
			files := map[string]string{}
			if rng.IntN(2) == 0 {
				files = baseAt(fmt.Sprintf("v%d", i+2))
				versions = append(versions, fmt.Sprintf("v%d", i+2))
			}
			files[rollout.ConfigPath("staging")] = []string{listed, strings.Replace(listed, "staging/", "stagng/", 1)}[rng.IntN(2)]
			push(fmt.Sprint("staging's list, and base ", versions[len(versions)-1], files[rollout.ConfigPath("staging")] == listed), files)
		}
		run(rng.IntN(60))
	}
	c.failed = nil
	end := baseAt("vend")
	end[rollout.FleetPath] = stagesFile
	push("the end", end)
	run(30)
	push("the list at the end", map[string]string{rollout.ConfigPath("staging"): listed})
	run(250)
	for _, w := range []*world{c.staging, c.prod} {
		if s := w.state(); failed == "" && (s.Phase != rollout.Healthy || w.pods("vend") != 4 || s.Held != nil) {
			failed = fmt.Sprintf("%s is %s at %s, held %+v\n%s", w.r.Cluster, s.Phase, base(s.Source), s.Held, strings.Join(trace, "\n"))
		}
	}
	recorded := func() []int { return []int{len(c.staging.git.messages), len(c.prod.git.messages)} }
	before := recorded()
	if run(100); failed == "" && !slices.Equal(before, recorded()) {
		failed = fmt.Sprintf("a steady state is recorded again: %v, %v", before, recorded())
	}
	return failed
}
