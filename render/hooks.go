package render

import (
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// withHooks are the objects without those that are for other times than releases, such as tests, which are told of.
// Jobs that run around releases stay among them, and are applied by nobody else. A chart's are left out where there is
// no release, or where they cannot be read: whoever has only the chart can change neither.
func (a *assembly) withHooks(built []rollout.Object) ([]rollout.Object, error) {
	staged := slices.ContainsFunc(built, func(o rollout.Object) bool { return isRollout(o.Ref()) })
	kept := built[:0:0]
	for _, o := range built {
		noted := takeNote(o, noteHook)
		h, is, err := hook.Of(o)
		switch {
		case !is && noted == "", is && err == nil && !h.IsLeftOut() && (staged || !h.IsJob() && noted == ""):
			kept = append(kept, o)
		case noted != "":
			if !strings.HasPrefix(noted, "test") {
				a.warnOfChartHook(o, noted, staged, err)
			}
		case err != nil:
			return nil, a.blame(err, o.Ref())
		case h.IsLeftOut():
			a.warn("%s is a hook for another time than a release, and is left out", shortRef(o.Ref()))
		default:
			return nil, a.blame(&rollout.InvalidError{Field: "metadata.annotations",
				Msg: "is a hook of an app without a Rollout document, and hooks run around releases",
				Fix: "write a Rollout for a workload of the app, or take the annotation out to have the Job applied with " +
					"the others"}, o.Ref())
		}
	}
	return kept, nil
}

func (a *assembly) warnOfChartHook(o rollout.Object, when string, staged bool, err error) {
	switch {
	case err != nil:
		a.warn("%s is a hook of Helm's (%s), and is left out: %s", shortRef(o.Ref()), when, err)
	case staged:
		a.warn("%s is a hook of Helm's (%s), and is left out", shortRef(o.Ref()), when)
	default:
		a.warn("%s is a hook of Helm's (%s), and is left out: hooks run around releases, and the app has no Rollout document",
			shortRef(o.Ref()), when)
	}
}
