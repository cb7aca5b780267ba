// Package images edits the line that sets an app's image.
package images

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/author/scaffold"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// Order requests another version of an image and, optionally, another repository.
type Order struct {
	name    string // a container's name or an image's repository
	repo    string // new repository; "" for no change
	version string // ":TAG" or "@DIGEST"
}

var order = regexp.MustCompile(`^([^=]+)=([\w.-]+(?::\d+)?(?:/[\w.-]+)*)?(:\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})$`)

// Parse reads NAME=TAG, NAME=REPOSITORY:TAG, NAME=@DIGEST or NAME=REPOSITORY@DIGEST.
func Parse(text string) (Order, error) {
	full := text
	if _, value, _ := strings.Cut(text, "="); !strings.ContainsAny(value, ":@/") {
		full = strings.Replace(text, "=", "=:", 1)
	}
	if m := order.FindStringSubmatch(full); m != nil {
		return Order{m[1], m[2], m[3]}, nil
	}
	return Order{}, fmt.Errorf("%q is not NAME=TAG, NAME=REPOSITORY:TAG or NAME=@sha256:DIGEST, such as web=v2", text)
}

func split(image string) (repo, version string) {
	end := strings.IndexByte(image+"@", '@')
	if colon := strings.LastIndexByte(image[:end], ':'); colon > strings.LastIndexByte(image[:end], '/') {
		end = colon
	}
	return image[:end], image[end:]
}

// Names returns an app's images by repository and by container. If a repository and a container have the same name, it
// returns the repository's images.
func Names(r *rollout.Render) map[string][]string {
	repos, names := map[string][]string{}, map[string][]string{}
	for _, o := range r.Objects {
		each(map[string]any(o), func(container map[string]any, name, image string) {
			repo, _ := split(image)
			repos[repo], names[name] = append(repos[repo], image), append(names[name], image)
		})
	}
	maps.Copy(names, repos)
	for name, images := range names {
		names[name] = slices.Compact(slices.Sorted(slices.Values(images)))
	}
	return names
}

func each(value any, do func(container map[string]any, name, image string)) {
	list, _ := value.([]any)
	for _, below := range list {
		each(below, do)
	}
	fields, _ := value.(map[string]any)
	name, isNamed := fields["name"].(string)
	if image, is := fields["image"].(string); is && isNamed {
		do(fields, name, image)
	}
	for _, below := range fields {
		each(below, do)
	}
}

// App is an app at a commit.
type App struct {
	Tree   rollout.Tree
	Config string // the configuration's path
	Render func(rollout.Tree) (*rollout.Render, error)
}

// Edit is a file with a new image. Without a change, Path is "".
type Edit struct{ Path, Content, From, To string }

// Set returns the edit for another image. The edit changes one line or, for a new repository, two lines. Set tries
// places until the edited app's render differs only in the requested images.
func (a *App) Set(o Order) (Edit, error) {
	r, err := a.Render(a.Tree)
	if err != nil {
		return Edit{}, err
	}
	t, err := targetOf(r, o)
	e := Edit{From: strings.Join(t.was, ", "), To: t.repo + t.version}
	if err != nil || reflect.DeepEqual(r.ByRef(), t.after) {
		return e, err
	}
	all, err := a.places(t)
	if err != nil {
		return e, err
	}
	const mostTried, mostListed = 100, 10
	var refused []string
	for _, p := range all[:min(len(all), mostTried)] {
		content := t.with(p.lines, p.line-1, p.changed)
		edited := scaffold.With(a.Tree, []scaffold.File{{Path: p.file, Content: content}})
		why, err := a.try(t, p, edited)
		if err != nil || why == "" {
			e.Path, e.Content, a.Tree = p.file, content, edited
			return e, err
		}
		if line := fmt.Sprintf("%s:%d: %s", p.file, p.line, why); why != noEffect && !slices.Contains(refused, line) {
			refused = append(refused, line)
		}
	}
	refused = refused[:min(len(refused), mostListed)]
	left := map[string]int{}
	for _, p := range all[min(len(all), mostTried):] {
		left[p.file]++
	}
	for _, file := range slices.Sorted(maps.Keys(left)) {
		refused = append(refused, file+": "+rollout.Count(left[file], "more line")+" with this text, not tried")
	}
	return Edit{}, fmt.Errorf("no line that gitrollout may edit sets the image %s; change it by hand, or add it to "+
		"images in a kustomization.yaml; lines found:\n%s", e.From, strings.Join(refused, "\n"))
}

type target struct {
	Order
	from   string
	was    []string // the app's present images from this repository
	rules  []rule
	before *rollout.Render
	after  map[rollout.Ref]rollout.Object
}

type rule struct {
	pattern *regexp.Regexp
	by      string
}

func targetOf(r *rollout.Render, o Order) (t target, err error) {
	t = target{Order: o, before: r, after: r.ByRef()}
	names := Names(r)
	known := slices.Sorted(maps.Keys(names))
	for i, image := range names[o.name] {
		repo, _ := split(image)
		if i > 0 && t.from != repo {
			return t, fmt.Errorf("containers named %s have several images; name one image instead: %s", o.name,
				strings.Join(names[o.name], ", "))
		}
		t.from = repo
	}
	if t.from == "" {
		return t, fmt.Errorf("no container or image is named %q; %s", o.name,
			cmp.Or(rollout.DidYouMean(o.name, known), "the app has "+strings.Join(known, ", ")))
	}
	t.was, t.repo = names[t.from], cmp.Or(t.repo, t.from)
	for ref, object := range t.after {
		t.after[ref] = object.Copy()
		each(map[string]any(t.after[ref]), func(container map[string]any, _, image string) {
			if repo, _ := split(image); repo == t.from {
				container["image"] = t.repo + t.version
			}
		})
	}
	t.addRules()
	return t, nil
}

