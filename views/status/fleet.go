package status

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/fleet"
)

// Fleet is the output of "fleet": each app in the clusters of each stage.
type Fleet struct {
	Stages []string   `json:"stages"` // in order; "" is last, for clusters without a stage
	Apps   []FleetApp `json:"apps"`   // sorted by name
	Notes  []string   `json:"notes,omitempty"`
}

// FleetApp has an app's states by stage. Within a stage, the states are sorted by cluster name.
type FleetApp struct {
	App    string           `json:"app"`
	Stages map[string][]App `json:"stages"`
}

// ClusterRecords has a cluster's states by app. If an app has no record, its state is zero. If its record is
// unreadable, its state is nil. Problem has the first error.
type ClusterRecords struct {
	States  map[string]*rollout.State
	Problem string
}

// FleetOf returns all apps of the clusters' records.
func FleetOf(f *rollout.Fleet, records map[string]ClusterRecords, now time.Time) Fleet {
	all, byApp, stages := Fleet{}, map[string]map[string][]App{}, slices.Clone(f.Stages)
	staged := func(c string) bool { return f.StageOf(c) >= 0 }
	if rest := slices.DeleteFunc(slices.Sorted(maps.Keys(records)), staged); len(rest) > 0 {
		stages = append(stages, rollout.Stage{Clusters: rest})
	}
	if z := f.Freeze; z.At(now) {
		all.Notes = []string{"all clusters are frozen: " + z.Reason + rollout.Shut{Until: z.Until, Exact: true}.When()}
	}
	for _, stage := range stages {
		all.Stages = append(all.Stages, stage.Name)
		for _, cluster := range stage.Clusters {
			if problem := records[cluster].Problem; problem != "" {
				all.Notes = append(all.Notes, "cluster "+cluster+": "+problem)
			}
			for name, s := range records[cluster].States {
				a := App{App: name, Cluster: cluster, Phase: Unknown, Reason: "no readable record: see the note"}
				if s != nil {
					a = recorded(a, *s)
					a.Waiting = fleet.Soaks(*s, stage.Soak, now)
				}
				if byApp[name] == nil {
					byApp[name] = map[string][]App{}
				}
				byApp[name][stage.Name] = append(byApp[name][stage.Name], a)
			}
		}
	}
	all.Apps = rollout.Mapped(slices.Sorted(maps.Keys(byApp)), func(a string) FleetApp { return FleetApp{a, byApp[a]} })
	return all
}

func recorded(a App, s rollout.State) App {
	a.Path, a.Phase, a.Held = s.Path, cmp.Or(s.Shown(), rollout.Pending), s.Held
	if a.Reason = cmp.Or(s.Unhealthy, s.Reason); s.Phase == "" {
		a.Reason = "the app is not deployed yet"
	}
	a.Release, a.Stable = releaseOf(strategies.Input{}, s.Release), releaseOf(strategies.Input{}, s.Stable)
	if s.Source != "" {
		a.Source = &rollout.Commit{ID: s.Source}
	}
	return a
}
