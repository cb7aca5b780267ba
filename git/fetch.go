package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// lane is where one operation at a time is on the network. Looking up, bringing commits and pushing have one
// each: what hangs in one of them holds up none of the others.
type lane chan struct{}

func newLane() lane { return make(lane, 1) }

// onNetwork runs one operation when its lane is free, within the time limit, and says in its error what was
// done and where.
func (r *Repo) onNetwork(ctx context.Context, on lane, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	select {
	case on <- struct{}{}:
		defer func() { <-on }()
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", what, r.remote, classify(ctx.Err()))
	}
	if err := do(ctx); err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("%s %s: %w", what, r.remote, classify(err))
	}
	return nil
}

// Fetch looks up the branches with one request and fetches what is new of Main and State, with a second
// one. Proposals are looked up only; Snapshot fetches one when it is asked for.
//
// ErrNotFound: no such repository, or the users' branch is not in it. Also ErrAuth and ErrUnreachable. After
// an error nothing has changed.
func (r *Repo) Fetch(ctx context.Context) (Heads, error) {
	var heads Heads
	err := r.onNetwork(ctx, r.looking, "fetch", func(ctx context.Context) error {
		before := r.arrivals()
		s, err := r.link.open(ctx, uploadPack)
		if err != nil {
			return err
		}
		defer s.close()
		found, err := r.lookUpHeads(ctx, s)
		if err != nil {
			s.stale()
			return err
		}
		heads, err = r.update(ctx, s, found, before)
		return err
	})
	return heads, err
}

// Heads is what is known now, from the last Fetch and from the pushes since; Main is "" before the first
// Fetch. Whoever fetches and pushes at the same time reads the two answers in either order, and asks here
// which of them holds.
func (r *Repo) Heads() Heads {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heads.clone()
}

// arrivals counts the pushes that have arrived.
func (r *Repo) arrivals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrived
}

func (r *Repo) lookUpHeads(ctx context.Context, s *session) (Heads, error) {
	branch := r.Branch()
	main := headsPrefix + branch
	if branch == "" {
		main = "HEAD"
	}
	prefixes := []string{main}
	var proposals []string
	if r.stateRef != "" {
		prefixes = append(prefixes, headsPrefix+r.stateRef)
	}
	if r.opts.Cluster != "" {
		proposals = []string{
			headsPrefix + "gitrollout/promote/" + r.opts.Cluster + "/",
			headsPrefix + "gitrollout/revert/" + r.opts.Cluster + "/",
		}
	}
	r.stats.lookups.Add(1)
	found, err := s.lookUp(ctx, append(prefixes, proposals...))
	if err != nil {
		return Heads{}, err
	}
	heads := Heads{Main: found.ids[main], Proposals: map[string]string{}}
	if heads.Main == "" && branch == "" {
		return Heads{}, fmt.Errorf("%w: the repository has no default branch: it is empty, or its HEAD names a missing branch", ErrNotFound)
	}
	if heads.Main == "" {
		return Heads{}, fmt.Errorf("%w: no branch %q, or the repository is empty", ErrNotFound, branch)
	}
	if r.stateRef != "" {
		heads.State = found.ids[headsPrefix+r.stateRef]
	}
	for name, id := range found.ids {
		if len(proposals) > 0 && hasAnyPrefix(name, proposals) {
			heads.Proposals[strings.TrimPrefix(name, headsPrefix)] = id
		}
	}
	if branch == "" {
		r.mu.Lock()
		r.branch = strings.TrimPrefix(found.head, headsPrefix)
		r.mu.Unlock()
	}
	return heads, nil
}

// update brings the mirror to what was looked up, except where a push has arrived since: before is how many
// had when the look-up began.
func (r *Repo) update(ctx context.Context, s *session, found Heads, before int) (Heads, error) {
	r.mu.Lock()
	found = r.overtaken(found, before)
	known := r.heads
	r.mu.Unlock()
	found.Changed = known.Main == "" || !known.equal(found)
	wants, err := r.lacking(found.Main, found.State)
	if err != nil {
		return Heads{}, err
	}
	if len(wants) > 0 {
		if err := r.bring(ctx, s, wants); err != nil {
			return Heads{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found = r.overtaken(found, before)
	maps.DeleteFunc(r.pushed, func(_ string, p pushed) bool { return p.number <= before })
	r.heads = found.clone()
	if len(wants) > 0 {
		r.renew()
	}
	return found, nil
}

// pushed is where a push of ours has put a branch; id is "" when it removed it.
type pushed struct {
	number int // among the pushes that have arrived
	id     string
}

// overtaken is what was looked up, with the branches that a push has moved since the look-up began where the
// push has put them: whether the look-up came before or after it is not known, and the next one will tell.
// The caller holds mu.
func (r *Repo) overtaken(found Heads, before int) Heads {
	for name, p := range r.pushed {
		if p.number > before {
			r.place(&found, name, p.id)
		}
	}
	return found
}

// place sets a branch among those that matter.
func (r *Repo) place(heads *Heads, name, id string) {
	switch {
	case name == r.branch:
		heads.Main = id
	case name == r.stateRef:
		heads.State = id
	case r.opts.Cluster == "" || !isProposal(name) || !strings.Contains(name, "/"+r.opts.Cluster+"/"):
	case id == "":
		delete(heads.Proposals, name)
	default:
		heads.Proposals[name] = id
	}
}

// lacking are those of some commits that the mirror does not hold, each once; "" is none.
func (r *Repo) lacking(commits ...string) ([]plumbing.Hash, error) {
	var wants []plumbing.Hash
	seen := map[string]bool{"": true}
	for _, id := range commits {
		if seen[id] {
			continue
		}
		seen[id] = true
		hash, err := parseID(id)
		if err != nil {
			return nil, err
		}
		if !r.holds(hash) {
			wants = append(wants, hash)
		}
	}
	return wants, nil
}

// bring downloads commits into the mirror and makes sure that they are whole.
func (r *Repo) bring(ctx context.Context, s *session, wants []plumbing.Hash) error {
	st, done := r.filling()
	defer done()
	haves := r.haves(st)
	err := r.downloadWhole(ctx, s, st, wants, haves, shallow)
	if err == nil || len(haves) == 0 || isSentinel(classify(err)) || isMissingObject(err) || ctx.Err() != nil {
		return err
	}
	// The server left out something that we do not have, or made deltas against it. Ask as if we had nothing.
	again, err := r.link.open(ctx, uploadPack)
	if err != nil {
		return err
	}
	defer again.close()
	return r.downloadWhole(ctx, again, st, wants, nil, shallow)
}

// filling gives the store for a download, which is not renewed until done is called: the server's answer may
// lean on any object that was in it when it was asked.
func (r *Repo) filling() (st *store, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.downloads++
	return r.store, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.downloads--
	}
}

func (r *Repo) downloadWhole(ctx context.Context, s *session, st *store, wants, haves []plumbing.Hash, d depth) error {
	r.stats.fetches.Add(1)
	if err := s.download(ctx, st, wants, haves, d); err != nil {
		s.stale()
		return err
	}
	for _, want := range wants {
		if err := st.verify(want); err != nil {
			return fmt.Errorf("the server sent an incomplete pack: %w", err)
		}
	}
	return nil
}

// haves are the last heads: with one or two of them, the server's work does not grow with our age.
func (r *Repo) haves(st *store) []plumbing.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	var haves []plumbing.Hash
	for _, id := range []string{r.heads.Main, r.heads.State} {
		if hash := plumbing.NewHash(id); id != "" && st.holds(hash) {
			haves = append(haves, hash)
		}
	}
	return haves
}
