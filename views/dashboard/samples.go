package dashboard

import (
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Sample is a workload's progress at one moment of a release.
type Sample struct {
	At     time.Time `json:"at"`
	Weight int       `json:"weight"` // desired percent of the new version
	Real   int       `json:"real"`   // actual percent
	New    int       `json:"new"`    // ready new pods
	Old    int       `json:"old"`    // ready stable pods
	Want   int       `json:"want"`   // desired pods
}

// All samples need at most about 3 MB.
const (
	maxSamples = 240
	maxDrawn   = 200
)

type moves struct {
	release rollout.Hash
	last    time.Time
	of      map[string][]Sample
}

func (m *moves) add(now time.Time, a status.App) *moves {
	moving := a.Release != nil && a.Stable != nil
	if moving && (m == nil || m.release != a.Release.Hash) {
		m = &moves{release: a.Release.Hash, of: map[string][]Sample{}}
	}
	if m == nil || (!moving && m.release == "") {
		return m
	}
	if !moving {
		m.release = ""
	}
	m.last = now
	for _, w := range a.Workloads {
		if w.Strategy == "plain" || w.Unread {
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

// appended adds s, unless it differs from the last sample only in its time. A full list loses every second sample.
func appended(list []Sample, s Sample) []Sample {
	if n := len(list); n > 0 {
		last := list[n-1]
		if last.At = s.At; last == s {
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
