package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Options says which repository to mirror and which of its branches matter.
type Options struct {
	// URL is https, http, ssh, git, user@host:path, file or a local path. User name and password in it are
	// used and then forgotten; Auth wins over them.
	URL  string
	Auth Auth
	// Branch is the users' branch; empty means the server's default branch.
	Branch string
	// Cluster names the state branch gitrollout/state/<Cluster> and the proposals
	// gitrollout/promote/<Cluster>/... and gitrollout/revert/<Cluster>/.... Empty means none of them.
	Cluster string
	// StateRef is another state branch than that of Cluster.
	StateRef string
	// Identity is the author and committer of what is pushed; the zero value is gitrollout itself.
	Identity Identity
	// Timeout bounds each operation (default 2 minutes), MaxBytes each answer of the server (default 1 GiB).
	Timeout  time.Duration
	MaxBytes int64
}

// Heads is where the branches that matter are. The commits of Main and State can be read at once.
type Heads struct {
	Main  string
	State string // "" when the state branch does not exist yet
	// Proposals are the branches below gitrollout/promote/<cluster>/ and gitrollout/revert/<cluster>/.
	Proposals map[string]string
	// Changed tells that something differs from what this Repo knew: from the last Fetch, and from what it
	// has pushed itself since. The first Fetch always says so.
	Changed bool
}

func (h Heads) equal(o Heads) bool {
	return h.Main == o.Main && h.State == o.State && maps.Equal(h.Proposals, o.Proposals)
}

// Repo is a shallow mirror, in memory, of the branches that matter. It is safe for concurrent use: one
// operation at a time is on the network, and reading what is here already waits for none.
type Repo struct {
	remote   Remote
	opts     Options
	stateRef string
	link     link
	stats    *counters
	network  chan struct{} // holds a token while an operation is on the network

	mu     sync.Mutex
	branch string // short name; "" until the server's default branch is known
	store  *store
	live   int64 // size of the store after its last renewal
	heads  Heads // as last known; Main "" before the first Fetch
	recent []plumbing.Hash
	gone   map[plumbing.Hash]string // commits that the server does not have -> Main when it said so
}

// recentCommits is how many commits, beside the heads, survive a renewal of the store: those that releases
// in flight come back to.
const recentCommits = 32

// Open checks the options, the key and the known hosts. It sends nothing: the first Fetch connects, so that
// a reconciler can start while its Git server is down.
func Open(ctx context.Context, opts Options) (*Repo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	remote, auth, err := ParseRemote(opts.URL)
	if err != nil {
		return nil, err
	}
	if !opts.Auth.http() {
		opts.Auth.Username, opts.Auth.Password = auth.Username, auth.Password
	}
	opts.URL = remote.String()
	if opts.Identity == (Identity{}) {
		opts.Identity = Identity{Name: "gitrollout", Email: "gitrollout@noreply.invalid"}
	}
	if err := opts.Identity.check(); err != nil {
		return nil, err
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 2 * time.Minute
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 1 << 30
	}
	r := &Repo{
		remote: remote, opts: opts, stateRef: opts.StateRef, stats: &counters{}, network: make(chan struct{}, 1),
		store: newStore(), gone: map[plumbing.Hash]string{}, branch: strings.TrimPrefix(opts.Branch, headsPrefix),
	}
	if r.stateRef == "" && opts.Cluster != "" {
		r.stateRef = "gitrollout/state/" + opts.Cluster
	}
	r.stateRef = strings.TrimPrefix(r.stateRef, headsPrefix)
	for _, branch := range []string{r.branch, r.stateRef} {
		if branch == "" {
			continue
		}
		if _, err := branchRef(branch); err != nil {
			return nil, err
		}
	}
	if strings.Contains(opts.Cluster, "/") {
		return nil, fmt.Errorf("cluster name %q must not contain a slash", opts.Cluster)
	}
	r.link, err = newLink(remote, opts, r.stats)
	return r, err
}

func newLink(remote Remote, opts Options, stats *counters) (link, error) {
	stream := &streamLink{stats: stats, limit: opts.MaxBytes}
	switch remote.scheme {
	case "http", "https":
		return newHTTPLink(remote, opts.Auth, stats, opts.MaxBytes)
	case "ssh":
		dialer, err := newSSHDialer(remote, opts.Auth)
		if err != nil {
			return nil, err
		}
		stream.dial = dialer.dial
	case "git":
		stream.dial = dialGit(remote)
	default:
		stream.dial = dialLocal(remote)
	}
	return stream, nil
}

// Remote is where the repository is.
func (r *Repo) Remote() Remote { return r.remote }

// Branch is the users' branch; "" until the first Fetch when Options named none.
func (r *Repo) Branch() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.branch
}

// StateBranch is the state branch; "" when Options named none.
func (r *Repo) StateBranch() string { return r.stateRef }

// Stats counts what was done so far.
func (r *Repo) Stats() Stats {
	r.mu.Lock()
	objects, size := r.store.usage()
	r.mu.Unlock()
	s := r.stats
	return Stats{
		Requests: s.requests.Load(), Lookups: s.lookups.Load(), Fetches: s.fetches.Load(), Pushes: s.pushes.Load(),
		Sent: s.sent.Load(), Received: s.received.Load(), Renewals: s.renewals.Load(), Objects: objects, Bytes: size,
	}
}

