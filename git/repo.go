package git

import (
	"context"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Options selects the repository to mirror and its branches.
type Options struct {
	// URL is https, http, ssh, git, user@host:path, file or a local path. Open uses the URL's user name and password
	// unless Auth has HTTP credentials, and removes them from URL.
	URL  string
	Auth wire.Auth
	// Branch is the users' branch; empty means the server's default branch.
	Branch string
	// Cluster selects the state branch and the proposal branches; empty selects none. The cluster's configuration on
	// the users' branch names the state branch, and is read at each new head. Until the first configuration is read, it
	// is rollout.StateBranch.
	Cluster string
	// StateBranch overrides the state branch of the configuration.
	StateBranch string
	// Policy is another branch to look up and fetch; "" means none.
	Policy string
	// Keys holds the accepted signing keys; nil requires no signatures.
	Keys *Keys
	// Identity is the author and committer of pushed commits; the zero value is Self.
	Identity rollout.Identity
	// Sign, when set, adds a signature to an unsigned commit object. It should return the same bytes for the same
	// commit, so that a repeated push stays harmless.
	Sign func(commit []byte) ([]byte, error)
	// Timeout bounds each operation (default 2 minutes), MaxBytes each response of the server (default 1 GiB).
	Timeout  time.Duration
	MaxBytes int64
}

// Repo is a shallow mirror of the configured branches, in memory. It is safe for concurrent use. A Fetch, a Push and a
// download of older commits wait only for operations of the same kind. Reads of stored objects never wait for the
// network.
type Repo struct {
	remote wire.Remote
	opts   Options
	server *wire.Server

	looking, bringing, pushing lane

	followed *followed    // guarded by the looking lane
	raced    *atomic.Bool // the last push lost a race although no ref had moved

	*mirror
}

// Open validates the options, the key and the known hosts. It sends nothing: the first Fetch connects, so that a
// reconciler can start while its Git server is down.
func Open(ctx context.Context, opts Options) (*Repo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	remote, auth, err := wire.ParseRemote(opts.URL)
	if err != nil {
		return nil, err
	}
	if !opts.Auth.HTTP() {
		opts.Auth.Username, opts.Auth.Password = auth.Username, auth.Password
	}
	opts.URL = remote.String()
	if opts.Identity == (rollout.Identity{}) {
		opts.Identity = Self
	}
	if err := checkIdentity(opts.Identity); err != nil {
		return nil, err
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 2 * time.Minute
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 1 << 30
	}
	r := &Repo{remote: remote, opts: opts, looking: newLane(), bringing: newLane(), pushing: newLane(),
		followed: &followed{}, raced: new(atomic.Bool), mirror: &mirror{}}
	if err := r.follow(opts.Cluster, opts.Branch, opts.StateBranch, opts.Policy); err != nil {
		return nil, err
	}
	if r.server, err = wire.Open(remote, opts.Auth, opts.MaxBytes); err != nil {
		return nil, err
	}
	return r, nil
}

// Beside returns a Repo on the same mirror with separate lanes for pushes and for downloads of older commits. Both
// Repos share one lane for lookups.
func (r *Repo) Beside() *Repo {
	beside := *r
	beside.bringing, beside.pushing, beside.raced = newLane(), newLane(), new(atomic.Bool)
	return &beside
}

// Remote returns the repository's address.
func (r *Repo) Remote() wire.Remote { return r.remote }

// Stats counts a Repo's operations since Open, and the objects and bytes in its store.
type Stats struct {
	wire.Stats
	Objects, Bytes int64
}

// Stats returns the current counts.
func (r *Repo) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects, size := r.store.usage()
	return Stats{Stats: r.server.Stats(), Objects: objects, Bytes: size}
}
