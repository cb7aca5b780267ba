// Package fleet decides which commit an app follows in a cluster of a stage. It reads only Git and all clusters' state
// branches. It stores no progress and compares no clocks.
package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Inputs identifies the content from which a cluster's app is built at a commit. The zero value means that the cluster
// does not list the app.
type Inputs struct {
	Files   string       // digest of the app's settings and of the files that its build reads
	Objects string       // digest of the built objects; "" if unknown
	Version rollout.Hash // the app's version; "" if unknown
}

// Same reports whether two builds have the same inputs, or at least the same objects.
func (i Inputs) Same(o Inputs) bool {
	return i.Files != "" && i.Files == o.Files || i.Objects != "" && i.Objects == o.Objects
}

// World answers questions about one app. An error means that the answer is not known yet.
type World interface {
	// Candidates returns the commits that changed the app's inputs since the app's commit, newest first.
	Candidates() ([]string, error)
	// Record returns the app's recorded state in another cluster, or why this state is unusable.
	Record(cluster string) (s rollout.State, problem string, err error)
	// Inputs identifies an app's content at a commit. Content that cannot be built never equals other content.
	Inputs(cluster, commit string) (Inputs, error)
	// Lists reports whether the head of the users' branch lists the app in a cluster; true if unknown.
	Lists(cluster string) bool
}

// Place is an app in a cluster of a stage.
type Place struct {
	Fleet        *rollout.Fleet
	Cluster, App string
	Approved     string // a commit whose change may enter a stage with approvals, or ""
}

// Choice is a commit that an app may follow.
type Choice struct {
	Commit string
	Waits  string // why the app must wait, for users, or ""
	Hold   string // text of Waits for the record, without details that change
	Note   string // for users, or ""
	// Proposes lists this cluster and the stage's later clusters, if this cluster proposes their missing approval. It
	// omits earlier clusters, which may have newer approvals.
	Proposes []string
}

// Choose returns the newest eligible commit. If none is eligible, it returns the newest commit and why this commit
// waits. A commit that lacks only an approval counts as eligible, unless an older commit is approved.
func (p Place) Choose(w World, s rollout.State, now time.Time) (best Choice, err error) {
	all, err := w.Candidates()
	if err != nil || len(all) == 0 {
		return best, err
	}
	stage := p.stage(0)
	if text := Soaks(s, stage.Soak, now); text != "" {
		what := fmt.Sprintf("%s of stage %s: ", p.Cluster, stage.Name)
		return Choice{Commit: all[0], Hold: what + "soaks another change", Waits: what + "another change " + text}, nil
	}
	found := false
	for i, commit := range all {
		c, err := p.check(w, commit, now)
		eligible, approved, isSame := c.Waits == "", stage.Approve != rollout.ApproveMerge, false
		if err == nil && eligible && i > 0 { // the app may already have these inputs, as after a change of a comment
			isSame, err = same(w, p.Cluster, commit, s.Source)
		}
		if err == nil && eligible && !approved && p.Approved != "" {
			approved, err = same(w, p.Cluster, commit, p.Approved)
		} else if err == nil && eligible && !approved { // a change that has run needs no approval
			approved, err = HasRun(w, p.Cluster, s, commit)
		}
		if err == nil && eligible && !approved {
			c.Waits = fmt.Sprintf("an approval for stage %s: gitrollout promote %s --through %s", stage.Name, p.App,
				rollout.ThroughEntry)
			c.Proposes, err = p.rest(w, commit, now)
			if c.Hold = c.Waits; c.Proposes == nil { // so that the record changes once this cluster proposes
				c.Hold = "an approval for stage " + stage.Name + ", which an earlier cluster proposes"
			}
		}
		switch {
		case err != nil:
			return best, err
		case isSame:
			continue
		case i == 0 || eligible && !found:
			best, found = c, eligible
		}
		if eligible && (approved || p.Approved == "") {
			return c, nil
		}
	}
	return best, nil
}

