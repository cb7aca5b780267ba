package propose_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func TestPromotion(t *testing.T) {
	key := &rollout.Promotion{Release: "h1-2", Decision: rollout.Promote, Through: "2"}
	o := propose.Promotion("prod", shop().State, key)
	want := propose.Change{
		Branch: "gitrollout/promote/prod/shop", Subject: "Promote shop past step 2", When: shop().State.Progress[0].Entered,
		Edits: o.Edits,
		Message: `Promote shop past step 2 in prod

Release h1-2 of c2c2c2c by Ada <ada@example.com>:
Version 2

shop/shop is at step 2/3 (pause), 20%.

Merge this commit to let the release go on.
To undo the release, before or after that: gitrollout undo shop
`}
	compare.Check(t, want, o)
	// This release has measurements, and another workload whose step began last.
	state := shop().State
	later, api := state.Progress[0].Entered.Add(time.Hour), rollout.Workload{Namespace: "shop", Name: "api"}
	earlier := rollout.Progress{Workload: api, Step: 3, Of: 3, Name: "end", Weight: 100, Entered: later.Add(-2 * time.Hour)}
	state.Progress = append(state.Progress, rollout.Progress{Workload: api, Of: 2, Name: "setWeight", Weight: 5, Entered: later}, earlier)
	state.Analyses = []rollout.AnalysisRun{{Name: "errors", Metrics: []rollout.MetricProgress{
		{Metric: "rate", Phase: rollout.AnalysisSuccessful, Successful: 3}, {Metric: "load", Phase: rollout.AnalysisSuccessful, Successful: 1},
	}}}
	text := "\n\nMeasured: errors rate: Successful, 3 ok.\nMeasured: errors load: Successful, 1 ok.\n" +
		"shop/shop is at step 2/3 (pause), 20%.\nshop/api is at step 1/2 (setWeight), 5%.\nshop/api is at step 3/3 (end), 100%.\n\nMerge"
	if o := propose.Promotion("prod", state, key); !o.When.Equal(later) || !strings.Contains(o.Message, text) {
		t.Errorf("as of %s:\n%s", o.When, o.Message)
	}
	web := rollout.Workload{Namespace: "shop", Name: "shop"}
	file, err := rollout.ParsePromotion("p", o.Edits[rollout.PromotionPath("prod", "shop")])
	if err != nil || !file.Opens("h1-2", web, []string{"", "", ""}, 1) || file.Opens("h1-2", web, []string{"", "", ""}, 2) {
		t.Errorf("the file %+v does not open that gate alone: %v", file, err)
	}
}

func TestRevert(t *testing.T) {
	s := shop().State
	v := propose.Reversion{Edits: map[string][]byte{"apps/shop/a.yaml": nil}, Sharers: []string{"cart"}}
	o := propose.Revert("prod", s, s.Rejected[0], true, v)
	want := `Revert shop in prod to c1c1c1c

Release h1-0 of c0c0c0c was rejected:
it was slow

h1-1 serves, and this commit restores it in Git.
To try the same version again instead: gitrollout retry shop

It also changes files of: cart
`
	compare.Check(t, want, o.Message)
	s.Rejected[0].Hook = "shop/migrate"
	s.Hooks = []rollout.HookRun{{Name: "shop/migrate", Release: "h1-other", Phase: rollout.HookFailed, Log: "older"},
		{Name: "shop/migrate", Release: s.Rejected[0].Hash, Phase: rollout.HookFailed, Job: "migrate-0-1", Log: "connected\n```\n# no heading"}}
	compare.Contains(t, propose.Revert("prod", s, s.Rejected[0], true, v).Message,
		"shop\n\nThe last lines of the log of Job migrate-0-1:\n\n    connected\n    ```\n    # no heading\n\nIt also")
	compare.CheckNamed(t, "it can be tried again", false,
		strings.Contains(propose.Revert("prod", s, s.Rejected[0], false, v).Message, "retry"))
	for name, c := range map[string]struct {
		state rollout.State
		want  bool
	}{
		"GoesOn":    {s, false},
		"Rejected":  {rollout.State{Phase: rollout.Degraded}, true},
		"GoingBack": {rollout.State{Phase: rollout.Aborting, Rollback: &rollout.Rollback{Reject: true}}, true},
		"Replaced":  {rollout.State{Phase: rollout.Aborting, Rollback: &rollout.Rollback{}}, false},
	} {
		compare.CheckNamed(t, name, c.want, propose.WantedBy(strategies.Input{State: c.state}).Revert)
	}
	compare.CheckNamed(t, "branch, and shared", []any{"gitrollout/revert/prod/shop", true}, []any{o.Branch, v.Shared()})
	compare.CheckNamed(t, "time", s.Rejected[0].At, o.When)
}

