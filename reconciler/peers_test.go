package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// mirrorOf adapts a git.Repo, as package adapters does.
type mirrorOf struct{ *git.Repo }

func (m mirrorOf) Held(commit string) (reconciler.Snapshot, bool) {
	s, held := m.Repo.Held(commit)
	return s, held
}

func (m mirrorOf) Branches(ctx context.Context, repo string, known map[string]string) (map[string]string, error) {
	return git.Branches(ctx, m.Repo, repo, known)
}

// stage is a real Git server with the clusters dev and prod. Its Peers reads the records of dev for prod.
type stage struct {
	t *testing.T
	*reconciler.Peers
	repo    *gittest.Repo
	server  *gittest.Server
	bare    string // has the state branch of dev
	mirror  *git.Repo
	main    func() reconciler.Snapshot
	touched []string
	owner   rollout.Cluster
}

const devBranch = "gitrollout/state/dev"

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, repo: gittest.New(t), owner: rollout.Cluster{
		Cluster: "dev", UID: "uid", Source: rollout.Source{Repo: "r", Branch: "main"}, Writer: rollout.Writer{ID: "w", Epoch: 3}}}
	s.repo.CommitFiles("first", map[string]string{configFile: plainConfig, ".gitrollout/dev/config.yaml": plainConfig})
	s.bare = s.repo.Bare
	s.server = s.repo.HTTP(gittest.HTTPOptions{})
	var err error
	s.mirror, err = git.Open(t.Context(), git.Options{URL: s.server.URL, Branch: "main", Cluster: "prod"})
	must(t, err)
	touch := func(app string) { s.touched = append(s.touched, app) }
	s.Peers = reconciler.NewPeers(&reconciler.Options{Branches: mirrorOf{s.mirror.Beside()}}, touch,
		func() reconciler.Snapshot { return s.main() })
	s.main = s.head
	s.head()
	return s
}

// head returns the newest commit of main.
func (s *stage) head() reconciler.Snapshot {
	s.t.Helper()
	heads, err := s.mirror.Fetch(s.t.Context())
	must(s.t, err)
	tree, err := s.mirror.Snapshot(s.t.Context(), heads.Main)
	must(s.t, err)
	return tree
}

// record pushes apps' new serials to the state branch of dev. The serial 0 removes an app's record.
func (s *stage) record(serials map[string]int) {
	s.t.Helper()
	data, err := s.owner.Encode()
	must(s.t, err)
	files := map[string][]byte{rollout.ClusterPath: data}
	for app, serial := range serials {
		file := rollout.StatePath(app)
		if files[file] = nil; serial > 0 {
			files[file], err = rollout.State{App: app, Path: "apps/" + app, Phase: rollout.Pending, Serial: serial}.Encode()
			must(s.t, err)
		}
	}
	s.push(files)
}

func (s *stage) push(files map[string][]byte) {
	s.t.Helper()
	writer, err := git.Open(s.t.Context(), git.Options{URL: s.bare, Branch: "main", Cluster: "dev"})
	must(s.t, err)
	_, err = writer.CommitToBranch(s.t.Context(), devBranch, func(*git.Snapshot) (rollout.Update, error) {
		return rollout.Update{Edits: files, Message: "state", When: time.Unix(1e9, 0)}, nil
	})
	must(s.t, err)
}

// read calls Refresh. It checks the number of requests, and which apps became due.
func (s *stage) read(what string, lookups, fetches int64, due ...string) {
	s.t.Helper()
	before := s.mirror.Stats()
	s.touched = nil
	must(s.t, s.Refresh(s.t.Context()))
	after := s.mirror.Stats()
	compare.CheckNamed(s.t, what+": requests", [2]int64{lookups, fetches},
		[2]int64{after.Lookups - before.Lookups, after.Fetches - before.Fetches})
	slices.Sort(s.touched)
	compare.CheckNamed(s.t, what+": due", due, s.touched)
}

// serial returns the serial that the app shop reads in an app's record, or -1 without a record.
func (s *stage) serial(app string) int {
	s.t.Helper()
	record, err := s.Of("shop").States("dev")
	must(s.t, err)
	state, found := record(app)
	if !found {
		return -1
	}
	return state.Serial
}

