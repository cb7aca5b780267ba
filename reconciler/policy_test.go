package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// rules holds the policy of a test. Tests change it. Its only project, web, has the apps shop and evil.
type rules struct {
	policy *rollout.Policy
	err    error
	asked  int
}

// set replaces the policy. The argument adds fields to the project.
func (r *rules) set(t *testing.T, more string) {
	t.Helper()
	p, err := rollout.ParsePolicy("policy.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\nprojects:\n"+
		"- {name: web, apps: [shop, evil], namespaces: [default, edge]"+more+"}\n"))
	must(t, err)
	r.policy, r.err = p, nil
}

func (r *rules) options(o *reconciler.Options) {
	o.Policy = func(rollout.Heads) (*rollout.Policy, error) { r.asked++; return r.policy, r.err }
}

// pausedUnder returns a world whose release of v2 waits at a gate, and a policy that permits this release.
func pausedUnder(t *testing.T, more func(*reconciler.Options)) (*world, *rules) {
	t.Helper()
	r := &rules{}
	r.set(t, "")
	return paused(t, func(o *reconciler.Options) {
		r.options(o)
		if more != nil {
			more(o)
		}
	}), r
}

func promotion(w *world, through string) map[string]string { return decision(w, "through: "+through) }

func decision(w *world, what string) map[string]string {
	return decisionOn(w.state().Release.Hash, what)
}

func decisionOn(release rollout.Hash, what string) map[string]string {
	file := "apiVersion: gitrollout.dev/v1alpha2\nkind: Promotion\nrelease: " + string(release) + "\n" + what + "\n"
	return map[string]string{rollout.PromotionPath("prod", "shop"): file}
}

// mustBeHeld ends the test unless the policy holds the app with the given words in the message.
func mustBeHeld(t *testing.T, w *world, words string) {
	t.Helper()
	if h := w.state().Held; h == nil || h.Reason != rollout.HeldPolicy || !strings.Contains(h.Message, words) {
		t.Fatalf("held %+v, want %s", h, words)
	}
}

// TestPolicy checks that an app with a forbidden object is held, with the project and the rule in the message. No object of the app's
// commit is applied, and other apps continue. When the rule is removed, the app continues without a push.
func TestPolicy(t *testing.T) {
	r, by := &rules{}, map[string]int{}
	r.set(t, ", resources: {deny: [/Secret]}")
	w := newWorld(t, func(o *reconciler.Options) { r.options(o); o.Applier = counting{o.Applier, by} })
	w.follow("a Secret, and another app", map[string]string{
		"apps/evil/kustomization.yaml": "resources: [app.yaml]\n",
		"apps/evil/app.yaml":           "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
		"apps/shop/app.yaml":           version("v2"),
	})
	const why = "apps/evil/app.yaml: kind: project web, rule resources.deny: may not have any Secret (Secret/default/a)"
	compare.Contains(t, fmt.Sprintf("%+v", w.stateOf("evil").Held), "Reason:Policy", "Message:"+why)
	compare.CheckNamed(t, "writes", 0, by["evil"])
	w.wantBegun() // the app shop continues
	r.set(t, "")
	w.settle()
	compare.CheckNamed(t, "without the rule: held, and written", "<nil> true", fmt.Sprint(w.stateOf("evil").Held, by["evil"] > 0))
}