// onNetwork runs one operation when no other is on the network, within the time limit, and says in its
// error what was done and where.
func (r *Repo) onNetwork(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	select {
	case r.network <- struct{}{}:
		defer func() { <-r.network }()
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
	err := r.onNetwork(ctx, "fetch", func(ctx context.Context) error {
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
		heads, err = r.update(ctx, s, found)
		return err
	})
	return heads, err
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

// update brings the mirror to what was looked up.
func (r *Repo) update(ctx context.Context, s *session, found Heads) (Heads, error) {
	r.mu.Lock()
	known, st := r.heads, r.store
	r.mu.Unlock()
	found.Changed = known.Main == "" || !known.equal(found)
	var wants []plumbing.Hash
	for _, id := range []string{found.Main, found.State} {
		if id == "" {
			continue
		}
		hash, err := parseID(id)
		if err != nil {
			return Heads{}, err
		}
		if !st.holds(hash) && !slices.Contains(wants, hash) {
			wants = append(wants, hash)
		}
	}
	if len(wants) > 0 {
		if err := r.bring(ctx, s, st, wants); err != nil {
			return Heads{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heads = found
	r.heads.Proposals = maps.Clone(found.Proposals)
	if len(wants) > 0 {
		r.renew()
	}
	return found, nil
}

// bring downloads commits into the store and makes sure that they are whole.
func (r *Repo) bring(ctx context.Context, s *session, st *store, wants []plumbing.Hash) error {
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

// Snapshot reads a commit, which is fetched by its id if the mirror lacks it.
//
// ErrNotFound (and fs.ErrNotExist): the server does not have the commit any more, or has never had it.
// Also ErrAuth and ErrUnreachable, when it had to be fetched.
func (r *Repo) Snapshot(ctx context.Context, commit string) (*Snapshot, error) {
	id, err := parseID(commit)
	if err != nil {
		return nil, err
	}
	st, err := r.ensure(ctx, id)
	if err != nil {
		return nil, err
	}
	return newSnapshot(st, id)
}

// EmptySnapshot has no files and no commit: what a branch holds before it exists.
func EmptySnapshot() *Snapshot { return &Snapshot{store: newStore()} }

// ensure gives a store that holds a commit in full.
func (r *Repo) ensure(ctx context.Context, id plumbing.Hash) (*store, error) {
	if st, ok := r.held(id); ok {
		return st, nil
	}
	err := r.onNetwork(ctx, "read commit "+id.String()+" from", func(ctx context.Context) error {
		if _, ok := r.held(id); ok {
			return nil
		}
		r.mu.Lock()
		st, main := r.store, r.heads.Main
		since, gone := r.gone[id]
		r.mu.Unlock()
		if gone && since == main {
			return fmt.Errorf("commit %w (%w)", ErrNotFound, fs.ErrNotExist)
		}
		err := r.bringByID(ctx, st, id)
		if isMissingObject(err) || errors.Is(err, errMissing) {
			r.mu.Lock()
			r.gone[id] = main
			r.mu.Unlock()
			return fmt.Errorf("commit %w (%w): %w", ErrNotFound, fs.ErrNotExist, err)
		}
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.use(id)
			r.renew()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	st, ok := r.held(id)
	if !ok {
		return nil, fmt.Errorf("commit %s: %w", id, errMissing)
	}
	return st, nil
}

// held finds a commit in the mirror and remembers that it is in use.
func (r *Repo) held(id plumbing.Hash) (*store, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.store.holds(id) {
		return nil, false
	}
	r.use(id)
	return r.store, true
}

// use puts a commit last among the recent ones. The caller holds mu.
func (r *Repo) use(id plumbing.Hash) {
	if i := slices.Index(r.recent, id); i >= 0 {
		r.recent = slices.Delete(r.recent, i, i+1)
	}
	r.recent = append(r.recent, id)
	if len(r.recent) > recentCommits {
		r.recent = r.recent[1:]
	}
}

// bringByID fetches one commit by its id, or, from a server that gives out its refs only, by reading the
// whole history of the branches.
func (r *Repo) bringByID(ctx context.Context, st *store, id plumbing.Hash) error {
	s, err := r.link.open(ctx, uploadPack)
	if err != nil {
		return err
	}
	err = r.bring(ctx, s, st, []plumbing.Hash{id})
	s.close()
	if !isMissingObject(err) || s.v2 {
		return err
	}
	if s, err = r.link.open(ctx, uploadPack); err != nil {
		return err
	}
	defer s.close()
	var tips []plumbing.Hash
	for name, tip := range s.refs {
		if name == "HEAD" || name == headsPrefix+r.Branch() || name == headsPrefix+r.stateRef {
			tips = append(tips, plumbing.NewHash(tip))
		}
	}
	if len(tips) == 0 {
		return errMissing
	}
	all := newStore()
	if err := r.downloadWhole(ctx, s, all, tips, nil, full); err != nil {
		return err
	}
	if err := all.verify(id); err != nil {
		return err
	}
	if err := all.reach(id, st); err != nil {
		return err
	}
	return st.verify(id)
}

// renew replaces the store by one with only what the heads and the recently used commits reach, once it
// has grown by a seventh. Snapshots keep the store that they were made from. The caller holds mu.
func (r *Repo) renew() {
	_, size := r.store.usage()
	if r.live > 0 && size < r.live+r.live/7+1<<20 {
		return
	}
	fresh := newStore()
	roots := append([]plumbing.Hash{plumbing.NewHash(r.heads.Main)}, r.recent...)
	if r.heads.State != "" {
		roots = append(roots, plumbing.NewHash(r.heads.State))
	}
	for _, root := range roots {
		if !r.store.holds(root) {
			continue
		}
		if err := r.store.reach(root, fresh); err != nil {
			return // keep the old store: it has all that was ever verified
		}
	}
	if r.live > 0 {
		r.stats.renewals.Add(1)
	}
	r.store = fresh
	_, r.live = fresh.usage()
}