// TestPeersAreReadWhileAppsWait checks the requests for another cluster's records. While no app waits, no request is sent. While an app
// waits, a refresh sends one look-up, and fetches only a moved branch. An app becomes due only if a record that it has read changes.
func TestPeersAreReadWhileAppsWait(t *testing.T) {
	s := newStage(t)
	main := s.head()
	s.main = func() reconciler.Snapshot { return main }
	s.record(map[string]int{"shop": 1, "till": 1, "other": 1})
	s.read("no app waits", 0, 0)
	if _, err := s.Of("shop").States("dev"); !errors.Is(err, source.ErrNotReady) {
		t.Fatalf("before the first look-up: %v", err)
	}
	s.read("first", 1, 1, "shop")
	compare.Check(t, [2]int{-1, 1}, [2]int{s.serial("new"), s.serial("shop")})
	s.read("at rest", 1, 0)
	s.record(map[string]int{"other": 2})
	s.read("a record that no app has read", 1, 1)
	s.record(map[string]int{"shop": 2})
	s.read("its own record", 1, 1, "shop")
	compare.Check(t, [2]int{2, 1}, [2]int{s.serial("shop"), s.serial("till")})
	s.record(map[string]int{"till": 2})
	s.read("another record that it has read", 1, 1, "shop")
	s.record(map[string]int{"till": 0})
	s.read("a removed record", 1, 1, "shop")
	compare.Check(t, -1, s.serial("till"))
	late, err := s.Of("shop").States("dev")
	must(t, err)
	s.Of("shop")
	s.read("the app waits no longer", 0, 0)
	if state, found := late("shop"); !found || state.Serial != 0 {
		t.Errorf("an old answer gives %+v, %v", state, found)
	}
	s.read("the app has used an old answer", 1, 0, "shop")
	s.Of("shop")
	s.read("the app waits no longer", 0, 0)
	if _, err := s.Of("shop").States("dev"); !errors.Is(err, source.ErrNotReady) {
		t.Fatalf("an old record counts again: %v", err)
	}
	s.read("the branch has not moved meanwhile", 1, 0, "shop")
	compare.Check(t, 2, s.serial("shop"))
}

// countedReads counts the files that are read from state branches.
type countedReads struct {
	mirrorOf
	files int
}

func (c *countedReads) Held(commit string) (reconciler.Snapshot, bool) {
	tree, held := c.mirrorOf.Held(commit)
	return countedTree{tree, c}, held
}

type countedTree struct {
	reconciler.Snapshot
	*countedReads
}

func (c countedTree) ReadBlob(id string) ([]byte, error) {
	c.files++
	return c.Snapshot.ReadBlob(id)
}

// TestPeersReadOnlyChanges checks that a look-up reads cluster.yaml only if the branch has moved, and that an app reads only its changed
// record.
func TestPeersReadOnlyChanges(t *testing.T) {
	s := newStage(t)
	main := s.head()
	s.main = func() reconciler.Snapshot { return main }
	counted := &countedReads{mirrorOf: s.Options.Branches.(mirrorOf)}
	s.Options.Branches = counted
	s.record(map[string]int{"shop": 1, "other": 1})
	if _, err := s.Of("shop").States("dev"); !errors.Is(err, source.ErrNotReady) {
		t.Fatalf("before the first look-up: %v", err)
	}
	reads := func(what string, want int, lookups, fetches int64, due ...string) {
		t.Helper()
		counted.files = 0
		s.read(what, lookups, fetches, due...)
		s.serial("shop")
		compare.CheckNamed(t, what+": files", want, counted.files)
	}
	reads("first", 2, 1, 1, "shop")
	reads("at rest", 0, 1, 0)
	s.record(map[string]int{"other": 2})
	reads("another record", 1, 1, 1)
	s.record(map[string]int{"shop": 2})
	reads("its record", 2, 1, 1, "shop")
	s.Of("shop")
	s.read("no app waits", 0, 0)
	if _, err := s.Of("shop").States("dev"); !errors.Is(err, source.ErrNotReady) {
		t.Fatalf("after a time without waiting apps: %v", err)
	}
	reads("an app waits again", 2, 1, 0, "shop")
}

