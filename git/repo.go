package git

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Options selects the repository and its branches.
type Options struct {
	// URL is an https, http, ssh, git or file URL, user@host:path, or a local path. Open removes a user name and
	// password from the URL, and uses these if Auth has no HTTP credentials.
	URL  string
	Auth wire.Auth
	// Branch is the users' branch (default: the server's default branch).
	Branch string
	// Cluster selects the proposal branches and the state branch. Until Fetch reads the configuration, the state branch
	// is rollout.StateBranch(Cluster). If Cluster is "", there are no proposal branches.
	Cluster     string
	Refs        string           // start of full ref names (default refs/heads/; in a clone, refs/remotes/origin/)
	StateBranch string           // overrides the name in the configuration
	StateRepo   string           // the repository of StateBranch, on the same server as URL
	Policy      string           // another branch to fetch, or ""
	Keys        *Keys            // accepted signing keys; nil requires no signatures
	Identity    rollout.Identity // author and committer of pushed commits (default Self)
	// Sign, if set, signs a commit object. It must return equal signatures for equal commits, so that a repeated push
	// makes the same commit.
	Sign     func(commit []byte) ([]byte, error)
	Timeout  time.Duration // limit of each operation (default 2 minutes)
	MaxBytes int64         // limit of each response (default 1 GiB)
}

// Repo is a shallow mirror in memory for concurrent use. Network operations wait only for operations of the same kind.
// Reads of held commits never wait.
type Repo struct {
	remote wire.Remote
	opts   Options
	server *wire.Server

	looking, bringing, pushing lane

	followed *followed    // guarded by the lane named looking
	raced    *atomic.Bool // whether the last push found a locked ref that had not moved

	*mirror
}

// Open checks options, keys and known hosts. It does not connect, because the server may start later.
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
	r.refs = cmp.Or(opts.Refs, headsPrefix)
	if r.server, err = wire.Open(remote, opts.Auth, opts.MaxBytes); err != nil {
		return nil, err
	}
	_, err = keepStateAt(r, opts.StateRepo, r.stateRef)
	return r, err
}

// Beside returns a Repo with the same mirror. Pushes, and downloads of older commits, do not wait for the other Repo.
func (r *Repo) Beside() *Repo {
	beside := *r
	beside.bringing, beside.pushing, beside.raced = newLane(), newLane(), new(atomic.Bool)
	return &beside
}

// Remote returns the repository's address.
func (r *Repo) Remote() wire.Remote { return r.remote }

// Stats counts operations since Open, and the store's objects and bytes.
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

// No error contains a credential.
var (
	// ErrConflict means that a ref was locked, or not at the expected commit. Callers fetch and decide again.
	ErrConflict = rollout.ErrConflict
	// ErrAuth means that the server refuses the credentials, or its host key is not in the known hosts.
	ErrAuth = wire.ErrAuth
	// ErrUnreachable means that there was no connection or response, or the server failed. A push may have been
	// applied, and can be repeated.
	ErrUnreachable = wire.ErrUnreachable
	// ErrNotFound means that the repository, branch or commit does not exist.
	ErrNotFound = wire.ErrNotFound
	// ErrRejected means that the server refused a push.
	ErrRejected = wire.ErrRejected
)