// TestPolicyThatComesLater checks that a stricter policy stops a release in flight, but neither a rollback nor a prune.
func TestPolicyThatComesLater(t *testing.T) {
	begin := func(t *testing.T) *world {
		w, r := pausedUnder(t, nil)
		r.set(t, ", rollouts: {maxFirstWeight: 25}")
		w.settle()
		mustBeHeld(t, w, "project web, rule rollouts.maxFirstWeight: a release first gives the new version to 50% of users, more than 25%")
		compare.CheckNamed(t, "pods of v1 and v2", [2]int{2, 2}, [2]int{w.pods("v1"), w.pods("v2")})
		return w
	}
	stopsNoRollback(t, begin)
	t.Run("promotion", func(t *testing.T) {
		w := begin(t)
		w.follow("promote", promotion(w, "2"))
		compare.CheckNamed(t, "healthy, and pods of v2", []any{false, 2}, []any{w.state().Phase == rollout.Healthy, w.pods("v2")})
	})
	t.Run("the app is of no project any more", func(t *testing.T) {
		w, r := pausedUnder(t, nil)
		r.set(t, "")
		r.policy.Projects[0].Apps = []string{"other"}
		w.settle()
		mustBeHeld(t, w, "app shop is in no project")
		w.follow("back to v1", shopAt("v1"))
		w.wantBack()
	})
	t.Run("prune", func(t *testing.T) {
		r := &rules{}
		r.set(t, "")
		w := newWorld(t, r.options)
		r.set(t, ", resources: {deny: [/ConfigMap]}")
		w.settle()
		mustBeHeld(t, w, "rule resources.deny")
		w.follow("without it", withoutConfigMap)
		compare.CheckNamed(t, "pruned, and held", "[core/ConfigMap/default/shop] <nil>", fmt.Sprint(w.cluster.pruned, w.state().Held))
	})
}

// TestARollbacksHeadIsCheckedAgain rolls an app back to v1, which the policy forbids. After the rollback, a push of another file makes the
// policy hold the app.
func TestARollbacksHeadIsCheckedAgain(t *testing.T) {
	w, r := pausedUnder(t, nil)
	r.set(t, ", rollouts: {maxFirstWeight: 25}")
	w.settle()
	w.follow("back to v1", shopAt("v1"))
	w.wantBack()
	w.follow("another file", map[string]string{"README.md": "x"})
	mustBeHeld(t, w, "maxFirstWeight")
}

// TestPolicyThatCannotBeRead checks that nothing advances while the policy is unreadable, because the unread policy could forbid the
// advance. Rollbacks continue, also in a new process.
func TestPolicyThatCannotBeRead(t *testing.T) {
	broken := errors.New("not to be read")
	pass := func(t *testing.T, w *world) {
		t.Helper()
		for range 5 {
			if err := w.once(); !errors.Is(err, broken) {
				t.Fatalf("the error of a pass is %v", err)
			}
		}
	}
	t.Run("promotion", func(t *testing.T) {
		w, r := pausedUnder(t, nil)
		r.err = broken
		w.commit("promote", promotion(w, "full"))
		pass(t, w)
		w.want(rollout.Paused, 2)
		r.err = nil
		w.settle()
		w.want(rollout.Healthy, 4)
	})
	for name, restarts := range map[string]bool{"abort": false, "another process begins": true} {
		t.Run(name, func(t *testing.T) {
			w, r := pausedUnder(t, nil)
			r.err = broken
			promote, abort := promotion(w, "full"), decision(w, "decision: abort")
			if restarts {
				r.policy = nil
				w.r = reconciler.New(w.r.Options)
			}
			w.commit("promote", promote)
			pass(t, w)
			w.want(rollout.Paused, 2)
			w.commit("abort", abort)
			pass(t, w)
			w.wantBackPods()
		})
	}
}

// TestForbiddenSkips checks the rule that forbids promoteFull. Every form of promotion past a timed pause, an analysis or an experiment is
// ignored. A promotion through an earlier step has an effect.
func TestForbiddenSkips(t *testing.T) {
	const template = "---\napiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: ok}\n" +
		"spec: {metrics: [{name: a, successCondition: 'true', provider: {web: {url: 'https://example.com', jsonPath: '{$.a}'}}}]}\n"
	for _, wait := range []string{"pause: {duration: 1h}", "analysis: {templates: [{templateName: ok}]}",
		"experiment: {duration: 1h, templates: [{name: base, specRef: stable}]}"} {
		for through, passes := range map[string]int{
			"through: full": 2, "through: '4'": 2, "through: soak": 2, "workloads: {default/shop: '4'}": 2,
			"through: '3'": 3, "through: '2'": 3, "workloads: {default/shop: '2'}": 3,
		} {
			t.Run(wait+"/"+through, func(t *testing.T) {
				w, r := pausedUnder(t, func(*reconciler.Options) {})
				r.set(t, ", rollouts: {forbid: [promoteFull]}")
				app := strings.Replace(version("v2"), "steps: [{setWeight: 50}, {pause: {}}]",
					"steps: [{setWeight: 50}, {pause: {}}, {setWeight: 75}, {"+wait+", name: soak}]", 1)
				w.follow("a wait at a second weight", map[string]string{"apps/shop/app.yaml": app + template})
				w.follow("promote", decision(w, through))
				s := w.state()
				compare.CheckNamed(t, "ignored: "+s.Ignored, []any{true, passes}, []any{s.Release != nil, w.pods("v2")})
			})
		}
	}
}