// TestPeerProblems checks the error for a state branch that is missing, damaged, rewritten, unreachable, or another cluster's. The error
// names the branch. The app becomes due once, and again after the repair.
func TestPeerProblems(t *testing.T) {
	dev := ".gitrollout/dev/config.yaml"
	for name, tt := range map[string]struct {
		harm, repair func(*stage)
		want         string
	}{
		"missing": {
			func(s *stage) { s.repo.InBare("update-ref", "-d", "refs/heads/"+devBranch) },
			func(s *stage) { s.record(map[string]int{"shop": 6}) },
			"state branch gitrollout/state/dev: does not exist; run gitrollout in cluster dev, or take",
		},
		"another cluster": {
			func(s *stage) { s.owner.Cluster = "qa"; s.record(nil) },
			func(s *stage) { s.owner.Cluster = "dev"; s.record(nil) },
			"state branch gitrollout/state/dev: belongs to cluster qa, not dev",
		},
		"no cluster.yaml": {
			func(s *stage) { s.push(map[string][]byte{rollout.ClusterPath: nil}) }, func(s *stage) { s.record(nil) },
			"state branch gitrollout/state/dev: has no cluster.yaml",
		},
		"a commit on the users' branch, such as a proposal that the cluster has signed": {
			func(s *stage) { s.push(map[string][]byte{configFile: []byte(plainConfig)}) },
			func(s *stage) { s.push(map[string][]byte{configFile: nil}) },
			"state branch gitrollout/state/dev: cluster.yaml: is beside the folder .gitrollout, so the commit is no record; reset",
		},
		"damaged cluster.yaml": {
			func(s *stage) { s.push(map[string][]byte{rollout.ClusterPath: []byte("a")}) }, func(s *stage) { s.record(nil) },
			"state branch gitrollout/state/dev: cluster.yaml: is not a mapping",
		},
		"damaged record": {
			func(s *stage) { s.push(map[string][]byte{rollout.StatePath("shop"): []byte("a: b")}) },
			func(s *stage) { s.record(map[string]int{"shop": 5}) },
			"state branch gitrollout/state/dev: apps/",
		},
		"older record": {
			func(s *stage) { s.record(map[string]int{"shop": 4}) }, func(s *stage) { s.record(map[string]int{"shop": 6}) },
			"state branch gitrollout/state/dev: was rewritten: the serial of shop was 5 and is 4; restore",
		},
		"older epoch": {
			func(s *stage) { s.owner.Writer.Epoch = 2; s.record(nil) }, func(s *stage) { s.owner.Writer.Epoch = 3; s.record(nil) },
			"state branch gitrollout/state/dev: was rewritten: the writer's epoch was 3 and is 2; restore",
		},
		"no configuration": {
			func(s *stage) { s.repo.Remove(dev).Commit("remove") },
			func(s *stage) { s.repo.CommitFiles("back", map[string]string{dev: plainConfig}) },
			dev + ": does not exist; correct the file, or take cluster dev out of its stage",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.record(map[string]int{"shop": 5})
			refresh := func(due ...string) {
				t.Helper()
				s.touched = nil
				must(t, s.Refresh(t.Context()))
				compare.Check(t, due, s.touched)
			}
			wantError := func() {
				t.Helper()
				_, err := s.Of("shop").States("dev")
				compare.CheckError(t, "States", err, tt.want)
			}
			_, _ = s.Of("shop").States("dev")
			refresh("shop")
			compare.Check(t, 5, s.serial("shop"))
			tt.harm(s)
			refresh("shop")
			wantError()
			refresh()
			wantError()
			tt.repair(s)
			refresh("shop")
			s.serial("shop")
		})
	}
}

// TestUnreachablePeers checks that records do not count during an outage of the server. Waiting apps become due only when the outage begins
// and ends. An unreadable record must not count as missing.
func TestUnreachablePeers(t *testing.T) {
	s := newStage(t)
	main := s.head()
	s.main = func() reconciler.Snapshot { return main }
	s.record(map[string]int{"shop": 5})
	s.push(map[string][]byte{rollout.StatePath("till"): []byte("a: b")})
	_, _ = s.Of("shop").States("dev")
	must(t, s.Refresh(t.Context()))
	compare.Check(t, [2]int{5, 0}, [2]int{s.serial("shop"), s.serial("till")})
	s.server.Fault(gittest.Faults{Status: 503})
	for _, due := range [][]string{{"shop"}, nil} {
		s.touched = nil
		if err := s.Refresh(t.Context()); !errors.Is(err, rollout.ErrUnreachable) {
			t.Fatalf("the server is down: %v", err)
		}
		compare.Check(t, due, s.touched)
		_, err := s.Of("shop").States("dev")
		compare.CheckError(t, "States", err, "state branch gitrollout/state/dev cannot be read: read branches of http")
	}
	s.server.Fault(gittest.Faults{})
	s.read("the server is back", 1, 0, "shop")
	compare.Check(t, 5, s.serial("shop"))
}

