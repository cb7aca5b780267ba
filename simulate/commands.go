package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

func (s *Story) command(verb string, args []string) error {
	if after, ok := strings.CutPrefix(verb, "+"); ok {
		d, err := time.ParseDuration(after)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration: write +30s, +10m or +1h30m", verb)
		}
		return s.wait(d)
	}
	switch verb {
	case "start", "crash":
		s.start()
		return nil
	case "push":
		return s.push(args)
	case "revert":
		return s.revert(args)
	case "merge":
		return s.merge(args)
	case "promote", "hold", "abort", "retry", "restart":
		return s.decide(rollout.Verb(verb), args)
	case "withdraw":
		app, _, err := s.appOf(args)
		if err == nil {
			s.commit("withdraw the decision about "+app.Name, map[string][]byte{rollout.PromotionPath(s.name, app.Name): nil})
		}
		return err
	case "measure":
		metrics, _ := s.names()
		return s.meter.set(args, metrics)
	case "job":
		_, hooks := s.names()
		return s.ends.set(args, hooks)
	case "git", "api":
		if len(args) != 1 || (args[0] != "down" && args[0] != "up") {
			return fmt.Errorf("%s: write %s down, or %s up", verb, verb, verb)
		}
		*map[string]*bool{"git": &s.gitDown, "api": &s.apiDown}[verb] = args[0] == "down"
		return nil
	}
	return s.pods(verb, args)
}

func (s *Story) pods(verb string, args []string) error {
	arg := func(i int) string { return append(args, "", "")[i] }
	switch verb {
	case "never", "slow":
		d, err := time.ParseDuration(arg(1))
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s: name a version: write never v2, or slow v2 30s", verb)
		case verb == "slow" && (err != nil || d < 0):
			return fmt.Errorf("slow %s: %q is not a duration: write slow %s 30s", arg(0), arg(1), arg(0))
		}
		s.life[arg(0)] = kube.Lifetime{Ready: d, Never: verb == "never"}
	case "heal":
		_, told := s.life[arg(0)]
		delete(s.life, arg(0))
		err := s.each(arg(0), func(p *kube.Pod) bool { p.Never, p.Due = false, s.cluster.Kube.Now; return true })
		if !told {
			return err
		}
	case "kill", "scale":
		n, err := strconv.Atoi(arg(1))
		if least := map[string]int{"kill": 1}[verb]; err != nil || n < least || n > mostPods {
			return fmt.Errorf("%s %s: %q is not a number of pods from %d to %d: write %[1]s %[2]s 5",
				verb, arg(0), arg(1), least, mostPods)
		}
		defer s.cluster.Kube.OnChange("pods")
		if verb == "kill" {
			return s.each(arg(0), func(p *kube.Pod) bool { n--; p.Terminating = true; return n > 0 })
		}
		var names []string
		for _, d := range s.deployments() {
			if names = append(names, d.Workload.Name); d.Workload.Name == arg(0) {
				d.Replicas = n
				d.Generation++
			}
		}
		return oneOf("Deployment", arg(0), names)
	default:
		return fmt.Errorf("%q is not a command of a script; see: gitrollout simulate --help", verb)
	}
	return nil
}

const mostPods = 1000

func oneOf(what, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	slices.Sort(known)
	return fmt.Errorf("there is no %s %q; there are %s", what, name,
		cmp.Or(strings.Join(slices.Compact(known), ", "), "none"))
}

func (s *Story) names() (metrics, hooks []string) {
	for _, r := range s.renders() {
		for _, spec := range r.Specs {
			metrics = append(metrics, rollout.Mapped(spec.Metrics(), func(m rollout.Metric) string { return m.Name })...)
		}
		for _, o := range r.Objects {
			if generated, _ := o.Map("metadata")["generateName"].(string); o.Kind() == "Job" {
				hooks = append(hooks, cmp.Or(o.Name(), strings.TrimRight(generated, "-.")))
			}
		}
	}
	return metrics, hooks
}

func (s *Story) renders() (all []*rollout.Render) {
	for _, id := range s.pushes {
		for _, a := range s.branch().Apps {
			if made := s.at(a, id); made != nil {
				all = append(all, made)
			}
		}
	}
	return all
}

func (s *Story) deployments() []*kube.Deployment {
	return slices.SortedFunc(maps.Values(s.cluster.Kube.Deployments), func(a, b *kube.Deployment) int {
		return cmp.Or(strings.Compare(a.Workload.Name, b.Workload.Name), a.Workload.Compare(b.Workload))
	})
}

func (s *Story) each(version string, do func(*kube.Pod) bool) error {
	var known []string
	for _, d := range s.deployments() {
		for _, rs := range d.Sets {
			is := kube.VersionOf(rs.Template)
			for _, p := range rs.Live() {
				if known = append(known, is); is == version && !do(p) {
					return nil
				}
			}
		}
	}
	return oneOf("version with pods", version, known)
}

// appOf splits the app's name off the arguments. A story's only app needs no name.
func (s *Story) appOf(args []string) (rollout.App, []string, error) {
	apps := s.branch().Apps
	var names []string
	for _, a := range apps {
		if i := slices.Index(args, a.Name); i >= 0 {
			return a, slices.Delete(slices.Clone(args), i, i+1), nil
		}
		names = append(names, a.Name)
	}
	if len(apps) == 1 {
		return apps[0], args, nil
	}
	return rollout.App{}, nil, fmt.Errorf("name an app: %s", strings.Join(names, ", "))
}