// TestForbiddenPromotion checks that a full promotion is ignored with a message if the policy forbids promoteFull. A
// promotion of one step and an abort still have an effect. Without the rule, the full promotion has an effect.
func TestForbiddenPromotion(t *testing.T) {
	const rule = ", rollouts: {forbid: [promoteFull]}"
	for name, through := range map[string]string{
		"of all": "through: full", "by default": "decision: promote", "of a workload": "workloads: {default/shop: full}",
	} {
		t.Run(name, func(t *testing.T) {
			var said string
			w, r := pausedUnder(t, telling(func(a report.App) { said = strategies.Ignored(a.Input) }))
			r.set(t, rule)
			w.follow("promote", decision(w, through))
			w.want(rollout.Paused, 2)
			compare.CheckNamed(t, "held", "<nil>", fmt.Sprint(w.state().Held))
			const why = "project web, rule rollouts.forbid: promoteFull does not count; promote step by step: set through to " +
				"a step before the next timed pause, analysis or experiment"
			compare.CheckNamed(t, "said, and recorded", [2]string{why, why}, [2]string{said, w.state().Ignored})
			told := slices.DeleteFunc(slices.Clone(w.git.messages), func(m string) bool { return !strings.Contains(m, "ignores") })
			if len(told) != 1 || !strings.HasPrefix(told[0], "prod: shop ignores its promotion: "+why) {
				t.Errorf("recorded %d times in 20 passes: %q", len(told), told)
			}
			w.follow("a step", promotion(w, "2"))
			w.want(rollout.Healthy, 4)
			compare.CheckNamed(t, "said, and recorded", [2]string{}, [2]string{said, w.state().Ignored})
		})
	}
	t.Run("it is allowed again", func(t *testing.T) {
		said := ""
		w, r := pausedUnder(t, telling(func(a report.App) { said = strategies.Ignored(a.Input) }))
		r.set(t, rule)
		w.follow("promote", promotion(w, "full"))
		r.set(t, "")
		w.settle()
		w.want(rollout.Healthy, 4)
		r.set(t, rule)
		w.settle()
		compare.CheckNamed(t, "said of an ended release, and recorded", [2]string{}, [2]string{said, w.state().Ignored})
	})
	t.Run("abort", func(t *testing.T) {
		w, r := pausedUnder(t, nil)
		r.set(t, rule)
		w.follow("abort", decision(w, "decision: abort\nthrough: full"))
		compare.CheckNamed(t, "pods of v2", 0, w.pods("v2"))
	})
}

// TestPromotersOfAProject checks that only the promoters of the app's project can approve a promotion. If the project gets other promoters,
// the approval is checked again.
func TestPromotersOfAProject(t *testing.T) {
	var asked []string
	w, r := pausedUnder(t, func(o *reconciler.Options) {
		o.Approve = func(_ context.Context, _, _, promoters string) (string, error) {
			asked = append(asked, promoters)
			if promoters != "/keys/ann" {
				return "", rollout.Invalidf("promote.yaml", "", "nobody signed it")
			}
			return "ann", nil
		}
	})
	r.set(t, ", promoters: /keys/bob")
	w.follow("promote", promotion(w, "2"))
	if s := w.state(); s.Phase == rollout.Healthy || len(asked) == 0 || asked[0] != "/keys/bob" {
		t.Fatalf("%s after %v", s.Phase, asked)
	}
	r.set(t, ", promoters: /keys/ann")
	w.settle()
	w.want(rollout.Healthy, 4)
	t.Run("no promoter is named", func(t *testing.T) {
		by := ""
		w, _ := pausedUnder(t, func(o *reconciler.Options) {
			o.Approve = func(context.Context, string, string, string) (string, error) { return "", nil }
			telling(func(a report.App) {
				if a.Input.Promotion != nil {
					by = a.Input.Promotion.Author
				}
			})(o)
		})
		w.follow("promote", promotion(w, "2"))
		w.want(rollout.Healthy, 4) // any user may promote
		compare.CheckNamed(t, "by", "Ann", by)
	})
}

