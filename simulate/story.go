package simulate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	gitsource "gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
	"gitrollout.dev/gitrollout/strategies"
)

// Branch is the branch of a story's users.
const Branch = "main"

var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Story runs a script with one reconciler. By default, pods become ready immediately.
type Story struct {
	git     *memgit.Server
	cluster *Cluster
	parts   Parts
	process *Process
	name    string            // of the cluster
	reader  *gitsource.Reader // reads as gitrollout's commands do
	config  *rollout.Config   // newest readable configuration
	files   map[string]string
	life    map[string]kube.Lifetime
	ends    ends
	meter   *meter
	pushes  []string // on main, oldest first
	gitDown bool
	apiDown bool
	event   *Event // gets the results of the current line
}

// StoryOptions configures NewStory.
type StoryOptions struct {
	Cluster string             // its folder in .gitrollout/
	Files   map[string]string  // contents by path
	Links   map[string]string  // targets of symbolic links by path
	Extra   map[string]string  // for "push files NAME", by path NAME/…
	Options reconciler.Options // only Renderer and Log are needed
}

// NewStory pushes the files, and starts no process. An invalid configuration gives an InvalidError.
func NewStory(o StoryOptions) (*Story, error) {
	config := rollout.ConfigPath(o.Cluster)
	text, found := o.Files[config]
	if !found {
		return nil, &rollout.InvalidError{File: config, Msg: "does not exist",
			Fix: "put a Config there, or name another cluster with --cluster"}
	}
	parsed, err := rollout.ParseConfig(config, []byte(text))
	if err != nil {
		return nil, err
	}
	s := &Story{name: o.Cluster, files: o.Extra, life: map[string]kube.Lifetime{}, ends: ends{}, event: &Event{},
		reader: gitsource.NewReader(o.Cluster, o.Options.Renderer), config: parsed}
	s.git = memgit.New(func(_, branch, _, to string) {
		if branch == parsed.StateBranch && to != "" {
			s.event.Commits = append(s.event.Commits, strings.TrimPrefix(s.git.Subject(to), o.Cluster+": "))
		}
	})
	s.cluster = NewCluster(rand.New(rand.NewPCG(1, 1)), began)
	s.cluster.Kube.Fate = func(version string) kube.Lifetime { return s.life[version] }
	s.cluster.Ends = s.ends.of
	s.cluster.changed = func(string) {
		if s.process != nil {
			s.touch()
		}
	}
	s.parts = Parts{Git: s.git, Cluster: s.cluster, Branch: Branch, Options: o.Options}
	s.parts.Options.Cluster, s.parts.Options.UID = o.Cluster, "simulated"
	s.parts.Options.Source = rollout.Source{Repo: "simulated", Branch: Branch}
	s.meter = &meter{says: map[string]reading{}, done: map[string][]strategies.Measured{},
		now: func() time.Time { return s.cluster.Kube.Now }, touch: func(app string) { s.process.Touch(app) }}
	s.parts.Options.Analyzer = s.meter
	first := memgit.Change{Branch: Branch, Author: "Ann", Message: "first version", When: began,
		Edits: map[string][]byte{}, Links: o.Links}
	for name, content := range o.Files {
		first.Edits[name] = []byte(content)
	}
	s.pushes = []string{s.git.Commit(first)}
	return s, nil
}

func (s *Story) branch() *gitsource.Branch {
	b, err := s.reader.Open(s.git.Commits[s.head()], s.config)
	if err != nil {
		panic(err) // reads in memory do not fail
	}
	s.config = b.Config
	return b
}

