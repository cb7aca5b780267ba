package propose

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

const maxSubject = 72

// Together joins changes of several apps into one commit. It fails if two changes give one file different contents, or
// if one change edits a file that another change restores.
func (t Target) Together(a Action, all []Change) (Change, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	one := Change{Branch: all[0].Branch, Edits: map[string][]byte{}, When: all[0].When}
	var apps, messages, effects []string
	for _, c := range all {
		for _, other := range all {
			if path := conflict(c, other); path != "" {
				return one, fmt.Errorf("%s and %s need different contents of %s; %s one app after the other",
					c.App, other.App, path, a.Verb)
			}
		}
		maps.Copy(one.Edits, c.Edits)
		apps, effects = append(apps, c.App), append(effects, c.Effect)
		messages = append(messages, strings.TrimSpace(c.Message))
	}
	if one.Branch != t.Branch {
		one.Branch = strings.TrimSuffix(one.Branch, apps[0]) + joined(apps)
	}
	in := " in " + t.Cluster
	one.App, one.Subject = strings.Join(apps, ", "), subjectOf(a, apps, maxSubject-len(in))
	one.Effect = strings.Join(effects, "\n")
	one.Message = one.Subject + in + "\n\n" + strings.Join(messages, "\n\n") + "\n"
	return one, nil
}

func conflict(c, other Change) string {
	for _, path := range slices.Sorted(maps.Keys(c.Edits)) {
		is := c.Edits[path]
		needs, edits := other.Edits[path]
		isSame := edits && (needs == nil) == (is == nil) && bytes.Equal(needs, is)
		if !isSame && (edits || slices.Contains(other.uses, path)) {
			return path
		}
	}
	return ""
}

// subjectOf names as many apps as fit, but at least one: "Promote cart, pay and 3 more".
func subjectOf(a Action, apps []string, most int) string {
	title := strings.ToUpper(string(a.Verb[:1])) + string(a.Verb[1:])
	switch {
	case a.Off:
		title = "End the hold of"
	case a.AdoptAnyway:
		title = "Adopt"
	case a.Through == rollout.ThroughEntry:
		title = "Let a shared change into"
	}
	last := len(apps) - 1
	text := fmt.Sprintf("%s %s and %s", title, strings.Join(apps[:last], ", "), apps[last])
	for n := last; len(text) > most && n > 0; n-- {
		text = fmt.Sprintf("%s %s and %d more", title, strings.Join(apps[:n], ", "), len(apps)-n)
	}
	return text
}

// joined returns the last part of a branch name. No app name contains "+".
func joined(apps []string) string {
	const most = 100 // bytes; a file name has at most 255
	all := strings.Join(apps, "+")
	if len(all) <= most {
		return all
	}
	return apps[0] + "+" + rollout.Digest([]byte(all), 5)
}