const (
	bot    = "renovate[bot] <r@example.com>"
	byBots = ", rollouts: {byAuthor: [{authors: ['*[bot]'], minDuration: 30m, mayPromote: false}]}"
)

// TestVersionOfAnAuthor checks that a rule by author holds the versions of matching commits. The hold survives a restart and a person's
// commit of other files. A person's commit of the app, or a revert by the matching author, ends the hold.
func TestVersionOfAnAuthor(t *testing.T) {
	r := &rules{}
	r.set(t, byBots)
	w := newWorld(t, r.options)
	past := &pastOf{mirror: w.git}
	w.git.author = bot
	w.follow("v2", shopAt("v2"))
	const why = "project web, rule rollouts.byAuthor[0].minDuration: before all users have the new version, a release pauses for only 0s, " +
		"less than 30m0s, and the author is " + bot
	mustBeHeld(t, w, why)
	w.git.author = "Ann"
	w.follow("not of the app", readme)
	mustBeHeld(t, w, why)
	w.restart(past)
	w.settle()
	mustBeHeld(t, w, why)
	compare.CheckNamed(t, "release, and pods of v2", []any{true, 0}, []any{w.state().Release == nil, w.pods("v2")})
	w.git.author = bot
	w.follow("back to v1", shopAt("v1"))
	compare.CheckNamed(t, "held", "<nil>", fmt.Sprint(w.state().Held))
	w.git.author = "Ann"
	w.follow("v2 by a person", shopAt("v2"))
	w.want(rollout.Paused, 2)
	w.git.author = bot
	w.commit("not of the app", readmeAgain)
	w.restart(past)
	w.settle()
	compare.CheckNamed(t, "a person's release after a restart is held", "<nil>", fmt.Sprint(w.state().Held))
	w.follow("back to v1", shopAt("v1"))
	w.wantBack()
}

// TestAuthorAfterAChangeOfSettings checks that a rule by author still holds a bot's version after the bot changes the app's account and a
// person commits other files.
func TestAuthorAfterAChangeOfSettings(t *testing.T) {
	r := &rules{}
	r.set(t, byBots)
	w := newWorld(t, r.options)
	w.git.author = bot
	w.follow("v2", shopAt("v2"))
	w.commit("another account", map[string]string{configFile: plainConfig + "  serviceAccount: default/strong\n"})
	w.git.author = "Ann"
	w.follow("not of the app", readme)
	mustBeHeld(t, w, "the author is "+bot)
	compare.CheckNamed(t, "pods of v2", 0, w.pods("v2"))
}

// TestAuthorOfAListedFolder checks that a rule by author holds an app after a bot adds its folder to the configuration and a person commits
// other files.
func TestAuthorOfAListedFolder(t *testing.T) {
	r := &rules{}
	r.set(t, byBots)
	w := newWorld(t, r.options)
	w.git.author = bot
	w.follow("an unlisted folder", map[string]string{
		"more/evil/kustomization.yaml": "resources: [app.yaml]\n",
		"more/evil/app.yaml":           strings.ReplaceAll(version("v1"), "name: shop", "name: evil"),
	})
	w.commit("a list", map[string]string{configFile: plainConfig + "- path: more/*\n"})
	w.git.author = "Ann"
	w.follow("not of the app", readme)
	compare.Contains(t, fmt.Sprintf("%+v", w.stateOf("evil").Held), "the author is "+bot)
}

