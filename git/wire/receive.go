package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Command moves a ref from Old to New. A zero Old creates the ref, and a zero New deletes it.
type Command struct {
	Ref      plumbing.ReferenceName
	Old, New plumbing.Hash
}

// Refused is the error of a refused push.
type Refused struct {
	Reasons []string // omits refs that failed only because another ref failed
	Remarks string   // output of hooks
	Moved   bool     // a ref was not at its command's Old
	Race    bool     // another push may have locked a ref
}

func (e *Refused) Error() string {
	text := strings.Join(e.Reasons, "; ")
	if e.Remarks != "" {
		text += " (" + e.Remarks + ")"
	}
	return text
}

// Push sends commands and a pack, and reads the report. The server moves a ref only from the command's Old.
func (s *Session) Push(ctx context.Context, commands []Command, from Store, objects []plumbing.Hash) error {
	if !s.caps.has("report-status") {
		return errors.New("the server does not report the outcome of a push (report-status)")
	}
	wanted := []string{"report-status", "side-band-64k", "ofs-delta"}
	if len(commands) > 1 {
		wanted = append(wanted, "atomic")
	}
	caps := "\x00 " + s.caps.only(wanted...) // only in the first line
	var req pktWriter
	needPack := false
	for _, c := range commands {
		if c.New.IsZero() && !s.caps.has("delete-refs") {
			return fmt.Errorf("%w: the server does not delete branches", ErrRejected)
		}
		needPack = needPack || !c.New.IsZero()
		req.linef("%s %s %s%s\n", c.Old, c.New, c.Ref, caps)
		caps = ""
	}
	req.flush()
	if needPack {
		pack, err := encodePack(from, objects)
		if err != nil {
			return err
		}
		req.buf = append(req.buf, pack...)
	}
	s.stats.pushes.Add(1)
	body, err := s.exchange(ctx, req.buf)
	if err != nil {
		return err
	}
	defer body.Close()
	return s.report(body, commands)
}

func encodePack(from Store, objects []plumbing.Hash) ([]byte, error) {
	var buf bytes.Buffer
	// Window 0 disables deltas, because these save little between the objects of a commit.
	if _, err := packfile.NewEncoder(&buf, encodable{from: from}, false).Encode(objects, 0); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return buf.Bytes(), nil
}

type encodable struct {
	storer.EncodedObjectStorer
	from Store
}

func (e encodable) EncodedObject(_ plumbing.ObjectType, id plumbing.Hash) (plumbing.EncodedObject, error) {
	kind, data, has := e.from.Content(id)
	if !has {
		return nil, plumbing.ErrObjectNotFound
	}
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	_, err := o.Write(data)
	return o, err
}

func (s *Session) report(body io.Reader, commands []Command) error {
	var remarks tail
	p := newPktReader(body)
	r := io.Reader(p.r)
	if s.caps.has("side-band-64k") {
		r = &bandReader{p: p, remarks: &remarks}
	}
	report := packp.NewReportStatus()
	if err := report.Decode(r); err != nil {
		if text := oneLine(remarks.String()); text != "" {
			return &serverError{text}
		}
		return fmt.Errorf("report: %w", unexpected(err))
	}
	// If the connection closed now, the server might kill its running hooks.
	_, _ = io.Copy(io.Discard, r)
	_, _ = io.Copy(io.Discard, body)
	outcome := Refused{Remarks: oneLine(remarks.String())}
	if report.UnpackStatus != "ok" {
		outcome.Reasons = append(outcome.Reasons, "unpack: "+oneLine(report.UnpackStatus))
	}
	status := map[plumbing.ReferenceName]string{}
	for _, c := range report.CommandStatuses {
		status[c.ReferenceName] = c.Status
	}
	var consequences []string
	for _, c := range commands {
		reason := cmp.Or(status[c.Ref], "no report")
		if reason == "ok" {
			continue
		}
		outcome.Moved = outcome.Moved || saysMoved(reason)
		outcome.Race = outcome.Race || saysRace(reason)
		text := fmt.Sprintf("%s: %s", c.Ref.Short(), oneLine(reason))
		if containsAny(strings.ToLower(reason), consequenceTexts...) {
			consequences = append(consequences, text)
		} else {
			outcome.Reasons = append(outcome.Reasons, text)
		}
	}
	if len(outcome.Reasons) == 0 {
		outcome.Reasons = consequences
	}
	if len(outcome.Reasons) == 0 {
		return nil
	}
	return &outcome
}

// Atomic reports whether the server supports atomic pushes.
func (s *Session) Atomic() bool { return s.caps.has("atomic") }

// Moved lists the branches whose id in refs differs from the command's Old. If refs is nil, it lists none.
func Moved(refs map[string]string, commands []Command) (moved []string) {
	for _, c := range commands {
		if refs != nil && plumbing.NewHash(refs[string(c.Ref)]) != c.Old {
			moved = append(moved, c.Ref.Short())
		}
	}
	return moved
}
