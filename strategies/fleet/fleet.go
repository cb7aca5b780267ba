// Package fleet decides which commit an app follows in a cluster of a stage. Each decision follows from Git and from
// the records of all clusters, so no progress is stored and no clocks are compared.
package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Inputs identifies the content from which a cluster's app is built at a commit. The zero value means that the cluster
// does not list the app.
type Inputs struct {
	Files   string       // digest of the app's settings and of the files that its build reads
	Objects string       // digest of the built objects; "" if unknown
	Version rollout.Hash // of the app; "" if unknown
}

// Same reports whether two builds have the same inputs, or at least the same objects.
func (i Inputs) Same(o Inputs) bool {
	return i.Files != "" && i.Files == o.Files || i.Objects != "" && i.Objects == o.Objects
}

// Candidate is a commit that the app may follow.
type Candidate struct {
	Commit string
	Same   []string // later commits until the next candidate, which have the same inputs in this cluster
}

// World answers questions about one app. An error means that the answer is not known yet.
type World interface {
	// Candidates returns the commits after the app's in which the app's inputs changed, newest first.
	Candidates() ([]Candidate, error)
	// Record returns the app's record in another cluster, or why the record does not count.
	Record(cluster string) (s rollout.State, problem string, err error)
	// Inputs returns values that equal nothing else for a commit without a build.
	Inputs(cluster, commit string) (Inputs, error)
}

// Place is an app in a cluster of a stage.
type Place struct {
	Fleet        *rollout.Fleet
	Cluster, App string
	Approved     string // a commit whose change may enter a stage with approvals, or ""
}

// Choice is the commit that an app may follow or, with Waits, for which the app waits.
type Choice struct {
	Commit string
	Waits  string // for users; "" if the app may follow
	Hold   string // Waits without progress, for the record
	Note   string // for users, or ""
	// Proposes has the clusters of the approval if only an approval is missing, and no other cluster proposes it: a
	// cluster that is behind replaces no newer approval in the clusters before it.
	Proposes []string
}

// Choose returns the newest eligible commit or, without an eligible commit, the newest commit with the reason for its
// wait. A commit that only lacks an approval comes before newer commits.
func (p Place) Choose(w World, s rollout.State, now time.Time) (best Choice, err error) {
	all, err := w.Candidates()
	if err != nil || len(all) == 0 {
		return best, err
	}
	newest := all[0].Commit
	isOf := func(c Candidate) bool { return c.Commit == p.Approved || slices.Contains(c.Same, p.Approved) }
	if !slices.ContainsFunc(all, isOf) {
		p.Approved = "" // an earlier change
	}
	stage := p.stage(0)
	if text := Soaks(s, stage.Soak, now); text != "" {
		what := fmt.Sprintf("%s of stage %s: ", p.Cluster, stage.Name)
		return Choice{Commit: newest, Hold: what + "soaks another change", Waits: what + "another change " + text}, nil
	}
	found := false
	for i, candidate := range all {
		c, err := p.proven(w, candidate, now)
		if err != nil {
			return best, err
		}
		eligible, same, approved := c.Waits == "", false, true
		if eligible && i > 0 {
			same, err = p.same(w, s.Source, candidate.Commit)
		}
		if eligible && err == nil && stage.Approve == rollout.ApproveMerge {
			approved, err = p.sameHere(w, candidate, p.Approved)
		}
		if err != nil {
			return best, err
		}
		if same {
			continue // nothing to take
		}
		if !approved {
			c.Waits = fmt.Sprintf("an approval for stage %s: gitrollout promote %s --through %s", stage.Name, p.App,
				rollout.ThroughEntry)
			if c.Proposes, err = p.rest(w, candidate.Commit, now); err != nil {
				return best, err
			}
			if c.Hold = c.Waits; c.Proposes == nil { // the record changes when the cluster's turn to propose comes
				c.Hold = "an approval for stage " + stage.Name + ", which a cluster before proposes"
			}
		}
		if i == 0 || eligible && !found {
			best, found = c, eligible
		}
		if eligible && (approved || p.Approved == "") {
			return c, nil
		}
	}
	return best, nil
}

