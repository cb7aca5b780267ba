package render

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

var valueFields = []string{"data", "stringData"}

// counterparts returns the other build's objects in the first build's order. If only one build has an object, it
// returns only that object's ref.
func counterparts(of, other []rollout.Object) (in []rollout.Object, lone rollout.Ref) {
	base := func(o rollout.Object) rollout.Ref {
		ref := o.Ref()
		if o.IsSecret() {
			ref.Name = generatedSuffix.ReplaceAllString(ref.Name, "")
		}
		return ref
	}
	byRef := map[rollout.Ref][]rollout.Object{}
	for _, o := range other {
		byRef[base(o)] = append(byRef[base(o)], o)
	}
	for _, o := range of {
		same := byRef[base(o)]
		if len(same) == 0 {
			return nil, o.Ref()
		}
		in, byRef[base(o)] = append(in, same[0]), same[1:]
	}
	for _, o := range other {
		if len(byRef[base(o)]) > 0 {
			return nil, o.Ref()
		}
	}
	return in, rollout.Ref{}
}

// comparison finds differences between builds. Digests, such as checksum/secret annotations, may differ, because a
// digest reveals no value. From the first two builds, it learns which texts are digests.
type comparison struct {
	names   *strings.Replacer // replaces generated Secrets' names by the first build's names
	digests map[string]bool   // fields with a digest, as "OBJECT'S-INDEX FIELD"
	learns  bool
	object  int
}

// first returns the first difference, or -1. It ignores differences between the texts of a Secret's values.
func (c *comparison) first(sealed, other []rollout.Object) (object int, field string) {
	var names []string
	for i, o := range sealed {
		if was, is := other[i].Name(), o.Name(); was != is {
			names = append(names, was, is)
		}
	}
	c.names = strings.NewReplacer(names...)
	for i, o := range sealed {
		c.object = i
		a, b := map[string]any(o), map[string]any(other[i])
		if o.IsSecret() {
			a, b = maps.Clone(a), maps.Clone(b)
			for _, field := range valueFields {
				if at, differ := namesDiffer(field, a[field], b[field]); differ {
					return i, at
				}
				delete(a, field)
				delete(b, field)
			}
		}
		if at, differ := c.differ("", a, b); differ {
			return i, at
		}
	}
	return -1, ""
}

func (c *comparison) differ(at string, sealed, other any) (string, bool) {
	switch sealed := sealed.(type) {
	case map[string]any:
		other, is := other.(map[string]any)
		if !is || !sameKeys(sealed, other) {
			return at, true
		}
		for _, key := range slices.Sorted(maps.Keys(sealed)) {
			if at, differ := c.differ(fieldBelow(at, key), sealed[key], other[key]); differ {
				return at, true
			}
		}
	case []any:
		other, is := other.([]any)
		if !is || len(sealed) != len(other) {
			return at, true
		}
		for i := range sealed {
			if at, differ := c.differ(fmt.Sprintf("%s[%d]", at, i), sealed[i], other[i]); differ {
				return at, true
			}
		}
	case string:
		other, is := other.(string)
		return at, !is || sealed != other && sealed != c.names.Replace(other) && !c.isDigest(at, sealed, other)
	default:
		return at, !reflect.DeepEqual(sealed, other)
	}
	return "", false
}

var (
	digits     = regexp.MustCompile(`^[0-9a-f]{8,128}$`)
	annotation = regexp.MustCompile(`(^|\.)metadata\.annotations(\.[^.\[\]]+|\[[^\[\]]+\])$`)
)

// leastDigest is a digest's minimum length. In annotations, which change no behavior, 8 hexadecimal digits with a
// letter are enough.
const leastDigest = 40

func (c *comparison) isDigest(at, sealed, other string) bool {
	if len(sealed) != len(other) || !digits.MatchString(sealed) || !digits.MatchString(other) {
		return false
	}
	place := fmt.Sprint(c.object, " ", at)
	if c.learns {
		c.digests[place] = len(sealed) >= leastDigest ||
			annotation.MatchString(at) && strings.ContainsAny(sealed+other, "abcdef")
	}
	return c.digests[place]
}

func sameKeys(a, b map[string]any) bool {
	return maps.EqualFunc(a, b, func(any, any) bool { return true })
}

func namesDiffer(field string, sealed, other any) (string, bool) {
	was, _ := sealed.(map[string]any)
	is, isMap := other.(map[string]any)
	if !isMap || !sameKeys(was, is) {
		return field, other != nil || sealed != nil
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, isText := is[name].(string); !isText && !reflect.DeepEqual(was[name], is[name]) {
			return fieldBelow(field, name), true
		}
	}
	return "", false
}
