package plan

import (
	"regexp"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Object is one changed object.
type Object struct {
	Object rollout.Ref `json:"object"`
	// Was is the former name of a generated ConfigMap or Secret. The name ends with a hash.
	Was    string `json:"was,omitempty"`
	Change string `json:"change"` // added, changed, removed
	Diff   string `json:"diff"`   // unified; Secrets' values are masked
}

var generatedSuffix = regexp.MustCompile(`-[2456789bcdfghkmt]{10}$`)

func differences(base, head *rollout.Render) (all []Object) {
	before, after := base.ByRef(), head.ByRef()
	add := func(ref rollout.Ref, was, now rollout.Object) {
		old := ref
		if was != nil {
			old = was.Ref()
		}
		text, err := Compare("base/"+old.String(), was, "head/"+ref.String(), now)
		if err != nil { // impossible, because YAML has been read
			text = err.Error() + "\n"
		}
		o := Object{Object: ref, Change: "changed", Diff: text}
		switch {
		case o.Diff == "":
			return
		case was == nil:
			o.Change = "added"
		case now == nil:
			o.Change = "removed"
		case was.Name() != ref.Name:
			o.Was = was.Name()
		}
		all = append(all, o)
	}
	renamed := map[rollout.Ref]bool{}
	for ref, now := range after {
		was := before[ref]
		if was == nil {
			was = generatedBefore(ref, before, after)
			renamed[was.Ref()] = true // empty if "was" is nil
		}
		add(ref, was, now)
	}
	for ref, was := range before {
		if after[ref] == nil && !renamed[ref] {
			add(ref, was, nil)
		}
	}
	slices.SortFunc(all, func(x, y Object) int { return x.Object.Compare(y.Object) })
	return all
}

func generatedBefore(ref rollout.Ref, before, after map[rollout.Ref]rollout.Object) (found rollout.Object) {
	if !isData(ref) || !generatedSuffix.MatchString(ref.Name) {
		return nil
	}
	stem := func(name string) string { return generatedSuffix.ReplaceAllString(name, "") }
	for other, o := range before {
		if after[other] != nil || other.Kind != ref.Kind || other.Group != ref.Group || other.Namespace != ref.Namespace ||
			!generatedSuffix.MatchString(other.Name) || stem(other.Name) != stem(ref.Name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = o
	}
	return found
}

func isData(ref rollout.Ref) bool {
	return ref.Group == "" && (ref.Kind == "ConfigMap" || ref.Kind == "Secret")
}
