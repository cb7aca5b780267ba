package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// If more than mostOwn apps await approval of one commit, they share one proposal. Forges advise at most 1,000 open
// pull requests.
const mostOwn = 50

func (r *stateStore) isJoint(branch string, apps []string) bool {
	return len(apps) > mostOwn || len(apps) > 0 && r.isProposed(branch) != ""
}

type joint struct{ *committer }

func (r joint) renew(ctx context.Context, now time.Time) {
	v := r.current()
	groups := r.states.awaiting(v, nil)
	for branch := range r.states.proposed() {
		if strings.HasPrefix(branch, rollout.JointBranch(r.Cluster, "")) && len(groups[branch]) == 0 && !r.isStale(branch) {
			r.stale[branch] = stale{due: now.Add(tidyAfter), why: "no app awaits the approval"}
		}
	}
	for _, branch := range sortedKeys(groups) {
		if r.states.isJoint(branch, groups[branch]) {
			delete(r.stale, branch)
			slices.Sort(groups[branch])
			r.noteFailed(groups[branch][0], r.push(ctx, v, branch, groups[branch]))
		}
	}
}

// push pushes a joint branch and deletes apps' own proposal branches. It does nothing while r.entries lacks an app, for
// example after a start.
func (r joint) push(ctx context.Context, v *gitView, branch string, apps []string) error {
	r.mu.Lock()
	entries, edits, own := maps.Clone(r.entries), map[string][]byte{}, []rollout.Update(nil)
	r.mu.Unlock()
	in, clusters := strategies.Input{Stage: v.branch.Stage()}, map[string]rollout.Hash{}
	for _, app := range apps {
		e, _ := r.states.of(app)
		in.App.Name, in.State, in.Entry = app, e.state, entries[app]
		if key := propose.WantedBy(in).Promotion; in.Stage == nil || key == nil || key.Commit == "" {
			return nil
		}
		maps.Copy(edits, propose.Entry(r.Cluster, in).Edits)
		maps.Copy(clusters, in.Entry.Versions)
		own = append(own, r.withdrawn(rollout.ProposalBranch(rollout.ProposePromotion, r.Cluster, app))...)
	}
	in.App.Name, in.Entry = fmt.Sprint(len(apps), " apps"), &cohort.Entry{Commit: in.Entry.Commit, Versions: clusters}
	wanted := propose.Entry(r.Cluster, in)
	wanted.Edits = edits
	updates := append(r.planned(ctx, v, apps[0], branch, propose.Plan{Wanted: &wanted, IsNew: true}), own...)
	if len(updates) > 0 {
		defer r.states.begin()()
		commits, err := r.send(ctx, updates)
		if err != nil {
			return err
		}
		r.states.setProposals(updates, commits)
	}
	if commit := r.states.isProposed(branch); r.hasForge(v) && r.told[branch] != commit {
		r.told[branch] = commit
		r.show(v, &report.Shown{Forge: *v.branch.Config.Forge, Updates: []rollout.ForgeUpdate{{
			Cluster: r.Cluster, Subject: "one proposal approves the change for many apps",
			Proposals: append(removedBy(own), rollout.Proposal{
				Kind: rollout.ProposePromotion, Branch: branch, Commit: commit, Enters: apps, Approves: in.Entry.Commit,
			}),
		}}})
	}
	return nil
}
