package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/fleet"
)

// Fleet is the output of "fleet": each app's version in the clusters of all stages.
type Fleet struct {
	Stages []string   `json:"stages"` // in order; "" is last, for clusters without a stage
	Apps   []FleetApp `json:"apps"`   // sorted by name
	Notes  []string   `json:"notes,omitempty"`
}

// FleetApp lists the clusters that have an app, by stage and name.
type FleetApp struct {
	App      string         `json:"app"`
	Clusters []FleetCluster `json:"clusters"`
}

// FleetCluster is an app's newest version in a cluster: in flight, or else stable.
type FleetCluster struct {
	Cluster string        `json:"cluster"`
	Stage   string        `json:"stage,omitempty"`
	Phase   rollout.Phase `json:"phase"`
	Version string        `json:"version,omitempty"` // images in short form, or the commit
	Commit  string        `json:"commit,omitempty"`
	Since   time.Time     `json:"since,omitzero"`
	Held    *rollout.Held `json:"held,omitempty"`
	Waiting string        `json:"waiting,omitempty"` // for what the app waits, or why the app is not Healthy
}

// ClusterRecords has a cluster's apps, as Git has them.
type ClusterRecords struct {
	Apps    []string // listed or recorded
	Of      func(app string) (rollout.State, error)
	Problem string // why no record counts, or ""
}

// FleetOf returns the versions of one app or, for "", of all apps.
func FleetOf(f *rollout.Fleet, records map[string]ClusterRecords, app string, now time.Time) Fleet {
	all, byApp := Fleet{Apps: []FleetApp{}}, map[string][]FleetCluster{}
	stages := slices.Clone(f.Stages)
	none := slices.DeleteFunc(slices.Sorted(maps.Keys(records)), func(c string) bool { return f.StageOf(c) >= 0 })
	if len(none) > 0 {
		stages = append(stages, rollout.Stage{Clusters: none})
	}
	if z := f.Freeze; z.At(now) {
		all.Notes = []string{"all clusters are frozen: " + z.Reason + rollout.Shut{Until: z.Until, Exact: true}.When()}
	}
	for _, s := range stages {
		all.Stages = append(all.Stages, s.Name)
		for _, cluster := range s.Clusters {
			r := records[cluster]
			if r.Problem != "" {
				all.Notes = append(all.Notes, "cluster "+cluster+": "+r.Problem)
			}
			for _, name := range r.Apps {
				if app == "" || app == name {
					c := r.show(name, s.Soak, now)
					c.Cluster, c.Stage = cluster, s.Name
					byApp[name] = append(byApp[name], c)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byApp)) {
		all.Apps = append(all.Apps, FleetApp{name, byApp[name]})
	}
	return all
}

func (r ClusterRecords) show(app string, soak time.Duration, now time.Time) FleetCluster {
	if r.Problem != "" {
		return FleetCluster{Phase: Unknown, Waiting: "no record: see the note"}
	}
	s, err := r.Of(app)
	if err != nil {
		return FleetCluster{Phase: Unknown, Waiting: err.Error()}
	}
	c := FleetCluster{Phase: cmp.Or(s.Shown(), rollout.Pending), Commit: s.Source, Held: s.Held}
	if newest := cmp.Or(s.Release, s.Stable); newest != nil {
		c.Version = strings.Join(rollout.Mapped(newest.Images, rollout.ShortImage), ", ")
		c.Commit, c.Since = newest.Commit, newest.Since
	}
	c.Version = cmp.Or(c.Version, rollout.ShortID(c.Commit))
	var parts []string
	switch {
	case s.Phase == "":
		parts = []string{"the first deployment"}
	case c.Phase != rollout.Healthy && (s.Held == nil || s.Release != nil):
		parts = []string{cmp.Or(s.Unhealthy, s.Reason)}
	}
	if soaks := fleet.Soaks(s, soak, now); soaks != "" {
		parts = append(parts, soaks)
	}
	if s.Held != nil {
		_, condition, waits := strings.Cut(s.Held.Message, " waits for ")
		if parts = append(parts, s.Held.Message); waits && s.Held.Waits() {
			parts[len(parts)-1] = "waits for " + condition
		}
	}
	c.Waiting = strings.TrimPrefix(strings.Join(parts, "; "), "; ")
	return c
}