// rest returns this cluster and the later clusters of the stage if the clusters before are done with a commit.
func (p Place) rest(w World, commit string, now time.Time) ([]string, error) {
	lower := p.lower()
	for _, cluster := range lower {
		if e, err := proofOf(w, p.stage(0), cluster, commit, now); err != nil || !e.done && !e.lacks {
			return nil, err
		}
	}
	return p.ranked()[len(lower):], nil
}

// stage returns the cluster's stage, or the stage before by -1.
func (p Place) stage(offset int) *rollout.Stage {
	return &p.Fleet.Stages[p.Fleet.StageOf(p.Cluster)+offset]
}

// HasRun reports whether a cluster has proven or rejected an app's inputs of a commit. Such a commit never waits.
func HasRun(w World, cluster string, s rollout.State, commit string) (had bool, err error) {
	ran := rollout.Mapped(s.Soaked, func(e rollout.Soaked) string { return e.Commit })
	ran = append(ran, rollout.Mapped(s.Rejected, func(r rollout.Rejection) string { return r.Commit })...)
	if s.Stable != nil && s.Stable.Commit != s.Source {
		ran = append(ran, s.Stable.Commit)
	}
	is := Inputs{}
	if len(ran) > 0 {
		is, err = w.Inputs(cluster, commit)
	}
	for i := 0; i < len(ran) && !had && err == nil; i++ {
		had, err = sameAt(w, cluster, ran[i], is)
	}
	return had, err
}

// sameHere reports whether a commit is a candidate, or a later commit with the same inputs in this cluster.
func (p Place) sameHere(w World, c Candidate, commit string) (bool, error) {
	if commit == c.Commit || !slices.Contains(c.Same, commit) {
		return commit == c.Commit, nil
	}
	return p.same(w, commit, c.Commit)
}

func (p Place) same(w World, commit, other string) (bool, error) {
	is, err := w.Inputs(p.Cluster, other)
	if err != nil {
		return false, err
	}
	return sameAt(w, p.Cluster, commit, is)
}

// Soaks returns "soaks until 14:05 UTC" or the like while newer changes wait for evidence about the app's commit.
func Soaks(s rollout.State, soak time.Duration, now time.Time) string {
	if soak > 0 && s.Source != "" && s.Release == nil && s.Shown() == rollout.Healthy && !s.HasSoaked(s.Source) {
		return soaks(s, soak, now)
	}
	return ""
}

func soaks(s rollout.State, soak time.Duration, now time.Time) string {
	if s.SoaksSince.IsZero() || soak == 0 {
		return "soaks"
	}
	until, layout := s.SoaksSince.Add(soak), "15:04"
	if until.Sub(now) > 12*time.Hour {
		layout = "2006-01-02 15:04"
	}
	return "soaks until " + until.UTC().Format(layout+" UTC")
}

// proven checks a candidate and, until one is proven, the later commits with evidence.
func (p Place) proven(w World, candidate Candidate, now time.Time) (c Choice, err error) {
	c, err = p.check(w, candidate.Commit, now)
	if err != nil || c.Waits == "" || p.Fleet.StageOf(p.Cluster) == 0 {
		return c, err
	}
	for _, cluster := range p.stage(-1).Clusters {
		s, _, err := w.Record(cluster)
		if err != nil {
			return c, err
		}
		for _, e := range s.Soaked {
			later := c
			same, err := p.sameHere(w, candidate, e.Commit)
			if same && err == nil {
				later, err = p.check(w, e.Commit, now)
			}
			if later.Commit = candidate.Commit; err != nil || later.Waits == "" {
				return later, err
			}
		}
	}
	return c, nil
}

