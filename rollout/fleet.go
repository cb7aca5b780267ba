package rollout

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// FleetPath is the path of fleet.yaml.
const FleetPath = ".gitrollout/fleet.yaml"

// Fleet is the file .gitrollout/fleet.yaml: changes reach the clusters stage by stage.
type Fleet struct {
	Stages []Stage // in order
	Freeze *Freeze // of all clusters, or nil
}

// Stage lists clusters that take changes after the previous stage.
type Stage struct {
	Name string `json:"name" is:"label" needs:"name the stage: dev"`
	// Clusters has names and path.Match patterns in the file, and sorted names after ParseFleet.
	Clusters []string `json:"clusters" needs:"name the stage's clusters: [dev], or [prod-*]"`
	// Soak is how long an app must be Healthy with a change before the next stage takes the change.
	Soak      time.Duration `json:"requiredSoakTime"`
	Approve   Approval      `json:"approve" oneOf:"auto merge" default:"auto"`
	MaxUpdate Amount        `json:"maxUpdate" default:"100%"` // how many clusters may roll out the same change at once
}

// Ranked returns the stage's clusters in the order in which they take an app's changes.
func (s *Stage) Ranked(app string) []string {
	rank := func(cluster string) string { return Digest([]byte(app+" "+cluster), 8) }
	return slices.SortedFunc(slices.Values(s.Clusters), func(a, b string) int {
		return cmp.Or(strings.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
}

// NeededBefore returns how many clusters with lower ranks must finish a change before the cluster with this rank
// starts.
func (s *Stage) NeededBefore(rank int) int {
	n := len(s.Clusters)
	return max(0, rank+1-min(n, max(1, s.MaxUpdate.RoundDown(n))))
}

// Approval says who lets a change into a stage.
type Approval string

const (
	ApproveAuto  Approval = "auto"  // the evidence of the previous stage suffices
	ApproveMerge Approval = "merge" // a user merges a promotion file
)

type fleetFile struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"` // Fleet
	Stages     []Stage      `json:"stages" max:"50" fix:"leave some out" needs:"list them: - {name: dev, clusters: [dev]}"`
	Freeze     *fleetFreeze `json:"freeze"`
}

type fleetFreeze struct {
	Reason string `json:"reason" needs:"say why nothing is to be released: waiting users will read it"`
	Until  string `json:"until" like:"time"`
}

// ParseFleet reads a fleet strictly. Its second argument lists all clusters with a configuration.
func ParseFleet(data []byte, clusters []string) (*Fleet, error) {
	raw, err := decode[fleetFile](FleetPath, "Fleet", data)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Stages: raw.Stages}
	if raw.Freeze != nil {
		if f.Freeze, err = newFreeze(FleetPath, "freeze.", raw.Freeze.Reason, raw.Freeze.Until); err != nil {
			return nil, err
		}
	}
	stageOf := map[string]string{}
	for i := range f.Stages {
		s, at := &f.Stages[i], fmt.Sprintf("stages[%d]", i)
		switch max := s.MaxUpdate; {
		case slices.ContainsFunc(f.Stages[:i], func(o Stage) bool { return o.Name == s.Name }):
			return nil, Invalidf(FleetPath, at+".name", "%q is the name of two stages", s.Name).WithFix("rename one")
		case max.Value == 0 || max.Percent && max.Value > 100:
			return nil, Invalidf(FleetPath, at+".maxUpdate", "%q is not a share of clusters", max).
				WithFix("give 1 or more clusters, or 1%% to 100%%")
		}
		if s.Clusters, err = resolve(s, at+".clusters", clusters, stageOf); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func resolve(s *Stage, field string, clusters []string, stageOf map[string]string) (all []string, err error) {
	known := strings.Join(clusters, ", ")
	for i, pattern := range s.Clusters {
		at, some := fmt.Sprintf("%s[%d]", field, i), false
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || strings.Contains(pattern, "/") {
			return nil, Invalidf(FleetPath, at, "%q is not a pattern for names of clusters", pattern).
				WithFix("name a cluster, with * ? [] for parts of the name: prod-*")
		}
		for _, c := range clusters {
			if is, _ := path.Match(pattern, c); !is {
				continue
			}
			some = true
			switch other := stageOf[c]; {
			case other == "":
				stageOf[c], all = s.Name, append(all, c)
			case other != s.Name:
				return nil, Invalidf(FleetPath, at, "%q matches the cluster %s, which is also in stage %s", pattern, c, other).
					WithFix("keep the cluster in one stage")
			}
		}
		if !some && !strings.ContainsAny(pattern, `*?[\`) {
			return nil, Invalidf(FleetPath, at, "%q is not a cluster: %s does not exist", pattern, ConfigPath(pattern)).
				WithFix("%s", cmp.Or(DidYouMean(pattern, clusters), "name one of "+known))
		}
	}
	if len(all) == 0 {
		return nil, Invalidf(FleetPath, field, "matches no cluster, so the next stage would not wait").
			WithFix("name one of %s", known)
	}
	slices.Sort(all)
	return all, nil
}

// StageOf returns the index of a cluster's stage, or -1. The fleet may be nil.
func (f *Fleet) StageOf(cluster string) int {
	if f == nil {
		return -1
	}
	return slices.IndexFunc(f.Stages, func(s Stage) bool { return slices.Contains(s.Clusters, cluster) })
}

// Same reports whether two fleets, perhaps nil, have the same effect.
func (f *Fleet) Same(o *Fleet) bool { return equality.DeepEqual(f, o) }