// TestAuthorOfTheVersionInFlight lets a bot commit another version during a person's release, and then the release's content again. The
// rule against bots' commits holds only the other version. A person can still promote the release.
func TestAuthorOfTheVersionInFlight(t *testing.T) {
	w, r := pausedUnder(t, nil)
	r.set(t, byBots)
	w.git.author = bot
	w.follow("v3", shopAt("v3"))
	mustBeHeld(t, w, "the author is "+bot)
	w.follow("v2 again", shopAt("v2"))
	compare.CheckNamed(t, "held", "<nil>", fmt.Sprint(w.state().Held))
	w.git.author = "Ann"
	w.follow("promote", promotion(w, "2"))
	w.want(rollout.Healthy, 4)
}

// TestAuthorOfAnOlderCommit checks that a rule by author holds a bot's version in a later stage. A person's later change of comments, and
// newer content that waits, do not end the hold.
func TestAuthorOfAnOlderCommit(t *testing.T) {
	c, r := newClusters(t), &rules{}
	r.set(t, byBots)
	r.options(&c.prod.r.Options)
	c.prod.r = reconciler.New(c.prod.r.Options)
	c.prod.git.author = bot
	c.push(baseAt("v2"))
	run := func(seconds int) {
		for range seconds {
			c.staging.passes(1)
			c.prod.passes(1)
		}
	}
	run(90)
	mustBeHeld(t, c.prod, "the author is "+bot)
	c.prod.git.author = "Ann"
	c.push(map[string]string{rollout.ConfigPath("prod"): strings.Replace(plainConfig, "apps/*", "prod/*", 1) + "# by Ann\n",
		"prod/shop/config.yaml": configMap + "# by Ann\n"})
	run(20)
	mustBeHeld(t, c.prod, "the author is "+bot)
	c.push(baseAt("v3"))
	run(30)
	mustBeHeld(t, c.prod, "the author is "+bot)
	compare.CheckNamed(t, "pods of v2 in prod", 0, c.prod.pods("v2"))
	c.prod.recordsNothing(func() { c.prod.passes(30) })
	run(90)
	c.want("v3", "v3", "")
}

// TestNewAppOfAnAuthor checks that a rule by author holds a new app, also after a person's commit of other files and a restart.
func TestNewAppOfAnAuthor(t *testing.T) {
	r := &rules{}
	r.set(t, byBots)
	w := newWorld(t, r.options)
	past := &pastOf{mirror: w.git}
	w.git.author = bot
	w.follow("evil", map[string]string{
		"apps/evil/kustomization.yaml": "resources: [app.yaml]\n",
		"apps/evil/app.yaml":           strings.ReplaceAll(version("v2"), "shop", "evil"),
	})
	w.git.author = "Ann"
	w.follow("not of the app", readme)
	w.restart(past)
	w.settle()
	s := w.stateOf("evil")
	compare.CheckNamed(t, "source", "", s.Source)
	compare.Contains(t, fmt.Sprintf("%+v", s.Held), "and the author is "+bot)
}

// TestAuthorFarFromTheRecord restarts the process when the history since the app's recorded commit is too long to read. A rule by author
// still holds the version. If the version is older than all commits that were read, its author is unknown, and all rules by author apply. A
// failed read is repeated.
func TestAuthorFarFromTheRecord(t *testing.T) {
	for name, c := range map[string]struct {
		since int // commits since the version
		past  pastOf
		want  string
	}{
		"near":   {1, pastOf{most: 3}, bot},
		"far":    {3, pastOf{most: 3}, "unknown"},
		"unread": {1, pastOf{}, bot},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rules{}
			r.set(t, byBots)
			w := newWorld(t, r.options)
			w.commit("not of the app", readme)
			w.git.author = bot
			w.follow("v2", shopAt("v2"))
			mustBeHeld(t, w, "the author is "+bot)
			w.git.author = "Ann"
			for i := range c.since {
				w.commit("not of the app", map[string]string{"README.md": fmt.Sprintf("%d\n", i)})
			}
			past := c.past
			past.mirror, past.then = w.git, func() error { return errors.New("the token is refused") }
			w.restart(&past)
			w.recordsNothing(func() { w.passes(5) })
			past.then = nil
			w.settle()
			mustBeHeld(t, w, "the author is "+c.want)
			w.r.Past = w.git
			w.follow("v3 by a person", shopAt("v3"))
			compare.CheckNamed(t, "held", "<nil>", fmt.Sprint(w.state().Held))
		})
	}
}