// rest returns this cluster and the stage's later clusters, if the stage's earlier clusters are done with a commit.
func (p Place) rest(w World, commit string, now time.Time) ([]string, error) {
	all, before := p.ranked()
	if done, _, _, err := p.done(w, all[:before], commit, now); err != nil || done < before {
		return nil, err
	}
	return all[before:], nil
}

func (p Place) stage(offset int) *rollout.Stage {
	return &p.Fleet.Stages[p.Fleet.StageOf(p.Cluster)+offset]
}

// HasRun reports whether a cluster has proven, rejected or promoted an app's inputs at a commit. Such a commit waits
// for no stage or approval.
func HasRun(w World, cluster string, s rollout.State, commit string) (bool, error) {
	ran := append(rejectedAt(s), soakedAt(s)...)
	if s.Stable != nil {
		ran = append(ran, s.Stable.Commit)
	}
	return same(w, cluster, commit, ran...)
}

func rejectedAt(s rollout.State) []string {
	return rollout.Mapped(s.Rejected, func(r rollout.Rejection) string { return r.Commit })
}

func soakedAt(s rollout.State) []string {
	return rollout.Mapped(s.Soaked, func(e rollout.Soaked) string { return e.Commit })
}

// Soaks returns "soaks until 14:05 UTC" or the like while newer changes wait for evidence about the app's commit.
func Soaks(s rollout.State, soak time.Duration, now time.Time) string {
	until, layout := s.SoaksSince.Add(soak), "15:04"
	switch isWell := s.Source != "" && s.Release == nil && s.Shown() == rollout.Healthy; {
	case soak == 0 || !isWell || s.HasSoaked(s.Source):
		return ""
	case s.SoaksSince.IsZero():
		return "soaks"
	case until.Sub(now) > 12*time.Hour:
		layout = "2006-01-02 15:04"
	}
	return "soaks until " + until.UTC().Format(layout+" UTC")
}

// check returns a Choice that waits if the previous stage has not proven the commit, or if maxUpdate delays this
// cluster. Proof of another commit counts if both commits have the same inputs for this cluster.
func (p Place) check(w World, commit string, now time.Time) (c Choice, err error) {
	if p.Fleet.StageOf(p.Cluster) > 0 {
		c, err = p.proven(w, commit, now)
		for i, all := 0, p.stage(-1).Clusters; i < len(all) && err == nil && c.Waits != ""; i++ {
			s, _, failed := w.Record(all[i])
			err = failed
			for j := 0; j < len(s.Soaked) && err == nil && c.Waits != ""; j++ {
				is, failed := same(w, p.Cluster, commit, s.Soaked[j].Commit)
				if err = failed; is {
					other, failed := p.proven(w, s.Soaked[j].Commit, now)
					if err = failed; other.Waits == "" {
						c = other
					}
				}
			}
		}
	}
	if c.Commit = commit; err == nil && c.Waits == "" {
		err = p.limit(w, &c, now)
	}
	return c, err
}

func (p Place) proven(w World, commit string, now time.Time) (c Choice, err error) {
	before, lack := p.stage(-1), 0
	for _, cluster := range before.Clusters {
		e, failed := p.proof(w, before, cluster, commit, now)
		switch err = cmp.Or(err, failed); {
		case err != nil: // the loop still asks about other clusters
		case e.lacks:
			lack++
			c.Note = fmt.Sprintf("%s of stage %s has no app %s", cluster, before.Name, p.App)
		case !e.done:
			c.wait(cluster, before, e, "")
			return c, nil
		}
	}
	if lack == len(before.Clusters) {
		c.Note = fmt.Sprintf("stage %s has no app %s", before.Name, p.App)
	}
	return c, err
}

