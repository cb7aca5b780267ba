package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

type shares struct {
	entries        []any
	name           string // field that names an entry's Service
	stable, canary int    // index in entries; -1 if absent
	headers        *rollout.HeaderModifier
}

// sharesOf finds the Rollout's Services among the entries. "is", if not nil, selects entries.
func sharesOf(entries []any, name string, r Route, is func(entry map[string]any) bool) shares {
	find := func(service string) int {
		return slices.IndexFunc(entries, func(entry any) bool {
			m := mapping(entry)
			return service != "" && text(m[name]) == service && (is == nil || is(m))
		})
	}
	return shares{entries: entries, name: name, stable: find(r.Stable), canary: find(r.Canary)}
}

// alone refuses a third weighted entry. "what" names an entry in errors, such as "backend". The error's fix tells the
// user to move the entry into "owner", such as "a rule".
func (s shares) alone(ref rollout.Ref, place, what, owner string) error {
	for i, entry := range s.entries {
		weight, given := number(mapping(entry)["weight"])
		if i != s.stable && i != s.canary && !(given && weight == 0) {
			return third(ref, fmt.Sprintf("%s[%d]", place, i), what, text(mapping(entry)[s.name]), owner)
		}
	}
	return nil
}

func third(ref rollout.Ref, field, what, name, owner string) *rollout.InvalidError {
	return wrong(ref, field, "is a third %s (%s), "+
		"so that the weights of stable and canary would not add up to all requests", what, name).
		WithFix("move this entry into %s without other entries, or set weight: 0", owner)
}

func (s shares) forCanary(r Route, weight int) map[string]any {
	i := s.canary
	if i < 0 {
		i = s.stable
	}
	entry := s.like(i, r.Canary, weight)
	if s.headers != nil {
		entry["filters"] = gatewayFilters(list(entry["filters"]), s.headers)
	}
	return entry
}

func changes(step *rollout.HeaderModifier, name string) bool {
	return slices.ContainsFunc(step.Names(), func(other string) bool { return strings.EqualFold(other, name) })
}

func (s shares) like(i int, service string, weight int) map[string]any {
	entry := copyMap(mapping(s.entries[i]))
	entry[s.name], entry["weight"] = service, int64(weight)
	return entry
}

func (s shares) weighed(ref rollout.Ref, place, what, owner string, r Route) ([]any, error) {
	if err := s.alone(ref, place, what, owner); err != nil {
		return nil, err
	}
	return s.weights(r), nil
}

func (s shares) weights(r Route) []any {
	mapping(s.entries[s.stable])["weight"] = int64(r.rest())
	entries := s.entries
	switch {
	case s.canary >= 0:
		entries[s.canary] = s.forCanary(r, r.Weight)
	case r.Weight > 0:
		entries = append(entries, s.forCanary(r, r.Weight))
	}
	for _, service := range slices.Sorted(maps.Keys(r.Shares)) {
		entries = append(entries, s.like(s.stable, service, r.Shares[service]))
	}
	return entries
}
