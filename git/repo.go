package git

import (
	"context"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Options says which repository to mirror and which of its branches matter.
type Options struct {
	// URL is https, http, ssh, git, user@host:path, file or a local path. User name and password in it are
	// used and then forgotten; Auth wins over them.
	URL  string
	Auth wire.Auth
	// Branch is the users' branch; empty means the server's default branch.
	Branch string
	// Cluster says whose state branch and proposals matter; empty means none. The state branch is the one that
	// the cluster's configuration on the users' branch names, read again with each new head, and rollout's
	// StateBranch while there is none that can be read.
	Cluster string
	// StateBranch is the state branch, whatever the configuration names.
	StateBranch string
	// Policy is a branch that is looked up and fetched besides, "" for none.
	Policy string
	// Keys says whose signatures count; nil means that none are asked for.
	Keys *Keys
	// Identity is the author and committer of what is pushed; the zero value is Self.
	Identity rollout.Identity
	// Sign, when set, returns a commit object with its signature in it; what it is given has none. It should
	// return the same bytes for the same commit, so that a repeated push stays harmless.
	Sign func(commit []byte) ([]byte, error)
	// Timeout bounds each operation (default 2 minutes), MaxBytes each answer of the server (default 1 GiB).
	Timeout  time.Duration
	MaxBytes int64
}

// Repo is a shallow mirror, in memory, of the branches that matter. It is safe for concurrent use: a Fetch, a
// Push and the bringing of older commits may be on the network at once, and wait for none but their own kind.
// Reading what is here already waits for nothing.
type Repo struct {
	remote wire.Remote
	opts   Options
	server *wire.Server

	looking, bringing, pushing lane

	followed *followed    // by the Fetch that has the lane
	raced    *atomic.Bool // the last push lost a race, and no ref had moved

	*mirror
}

// Open checks the options, the key and the known hosts. It sends nothing: the first Fetch connects, so that
// a reconciler can start while its Git server is down.
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

// Beside is the same mirror for other work. Older commits that one of them brings, and what one of them pushes, hold
// up nothing that the other does on the network; the branches are looked up by one of them at a time.
func (r *Repo) Beside() *Repo {
	beside := *r
	beside.bringing, beside.pushing, beside.raced = newLane(), newLane(), new(atomic.Bool)
	return &beside
}

// Remote is where the repository is.
func (r *Repo) Remote() wire.Remote { return r.remote }

// Stats counts what a Repo has done since it was opened, and what its store holds now.
type Stats struct {
	wire.Stats
	Objects, Bytes int64
}

// Stats counts what was done so far.
func (r *Repo) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects, size := r.store.usage()
	return Stats{Stats: r.server.Stats(), Objects: objects, Bytes: size}
}
