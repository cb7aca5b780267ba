package render

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// contentOf returns the hash of an app's sealed objects, or "" for an app with a Rollout.
func contentOf(app rollout.App, built []rollout.Object) (rollout.Hash, error) {
	var told []rollout.Object
	for _, o := range built {
		if isRollout(o.Ref()) {
			return "", nil
		}
		if h, is, err := hook.Of(o); !is || err != nil || !h.IsLeftOut() {
			told = append(told, o.Told())
		}
	}
	return rollout.HashContent(app.Namespace, told)
}

// withHooks drops hooks that do not run at releases. It warns of each dropped hook except a test. An invalid hook is an
// error or, in a chart, a warning, because users cannot change a chart.
func (a *assembly) withHooks(built []rollout.Object) ([]rollout.Object, error) {
	kept := built[:0:0]
	for _, o := range built {
		noted := takeNote(o, noteHook)
		h, is, err := hook.Of(o)
		switch {
		case !is && noted == "", is && err == nil && !h.IsLeftOut():
			kept = append(kept, o)
		case noted != "":
			if !strings.HasPrefix(noted, "test") {
				why := ""
				if err != nil {
					why = ": " + err.Error()
				}
				a.warn("%s is a Helm hook (%s), and is left out%s", shortRef(o.Ref()), noted, why)
			}
		case err != nil:
			return nil, a.blame(err, o.Ref())
		default:
			a.warn("%s is a hook that does not run at releases, and is left out", shortRef(o.Ref()))
		}
	}
	a.Hooked = slices.ContainsFunc(kept, hook.Is)
	a.warnOfServices(kept)
	return kept, nil
}

func (a *assembly) warnOfServices(objects []rollout.Object) {
	for _, job := range objects {
		if !hook.Is(job) {
			continue
		}
		labels := job.Map("spec", "template", "metadata", "labels")
		for _, s := range objects {
			selector := s.Map("spec", "selector")
			isOther := func(label string) bool { return labels[label] != selector[label] }
			if ref := s.Ref(); ref.Group != "" || ref.Kind != "Service" || ref.Namespace != job.Namespace() ||
				len(selector) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(selector)), isOther) {
				continue
			}
			a.warn("Service %s selects the pods of Job %s and sends them requests: change the labels in the Job's pod template",
				s.Name(), job.Name())
		}
	}
}

var (
	generated = regexp.MustCompile(`(?m)^( *)generateName: *["']?([a-z0-9.-]*[a-z0-9])[.-]*["']?[ \r]*(#.*)?$`)
	between   = regexp.MustCompile(`(?m)^---.*\n`)
)

// withNames replaces generateName of hook Jobs by a name, because kustomize needs a name.
func withNames(data []byte) (out []byte) {
	if !bytes.Contains(data, []byte("generateName:")) {
		return data
	}
	begins := 0
	for _, at := range append(between.FindAllIndex(data, -1), []int{len(data), len(data)}) {
		out = append(append(out, withName(data[begins:at[0]])...), data[at[0]:at[1]]...)
		begins = at[1]
	}
	return out
}

func withName(text []byte) []byte {
	var o rollout.Object
	if err := yaml.Unmarshal(text, &o); err != nil || !hook.Is(o) || o.Name() != "" {
		return text
	}
	at := generated.FindSubmatchIndex(text)
	if at == nil {
		return text
	}
	out := slices.Concat(text[:at[1]], []byte("\n"), text[at[2]:at[3]], []byte("name: "), text[at[4]:at[5]], text[at[1]:])
	var with rollout.Object
	if err := yaml.Unmarshal(out, &with); err != nil || with.Name() != string(text[at[4]:at[5]]) {
		return text
	}
	return out
}
