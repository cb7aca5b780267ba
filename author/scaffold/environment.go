package scaffold

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

var environments = []string{"prod", "production", "live", "staging", "stage", "preprod", "uat", "qa", "test", "dev",
	"development", "demo"}

var synonyms = map[string][]string{
	"prod": {"production", "live"}, "production": {"prod", "live"}, "live": {"prod", "production"},
	"staging": {"stage"}, "stage": {"staging"}, "dev": {"development"}, "development": {"dev"},
}

// Folders named in markers contain a folder for each environment, such as overlays/prod. The names in the list generic
// are too general for an app.
var (
	markers = []string{"overlays", "overlay", "environments", "environment", "envs", "env", "clusters", "cluster",
		"variants"}
	generic = []string{"apps", "app", "applications", "base", "k8s", "kubernetes", "kustomize", "deploy", "deployment",
		"deployments", "manifests", "config", "gitops", "services", "infrastructure", "infra"}
)

// Folders such as docs and tests are not apps, except in a folder of ofApps, such as apps/docs.
var (
	shown  = regexp.MustCompile(`^(docs?|documentation|scripts|hack|tests|e2e|samples?|examples?)$`)
	ofApps = []string{"apps", "applications", "services"}
)

func shownIn(dir string) (in string) {
	segments := strings.Split(dir, "/")
	for i, s := range segments {
		if shown.MatchString(s) && (i == 0 || !slices.Contains(ofApps, segments[i-1])) {
			in = path.Join(segments[:i+1]...)
		}
	}
	return in
}

func environment(dir string) string {
	segments := strings.Split(dir, "/")
	for i, s := range segments[1:] {
		if slices.Contains(markers, segments[i]) {
			return s
		}
	}
	known, _ := rollout.Find(segments, func(s string) bool { return slices.Contains(environments, s) })
	return known
}

func (g Given) environment() string {
	if e := environment(path.Dir(g.File)); e != "" {
		return e
	}
	words := func(of ...string) []string {
		return strings.FieldsFunc(strings.Join(of, " "), func(r rune) bool { return r < 'a' || r > 'z' })
	}
	own := words(g.Path)
	names := slices.DeleteFunc(words(strings.Join(g.files, " "), path.Base(g.File), g.object, g.Namespace),
		func(word string) bool { return slices.Contains(own, word) }) // live-chat is an app, not the environment live
	known, _ := rollout.Find(append(words(g.cluster), names...),
		func(word string) bool { return slices.Contains(environments, word) })
	return known
}

func (g Given) isFor(env string) bool { return g.distance(env) < 2 }

func (g Given) distance(env string) int {
	switch e := g.environment(); {
	case env == "" || e == "":
		return 1
	case isSame(e, env):
		return 0
	}
	return 2
}

func isSame(a, b string) bool { return a == b || slices.Contains(synonyms[a], b) }

func (s Survey) onlyFor(dir, env string) (file, other string) {
	for _, g := range s.Given {
		switch {
		case g.Path != dir:
		case g.isFor(env):
			return "", ""
		default:
			file, other = g.File, g.environment()
		}
	}
	return file, other
}

func (p *Proposal) ofEnvironment(roots []string, s Survey, env string) (chosen []string) {
	isApp := slices.ContainsFunc(roots, func(r string) bool { return shownIn(r) == "" })
	for _, r := range roots {
		e := environment(r)
		isGiven := slices.ContainsFunc(s.Given, func(g Given) bool { return g.Path == r })
		isSibling := func(other string) bool { return other != r && path.Dir(other) == path.Dir(r) }
		isOnly := !slices.ContainsFunc(roots, isSibling)
		file, other := s.onlyFor(r, env)
		why := "is for " + e
		switch {
		case other != "":
			why = fmt.Sprintf("only %s deploys it, for %s; list it if %s needs it", file, other, env)
		case isApp && !isGiven && shownIn(r) != "":
			why = "is in " + shownIn(r) + ", and nothing deploys it; list it if it is an app"
		case e == "" || isOf(r, env, roots) || !slices.Contains(environments, e) && path.Base(r) == e && isOnly:
			chosen = append(chosen, r)
			continue
		}
		p.LeftOut = append(p.LeftOut, LeftOut{r, why})
	}
	return chosen
}

func isOf(root, env string, roots []string) bool {
	e, names := environment(root), append([]string{env}, synonyms[env]...)
	at := slices.Index(names, e)
	return at >= 0 && !slices.ContainsFunc(names[:at], func(name string) bool {
		return slices.Contains(roots, strings.Replace(root, e, name, 1))
	})
}
