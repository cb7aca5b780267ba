package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// Proposal is a cluster's proposed configuration.
type Proposal struct {
	Cluster   string
	StateRepo string // "" for the default
	Entries   []Entry
	Apps      []rollout.App // the apps that match the entries
	LeftOut   []LeftOut
	Notes     []string

	own   string
	build Builder
	also  map[string][]Entry // by chart folder: the chart's other releases
}

// Entry is an entry under apps in the configuration.
type Entry struct {
	Path      string
	Name      string             // "" for the default
	Namespace string             // "" for the default
	Directory *rollout.Directory // nil for kustomizations
	Helm      *rollout.Helm      // nil without a chart
	Variables rollout.Variables

	Decryption string // the Secret with keys for encrypted files, or ""

	Needs render.Violations // objects that the entry must allow
}

// LeftOut is a folder or file that does not become an app.
type LeftOut struct{ Path, Why string }

// Builder renders an app.
type Builder func(rollout.App) (*rollout.Render, error)

// Propose proposes entries for the apps that can be rendered. If cluster is "", it chooses a name.
func Propose(tree rollout.Tree, s Survey, cluster, own string, build Builder) (Proposal, error) {
	p := Proposal{Cluster: cluster, own: own, build: build}
	plain := s.plain()
	roots := slices.Concat(s.roots(), slices.Collect(maps.Keys(plain)), slices.Collect(maps.Keys(s.charts())))
	slices.Sort(roots)
	of := rollout.Mapped(s.Given, func(g Given) string { return path.Join(markers[0], g.environment()) })
	env := p.choose(slices.Concat(roots, s.ofFlux(), of))
	maps.Copy(plain, s.charts(append([]string{env, p.Cluster}, synonyms[env]...)...))
	s.built(env, build)
	if err := s.settle(tree); err != nil {
		return p, err
	}
	chosen := p.ofEnvironment(roots, s, env)
	p.also, p.Notes = s.carry(plain, chosen, cmp.Or(env, p.Cluster))
	for _, dir := range chosen {
		if d := plain[dir].Directory; d != nil && d.Exclude != "" && d.Exclude == s.noObjects(dir, d.Recurse) {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: files without Kubernetes objects are excluded: %s", dir, d.Exclude))
		}
	}
	p.LeftOut = append(p.LeftOut, s.LeftOut...)
	for _, k := range s.Kustomizations {
		if k.Engine != "" {
			p.LeftOut = append(p.LeftOut, LeftOut{k.Path, "has objects of " + k.Engine + p.beside(k)})
		}
	}
	isRoot := func(k Kustomization) bool { return k.Path == "" && k.Engine == "" }
	if slices.Contains(s.Plain, "") || slices.ContainsFunc(s.Kustomizations, isRoot) {
		const why = "is the repository's root, and an app is a folder below it; move the files into one, such as apps/shop"
		if len(chosen) == 0 {
			return p, errors.New("the only folder with manifests " + why)
		}
		p.LeftOut = append(p.LeftOut, LeftOut{".", why})
	}
	for {
		bad, err := p.cover(tree, chosen, plain)
		if err != nil || len(bad) == 0 {
			return p, err
		}
		chosen = slices.DeleteFunc(chosen, func(dir string) bool {
			return slices.ContainsFunc(bad, func(l LeftOut) bool { return l.Path == dir })
		})
		p.LeftOut = append(p.LeftOut, bad...)
	}
}

func (p *Proposal) choose(roots []string) string {
	known := slices.DeleteFunc(rollout.Mapped(roots, environment), func(e string) bool { return e == "" })
	slices.Sort(known)
	isFor := func(e string) bool { // cluster prod-eu is for environment prod
		return p.Cluster == e || strings.HasPrefix(p.Cluster, e+"-") || strings.HasSuffix(p.Cluster, "-"+e)
	}
	if e, is := rollout.Find(slices.Concat(known, environments), isFor); is {
		return e
	}
	isKnown := func(e string) bool { return slices.Contains(known, e) }
	env, _ := rollout.Find(append(slices.Clone(environments), known...), isKnown)
	p.Cluster = cmp.Or(p.Cluster, env, "prod")
	return env
}

func (p *Proposal) cover(tree rollout.Tree, chosen []string, plain map[string]Entry) (bad []LeftOut, err error) {
	p.Entries, p.Apps = nil, nil
	entryOf := map[string]int{} // index by app name
	by := map[string][]string{}
	for _, dir := range chosen {
		g := globOf(dir)
		by[g] = append(by[g], dir)
	}
	taken := map[string]string{}
	add := func(e Entry) error {
		apps, err := appsOf(tree, e)
		if err != nil {
			return err
		}
		for _, a := range apps {
			if other := taken[a.Name]; other != "" && other != a.Path {
				return &rollout.InvalidError{Msg: fmt.Sprintf("would be the app %s, but %s has this name already", a.Name, other)}
			}
		}
		for _, a := range apps {
			taken[a.Name], entryOf[a.Name] = a.Path, len(p.Entries)
		}
		p.Entries, p.Apps = append(p.Entries, e), append(p.Apps, apps...)
		return nil
	}
	for _, dir := range chosen {
		g := globOf(dir)
		group := by[g]
		if group == nil {
			continue // an earlier entry matches
		}
		e, alike := likeAll(group, plain)
		e.Path = g
		bare := e.Directory == nil && e.Helm == nil && e.Namespace == "" && !e.Variables.On && e.Decryption == ""
		several := bare || len(group) > 1 // settings of a single folder must not apply to folders that are added later
		if g != dir && alike && several && p.matches(tree, e, group) && add(e) == nil {
			delete(by, g)
			continue
		}
		for _, e := range append([]Entry{plain[dir]}, p.also[dir]...) {
			e.Path, e.Name = dir, cmp.Or(e.Name, nameOf(dir))
			var invalid *rollout.InvalidError
			switch err := add(e); {
			case errors.As(err, &invalid):
				bad = append(bad, LeftOut{dir, invalid.Msg})
			case err != nil:
				return nil, err
			}
		}
	}
	return append(bad, p.built(entryOf, plain)...), nil
}