var (
	newTag = regexp.MustCompile(`(\bnewTag:\s*)("[^"\n]*"|'[^'\n]*'|[^\s,}#]+)`)
	tag    = regexp.MustCompile(`(\btag:[ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s,}#]*)`)
	image  = regexp.MustCompile(`(?m)(\bimage:\s*["']?[^\s"'@]*?[^\s"':@])(:[\w.-]+)?(["']?)(\s*[},]|\s*$)`)
)

func (s *Story) push(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("push what? write push v2, push APP=v2, or push files NAME")
	}
	if args[0] == "files" {
		return s.pushFiles(args[1:])
	}
	apps, edits, refused := s.branch().Apps, map[string][]byte{}, error(nil)
	for _, arg := range args {
		name, version, one := strings.Cut(arg, "=")
		if !one {
			name, version = "", arg
		}
		found := false
		for _, a := range apps {
			if name == "" || a.Name == name {
				refused = cmp.Or(refused, s.setVersion(a, version, edits))
				found = true
			}
		}
		if !found {
			return fmt.Errorf("push %s: there is no app %q", arg, name)
		}
	}
	switch {
	case len(edits) == 0 && refused != nil:
		return fmt.Errorf("push %s: %w", strings.Join(args, " "), refused)
	case len(edits) == 0:
		return fmt.Errorf(
			"push %s: no file of the app has an image whose tag could be set; write push files NAME, with the changed files below NAME/ in the script",
			strings.Join(args, " "))
	}
	s.commit("push "+strings.Join(args, " "), edits)
	return nil
}

// setVersion edits each newTag in the app's files, else each tag in values files, else each image's tag.
func (s *Story) setVersion(a rollout.App, version string, edits map[string][]byte) (refused error) {
	var made *rollout.Render
	for _, id := range slices.Backward(s.pushes) {
		var err error
		if made, err = s.reader.Render(s.git.Commits[id], a); err == nil {
			break
		}
		refused = cmp.Or(refused, err)
	}
	if made == nil {
		return refused
	}
	files := s.git.Files(s.head())
	for _, pattern := range []*regexp.Regexp{newTag, tag, image} {
		found := false
		for _, name := range made.Files {
			text, replacement := files[name], "${1}"+version
			if pattern == image {
				replacement = "${1}:" + version + "${3}${4}"
			}
			if isValues := strings.HasPrefix(path.Base(name), "values"); pattern == tag && !isValues {
				continue
			}
			if pattern.MatchString(text) {
				found, edits[name] = true, []byte(pattern.ReplaceAllString(text, replacement))
			}
		}
		if found {
			break
		}
	}
	return nil
}

func (s *Story) pushFiles(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("push files: name one folder of the script")
	}
	edits := map[string][]byte{}
	for name, content := range s.files {
		if below, ok := strings.CutPrefix(name, args[0]+"/"); ok {
			edits[below] = []byte(content)
		}
	}
	if len(edits) == 0 {
		return fmt.Errorf("push files %s: the script has no file %s/…", args[0], args[0])
	}
	s.commit("push files "+args[0], edits)
	return nil
}

func (s *Story) revert(args []string) error {
	app, _, err := s.appOf(args)
	if err != nil {
		return err
	}
	head := s.at(app, s.head())
	for _, id := range slices.Backward(s.pushes) {
		before := s.at(app, id)
		if before == nil || (head != nil && before.Release() == head.Release()) {
			continue
		}
		then := s.git.Files(id)
		edits := without(s.git.Files(s.head()), then)
		for name, content := range then {
			edits[name] = []byte(content)
		}
		promotion := rollout.PromotionPath(s.name, app.Name)
		delete(edits, promotion) // git revert of the release's commit keeps the promotion
		s.commit("revert of "+app.Name, edits)
		return nil
	}
	return fmt.Errorf("revert: %s has had no other release yet", app.Name)
}

func (s *Story) merge(args []string) error {
	app, rest, err := s.appOf(args)
	if err != nil {
		return err
	}
	for _, kind := range []string{"promote", "revert"} {
		branch := rollout.ProposalBranch(rollout.ProposalKind(kind), s.name, app.Name)
		id := s.git.Head(branch)
		if id == "" || (len(rest) > 0 && rest[0] != kind) {
			continue
		}
		merge := s.git.Merge(id, s.head())
		if !merge.Clean {
			return fmt.Errorf("merge: %s is in conflict with %s", branch, Branch)
		}
		s.commit("merge "+branch, merge.Edits)
		return nil
	}
	return fmt.Errorf("merge: there is no proposal for %s", app.Name)
}

func (s *Story) decide(verb rollout.Verb, args []string) error {
	app, rest, err := s.appOf(args)
	if err != nil {
		return err
	}
	a := propose.Action{Verb: verb}
	if len(rest) > 0 && verb == rollout.Promote {
		a.Through, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s: %q is neither an app nor a step", verb, rest[0])
	}
	o, err := propose.Target{Cluster: s.name, Branch: Branch}.Decide(s.input(app), a)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, app.Name, err)
	}
	s.commit(fmt.Sprintf("%s %s", verb, app.Name), o.Edits)
	return nil
}