// TestPromotionOfAnAuthor checks that a matching author's promotion has no effect in any form, also after a restart, and that the record
// has the reason. The proposal's promotion file must differ from the ignored file, so that a person can merge the proposal. The matching
// author's abort has an effect.
func TestPromotionOfAnAuthor(t *testing.T) {
	const why = "project web, rule rollouts.byAuthor[0].mayPromote: " + bot + " committed this promotion, and may not promote; let a person " +
		"promote again, or remove the file"
	start := func(t *testing.T, author *string, more, promoters string) *world {
		w, r := pausedUnder(t, func(o *reconciler.Options) {
			o.Approve = func(_ context.Context, _, _, asked string) (string, error) {
				compare.CheckNamed(t, "promoters", promoters, asked)
				return *author, nil
			}
		})
		r.set(t, byBots+more)
		r.policy.Projects[0].Rollouts.ByAuthor[0].MinDuration = 0
		return w
	}
	for _, through := range []string{"through: '2'", "through: full", "decision: promote", "workloads: {default/shop: '2'}",
		"through: entry"} {
		t.Run(through, func(t *testing.T) {
			author := bot
			w := start(t, &author, "", source.AnyAuthor)
			w.follow("promote", decision(w, through))
			w.want(rollout.Paused, 2)
			if through != "through: entry" { // an entry does not affect a release in flight
				compare.CheckNamed(t, "recorded", why, w.state().Ignored)
			}
			branch := rollout.ProposalBranch(rollout.ProposePromotion, "prod", "shop")
			data, _, err := source.ReadFile(w.git.Server.Commits[w.git.Server.Head(branch)], rollout.PromotionPath("prod", "shop"))
			must(t, err)
			if proposed, err := rollout.ParsePromotion("", data); err != nil || proposed.At == "" || proposed.Through != "2" {
				t.Errorf("the proposal is %s, %v", data, err)
			}
			w.restart(&pastOf{mirror: w.git})
			w.settle()
			w.want(rollout.Paused, 2)
			author = "Ann <ann@example.com>"
			w.follow("promote again", decision(w, "through: '2'\nat: 2026-11-20T12:00:00Z"))
			w.want(rollout.Healthy, 4)
			compare.CheckNamed(t, "recorded", "", w.state().Ignored)
		})
	}
	for signer, passes := range map[string]int{"ann": 4, "renovate[bot]": 2} {
		t.Run("signed by "+signer, func(t *testing.T) {
			w := start(t, &signer, ", promoters: /keys", "/keys")
			w.git.author = bot
			w.follow("promote", decision(w, "through: '2'"))
			compare.CheckNamed(t, "pods of v2", passes, w.pods("v2"))
		})
	}
	t.Run("by an unknown author, as the file is older than the read history", func(t *testing.T) {
		author := ""
		w := start(t, &author, "", source.AnyAuthor)
		w.follow("promote", decision(w, "through: '2'"))
		w.want(rollout.Paused, 2)
		compare.Contains(t, w.state().Ignored, "project web, rule rollouts.byAuthor: the author of this promotion is unknown")
	})
	t.Run("abort", func(t *testing.T) {
		author := bot
		w := start(t, &author, "", source.AnyAuthor)
		w.follow("abort", decision(w, "decision: abort"))
		compare.CheckNamed(t, "pods of v2", 0, w.pods("v2"))
	})
}

type accountKey struct{}

// byAccount is an Applier that stores the service accounts of its applies and prunes.
type byAccount struct {
	reconciler.Applier
	as map[any]bool
}

func (b byAccount) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	b.as[ctx.Value(accountKey{})] = true
	return b.Applier.Apply(ctx, app, objects)
}

func (b byAccount) Prune(ctx context.Context, app string, refs []rollout.Ref) ([]rollout.Ref, error) {
	b.as[ctx.Value(accountKey{})] = true
	return b.Applier.Prune(ctx, app, refs)
}

