package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

// Refs is the result of a lookup.
type Refs struct {
	IDs  map[string]string // ids by full ref name
	Head string            // full name of HEAD's branch, or ""
}

// LookUp returns the refs whose names begin with a prefix.
func (s *Session) LookUp(ctx context.Context, prefixes []string) (Refs, error) {
	s.stats.lookups.Add(1)
	found := Refs{IDs: map[string]string{}, Head: s.caps["symref-HEAD"]}
	if !s.V2 {
		for name, id := range s.Refs {
			begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
			if name == "HEAD" || slices.ContainsFunc(prefixes, begins) {
				found.IDs[name] = id
			}
		}
		return found, nil
	}
	var req pktWriter
	req.linef("command=ls-refs\n")
	s.header(&req)
	req.linef("symrefs\n")
	for _, prefix := range prefixes {
		req.linef("ref-prefix %s\n", prefix)
	}
	req.flush()
	body, err := s.exchange(ctx, req.buf)
	if err != nil {
		return Refs{}, err
	}
	defer body.Close()
	p := newPktReader(body)
	for {
		text, ok, err := p.line()
		if err != nil {
			return Refs{}, unexpected(err)
		}
		if !ok {
			return found, nil
		}
		// <id> <name> [symref-target:<name>] [peeled:<id>]
		fields := strings.Split(text, " ")
		if len(fields) < 2 {
			return Refs{}, fmt.Errorf("the answer is not Git's protocol: %q", oneLine(text))
		}
		found.IDs[fields[1]] = fields[0]
		for _, attr := range fields[2:] {
			if target, ok := strings.CutPrefix(attr, "symref-target:"); ok && fields[1] == "HEAD" {
				found.Head = target
			}
		}
	}
}

func (s *Session) header(req *pktWriter) {
	if s.caps.has("agent") {
		req.linef("agent=%s\n", userAgent)
	}
	if s.caps.has("object-format") {
		req.linef("object-format=sha1\n")
	}
	req.delim()
}

// Question requests the commits in Wants with their files, and Depth commits of history. The server omits objects of
// Haves. If Depth is set, the server assumes that the client lacks the ancestors of Haves.
type Question struct {
	Wants, Haves []plumbing.Hash
	Depth        Depth
	Bare         bool // without trees, if the server supports filters
}

// Between reports whether all commits between Haves and Wants are requested.
func (q Question) Between() bool { return q.Depth == Full && len(q.Haves) > 0 }

// Fetch adds the response to a Store, which must have the deltas' bases. With a Depth, Haves are also sent as "shallow"
// lines. Without these lines, after a merge of an old branch, the server would omit old files that the client lacks.
// With "thin-pack", git does not resend the trees of Haves.
func (s *Session) Fetch(ctx context.Context, into Store, q Question) error {
	s.stats.fetches.Add(1)
	body, err := s.exchange(ctx, s.fetchRequest(q))
	if err != nil {
		return err
	}
	defer body.Close()
	p := newPktReader(body)
	var pack io.Reader
	if s.V2 {
		pack, err = packSectionV2(p)
	} else {
		pack, err = packSectionV0(p, s.caps, q.Depth)
	}
	if err != nil {
		return unexpected(err)
	}
	if q.Between() {
		pack = &countedReader{Reader: pack, total: new(atomic.Int64), left: s.bounds.between}
	}
	if err := readPack(pack, into, s.bounds); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	if s.V2 && s.filter(q) != "" {
		into.Omit(plumbing.ZeroHash) // the filter may have omitted files
	}
	// Without this read, the server would report a broken pipe.
	_, err = io.Copy(io.Discard, pack)
	return err
}

// Depth is the number of commits along each line of history, including the wanted commit.
type Depth int

const (
	Full    Depth = 0
	Shallow Depth = 1
)

func (s *Session) fetchRequest(q Question) []byte {
	var req pktWriter
	if s.V2 {
		req.linef("command=fetch\n")
		s.header(&req)
		req.linef("thin-pack\n")
		req.linef("no-progress\n")
		req.linef("ofs-delta\n")
		s.history(&req, q)
		if filter := s.filter(q); filter != "" {
			req.linef("filter %s\n", filter)
		}
		req.each("want", q.Wants)
		req.each("have", q.Haves)
		req.linef("done\n")
		req.flush()
		return req.buf
	}
	// Azure DevOps requires multi_ack, although "done" disables it.
	caps := s.caps.only("multi_ack_detailed", "side-band-64k", "thin-pack", "ofs-delta", "shallow", "no-progress")
	req.linef("want %s %s\n", q.Wants[0], caps)
	req.each("want", q.Wants[1:])
	if s.caps.has("shallow") {
		s.history(&req, q)
	}
	req.flush()
	req.each("have", q.Haves)
	req.linef("done\n")
	return req.buf
}

// filter excludes trees (Bare) or files over maxBlob (Shallow). Other questions get no filter, because a filtered file
// would look like a file of Haves.
func (s *Session) filter(q Question) string {
	switch {
	case !slices.Contains(strings.Fields(s.caps["fetch"]), "filter"):
	case q.Bare:
		return "tree:0"
	case q.Depth == Shallow:
		return fmt.Sprintf("blob:limit=%d", s.bounds.blob+1)
	}
	return ""
}

func (s *Session) history(req *pktWriter, q Question) {
	if q.Depth == Full {
		return
	}
	req.each("shallow", q.Haves)
	req.linef("deepen %d\n", q.Depth)
}

// Common returns the ids of commits that the server has. The server must support version 2 and have the commit `known`.
// The request names this commit as both want and have, so that the server sends no objects.
func (s *Session) Common(ctx context.Context, known plumbing.Hash, ids []plumbing.Hash) ([]plumbing.Hash, error) {
	var req pktWriter
	req.linef("command=fetch\n")
	s.header(&req)
	req.linef("no-progress\n")
	req.linef("want %s\n", known)
	req.each("have", append([]plumbing.Hash{known}, ids...))
	req.flush()
	body, err := s.exchange(ctx, req.buf)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	asked := map[plumbing.Hash]bool{}
	for _, id := range ids {
		asked[id] = true
	}
	var there []plumbing.Hash
	for p := newPktReader(body); ; {
		text, ok, err := p.line()
		if err != nil {
			return nil, unexpected(err)
		}
		if !ok {
			return there, nil
		}
		if id, ack := strings.CutPrefix(text, "ACK "); ack && asked[plumbing.NewHash(id)] {
			there = append(there, plumbing.NewHash(id))
		}
	}
}

func packSectionV2(p *pktReader) (io.Reader, error) {
	for {
		text, ok, err := p.line()
		if err != nil {
			return nil, err
		}
		if ok && text == "packfile" {
			return &bandReader{p: p, remarks: io.Discard}, nil
		}
	}
}

func packSectionV0(p *pktReader, caps capabilities, d Depth) (io.Reader, error) {
	if caps.has("shallow") && d != Full {
		for {
			if _, ok, err := p.line(); err != nil {
				return nil, err
			} else if !ok {
				break
			}
		}
	}
	for {
		head, err := p.r.Peek(5)
		switch {
		case err != nil:
			return nil, err
		case string(head[:4]) == "PACK":
			return p.r, nil
		case head[4] <= 3 && caps.has("side-band-64k"):
			return &bandReader{p: p, remarks: io.Discard}, nil
		}
		if text, _, err := p.line(); err != nil {
			return nil, err
		} else if text != "NAK" && !strings.HasPrefix(text, "ACK ") {
			return nil, fmt.Errorf("the answer is not Git's protocol: %q", oneLine(text))
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
