package strategies_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

var update = flag.Bool("update", false, "rewrite the expected texts of the scripts in testdata")

// TestScripts plays each release in testdata/*.txtar against the model of Kubernetes. A script has a comment, one file per workload (its
// spec), and a timeline. A timeline's lines without an indent are actions of users or of the cluster. The indented lines below are the
// resulting commits of the state branch and the app's final state. testdata/README.md lists the commands.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 15 {
		t.Errorf("%d scripts, want at least 15", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Comment) == 0 {
				t.Error("the script has no description")
			}
			s, timeline := readScript(t, archive)
			got := s.play(t, string(timeline.Data))
			if diff := compare.Diff(string(timeline.Data), got); diff != "" && !*update {
				t.Errorf("(-want +got, rewrite with -update):\n%s", diff)
			}
			if timeline.Data = []byte(got); *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// script is a simulated cluster with an app, in which the commands of a timeline run.
type script struct {
	*loop
	life   map[string]kube.Lifetime
	output []string
	config int
	ends   map[string]rollout.JobState // how each hook's Jobs end, by the hook's name

	rejects bool // the API server refuses one object and accepts all others
}

func readScript(t *testing.T, archive *txtar.Archive) (*script, *txtar.File) {
	t.Helper()
	var first source
	var timeline *txtar.File
	for i, f := range archive.Files {
		if f.Name == "timeline" {
			timeline = &archive.Files[i]
			continue
		}
		name := strings.TrimSuffix(f.Name, ".yaml")
		first.workloads = append(first.workloads, staged{spec: readSpec(t, f.Data, name), version: "v1",
			services: []string{name, name + "-canary", name + "-preview"}})
	}
	if timeline == nil {
		t.Fatal("no timeline")
	}
	k := newKube()
	s := &script{loop: newLoop(newHistory(first), k), life: map[string]kube.Lifetime{}}
	s.loop.unmade = map[string]bool{}
	k.Fate = func(version string) kube.Lifetime { return s.life[version] }
	s.loop.watches, s.ends = true, map[string]rollout.JobState{}
	s.loop.fate = func(job string) rollout.JobState {
		for name, end := range s.ends {
			if strings.HasPrefix(job, testApp.Namespace+"/"+name+"-") {
				return end
			}
		}
		return rollout.JobState{}
	}
	s.loop.madeJob = func(j strategies.HookJob) {
		for _, o := range j.Needs {
			s.print("  applies %s %s", o.Kind(), o.Name())
		}
		s.print("  makes Job %s", j.Object.Name())
	}
	s.loop.misses = func() bool { return s.rejects }
	s.loop.commits = func(_, _ rollout.State, subject string) { s.print("  commit %s", subject) }
	return s, timeline
}

// scriptOf returns a script without a timeline, for an app with one workload.
func scriptOf(t *testing.T, spec string) *script {
	t.Helper()
	s, _ := readScript(t, txtar.Parse([]byte("-- web.yaml --\n"+spec+"\n-- timeline --\n")))
	return s
}

func (s *script) print(format string, args ...any) {
	s.output = append(s.output, s.readable(fmt.Sprintf(format, args...)))
}