func TestUndoOrder(t *testing.T) {
	s := shop().State
	o := to.Undo(s, propose.Version{Hash: "h1-1", Commit: "c1c1c1c1c1"}, "Version 1", propose.Reversion{}, "wrong prices")
	want := `Undo h1-2 of shop in prod: back to h1-1 of c1c1c1c

Release h1-2 of c2c2c2c by Ada <ada@example.com> is in flight:
Version 2

This restores the files of shop as they were in c1c1c1c:
Version 1

Reason: wrong prices
`
	compare.Check(t, want, o.Message)
	if !strings.HasPrefix(o.Message, propose.UndoSubject(s)) || o.Branch != "gitrollout/revert/prod/shop" {
		t.Errorf("the reconciler does not know it again: %+v", o)
	}
}

// TestUndoOfWhatWasRejected checks that the undo of a rejected version restores the stable version.
func TestUndoOfWhatWasRejected(t *testing.T) {
	stable := propose.Version{Hash: "h1-1", Commit: "c1c1c1c1c1"}
	o := to.Undo(rejected().State, stable, "Version 1", propose.Reversion{Sharers: []string{"cart"}}, "")
	want := `Undo the rejected version of shop in prod: back to h1-1 of c1c1c1c

Release h1-1 of c1c1c1c by Bob <bob@example.com> serves:
Version 1

This restores the files of shop as they were in c1c1c1c:
Version 1

It also changes files of: cart
`
	compare.Check(t, want, o.Message)
	// An app without stages has no release, so the message names commits.
	plain := rollout.State{App: "jobs", Source: "c2c2c2c2c2", Phase: rollout.Healthy}
	compare.Check(t, "Undo c2c2c2c of jobs in prod: back to c1c1c1c\n\n\nThis restores the files of jobs as they were in c1c1c1c:\nOne\n",
		to.Undo(plain, propose.Version{Commit: "c1c1c1c1c1"}, "One", propose.Reversion{}, "").Message)
	healthy := shop().State
	healthy.Phase, healthy.Release = rollout.Healthy, nil
	compare.Check(t, "Undo h1-1 of shop", propose.UndoSubject(healthy))
}

