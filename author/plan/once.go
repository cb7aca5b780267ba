package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// madeOnce returns notes about create-only Secrets with new keys, because the cluster silently keeps the old keys.
func madeOnce(base, head *rollout.Render) (all []Note) {
	before := map[rollout.Ref]rollout.Object{}
	for _, o := range base.Objects {
		before[o.Ref()] = o
	}
	for _, o := range head.Objects {
		was := before[o.Ref()]
		if !o.CreateOnly() || was == nil || !was.CreateOnly() {
			continue
		}
		had, has := keysOf(was), keysOf(o)
		more := slices.DeleteFunc(slices.Clone(has), func(k string) bool { return slices.Contains(had, k) })
		if len(more) == 0 {
			continue
		}
		all = append(all, Note{Level: Hint, Code: "MadeOnce", Object: o.Ref().String(),
			Message: fmt.Sprintf("Secret %s is created once: if it exists in the cluster already, it does not get %s", o.Name(),
				strings.Join(more, ", ")),
			Fix: "add this to the Secret by hand, or delete the Secret to create it again"})
	}
	return all
}

func keysOf(o rollout.Object) []string {
	keys := map[string]any{}
	maps.Copy(keys, o.Map("data"))
	maps.Copy(keys, o.Map("stringData"))
	return slices.Sorted(maps.Keys(keys))
}