// addRules adds rules that replace the image's version. A rule may rename the field, because kustomizations have
// separate fields for tags and digests.
func (t *target) addRules() {
	const end = `(["'\s,)}\]]|$)`
	add := func(pattern, by string) { t.rules = append(t.rules, rule{regexp.MustCompile(pattern), by}) }
	is := t.version[1:]
	value, field := is, map[byte]string{':': "newTag: ", '@': "digest: "}[t.version[0]]
	if yaml.IsValueNonString(is) {
		value = `"` + is + `"`
	}
	for _, image := range t.was {
		add(`(^|[\s"'=])`+regexp.QuoteMeta(image)+end, "${1}"+t.repo+t.version+"${2}")
		_, version := split(image)
		if version == "" {
			continue
		}
		was := regexp.QuoteMeta(version[1:])
		add(`([\w}])`+regexp.QuoteMeta(version)+end, "${1}"+t.version+"${2}")
		if version[0] == t.version[0] {
			add(`([:-] +(?:&\w+ +)?)`+was+`([\s,}]|$)`, "${1}"+value+"${2}")
			add(`(["'=])`+was+end, "${1}"+is+"${2}")
		} else {
			add(`\b(?:newTag|digest): *["']?`+was+`\b["']?`, field+value)
		}
	}
	add(`(\btag: *)(?:""|'')`, `${1}"`+is+`"`)
}

type place struct {
	file    string
	lines   []string
	line    int
	rank    int    // low ranks are tried first
	changed string // after the edit; "" if no rule fits
	why     string // why gitrollout may not edit it, or ""
}

var (
	isIgnored = regexp.MustCompile(`^\s*(?:#|apiVersion:)`) // lines that set no image
	hasAnchor = regexp.MustCompile(`[:-] +&\w`)
	hasWord   = regexp.MustCompile(`(?i)image|tag|digest`)
)

// places returns the places in all files that the app reads. The likely places come first (near a word such as "image",
// early in a file), because Set does not try all places.
func (a *App) places(t target) (all []place, err error) {
	for _, file := range append(slices.Clone(t.before.Files), a.Config) {
		data, _, err := source.ReadFile(a.Tree, file)
		if err != nil {
			return nil, err
		}
		barred, err := a.barred(file, string(data))
		if err != nil {
			return nil, err
		}
		for i, p := range t.places(place{file: file, lines: strings.SplitAfter(string(data), "\n"), why: barred}) {
			p.rank += i
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(x, y place) int { return x.rank - y.rank })
	return all, nil
}

func (t *target) places(in place) (all []place) {
	for i, line := range in.lines {
		p := in
		if p.line = i + 1; !hasWord.MatchString(strings.Join(near(p.lines, i), "")) {
			p.rank = 1 << 20
		}
		switch {
		case hasAnchor.MatchString(line):
			p.why = "has an anchor, which sets other fields as well"
		case strings.HasPrefix(line, "appVersion:"):
			p.why = "is the version of the chart; set the tag in its values instead"
		}
		found := len(all)
		for _, r := range t.rules {
			for _, m := range r.pattern.FindAllStringSubmatchIndex(line, -1) {
				p.changed = line[:m[0]] + string(r.pattern.ExpandString(nil, r.by, line, m)) + line[m[1]:]
				all = append(all, p)
			}
		}
		switch {
		case isIgnored.MatchString(line):
			all = all[:found]
		case len(all) == found && strings.Contains(line, t.from+":"):
			p.why = "has the name of the image, but not its tag"
			all = append(all, p)
		}
	}
	return all
}

func near(lines []string, i int) []string { return lines[max(0, i-3):min(len(lines), i+4)] }

func (t *target) with(lines []string, i int, changed string) string {
	lines = slices.Clone(lines)
	lines[i] = changed
	near := near(lines, i)
	name := regexp.MustCompile(`\b((?:newName|repository): *["']?)` + regexp.QuoteMeta(t.from) + `\b`)
	if j := slices.IndexFunc(near, name.MatchString); j >= 0 && !strings.Contains(changed, t.repo) {
		near[j] = name.ReplaceAllString(near[j], "${1}"+t.repo)
	}
	return strings.Join(lines, "")
}

const noEffect = "has no effect"

func (a *App) try(t target, p place, edited rollout.Tree) (why string, err error) {
	if p.changed == "" {
		return p.why, nil
	}
	switch r, err := a.Render(edited); {
	case err != nil && !rollout.IsInvalid(err):
		return "", err
	case err != nil && rollout.ReasonOf(err) == rollout.HeldInvalidInput:
		return noEffect, nil
	case err != nil:
		return err.Error(), nil
	case slices.Equal(Names(r)[t.from], t.was):
		return noEffect, nil
	case !reflect.DeepEqual(r.ByRef(), t.after) || !reflect.DeepEqual(r.Specs, t.before.Specs):
		return "does not set all of the images, or sets other fields as well", nil
	}
	return p.why, nil
}

func (a *App) barred(file, content string) (why string, err error) {
	if sops.Is([]byte(content)) {
		return "is in a file that SOPS has signed", nil
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		by := path.Join(dir, rollout.VendorFile)
		data, _, err := source.ReadFile(a.Tree, by)
		sources, _ := rollout.ParseVendor(by, data) // "gitrollout vendor" reports errors
		for _, s := range sources {
			into := path.Join(dir, s.Into) + "/"
			if s.Chart != nil {
				into += s.Chart.Name
			}
			if strings.HasPrefix(file, into) {
				return "comes from " + by + ", so the next gitrollout vendor would remove the change", nil
			}
		}
		if err != nil || dir == "." {
			return "", err
		}
	}
}