func TestBack(t *testing.T) {
	recorded := []propose.Version{{"h1-2", "c2c2c2c2c2", true}, {"h1-9", "c9", false}, {"h1-0", "c0", true}, {"", "c8", true}}
	healthy := shop().State
	healthy.Phase, healthy.Release = rollout.Healthy, nil
	first := shop().State
	first.Stable = nil
	degraded := shop().State
	degraded.Phase, degraded.Release = rollout.Degraded, nil
	for name, c := range map[string]struct {
		state rollout.State
		hash  rollout.Hash
		want  string // commit
		asks  bool
		err   string
	}{
		"InFlight": {shop().State, "", "c1c1c1c1c1", false, ""},
		"Degraded": {degraded, "", "c1c1c1c1c1", false, ""},
		"First":    {first, "", "", false, "no version to go back to"},
		// Without a hash, Back skips the current version, a version that was never stable, and a rejected version.
		"TheOneBefore":  {healthy, "", "c8", true, ""},
		"OfAHash":       {healthy, "h1-9", "c9", true, ""},
		"Stable":        {healthy, "h1-1", "c1c1c1c1c1", false, ""},
		"RejectedOnes":  {healthy, "h1-0", "c0c0c0c0c0", false, ""},
		"OfNoHash":      {healthy, "h1-7", "", true, "--to h1-7: no release with this hash"},
		"NothingBefore": {rollout.State{Source: "c8"}, "", "c2c2c2c2c2", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			v, err := propose.Back(c.state, c.hash, func() ([]propose.Version, error) { asked = true; return recorded, nil })
			if c.err != "" {
				compare.Contains(t, fmt.Sprint(err), c.err)
			} else if err != nil || v.Commit != c.want {
				t.Errorf("got %+v, %v", v, err)
			}
			compare.CheckNamed(t, "asked for the record", c.asks, asked)
		})
	}
	broken := errors.New("broken")
	if _, err := propose.Back(healthy, "", func() ([]propose.Version, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	_, err := propose.Back(healthy, "", func() ([]propose.Version, error) { return recorded[:1], nil })
	compare.Contains(t, fmt.Sprint(err), "no version before")
}

// commit is a Tree with the contents of files, by path. The id of a file is its content.
type commit map[string]string

func (c commit) Lookup(path string) (rollout.Entry, bool, error) {
	content, found := c[path]
	return rollout.Entry{Name: path, ID: content}, found, nil
}

func (c commit) ReadBlob(id string) ([]byte, error) { return []byte(id), nil }

func TestReversion(t *testing.T) {
	head := commit{"apps/shop/a.yaml": "2", "apps/shop/new.yaml": "n", "base/x.yaml": "2", "base/both.yaml": "b"}
	old := commit{"apps/shop/a.yaml": "1", "base/x.yaml": "1"}
	shop := rollout.App{Name: "shop", Path: "apps/shop"}
	from := &rollout.Render{App: shop, Files: []string{"apps/shop/a.yaml", "apps/shop/new.yaml", "base/both.yaml", "base/x.yaml"}}
	to := &rollout.Render{App: shop, Files: []string{"apps/shop/a.yaml", "base/x.yaml"}}
	cart := &rollout.Render{App: rollout.App{Name: "cart"}, Files: []string{"base/x.yaml", "base/both.yaml"}}
	v, err := propose.NewReversion(head, old, from, to, []*rollout.Render{cart, from})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{"apps/shop/a.yaml": []byte("1"), "apps/shop/new.yaml": nil, "base/x.yaml": []byte("1")}
	compare.CheckNamed(t, "a file that another app needs is not deleted", want, v.Edits)
	compare.CheckNamed(t, "the files of the older version", to.Files,
		propose.Target{}.Undo(rollout.State{App: "shop"}, propose.Version{}, "", v, "").Uses())
	compare.CheckNamed(t, "shared, by, and outside", "true [cart] [base/x.yaml]", fmt.Sprint(v.Shared(), v.Sharers, v.Outside))
	compare.Contains(t, v.Caution(), "files of: cart", "base/x.yaml")
	apart := &rollout.Render{App: rollout.App{Name: "till"}, Files: []string{"apps/till/a.yaml"}}
	own := &rollout.Render{App: shop, Files: []string{"apps/shop/a.yaml"}}
	v, err = propose.NewReversion(head, old, own, own, []*rollout.Render{apart, own})
	compare.CheckNamed(t, "files of no other app: error, shared, by", "<nil> false []", fmt.Sprint(err, v.Shared(), v.Sharers))
	for name, v := range map[string]propose.Reversion{"sharers": {Sharers: []string{"cart"}}, "outside": {Outside: []string{"base/x.yaml"}}} {
		compare.CheckNamed(t, name+" alone", true, v.Shared())
	}
}

// unreadable is a Tree that cannot read one path or one blob.
type unreadable struct {
	commit
	what string
}

func (u unreadable) Lookup(path string) (rollout.Entry, bool, error) {
	if path == u.what {
		return rollout.Entry{}, false, errUnread
	}
	return u.commit.Lookup(path)
}

func (u unreadable) ReadBlob(id string) ([]byte, error) {
	if id == u.what {
		return nil, errUnread
	}
	return u.commit.ReadBlob(id)
}

func (u unreadable) Commit() rollout.Commit { return rollout.Commit{ID: "c"} }

var errUnread = errors.New("unread")

// TestReversionOfWhatCannotBeRead checks that an unreadable file is an error, and does not count as missing.
func TestReversionOfWhatCannotBeRead(t *testing.T) {
	const file = "apps/shop/a.yaml"
	for name, c := range map[string]struct{ head, old, err string }{
		"PathNow":     {file, "", "look up " + file + ": unread"},
		"PathThen":    {"", file, "look up " + file + ": unread"},
		"ContentNow":  {"2", "", "read " + file + ": unread"},
		"ContentThen": {"", "1", "read " + file + ": unread"},
	} {
		t.Run(name, func(t *testing.T) {
			head, old := unreadable{commit{file: "2"}, c.head}, unreadable{commit{file: "1"}, c.old}
			app := &rollout.Render{App: rollout.App{Name: "shop", Path: "apps/shop"}, Files: []string{file}}
			_, err := propose.NewReversion(head, old, app, app, nil)
			compare.CheckNamed(t, "NewReversion", c.err, fmt.Sprint(err))
			if _, err := propose.Trace(propose.Reversion{Edits: map[string][]byte{file: nil}}, []unreadable{head, old}, "c2"); !errors.Is(err,
				errUnread) {
				t.Errorf("Trace: %v", err)
			}
			compare.CheckNamed(t, "a merge restores an unreadable state", false, propose.Restores(rollout.Merge{Clean: true}, head, old, app, app))
		})
	}
}

// snapshot is a commit of the users' branch with an id. It has the app's manifest and another file.
type snapshot struct {
	commit
	id string
}

func (s snapshot) Commit() rollout.Commit {
	return rollout.Commit{ID: s.id, Author: "Bob <bob@example.com>", Subject: "change " + s.id}
}

// TestTrace checks which other commits a revert also undoes. The result omits the release's commit, and commits that change only replicas.
func TestTrace(t *testing.T) {
	at := func(id, manifest string) snapshot {
		return snapshot{commit{"apps/shop/web.yaml": manifest, "README": id}, id}
	}
	one, release := at("c1", "replicas: 2\nv1"), at("c2", "replicas: 2\nv2")
	const sticky = "replicas: 2\nv2 sticky"
	for name, c := range map[string]struct {
		line []snapshot
		want string
		late bool
	}{
		"the release alone":                 {[]snapshot{one, release, at("c3", "replicas: 2\nv2")}, "", false},
		"a later change":                    {[]snapshot{one, release, at("c3", sticky), at("c4", sticky)}, "c3", true},
		"later numbers of pods":             {[]snapshot{one, release, at("c3", "replicas: 4\nv2")}, "", false},
		"another release before it":         {[]snapshot{one, at("c9", "replicas: 2\nv9"), release}, "c9", false},
		"before and after it":               {[]snapshot{one, at("c9", "replicas: 2\nv9"), release, at("c3", "replicas: 2\nv3")}, "c9 c3", true},
		"the release is not in the history": {[]snapshot{one, at("c9", "replicas: 2\nv9")}, "c9", true},
		"the history has no commits":        {nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := propose.Trace(propose.Scaled(propose.Reversion{Edits: map[string][]byte{"apps/shop/web.yaml": nil}}), c.line, "c2")
			var got []string
			const also = "\nIt also takes back the changes of these commits in the same files:\n- "
			compare.CheckNamed(t, v.Caution(), min(1, len(v.Others)), strings.Count(v.Caution(), also))
			for _, o := range v.Others {
				got = append(got, o.ID)
				compare.Contains(t, v.Caution(), "- "+o.ID+" by Bob <bob@example.com>: change "+o.ID+"\n")
			}
			compare.CheckNamed(t, "commits, late, and error", []any{c.want, c.late, error(nil)}, []any{strings.Join(got, " "), v.Late, err})
			compare.CheckNamed(t, v.Caution(), len(got) > 0, v.Caution() != "")
		})
	}
}