func (s *Story) input(app rollout.App) strategies.Input {
	b := s.branch()
	made, err := s.reader.RenderHead(b.Tree, app)
	g := gitsource.Gatherer{
		RenderAt: func(_ context.Context, app rollout.App, commit string) (*rollout.Render, error) {
			return s.at(app, commit), nil
		},
		Observe: func(app string, _ []rollout.Workload, _ []rollout.Ref) rollout.Observed {
			seen := s.cluster.Kube.Observe()
			maps.DeleteFunc(seen.Workloads, func(w rollout.Workload, _ rollout.ObservedWorkload) bool {
				o := s.cluster.objects[w.Ref()]
				return o == nil || o.app != app // each app has its own LabelSerial
			})
			return seen
		},
	}
	head := strategies.Head{Commit: b.Tree.Commit(), Render: made, Err: err}
	a := gitsource.Prepare(b, app, s.state(app.Name), head, b.Promotion(app), gitsource.Trust{})
	in, _ := g.Gather(context.Background(), a, s.cluster.Kube.Now)
	in.Answers = strategies.Answers{Healed: new(true)}
	return in
}

func (s *Story) head() string { return s.git.Head(Branch) }

func (s *Story) at(app rollout.App, commit string) *rollout.Render {
	c := s.git.Commits[commit]
	if c == nil {
		return nil
	}
	made, _ := s.reader.Render(c, app)
	return made
}

func (s *Story) state(app string) rollout.State {
	for _, branch := range s.git.Branches(rollout.OwnBranches) {
		file := rollout.StatePath(app)
		text, found := s.git.Files(s.git.Head(branch))[file]
		if !found || rollout.IsProposal(branch) {
			continue
		}
		if read, err := rollout.ParseState(file, []byte(text)); err == nil {
			return *read
		}
	}
	return rollout.State{}
}

func (s *Story) touch() {
	for _, a := range s.branch().Apps {
		s.process.Touch(a.Name)
	}
}

func (s *Story) start() {
	s.process = Start("gitrollout", s.parts)
	s.touch()
}

func (s *Story) outcome(e Effect) Outcome {
	switch isGit := slices.Contains([]string{"fetch", "read", "push"}, e.Verb); {
	case isGit && s.gitDown:
		return Outcome{Err: fmt.Errorf("%s: Git does not answer", e.Verb)}
	case !isGit && s.apiDown:
		return Outcome{Err: fmt.Errorf("%s: the API server does not answer", e.Verb)}
	}
	return Outcome{}
}

func (s *Story) rest() error {
	const most = 300
	for range most {
		for moves := 0; s.cluster.Kube.Micro(); moves++ {
			if moves > 1_000_000 {
				return fmt.Errorf("the controllers do not come to rest")
			}
		}
		if s.process == nil {
			return nil
		}
		before := []any{s.cluster.version, len(s.event.Commits), s.meter.counts}
		for ended := s.process.Begin(s.cluster.Kube.Now, true); !ended; {
			ended = s.process.Resume(s.outcome(s.process.next))
		}
		if err := s.process.err; err != nil && !slices.Contains(s.event.Errors, err.Error()) {
			s.event.Errors = append(s.event.Errors, err.Error())
		}
		if slices.Equal(before, []any{s.cluster.version, len(s.event.Commits), s.meter.counts}) {
			return nil
		}
	}
	return fmt.Errorf("after %d passes at one moment, the reconciler still changes something", most)
}

func (s *Story) wait(d time.Duration) error {
	end := s.cluster.Kube.Now.Add(d)
	for {
		due := s.cluster.Kube.NextDue()
		if s.process != nil {
			due = rollout.Soonest(due, s.process.NextDue())
		}
		if !due.After(s.cluster.Kube.Now) || !due.Before(end) {
			break
		}
		s.cluster.Kube.Now = due
		if err := s.rest(); err != nil {
			return err
		}
	}
	s.cluster.Kube.Now = end
	return nil
}

func (s *Story) commit(message string, edits map[string][]byte) {
	s.pushes = append(s.pushes, s.git.Commit(memgit.Change{
		Branch: Branch, Author: "Ann", Message: message, When: s.cluster.Kube.Now, Edits: edits,
	}))
}

// without returns edits that delete the files, but not the files to keep or files directly in .gitrollout.
func without(files, keep map[string]string) map[string][]byte {
	edits := map[string][]byte{}
	for name := range files {
		if _, stays := keep[name]; !stays && path.Dir(name) != ".gitrollout" {
			edits[name] = nil
		}
	}
	return edits
}