// TestUntrustedPeer checks that a record counts only while BelievePeer accepts the head of the state branch.
func TestUntrustedPeer(t *testing.T) {
	s := newStage(t)
	s.record(map[string]int{"shop": 1})
	refused := errors.New("the commit is not signed")
	s.BelievePeer = func(cluster string, tree reconciler.Snapshot) error {
		if cluster != "dev" || tree.Commit().ID != s.repo.Ref(devBranch) {
			t.Errorf("asked about %s of %s", tree.Commit().ID, cluster)
		}
		return refused
	}
	_, _ = s.Of("shop").States("dev")
	must(t, s.Refresh(t.Context()))
	_, err := s.Of("shop").States("dev")
	compare.CheckError(t, "States", err, "state branch gitrollout/state/dev: commit "+rollout.ShortID(s.repo.Ref(devBranch))+
		" is not signed by cluster dev: the commit is not signed; ")
	refused = nil
	must(t, s.Refresh(t.Context()))
	compare.Check(t, 1, s.serial("shop"))
}

// TestPeerInAnotherRepository checks that a state branch is read in the repository that its cluster's configuration names. This repository
// must be on the server of the users' repository, because no other server may get the credentials.
func TestPeerInAnotherRepository(t *testing.T) {
	s := newStage(t)
	keepAt := func(url string) {
		s.repo.CommitFiles("move", map[string]string{".gitrollout/dev/config.yaml": plainConfig + "stateRepo: " + url + "\n"})
	}
	s.bare += "-state.git"
	s.repo.Git("clone", "-q", "--bare", s.repo.Bare, s.bare)
	s.record(map[string]int{"shop": 7})
	keepAt(s.server.URL + "-state.git")
	_, _ = s.Of("shop").States("dev")
	must(t, s.Refresh(t.Context()))
	compare.Check(t, 7, s.serial("shop"))
	keepAt("https://git.example.com/state.git")
	compare.CheckError(t, "refresh", s.Refresh(t.Context()), "is not on the server of")
	_, err := s.Of("shop").States("dev")
	compare.CheckError(t, "States", err, "state branch gitrollout/state/dev cannot be read: https://git.example.com/state.git is not on")
}

// TestPeersInTheLoop checks that the loop reads other clusters for a waiting app, in RunOnce, in a simulator's turns and in Run.
func TestPeersInTheLoop(t *testing.T) {
	s := newStage(t)
	s.record(map[string]int{"shop": 1})
	for i, refresh := range []func(w *world, r *reconciler.Reconciler) error{
		func(w *world, r *reconciler.Reconciler) error { return r.RunOnce(t.Context(), w.clock, true) },
		func(w *world, r *reconciler.Reconciler) error { return r.RunOnce(t.Context(), w.clock, false) }, // no fetch, but an app waits
		func(w *world, r *reconciler.Reconciler) error { return r.Turn(t.Context(), reconciler.PumpIn, w.clock) },
		func(_ *world, r *reconciler.Reconciler) error {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			due := make(chan string, 1)
			go r.PumpPeers(ctx, func(app string) { due <- app })
			<-due
			return nil
		},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorld(t, func(o *reconciler.Options) { o.Branches = s.Options.Branches })
			w.follow("dev", map[string]string{".gitrollout/dev/config.yaml": plainConfig})
			before := s.mirror.Stats()
			w.pass()
			must(t, w.r.Peers().Refresh(t.Context()))
			compare.CheckNamed(t, "requests while no app waits", before, s.mirror.Stats())
			if _, err := w.r.Peers().Of("shop").States("dev"); !errors.Is(err, source.ErrNotReady) {
				t.Fatalf("before the first look-up: %v", err)
			}
			must(t, refresh(w, w.r))
			record, err := w.r.Peers().Of("shop").States("dev")
			must(t, err)
			if state, found := record("shop"); !found || state.Serial != 1 {
				t.Errorf("record %+v, %v", state, found)
			}
		})
	}
}
