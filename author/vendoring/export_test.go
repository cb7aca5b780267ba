package vendoring

import "context"

// Files are unpacked files.
type Files = files

func (f files) Tree() string { return f.tree() } // returns the files' digest, as in vendor.lock

var (
	OnDisk   = onDisk   // reads vendored files
	Unzip    = unzip    // unpacks an archive
	Digest   = digest   // returns a digest in the format of registries
	IsRemote = isRemote // reports whether an entry is a remote address
	Remote   = remote   // splits an address
	Newest   = newest   // returns the newest version in a range
	Apart    = apart    // returns an error if folders overlap
)

// Get makes one request.
func (g *Getter) Get(ctx context.Context, address, authorization, accept string) (answer, error) {
	return g.get(ctx, address, authorization, accept)
}

func (a answer) Body() []byte { return a.body }   // returns an answer's body
func (a answer) Status() int  { return a.status } // returns an answer's status
