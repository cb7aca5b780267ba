package plan

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "rewrite what the plans in testdata expect")

// now is a Friday.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// folder is a render.Tree of a text archive.
type folder map[string]string

func (f folder) Lookup(name string) (rollout.Entry, bool, error) {
	if text, ok := f[name]; ok {
		return rollout.Entry{Name: path.Base(name), Kind: rollout.File, ID: text}, true, nil
	}
	for file := range f {
		if name == "" || strings.HasPrefix(file, name+"/") {
			return rollout.Entry{Name: path.Base(name), Kind: rollout.Dir}, true, nil
		}
	}
	return rollout.Entry{}, false, nil
}

func (f folder) ReadDir(name string) ([]rollout.Entry, error) { return nil, os.ErrInvalid }

func (f folder) ReadBlob(id string) ([]byte, error) { return []byte(id), nil }

// TestPlans makes the plan of each archive in testdata: the folder base is
// changed as the folder head says, whose files replace those of base. "-" removes
// one. What is expected is the comment for the pull request.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d plans: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want.md" })
			if want < 0 {
				archive.Files, want = append(archive.Files, txtar.File{Name: "want.md"}), len(archive.Files)
			}
			got := Markdown([]Plan{planOf(t, archive)})
			if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" && !*update {
				t.Errorf("(-want +got, rewrite with -update):\n%s", diff)
			}
			if strings.Contains(got, "c2VjcmV0") || strings.Contains(got, "hunter2") {
				t.Error("the value of a Secret is shown")
			}
			if archive.Files[want].Data = []byte(got); *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func planOf(t *testing.T, archive *txtar.Archive) Plan {
	t.Helper()
	base, head := folder{}, folder{}
	in := Input{Now: now, App: rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop"}}
	var states, config string
	for _, f := range archive.Files {
		name, isBase := strings.CutPrefix(f.Name, "base/")
		if isBase {
			base["apps/shop/"+name], head["apps/shop/"+name] = string(f.Data), string(f.Data)
		}
		if name, isHead := strings.CutPrefix(f.Name, "head/"); isHead {
			head["apps/shop/"+name] = string(f.Data)
			if string(f.Data) == "-\n" {
				delete(head, "apps/shop/"+name)
			}
		}
		switch f.Name {
		case "state":
			states = string(f.Data)
		case "config":
			config = string(f.Data)
		}
	}
	in.Base, in.Head = sideOf(t, base, in.App), sideOf(t, head, in.App)
	if config != "" {
		c, err := rollout.ParseConfig(rollout.ConfigPath("prod"), []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: apps/shop}]\n"+config))
		if err != nil {
			t.Fatal(err)
		}
		in.Calendar = c.CalendarOf("shop", nil)
	}
	in.State = stateOf(strings.TrimSpace(states), in)
	for name := range head {
		if base[name] != head[name] {
			in.Files = append(in.Files, name)
		}
	}
	slices.Sort(in.Files)
	p := Plan{Cluster: "prod", Base: "4d6eb88 (main)", Head: "the working tree", At: now, State: "made up"}
	p.Add(Of(in))
	p.Finish()
	return p
}

func sideOf(t *testing.T, tree folder, app rollout.App) Side {
	t.Helper()
	if len(tree) == 0 {
		return Side{}
	}
	r, err := render.New().Render(tree, app, rollout.Commit{})
	return Side{Render: r, Err: err}
}

// stateOf is the record that a word of the archive asks for.
func stateOf(word string, in Input) *rollout.State {
	if word == "" {
		return nil
	}
	base, head := in.Base.Render, in.Head.Render
	s := &rollout.State{App: "shop", Phase: rollout.Healthy, Stable: &rollout.Release{Hash: base.Release(), Templates: base.Staged()}}
	s.Verified = []rollout.Hash{base.Release()}
	switch word {
	case "rejected":
		s.Rejected = []rollout.Rejection{{Hash: head.Release(), Reason: "metric errors: 0.3"}}
	case "verified":
		s.Verified = append(s.Verified, head.Release())
	case "in flight": // stable is what head goes back to
		s.Stable.Hash, s.Stable.Templates = head.Release(), head.Staged()
		s.Release, s.Phase = &rollout.Release{Hash: base.Release(), Templates: base.Staged()}, rollout.Progressing
	case "at a gate": // what head asks for too, at the second of its steps
		s.Stable = &rollout.Release{Hash: "h1-0000000000", Templates: map[rollout.Workload]rollout.Hash{}}
		s.Release, s.Phase = &rollout.Release{Hash: base.Release(), Templates: base.Staged()}, rollout.Paused
		for w := range base.Staged() {
			s.Stable.Templates[w] = "old"
			s.Progress = append(s.Progress, rollout.Progress{Workload: w, Step: 1, Of: 4, Name: "pause", Weight: 20, Plan: "p"})
		}
	case "another in flight":
		s.Release, s.Phase = &rollout.Release{Hash: "h1-0123456789"}, rollout.Progressing
	}
	return s
}

// TestShared finds files that several apps are rendered from.
func TestShared(t *testing.T) {
	var p Plan
	p.Add(App{App: "b", Files: []string{"base/deployment.yaml", "b.yaml"}}, true)
	p.Add(App{App: "a", Files: []string{"base/deployment.yaml"}}, true)
	p.Add(App{App: "c"}, false)
	p.Finish()
	want := []Shared{{File: "base/deployment.yaml", Apps: []string{"a", "b"}}}
	if diff := cmp.Diff(want, p.Shared); diff != "" || p.Unchanged != 1 || p.Apps[0].App != "a" {
		t.Errorf("(-want +got):\n%s\n%+v", diff, p)
	}
}

// TestMarkdownIsShort holds that a comment is never longer than a forge takes, and
// that what others wrote makes no Markdown.
func TestMarkdownIsShort(t *testing.T) {
	p := Plan{Cluster: "prod", At: now}
	for range 3000 {
		p.Add(App{App: "shop", Change: Apply, Summary: "<img src=x> @everyone [a](b)", Objects: []Object{{Change: "changed", Diff: strings.Repeat("-a\n+b\n", 20)}}}, true)
	}
	got := Markdown([]Plan{p})
	if len(got) > 65_536 {
		t.Errorf("the comment has %d bytes", len(got))
	}
	for _, bad := range []string{"<img", "@everyone", "[a](b)"} {
		if strings.Contains(got, bad) {
			t.Errorf("the comment has %s", bad)
		}
	}
	fenced := Markdown([]Plan{{Apps: []App{{App: "a", Objects: []Object{{Diff: "+```\n+# heading\n"}}}}}})
	if !strings.Contains(fenced, "````diff") {
		t.Errorf("a fence in a difference ends it:\n%s", fenced)
	}
}
