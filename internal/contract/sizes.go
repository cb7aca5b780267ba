package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// move is one write to a Deployment, and the expected pods after the controller has finished.
type move struct {
	version            string
	replicas           int
	surge, unavailable string // "" for Recreate
	hold, paused       bool
	want               string // such as "v1 3, v2 1", without versions that have no pods
	available          int    // available pods before the next move
}

func (m move) String() string {
	return fmt.Sprintf("%s of %d, surge %q, unavailable %q, hold %t, paused %t",
		m.version, m.replicas, m.surge, m.unavailable, m.hold, m.paused)
}

// movesOf has the tested sequences of writes to a Deployment. The key is the name of the sequence.
var movesOf = map[string][]move{
	"recreate": {
		{"v1", 3, "", "", false, false, "v1 3", 3},
		{"v2", 3, "", "", false, false, "v2 3", 3},
		{"v2", 5, "", "", false, false, "v2 5", 5},
		{"v3", 5, "", "", false, true, "v2 5", 5},
		{"v3", 2, "", "", false, true, "v2 2", 2},
		{"v3", 2, "", "", false, false, "v3 2", 2},
		{"v4", 0, "", "", false, false, "", 0},
		{"v4", 1, "", "", false, false, "v4 1", 1},
	},
	"scaled-in-the-hold": {
		{"v1", 10, "25%", "25%", false, false, "v1 10", 10},
		{"v2", 10, "40%", "0%", true, false, "v1 10, v2 4", 10},
		{"v2", 20, "40%", "0%", true, false, "v1 20, v2 8", 20},
		{"v2", 5, "40%", "0%", true, false, "v1 5, v2 2", 5},
		{"v2", 7, "40%", "0%", true, false, "v1 7, v2 3", 7},
		{"v2", 1, "40%", "0%", true, false, "v1 1, v2 1", 1},
		{"v2", 0, "40%", "0%", true, false, "", 0},
		{"v2", 4, "40%", "0%", true, false, "v2 4", 0},
	},
	"scaled-while-paused": {
		{"v1", 8, "25%", "25%", false, false, "v1 8", 8},
		{"v2", 8, "50%", "0%", true, false, "v1 8, v2 4", 8},
		{"v2", 8, "50%", "0%", true, true, "v1 8, v2 4", 8},
		{"v2", 12, "50%", "0%", true, true, "v1 12, v2 6", 12},
		{"v2", 3, "50%", "0%", true, true, "v1 3, v2 2", 3},
		{"v2", 3, "25%", "25%", false, true, "v1 2, v2 2", 4},
		{"v2", 3, "25%", "25%", false, false, "v2 3", 3},
	},
	"three-versions": {
		{"v1", 10, "25%", "25%", false, false, "v1 10", 10},
		{"v2", 10, "30%", "0%", true, false, "v1 10, v2 3", 10},
		{"v2", 10, "30%", "0%", false, true, "v1 10, v2 3", 13},
		{"v3", 10, "40%", "0%", true, false, "v1 7, v2 3, v3 4", 10},
		{"v3", 15, "40%", "0%", true, false, "v1 11, v2 4, v3 6", 15},
		{"v3", 6, "40%", "0%", true, false, "v1 4, v2 2, v3 3", 6},
		{"v3", 6, "40%", "50%", true, false, "v1 1, v2 2, v3 6", 3},
		{"v1", 6, "25%", "25%", false, false, "v1 6", 6},
	},
}

// sizes checks each sequence in movesOf. Releases depend on the resulting sizes of the ReplicaSets.
func sizes(c *clusterTest) {
	for name, moves := range movesOf {
		full := "sizes-" + name
		for i, m := range moves {
			d := c.held(full, m.version, m.replicas, m.surge, m.unavailable, m.paused)
			spec := d.Map("spec")
			if !m.hold {
				delete(spec, "minReadySeconds")
				delete(spec, "progressDeadlineSeconds")
			}
			if m.surge == "" {
				spec["strategy"] = map[string]any{"type": "Recreate"}
			}
			if i > 0 && m.version != moves[i-1].version {
				c.nextSecond()
			}
			c.apply(d)
			what := fmt.Sprintf("%s, move %d (%s): %q and %d available", name, i+1, m, m.want, m.available)
			c.Await(c.T, what, func() bool {
				live := c.see(full)
				return live.Synced && pods(live) == m.want && live.Available == m.available
			})
		}
	}
}

// nextSecond waits for more than a second, so that the next ReplicaSet gets a later creationTimestamp. The Deployment
// controller sorts ReplicaSets with equal timestamps by name. Polls are at least 20 ms apart, and a second in the
// simulated cluster.
func (c *clusterTest) nextSecond() {
	looks := 0
	c.Await(c.T, "another second", func() bool { looks++; return looks > 55 })
}

// pods returns the number of pods of each version, such as "v1 3, v2 1". If a version has surplus, missing or unready
// pods, the result is "on the way".
func pods(live rollout.ObservedWorkload) string {
	of := map[string]string{}
	for _, r := range live.Revisions {
		switch version := strings.TrimPrefix(string(r.Hash), "h1-"); {
		case r.Desired != r.Pods || r.Desired != r.Ready():
			return "on the way"
		case r.Desired > 0:
			of[version] = fmt.Sprintf("%s %d", version, r.Desired)
		}
	}
	return strings.Join(slices.Sorted(maps.Values(of)), ", ")
}