// sizedTo returns a render of an app whose Deployments w0, w1 … have the given replicas.
func sizedTo(path string, files []string, counts ...int64) *rollout.Render {
	r := &rollout.Render{App: rollout.App{Name: "a", Path: path}, Files: files}
	for i, n := range counts {
		r.Objects = append(r.Objects, rollout.Object{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": fmt.Sprint("w", i)}, "spec": map[string]any{"replicas": n}})
	}
	return r
}

// two returns a file with the manifests of two Deployments.
func two(a string, n int, b string, m int) string {
	const doc = "kind: Deployment\nmetadata:\n  name: %s\nspec:\n  replicas: %d\n"
	return fmt.Sprintf(doc, a, n) + "---\n" + fmt.Sprintf(doc, b, m)
}

// TestReversionKeepsThePods checks that a revert of a file keeps the present replicas. The renders show which numbers in the file are a
// workload's replicas. If replicas cannot be kept, the proposal lists them.
func TestReversionKeepsThePods(t *testing.T) {
	const (
		kustomization = "kustomization.yaml"
		a9b2          = "- {name: a, count: 9}\n- {name: b, count: 2}\n"
		b2a9          = "- {name: b, count: 2}\n- {name: a, count: 9}\n"
		b2a12         = "- {name: b, count: 2}\n- {name: a, count: 12}\n"
	)
	type row struct {
		path, then, now, want string
		was, is               []int64 // the rendered replicas
		told                  string
	}
	rows := map[string]row{
		"several": {"web.yaml", "replicas: 1\nv1\nreplicas: 2\n", "replicas: 3\nv2\nreplicas: 4\n",
			"replicas: 3\nv1\nreplicas: 4\n", []int64{1, 2}, []int64{3, 4}, ""},
		"an autoscaler": {"web.yaml", "minReplicas: 1\nmaxReplicas: 5\nv1", "minReplicas: 4\nmaxReplicas: 9\nv2",
			"minReplicas: 4\nmaxReplicas: 9\nv1", []int64{1, 5}, []int64{4, 9}, ""},
		"another operation of RFC 6902": {"patch.yaml", "path: /spec/minReadySeconds\nvalue: 3\nv1", "path: /spec/minReadySeconds\nvalue: 9\nv2",
			"path: /spec/minReadySeconds\nvalue: 3\nv1", []int64{3}, []int64{9}, "replicas of Deployment w0: 9 now, 3 then"},
		"in another order": {kustomization, a9b2 + "v1", b2a9 + "v2", a9b2 + "v1", []int64{9, 2}, []int64{9, 2}, ""},
		"in another order, and scaled": {kustomization, a9b2 + "v1", b2a12 + "v2", "- {name: a, count: 12}\n- {name: b, count: 2}\nv1",
			[]int64{9, 2}, []int64{12, 2}, ""},
		"in another order of one line": {kustomization, "replicas: [{name: a, count: 3},{name: b, count: 3}] v1",
			"replicas: [{name: b, count: 3},{name: a, count: 9}] v2", "replicas: [{name: a, count: 9},{name: b, count: 3}] v1",
			[]int64{3, 3}, []int64{9, 3}, ""},
		"count first, in one line": {kustomization, "[{count: 3, name: a},{count: 3, name: b}] v1",
			"[{count: 9, name: b},{count: 3, name: a}] v2", "[{count: 3, name: a},{count: 9, name: b}] v1", []int64{3, 3}, []int64{3, 9}, ""},
		"count first": {kustomization, "- count: 3\n  name: a1\n- count: 3\n  name: a2\nv1", "- count: 3\n  name: a2\n- count: 9\n  name: a1\nv2",
			"- count: 9\n  name: a1\n- count: 3\n  name: a2\nv1", []int64{3, 3}, []int64{9, 3}, ""},
		"documents in another order": {"web.yaml", two("w1", 3, "w2", 3) + "v1", two("w2", 3, "w1", 9) + "v2", two("w1", 9, "w2", 3) + "v1",
			[]int64{3, 3}, []int64{9, 3}, ""},
		"values in another order": {"values.yaml", "web:\n  replicaCount: 3\napi:\n  replicaCount: 3\nv1",
			"api:\n  replicaCount: 3\nweb:\n  replicaCount: 9\nv2", "web:\n  replicaCount: 9\napi:\n  replicaCount: 3\nv1",
			[]int64{3, 3}, []int64{9, 3}, ""},
		"a number more": {kustomization, "v1", "- {name: a, count: 9}\nv2", "v1", []int64{3}, []int64{9},
			"replicas of Deployment w0: 9 now, 3 then"},
		"of a kind without pods": {"app.yaml", "cache: {replicas: 1}\nv1", "cache: {replicas: 7}\nv2", "cache: {replicas: 1}\nv1",
			[]int64{3}, []int64{3}, ""},
		"of such a kind, alone": {"app.yaml", "cache: {replicas: 1}", "cache: {replicas: 7}", "cache: {replicas: 1}", []int64{3}, []int64{3}, ""},
		"two that had the same": {"web.yaml", "replicas: 3\nv1", "replicas: 9\nv2", "replicas: 9\nv1", []int64{3, 3}, []int64{9, 9},
			"replicas of Deployment w0: 9 now, 3 then; replicas of Deployment w1: 9 now, 3 then"},
		"a count of something else": {"analysis.yaml", "count: 3", "count: 10", "count: 3", nil, nil, ""},
		"another field":             {"web.yaml", "previewReplicas: 3", "previewReplicas: 10", "previewReplicas: 3", nil, nil, ""},
		"other fields by now":       {"web.yaml", "replicas: 3\nv1", "v2", "replicas: 3\nv1", []int64{3}, nil, ""},
		"nothing else":              {"web.yaml", "replicas: 3\nv1", "replicas: 10\nv1", "", []int64{3}, []int64{10}, ""},
		"it was empty":              {"web.yaml", "", "v2", "", nil, nil, ""},
		"it was deleted":            {"web.yaml", "replicas: 3\nv1", "", "replicas: 3\nv1", nil, nil, ""},
	}
	for name, form := range map[string][2]string{ // the path, and the content with N pods of version V
		"scaled":                     {"web.yaml", "replicas: N\nimage: V\n"},
		"in one line":                {"web.yaml", "spec: {replicas: N, image: V}"},
		"KEDA":                       {"web.yaml", "minReplicaCount: N\nV"},
		"a kustomization":            {kustomization, "replicas:\n- {name: a, count: N}\nnewTag: V\n"},
		"a patch in a kustomization": {kustomization, "- patch: |-\n    spec:\n      replicas: N\nV"},
		"RFC 6902":                   {kustomization, "- op: replace\n  path: /spec/replicas\n  value: N\nV"},
		"RFC 6902 as JSON":           {"patch.json", `{"value": N, "op": "replace", "path": "/spec/replicas"} V`},
		"values of a chart":          {"values.yaml", "replicaCount: N\ntag: V"},
		"JSON":                       {"web.json", `{"replicas": N, "image": "V"}`},
	} {
		of := func(replicas, version string) string {
			return strings.NewReplacer("N", replicas, "V", version).Replace(form[1])
		}
		rows[name] = row{form[0], of("3", "v1"), of("10", "v2"), of("10", "v1"), []int64{3}, []int64{10}, ""}
	}
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			head, old, file := commit{}, commit{"a/" + c.path: c.then}, []string{"a/" + c.path}
			if c.now != "" {
				head["a/"+c.path] = c.now
			}
			v, err := propose.NewReversion(head, old, sizedTo("a", file, c.is...), sizedTo("a", file, c.was...), nil)
			content, edited := v.Edits["a/"+c.path]
			if got := string(content); err != nil || got != c.want || edited != (name != "nothing else") || edited && content == nil {
				t.Errorf("%q, want %q; error %v", got, c.want, err)
			}
			if told := strings.Join(v.Resized, "; "); told != c.told || v.IsDoubtful() != (told != "") || !strings.Contains(v.Caution(), told) {
				t.Errorf("told %q, want %q; %q", told, c.told, v.Caution())
			}
		})
	}
}

