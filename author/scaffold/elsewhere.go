package scaffold

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

type elsewhere struct {
	who   string    // the Argo CD or Flux object that releases the chart
	of    sourceRef // the Flux source object that has the address
	repo  string    // the chart's address; "" if in Flux's source object
	name  string    // "" if the address ends with the chart's name
	wants string    // version or range; "" if in Flux's source object
}

type sourceRef struct{ Kind, Name string }

type brought struct {
	dir string
	rollout.VendorSource
}

func (s *Survey) vendored(name string, data []byte) {
	// "gitrollout vendor" reports the errors.
	sources, _ := rollout.ParseVendor(name, data)
	for _, v := range sources {
		if v.Chart != nil {
			s.brought = append(s.brought, brought{path.Dir(name), v})
		}
	}
}

func (s *Survey) built(env string, build Builder) {
	// Kustomizations can patch HelmReleases, so the kustomizations are built.
	of := map[string]bool{}
	var all []Given
	for _, dir := range s.ofFlux() {
		if e := environment(dir); e != "" && !isSame(e, env) {
			continue
		}
		r, err := build(rollout.App{Name: "flux", Path: dir})
		if err != nil {
			continue
		}
		s.into(of, dir)
		for _, o := range r.Objects {
			text, err := yaml.Marshal(o)
			if o.Kind() != "HelmRelease" || err != nil {
				continue
			}
			if g, is := helmReleaseIn(path.Join(dir, "kustomization.yaml"), string(text)); is {
				all = append(all, g)
			}
		}
	}
	s.Given = append(slices.DeleteFunc(s.Given, func(g Given) bool {
		return g.release && (of[g.File] || of[path.Dir(g.File)])
	}), all...)
}

func (p *Proposal) beside(k Kustomization) string {
	r, err := p.build(rollout.App{Name: "beside", Path: k.Path})
	if err != nil || path.Base(k.Path) == "flux-system" {
		return ""
	}
	for _, o := range r.Objects {
		if _, is := rollout.WorkloadOf(o.Ref()); is {
			return fmt.Sprintf(", and %s %s beside them: move the objects that are not %s's into another kustomization",
				o.Kind(), o.Name(), k.Engine)
		}
	}
	return ""
}

func (s *Survey) ofFlux() (dirs []string) {
	used := s.used()
	for _, k := range s.Kustomizations {
		if k.Engine == flux && !k.Component && (!used[k.Path] || slices.Contains(s.Flux, k.Path)) {
			dirs = append(dirs, k.Path)
		}
	}
	return dirs
}

func (s *Survey) into(of map[string]bool, dir string) {
	if of[dir] {
		return
	}
	of[dir] = true
	k, _ := rollout.Find(s.Kustomizations, func(k Kustomization) bool { return k.Path == dir })
	for _, u := range k.Uses {
		s.into(of, u)
	}
}

func (s *Survey) settle(tree rollout.Tree) error {
	given := s.Given
	s.Given = nil
	for _, g := range given {
		why := ""
		switch dir, is := s.chartOf(g.chart); {
		case g.chart != nil && is:
			g.at(dir)
		case g.chart != nil:
			why = fmt.Sprintf("%s uses the chart %s, which is not in this repository: add it with gitrollout vendor --from %s, "+
				"commit it, and run this again", g.chart.who, cmp.Or(g.chart.name, g.chart.of.Name), s.bothIn(g))
		case g.Path != ".":
			e, found, err := tree.Lookup(g.Path)
			if err != nil {
				return err
			}
			if (!found || e.Kind != rollout.Dir) && g.of.Name != "" {
				why = fmt.Sprintf("uses a folder of %s %s (%s), which is not in this repository: add the folder with gitrollout "+
					"vendor; if the source is built from this repository, list its path in this repository", g.of.Kind, g.of.Name,
					cmp.Or(s.sources[g.of].url, "URL unknown"))
			} else if !found || e.Kind != rollout.Dir {
				why = fmt.Sprintf("names the folder %s, which is not in this repository: add it with gitrollout vendor, and "+
					"list the folder that gitrollout vendor writes", g.Path)
			} else if !s.knows(g.Path) {
				why = fmt.Sprintf("names the folder %s, which has no kustomization, no chart and no workload: list it in "+
					"config.yaml with directory: {}, or write a kustomization.yaml there", g.Path)
			}
		}
		if why != "" {
			s.LeftOut = append(s.LeftOut, LeftOut{g.File, why})
			continue
		}
		s.Given = append(s.Given, g)
	}
	return nil
}

func (s *Survey) knows(dir string) bool {
	isChart := func(c Chart) bool { return c.Path == dir }
	isBelow := func(other string) bool { return holds(dir, other) }
	isKustomized := func(k Kustomization) bool { return isBelow(k.Path) }
	return slices.ContainsFunc(s.Charts, isChart) || slices.ContainsFunc(s.Plain, isBelow) ||
		slices.Contains(s.engines, dir) || slices.ContainsFunc(s.Kustomizations, isKustomized)
}

func (s *Survey) chartOf(c *elsewhere) (dir string, is bool) {
	if c == nil {
		return "", false
	}
	repo, name := c.address(s.sources)
	for _, b := range s.brought {
		if b.Chart.Name != name || repo != "" && strings.TrimSuffix(b.Chart.Repo, "/") != repo {
			continue
		}
		into := path.Join(b.dir, b.Into)
		for _, chart := range s.Charts {
			version := strings.TrimPrefix(path.Base(path.Dir(chart.Path)), name+"-")
			if chart.Path != path.Join(into, name) && chart.Path != path.Join(into, name+"-"+version, name) {
				continue
			}
			if dir, is = cmp.Or(dir, chart.Path), true; c.wants == b.Chart.Version {
				return chart.Path, true
			}
		}
	}
	return dir, is
}

func (c elsewhere) address(sources map[sourceRef]fluxSource) (repo, name string) {
	repo, name = cmp.Or(c.repo, sources[c.of].url), c.name
	if repo != "" && name == "" {
		repo, name = path.Dir(repo), path.Base(repo)
		repo = strings.Replace(repo, "oci:/", "oci://", 1) // path.Dir removed a slash
	}
	return strings.TrimSuffix(repo, "/"), name
}

type fluxSource struct{ file, url string }

func (s *Survey) bothIn(g Given) string {
	dir, source := path.Dir(g.File), s.sources[g.chart.of].file
	for source != "" && !holds(dir, source) && dir != "." {
		dir = path.Dir(dir)
	}
	return dir
}