// check returns whether the stage before proves a commit, and whether maxUpdate permits the commit now.
func (p Place) check(w World, commit string, now time.Time) (c Choice, err error) {
	c.Commit = commit
	if p.Fleet.StageOf(p.Cluster) > 0 {
		before, lack := p.stage(-1), 0
		for _, cluster := range before.Clusters {
			e, err := proofOf(w, before, cluster, commit, now)
			switch {
			case err != nil:
				return c, err
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
	}
	return c, p.limit(w, &c, now)
}

// limit makes a change wait while too many clusters of the stage have the change under way. An old record only
// lengthens the wait, because evidence stays.
func (p Place) limit(w World, c *Choice, now time.Time) error {
	stage := p.stage(0)
	n := len(stage.Clusters)
	most := min(n, max(1, stage.MaxUpdate.RoundDown(n)))
	lower := p.lower()
	needed, done := len(lower)-most+1, 0
	if needed <= 0 {
		return nil
	}
	var first proof
	at := ""
	for _, cluster := range lower {
		e, err := proofOf(w, stage, cluster, c.Commit, now)
		if err != nil {
			return err
		}
		if e.done || e.lacks {
			done++
		} else if at == "" {
			first, at = e, cluster
		}
	}
	if done < needed {
		c.wait(at, stage, first, fmt.Sprintf(" (maxUpdate: %s)", stage.MaxUpdate))
	}
	return nil
}

// lower returns the stage's clusters that take the app's changes before this cluster.
func (p Place) lower() []string {
	all := p.ranked()
	return all[:slices.Index(all, p.Cluster)]
}

// ranked returns the stage's clusters in the order in which these take the app's changes.
func (p Place) ranked() []string {
	rank := func(cluster string) string { return rollout.Digest([]byte(p.App+" "+cluster), 8) }
	return slices.SortedFunc(slices.Values(p.stage(0).Clusters), func(a, b string) int {
		return cmp.Or(strings.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
}

// proof holds the facts of a cluster's record about a commit.
type proof struct {
	done  bool
	lacks bool   // the cluster does not list the app
	why   string // not done, for users
	hold  string // why without progress, or ""
}

func (c *Choice) wait(cluster string, stage *rollout.Stage, e proof, limit string) {
	c.Waits = fmt.Sprintf("%s of stage %s: %s%s", cluster, stage.Name, e.why, limit)
	if c.Hold = "stage " + stage.Name + limit; e.hold != "" {
		c.Hold = fmt.Sprintf("%s of stage %s: %s%s", cluster, stage.Name, e.hold, limit)
	}
}

func proofOf(w World, stage *rollout.Stage, cluster, commit string, now time.Time) (e proof, err error) {
	is, err := w.Inputs(cluster, commit)
	if err != nil || is == (Inputs{}) {
		return proof{lacks: true}, err
	}
	s, problem, err := w.Record(cluster)
	switch {
	case err != nil:
		return e, err
	case problem != "":
		return proof{why: problem, hold: "its record does not count"}, nil
	case s.Source == "":
		return proof{why: "has not deployed the app"}, nil
	}
	for _, r := range s.Rejected {
		if same, err := sameAt(w, cluster, r.Commit, is); err != nil || same {
			return proof{why: "rejected the change", hold: "rejected the change"}, err
		}
	}
	if e.done, err = hasSoaked(w, cluster, s, is); err != nil || e.done {
		return e, err
	}
	same, err := sameAt(w, cluster, s.Source, is)
	switch {
	case !same:
		e.why = "has not taken the change"
	case s.Release == nil && s.Shown() == rollout.Healthy:
		e.why = soaks(s, stage.Soak, now)
	default:
		e.why = "is " + string(s.Shown())
	}
	return e, err
}

func hasSoaked(w World, cluster string, s rollout.State, is Inputs) (same bool, err error) {
	for i := 0; i < len(s.Soaked) && !same && err == nil; i++ {
		same, err = sameAt(w, cluster, s.Soaked[i].Commit, is)
	}
	return same, err
}

func sameAt(w World, cluster, commit string, is Inputs) (bool, error) {
	was, err := w.Inputs(cluster, commit)
	return err == nil && was.Same(is), err
}
