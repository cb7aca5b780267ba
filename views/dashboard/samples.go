package dashboard

import (
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Sample is where a workload stood at one moment of its release.
type Sample struct {
	At     time.Time `json:"at"`
	Weight int       `json:"weight"` // percent that is asked for
	Real   int       `json:"real"`   // percent that is reached
	New    int       `json:"new"`    // Ready pods of the new version
	Old    int       `json:"old"`    // Ready pods of the stable version
	Want   int       `json:"want"`   // pods that the workload asks for
}

// The bounds of what is kept in memory: of so many workloads' samples each, and
// of so many apps, those that moved last. It is about 3 MB.
const (
	maxSamples = 240
	maxDrawn   = 200
)

// moves are the samples of one release, from its first moment on. They stay until the next release begins.
type moves struct {
	release rollout.Hash
	last    time.Time
	of      map[string][]Sample
}

// add takes a look at an app into account. Only while it moves, and once when it
// has come to rest, there is something to add. A nil m is none so far.
func (m *moves) add(now time.Time, a status.App) *moves {
	moving := a.Release != nil && a.Stable != nil
	if moving && (m == nil || m.release != a.Release.Hash) {
		m = &moves{release: a.Release.Hash, of: map[string][]Sample{}}
	}
	if m == nil || (!moving && m.release == "") {
		return m
	}
	if !moving {
		m.release = "" // this sample is the last one
	}
	m.last = now
	for _, w := range a.Workloads {
		if w.Strategy == "plain" {
			continue
		}
		m.of[w.Workload] = appended(m.of[w.Workload], sampleOf(now, w, moving))
	}
	return m
}

func sampleOf(now time.Time, w status.Workload, moving bool) Sample {
	s := Sample{At: now.UTC().Truncate(time.Millisecond), Weight: w.Weight * 100 / w.Full(), Real: w.RealWeight,
		Want: w.Replicas}
	for _, r := range w.Revisions {
		switch {
		case r.Role == "canary" || r.Role == "preview":
			s.New += r.Ready
		case r.Role != "" || !moving:
			s.Old += r.Ready
		}
	}
	return s
}

// appended adds a sample unless it shows nothing new. A full list loses every
// second one of its samples: the whole release stays visible, in less detail.
func appended(list []Sample, s Sample) []Sample {
	if n := len(list); n > 0 {
		if same := list[n-1]; same.Weight == s.Weight && same.Real == s.Real && same.New == s.New && same.Old == s.Old &&
			same.Want == s.Want {
			return list
		}
	}
	if len(list) >= maxSamples {
		kept := list[:0]
		for i := 0; i < len(list); i += 2 {
			kept = append(kept, list[i])
		}
		list = kept
	}
	return append(list, s)
}

// copy is what can be read while more is added.
func (m *moves) copy() map[string][]Sample {
	if m == nil {
		return nil
	}
	all := maps.Clone(m.of)
	for name, list := range all {
		all[name] = slices.Clone(list)
	}
	return all
}
