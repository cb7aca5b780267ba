package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// command moves one ref from old to new; the zero id stands for no ref.
type command struct {
	ref      plumbing.ReferenceName
	old, new plumbing.Hash
}

// refused is a push that the server understood and declined.
type refused struct {
	reasons []string // one for each ref that failed, root causes only
	remarks string   // what hooks printed
	moved   bool     // a reason says that a ref was not where we said
	race    bool     // the same, and it may be back there by now
}

func (e *refused) Error() string {
	text := strings.Join(e.reasons, "; ")
	if e.remarks != "" {
		text += " (" + e.remarks + ")"
	}
	return text
}

// upload sends commands and a pack of exactly the given objects, and reads the server's report. The server
// compares and swaps: it moves a ref only if it still is at old. Several commands are asked to be atomic.
func (s *session) upload(ctx context.Context, commands []command, objects *store) error {
	if !s.caps.has("report-status") {
		return errors.New("the server does not report the outcome of a push (report-status)")
	}
	caps := s.caps.only("report-status", "side-band-64k", "ofs-delta")
	if len(commands) > 1 {
		caps = append(caps, s.caps.only("atomic")...)
	}
	if s.caps.has("agent") {
		caps = append(caps, "agent="+userAgent)
	}
	var req pktWriter
	needPack := false
	for i, c := range commands {
		if c.new.IsZero() && !s.caps.has("delete-refs") {
			return fmt.Errorf("%w: the server does not delete branches", ErrRejected)
		}
		needPack = needPack || !c.new.IsZero()
		suffix := ""
		if i == 0 {
			suffix = "\x00 " + strings.Join(caps, " ")
		}
		req.linef("%s %s %s%s\n", c.old, c.new, c.ref, suffix)
	}
	req.flush()
	if needPack {
		pack, err := encodePack(objects)
		if err != nil {
			return err
		}
		req.buf = append(req.buf, pack...)
	}
	body, err := s.exchange(ctx, req.buf)
	if err != nil {
		return err
	}
	defer body.Close()
	return s.report(body, commands)
}

func encodePack(objects *store) ([]byte, error) {
	var buf bytes.Buffer
	// A window of 0: no deltas. The objects of a commit are few and not versions of each other.
	if _, err := packfile.NewEncoder(&buf, objects, false).Encode(objects.ids(), 0); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return buf.Bytes(), nil
}

// report reads what became of each command.
func (s *session) report(body io.Reader, commands []command) error {
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
	// The server's hooks may still run; hanging up now could end them.
	_, _ = io.Copy(io.Discard, r)
	_, _ = io.Copy(io.Discard, body)
	outcome := refused{remarks: oneLine(remarks.String())}
	if report.UnpackStatus != "ok" {
		outcome.reasons = append(outcome.reasons, "unpack: "+oneLine(report.UnpackStatus))
	}
	status := map[plumbing.ReferenceName]string{}
	for _, c := range report.CommandStatuses {
		status[c.ReferenceName] = c.Status
	}
	var consequences []string
	for _, c := range commands {
		reason := status[c.ref]
		if reason == "ok" {
			continue
		}
		if reason == "" {
			reason = "no report"
		}
		outcome.moved = outcome.moved || saysMoved(reason)
		outcome.race = outcome.race || saysRace(reason)
		text := fmt.Sprintf("%s: %s", c.ref.Short(), oneLine(reason))
		if isConsequence(reason) {
			consequences = append(consequences, text)
		} else {
			outcome.reasons = append(outcome.reasons, text)
		}
	}
	if len(outcome.reasons) == 0 {
		outcome.reasons = consequences
	}
	if len(outcome.reasons) == 0 {
		return nil
	}
	return &outcome
}