// readable replaces hashes by the names of versions.
func (s *script) readable(text string) string {
	var pairs []string
	for i := range s.git.commits {
		r := s.git.at(commitID(i))
		var versions []string
		for _, w := range s.git.commits[i].workloads {
			if hash := string(r.Templates[w.spec.Workload]); hash != "" {
				pairs = append(pairs, hash, w.version)
			}
			if !w.plain && !w.gone {
				versions = append(versions, w.version)
			}
		}
		if hash := string(r.Release()); hash != "" {
			pairs = append(pairs, hash, strings.Join(versions, "+"))
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// play runs a timeline and returns the timeline with the resulting events.
func (s *script) play(t *testing.T, timeline string) string {
	t.Helper()
	for line := range strings.Lines(timeline) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue
		}
		s.output = append(s.output, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		s.command(t, words[0], words[1:])
		if !s.rest() {
			t.Fatalf("%s: the world does not come to rest", line)
		}
		s.print("  expect %s", s.status())
	}
	return strings.Join(s.output, "\n") + "\n"
}

// status returns the app's state in one line.
func (s *script) status() string {
	var parts []string
	phase := string(s.state.Shown())
	for _, p := range s.state.Progress {
		if s.state.Phase != rollout.Aborting {
			phase += fmt.Sprintf(" %s %d/%d %s (%d%%)", p.Workload.Name, min(p.Step+1, p.Of), p.Of, p.Name, p.Weight)
		}
	}
	parts = append(parts, phase+" at "+cmp.Or(s.state.Source, "nothing"))
	for _, w := range sortedWorkloads(s.kube.Deployments) {
		var sets []string
		for _, rs := range s.kube.Deployments[w].Sets {
			if rs.Replicas > 0 || len(rs.Live()) > 0 {
				text := fmt.Sprintf("%d %s", len(rs.Live()), kube.VersionOf(rs.Template))
				if n := rs.Ready(); n < len(rs.Live()) {
					text += fmt.Sprintf(" (%d ready)", n)
				}
				sets = append(sets, text)
			}
		}
		sets = append(sets, s.pinsOf(w)...)
		if route, ok := s.kube.Routes[rollout.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute",
			Namespace: w.Namespace, Name: w.Name}]; ok {
			sets = append(sets, "requests: "+kube.Split(route))
		}
		parts = append(parts, w.Name+": "+strings.Join(sets, ", "))
	}
	d := strategies.Decide(s.input(s.state, s.settled))
	if s.state.Held != nil {
		parts = append(parts, "held: "+string(s.state.Held.Reason))
	} else if d.Waiting != "" {
		parts = append(parts, "waits for "+d.Waiting)
	}
	if s.state.Reason != "" && !strings.Contains(parts[len(parts)-1], s.state.Reason) {
		parts = append(parts, s.state.Reason)
	}
	if s.state.Unhealthy != "" {
		parts = append(parts, s.state.Unhealthy)
	}
	return strings.Join(parts, " | ")
}

func (s *script) pinsOf(w rollout.Workload) []string {
	var pins []string
	for ref, hash := range s.kube.Pins {
		for _, rs := range s.kube.Deployments[w].Sets {
			if strings.HasPrefix(ref.Name, w.Name) && rs.PodHash == hash {
				pins = append(pins, ref.Name+" -> "+kube.VersionOf(rs.Template))
			}
		}
	}
	slices.Sort(pins)
	return pins
}

// command runs one action of a timeline.
func (s *script) command(t *testing.T, verb string, args []string) {
	t.Helper()
	if after, ok := strings.CutPrefix(verb, "+"); ok {
		s.wait(readDuration(t, after))
		return
	}
	arg := func(i int) string { return append(args, "", "", "", "", "", "")[i] }
	switch verb {
	case "start", "crash":
		s.settled, s.pending, s.runs, s.health, s.routing = false, nil, nil, strategies.Health{}, ""
	case "measure": // measure web/step-2/errors Failed [why]: sets the result of a run's metric, also in experiments
		name := arg(0)[strings.LastIndex(arg(0), "/")+1:]
		for _, r := range s.state.Analyses {
			if r.Name == arg(0) || r.Name+"/"+name == arg(0) {
				s.runs = strategies.Record(s.input(s.state, s.settled), strategies.Measured{Run: r.Name, Release: r.Release, Started: r.Started,
					Metric: name, Measurement: rollout.Measurement{At: s.kube.Now, Phase: rollout.AnalysisPhase(arg(1)), Message: arg(2)}})
			}
		}
	case "push": // push v2, push web=v2 api=v3, push config
		s.push(args)
	case "revert":
		s.revert()
	case "promote", "hold", "abort", "retry", "restart":
		s.decide(rollout.Verb(verb), arg(0))
	case "merge": // merges the proposal that opens the shut gates
		p := strategies.Key(s.input(s.state, s.settled))
		s.config++
		p.Author, p.Digest = "Ann", fmt.Sprint(s.config)
		s.git.push(func(x *source) { x.promotion = p })
	case "withdraw":
		s.git.push(func(x *source) { x.promotion = nil })
	case "break", "fix":
		s.git.push(func(x *source) { x.broken = verb == "break" })
	case "steps": // steps web [{setWeight: 50}]
		var steps []scriptStep
		if err := yaml.UnmarshalStrict([]byte(strings.Join(args[1:], " ")), &steps); err != nil {
			t.Fatal(err)
		}
		s.edit(arg(0), func(w *staged) { w.editCanary(func(c *rollout.Canary) { c.Steps = readSteps(t, steps) }) })
	case "spec": // spec web {replicas: 10, scaling: surge, ...}: replaces the whole document and the Deployment's own fields
		spec := readSpec(t, []byte(strings.Join(args[1:], " ")), arg(0))
		s.edit(arg(0), func(w *staged) { w.spec = spec })
	case "replicas": // replicas web 5
		s.edit(arg(0), func(w *staged) { w.spec.Replicas = new(readInt(t, arg(1))) })
	case "rename": // replaces web by api, with web's version or the given version: rename web api [v3]
		s.git.push(func(x *source) {
			old, next := x.named(arg(0)), x.named(arg(1))
			old.gone, next.gone, next.version = true, false, cmp.Or(arg(2), old.version)
		})
	case "document", "workload", "pause": // document web off, workload api on, pause web on
		s.edit(arg(0), func(w *staged) {
			switch verb {
			case "document":
				w.plain, w.version = arg(1) == "off", cmp.Or(arg(2), w.version)
			case "workload":
				w.gone = arg(1) == "off"
			default:
				w.spec.Paused = arg(1) == "on"
			}
		})
	default:
		s.cluster(t, verb, arg)
	}
}

func (s *script) cluster(t *testing.T, verb string, arg func(int) string) {
	t.Helper()
	switch verb {
	case "hook": // hook migrate before, hook migrate off, hook migrate PreSync argocd.argoproj.io/hook ...
		s.hook(arg)
	case "job": // sets how Jobs of a hook end: job migrate completes, job migrate fails, job migrate hangs
		s.ends[arg(0)] = map[string]rollout.JobState{
			"completes": {Complete: true}, "fails": {Failed: true, Message: "BackoffLimitExceeded"},
			"hangs": {Stuck: "ImagePullBackOff", Idle: true},
		}[arg(1)]
	case "unmake": // deletes the Jobs of a hook, as a user would
		for key := range s.jobs {
			if strings.HasPrefix(key, testApp.Namespace+"/"+arg(0)+"-") {
				delete(s.jobs, key)
				s.unmade[key] = true
			}
		}
	case "never": // pods of v2 never become ready
		s.life[arg(0)] = kube.Lifetime{Never: true}
	case "slow": // slow v2 30s
		s.life[arg(0)] = kube.Lifetime{Ready: readDuration(t, arg(1))}
	case "heal": // pods of v2 become ready now
		delete(s.life, arg(0))
		s.pods(arg(0), func(p *kube.Pod) bool { p.Never, p.Due = false, s.kube.Now; return true })
	case "ready": // two pods of v2 become ready, but the other pods never do: ready v2 2
		left := readInt(t, arg(1))
		s.pods(arg(0), func(p *kube.Pod) bool {
			if p.Never {
				p.Never, p.Due, left = false, s.kube.Now, left-1
			}
			return left > 0
		})
	case "kill": // kill 2 pods of v2: kill v2 2
		left := readInt(t, arg(1))
		s.pods(arg(0), func(p *kube.Pod) bool { left--; p.Terminating = true; return left > 0 })
	case "reject": // reject on: the API server refuses one object
		s.rejects = arg(0) == "on"
	case "scale": // sets the replicas, as an autoscaler would: scale web 20
		d := s.kube.Deployments[rollout.Workload{Namespace: testApp.Namespace, Name: arg(0)}]
		d.Replicas = readInt(t, arg(1))
		d.Generation++
	case "running": // a Deployment that gitrollout did not create: running web v0
		head := s.git.head()
		w := *head.named(arg(0))
		w.version = arg(1)
		if err := s.kube.Apply(deploymentObject(w)); err != nil {
			t.Fatal(err)
		}
		for s.kube.Micro() {
		}
	default:
		t.Fatalf("unknown command %q", verb)
	}
}

// hook adds a Job to Git, or removes one.
func (s *script) hook(arg func(int) string) {
	annotations, version := map[string]any{cmp.Or(arg(2), hook.Annotation): arg(1)}, ""
	for i := 3; arg(i) != ""; i++ {
		key, value, _ := strings.Cut(arg(i), "=")
		if annotations[key] = value; key == "version" { // the key "version" also sets the workloads' version
			version = value
		}
	}
	s.git.push(func(x *source) {
		for i := range x.workloads {
			x.workloads[i].version = cmp.Or(version, x.workloads[i].version)
		}
		x.hooks = slices.DeleteFunc(slices.Clone(x.hooks), func(o rollout.Object) bool { return strings.HasPrefix(o.Name(), arg(0)) })
		if arg(1) == "off" {
			return
		}
		pod := map[string]any{"containers": []any{map[string]any{"name": "c", "envFrom": []any{
			map[string]any{"configMapRef": map[string]any{"name": arg(0) + "-config"}}}}}}
		job := jobOf(arg(0), annotations)
		job.Set(pod, "spec", "template", "spec")
		x.hooks = append(x.hooks, object("v1", "ConfigMap", arg(0)+"-config"), job)
	})
}

// wait advances the clock by d, and runs each event at its due time.
func (s *script) wait(d time.Duration) {
	end := s.kube.Now.Add(d)
	for {
		due := s.nextDue()
		if !due.After(s.kube.Now) || !due.Before(end) {
			break
		}
		s.kube.Now = due
		s.rest()
	}
	s.kube.Now = end
}

func (s *script) push(args []string) {
	s.git.push(func(x *source) {
		for _, arg := range args {
			name, version, one := strings.Cut(arg, "=")
			switch {
			case arg == "config":
				x.config++
			case one:
				x.named(name).version = version
			default:
				for i := range x.workloads {
					x.workloads[i].version = arg
				}
			}
		}
	})
}

// revert pushes the newest content whose version differs from the head's version.
func (s *script) revert() {
	head := s.git.at(s.git.headID()).Release()
	for i := len(s.git.commits) - 1; i >= 0; i-- {
		if before := s.git.commits[i]; s.git.at(commitID(i)).Release() != head {
			s.git.push(func(x *source) { x.workloads, x.config = before.clone().workloads, before.config })
			return
		}
	}
}

func (s *script) edit(name string, change func(*staged)) {
	s.git.push(func(x *source) { change(x.named(name)) })
}

// decide merges a promotion file for the head's version. With the argument "stale", the file names a release that is not in flight.
func (s *script) decide(verb rollout.Verb, through string) {
	release := s.git.at(s.git.headID()).Release()
	if release == "" && s.state.Release != nil {
		release = s.state.Release.Hash // without a Rollout document, the head has no release hash
	}
	if through == "stale" {
		release, through = "h1-stale", rollout.Full
	}
	s.config++
	p := rollout.Promotion{Release: release, Decision: verb, Through: cmp.Or(through, rollout.Full), Author: "Ann",
		Digest: fmt.Sprint(s.config)}
	if verb == rollout.Retry {
		p.At = rollout.Second(s.kube.Now).Format(time.RFC3339)
	}
	if verb == rollout.Restart { // restart 1m: in a minute
		delay, _ := time.ParseDuration(through)
		p.RestartAt = rollout.Second(s.kube.Now).Add(delay)
	}
	s.git.push(func(x *source) { x.promotion = &p })
}

func (s *script) pods(version string, do func(*kube.Pod) bool) {
	for _, w := range sortedWorkloads(s.kube.Deployments) {
		for _, rs := range s.kube.Deployments[w].Sets {
			if kube.VersionOf(rs.Template) != version {
				continue
			}
			for _, p := range rs.Live() {
				if !do(p) {
					return
				}
			}
		}
	}
}