func (p *Proposal) built(entryOf map[string]int, plain map[string]Entry) (bad []LeftOut) {
	var all []*rollout.Render
	for _, app := range p.Apps {
		r, err := p.build(app)
		if err != nil {
			bad = append(bad, LeftOut{app.Path, "cannot be rendered: " + err.Error()})
			continue
		}
		engines := rollout.Mapped(r.Objects, func(o rollout.Object) string { return engineOf(o.Ref().Group, o.Kind()) })
		if engine := cmp.Or(engines...); engine != "" {
			bad = append(bad, LeftOut{app.Path, "has objects of " + engine})
			continue
		}
		all = append(all, r)
		p.Entries[entryOf[app.Name]].Needs.Add(render.BeyondOf(r, p.own))
	}
	return append(bad, twice(all, plain)...)
}

func twice(all []*rollout.Render, plain map[string]Entry) (bad []LeftOut) {
	// Kustomizations come first, so that plain folders with the same objects are omitted.
	isPlain := func(r *rollout.Render) bool {
		e := plain[r.App.Path]
		return e.Directory != nil || e.Helm != nil
	}
	kustomized := slices.DeleteFunc(slices.Clone(all), isPlain)
	owners := map[rollout.Ref]string{}
	others := slices.DeleteFunc(all, func(r *rollout.Render) bool { return !isPlain(r) })
	for _, r := range append(kustomized, others...) {
		refs := rollout.Mapped(r.Objects, rollout.Object.Ref)
		ref, isTwice := rollout.Find(refs, func(ref rollout.Ref) bool {
			return owners[ref] != "" && !ref.HoldsData() // apps may share a Namespace
		})
		if isTwice {
			bad = append(bad, LeftOut{r.App.Path, fmt.Sprintf("has objects that %s also has, such as %s %s; an object "+
				"belongs to one app: list only one of the two apps, or give this app another namespace",
				owners[ref], ref.Kind, strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))})
			continue
		}
		for _, ref := range refs {
			owners[ref] = r.App.Path
		}
	}
	return bad
}

func likeAll(group []string, plain map[string]Entry) (e Entry, alike bool) {
	first := plain[group[0]]
	alike, e.Namespace, e.Variables, e.Decryption = true, first.Namespace, first.Variables, first.Decryption
	for _, dir := range group {
		own := plain[dir]
		alike = alike && own.Name == "" && own.Namespace == e.Namespace && own.Variables == e.Variables &&
			own.Decryption == e.Decryption && agree(own.Directory, e.Directory) && agree(own.Helm, e.Helm)
		e.Directory, e.Helm = cmp.Or(own.Directory, e.Directory), cmp.Or(own.Helm, e.Helm)
	}
	return e, alike
}

func agree[T comparable](a, b *T) bool { return a == nil || b == nil || *a == *b }

func (p *Proposal) matches(tree rollout.Tree, e Entry, want []string) bool {
	apps, err := appsOf(tree, e)
	isOther := func(a rollout.App) bool { return !slices.Contains(want, a.Path) }
	return err == nil && len(apps) == len(want) && !slices.ContainsFunc(apps, isOther)
}

func appsOf(tree rollout.Tree, e Entry) ([]rollout.App, error) {
	config, err := rollout.ParseConfig(rollout.ConfigPath("x"), []byte(configText([]Entry{e})))
	if err != nil {
		return nil, err
	}
	return render.FindApps(tree, config)
}

// appIn returns a folder's segments, and the index of the last segment that may be an app's name, or -1.
func appIn(dir string) (segments []string, last int) {
	segments, env := strings.Split(dir, "/"), environment(dir)
	for i, s := range slices.Backward(segments) {
		if s != env && !slices.Contains(markers, s) && !slices.Contains(generic, s) {
			return segments, i
		}
	}
	return segments, -1
}

func globOf(dir string) string {
	segments, app := appIn(dir)
	if app < 0 || len(segments) == 1 {
		return dir
	}
	segments[app] = "*"
	return path.Join(segments...)
}

// nameOf returns an app's name, or "" if the default (the last folder's name) is suitable.
func nameOf(dir string) string {
	segments, app := appIn(dir)
	if app < 0 || app == len(segments)-1 && label(segments[app]) == segments[app] {
		return ""
	}
	return label(segments[app])
}

func label(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(name[:min(len(name), 63)], "-")
}

const mostLeftOut = 5

// Told describes the proposal.
func (p Proposal) Told(survey Survey) []string {
	told := rollout.Mapped(p.Apps, func(a rollout.App) string { return fmt.Sprintf("app      %s: %s", a.Name, a.Path) })
	count := map[string]int{}
	for _, l := range p.LeftOut {
		if count[l.Why]++; count[l.Why] <= mostLeftOut {
			told = append(told, fmt.Sprintf("left out %s: %s", l.Path, l.Why))
		}
	}
	for _, why := range slices.Sorted(maps.Keys(count)) {
		if more := count[why] - mostLeftOut; more > 0 {
			told = append(told, fmt.Sprintf("left out %d more: %s", more, why))
		}
	}
	told = append(told, rollout.Mapped(p.Notes, func(n string) string { return "note     " + n })...)
	if n := len(survey.ArgoRollouts); n > 0 {
		told = append(told, "note     "+rollout.Count(n, "file")+
			" of Argo Rollouts: read without changes, see docs/coming-from-argo-rollouts.md")
	}
	return told
}