// TestReversionOfAFolderWithAnotherName reverts a rename of the app's folder. The replicas must come from the file with the same name in
// the present folder.
func TestReversionOfAFolderWithAnotherName(t *testing.T) {
	head, old := commit{"b/web.yaml": "replicas: 9\nv2", "b/more.yaml": "x"}, commit{"a/web.yaml": "replicas: 3\nv1"}
	v, err := propose.NewReversion(head, old, sizedTo("b", []string{"b/web.yaml", "b/more.yaml"}, 9), sizedTo("a", []string{"a/web.yaml"}, 3),
		nil)
	want := map[string][]byte{"a/web.yaml": []byte("replicas: 9\nv1"), "b/web.yaml": nil, "b/more.yaml": nil}
	compare.CheckNamed(t, "edits, resized, and error", []any{want, 0, error(nil)}, []any{v.Edits, len(v.Resized), err})
}

// TestReversionOfWhatIsConfigured checks that a revert fails if the app's entry in config.yaml has changed. With another entry, the old
// files would give another version.
func TestReversionOfWhatIsConfigured(t *testing.T) {
	head, old := commit{"a/web.yaml": "image: shop:${tag}\nenv: 2"}, commit{"a/web.yaml": "image: shop:${tag}\nenv: 1"}
	variables := func(values map[string]string) func(a *rollout.App) {
		return func(a *rollout.App) { a.Variables = rollout.NewVariables(values, nil) }
	}
	tagged := variables(map[string]string{"tag": "v1", "other": "1"})
	for name, c := range map[string]struct {
		was, is func(a *rollout.App)
		want    bool
	}{
		"the same":                   {tagged, tagged, false},
		"a variable of its files":    {tagged, variables(map[string]string{"tag": "v2", "other": "1"}), true},
		"a variable of other apps":   {tagged, variables(map[string]string{"tag": "v1", "other": "2"}), false},
		"more files of variables":    {tagged, func(a *rollout.App) { tagged(a); a.Variables.Files = "x.env" }, true},
		"values of its chart":        {tagged, func(a *rollout.App) { tagged(a); a.Helm.Values = `{"tag":"v2"}` }, true},
		"which manifests it is":      {tagged, func(a *rollout.App) { tagged(a); a.Directory.Recurse = true }, true},
		"kinds of the configuration": {tagged, func(a *rollout.App) { tagged(a); a.Workloads = "x" }, false},
	} {
		from, to := sizedTo("a", []string{"a/web.yaml"}), sizedTo("a", []string{"a/web.yaml"})
		c.is(&from.App)
		c.was(&to.App)
		to.Commit.ID = "c0c0c0c0c0"
		v, err := propose.NewReversion(head, old, from, to, nil)
		if is := err != nil && strings.Contains(err.Error(), "config.yaml"); is != c.want || is == (len(v.Edits) == 1) {
			t.Errorf("%s: error %v, edits %q", name, err, v.Edits)
		}
	}
}