// TestAccountOfAProject checks that an app's objects are applied and pruned with its project's service account, not with the account in the
// app's entry. When the app has left Git, its objects are still pruned with the project's account.
func TestAccountOfAProject(t *testing.T) {
	r := &rules{}
	r.set(t, ", serviceAccount: edge/deployer")
	as := map[any]bool{}
	w := newWorld(t, func(o *reconciler.Options) {
		r.options(o)
		o.Applier = byAccount{o.Applier, as}
		o.As = func(ctx context.Context, app rollout.App) context.Context {
			return context.WithValue(ctx, accountKey{}, app.ServiceAccount)
		}
	})
	w.commit("v2", shopAt("v2"))
	w.follow("another account", map[string]string{configFile: open + "  serviceAccount: default/strong\n"})
	compare.CheckNamed(t, "written as", map[any]bool{"edge/deployer": true}, as)
	w.r = reconciler.New(w.r.Options)
	clear(as)
	w.commit("gone", withoutShop)
	w.follow("and pruned", map[string]string{configFile: open + "  prune: true\n"})
	compare.CheckNamed(t, "pruned, and written as", []any{true, map[any]bool{"edge/deployer": true}}, []any{len(w.cluster.pruned) > 0, as})
}

// TestPolicyCostsNothing checks that each fetch reads the policy. A new policy is checked against cached renders, so no
// app is rendered again. An unchanged policy causes no pass.
func TestPolicyCostsNothing(t *testing.T) {
	builder := render.New(render.InProcess{})
	w, r := pausedUnder(t, func(o *reconciler.Options) { o.Renderer = builder })
	built, asked, decided := builder.Builds(), r.asked, w.r.Stats().Decided
	must(t, w.r.RunOnce(t.Context(), w.clock, true))
	compare.CheckNamed(t, "questions, and apps visited", [2]int{1, 0}, [2]int{r.asked - asked, w.r.Stats().Decided - decided})
	r.set(t, ", rollouts: {maxFirstWeight: 25}")
	w.settle()
	mustBeHeld(t, w, "rollouts.maxFirstWeight")
	r.set(t, "")
	w.settle()
	compare.CheckNamed(t, "held, and builds", fmt.Sprint(nil, built), fmt.Sprint(w.state().Held, builder.Builds()))
}

// TestNoPolicyIsInAWayBack changes the policy at random, sometimes to an unreadable one. A change of the policy must move no pod. A later
// abort or revert must roll back all pods.
func TestNoPolicyIsInAWayBack(t *testing.T) {
	tighter := []string{
		"", ", rollouts: {maxFirstWeight: 25}", ", rollouts: {requireAnalysis: true, minDuration: 1h}",
		", resources: {deny: [apps/*]}", ", resources: {allow: [/Secret]}", ", sources: [elsewhere/**]", ", quota: {objects: 0}",
		", rollouts: {forbid: [promoteFull]}, promoters: /keys",
	}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w, r := pausedUnder(t, nil)
		var trace []string
		pass := func() {
			what := tighter[rng.IntN(len(tighter))]
			switch r.set(t, what); rng.IntN(4) {
			case 0:
				what += ", of another app"
				r.policy.Projects[0].Apps = []string{"other"}
			case 1:
				what += ", unreadable"
				r.err = errors.New("not to be read")
			}
			trace = append(trace, what)
			_ = w.once() // an unreadable policy is an error of the pass
		}
		for range rng.IntN(6) {
			pass()
		}
		if w.pods("v1") != 2 || w.pods("v2") != 2 {
			t.Fatalf("seed %d: %d pods of v1 and %d of v2 before the rollback, after %q", seed, w.pods("v1"), w.pods("v2"), trace)
		}
		if rng.IntN(2) == 0 {
			w.commit("abort", decision(w, "decision: abort"))
			trace = append(trace, "abort")
		} else {
			w.commit("revert", shopAt("v1"))
			trace = append(trace, "revert")
		}
		for range 20 {
			pass()
		}
		if w.pods("v1") != 4 || w.pods("v2") != 0 {
			t.Fatalf("seed %d: %d pods of v1 and %d of v2 after %q", seed, w.pods("v1"), w.pods("v2"), trace)
		}
	}
}