// limit makes a change wait while too many clusters of the stage have the change under way. An outdated record only
// lengthens the wait, because proven commits stay proven.
func (p Place) limit(w World, c *Choice, now time.Time) error {
	stage := p.stage(0)
	all, before := p.ranked()
	needed := stage.NeededBefore(before)
	if needed == 0 {
		return nil
	}
	done, first, at, err := p.done(w, all[:before], c.Commit, now)
	if err == nil && done < needed {
		c.wait(at, stage, first, fmt.Sprintf(" (maxUpdate: %s)", stage.MaxUpdate))
	}
	return err
}

// done counts the clusters that have proven a commit or lack the app.
func (p Place) done(w World, clusters []string, commit string, now time.Time) (
	n int, first proof, at string, err error,
) {
	for _, cluster := range clusters {
		e, failed := p.proof(w, p.stage(0), cluster, commit, now)
		switch err = cmp.Or(err, failed); { // asks about the other clusters too
		case e.done || e.lacks:
			n++
		case at == "":
			first, at = e, cluster
		}
	}
	return n, first, at, err
}

func (p Place) ranked() (all []string, before int) {
	all = p.stage(0).Ranked(p.App)
	return all, slices.Index(all, p.Cluster)
}

type proof struct {
	done  bool
	lacks bool   // no objects are recorded, and the commit or the head does not list the app
	why   string // why the cluster is not done, for users
	hold  string // why without details that change, or ""
}

func (c *Choice) wait(cluster string, stage *rollout.Stage, e proof, limit string) {
	c.Waits = fmt.Sprintf("%s of stage %s: %s%s", cluster, stage.Name, e.why, limit)
	if c.Hold = "stage " + stage.Name + limit; e.hold != "" {
		c.Hold = fmt.Sprintf("%s of stage %s: %s%s", cluster, stage.Name, e.hold, limit)
	}
}

func (p Place) proof(w World, stage *rollout.Stage, cluster, commit string, now time.Time) (e proof, err error) {
	is, err := w.Inputs(cluster, commit)
	if err != nil {
		return e, err
	}
	s, problem, err := w.Record(cluster)
	switch {
	case err != nil:
		return e, err
	case problem != "":
		return proof{why: problem, hold: "its state branch is unusable"}, nil
	case is == (Inputs{}) && len(s.Inventory) == 0:
		return proof{lacks: true}, nil
	}
	if was, err := same(w, cluster, commit, rejectedAt(s)...); err != nil || was {
		return proof{why: "rejected the change", hold: "rejected the change"}, err
	}
	if e.done, err = same(w, cluster, commit, soakedAt(s)...); err != nil || e.done {
		return e, err
	}
	if !w.Lists(cluster) {
		why := fmt.Sprintf("no longer lists the app, whose objects remain; to end the wait: gitrollout remove %s --cluster "+
			"%s, or gitrollout promote %[1]s --cluster %[3]s --through %s", p.App, cluster, p.Cluster, rollout.ThroughEntry)
		return proof{lacks: len(s.Inventory) == 0, why: why, hold: why}, nil
	}
	has, err := same(w, cluster, commit, s.Source)
	switch {
	case s.Source == "":
		e.why = cmp.Or(s.Reason, "has not deployed the app")
	case !has:
		e.why = "has not taken the change"
	case s.Release == nil && s.Shown() == rollout.Healthy:
		e.why = cmp.Or(Soaks(s, stage.Soak, now), "soaks")
	default:
		e.why = "is " + string(s.Shown())
	}
	return e, err
}

// same reports whether the app's inputs in a cluster at a commit are the same as at one of the other commits. A commit
// that does not list the app matches only itself.
func same(w World, cluster, commit string, others ...string) (is bool, err error) {
	is = slices.Contains(others, commit)
	for i := 0; i < len(others) && err == nil && !is; i++ {
		var a, b Inputs
		if a, err = w.Inputs(cluster, commit); err == nil {
			b, err = w.Inputs(cluster, others[i])
		}
		is = err == nil && a.Same(b)
	}
	return is, err
}
