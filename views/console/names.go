package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/terminal"
)

// Hashes returns a line for each release: hash, tab, and a text such as "stable: SUBJECT".
func (w *Session) Hashes(app string) (hashes []string) {
	s, err := w.States.Of(app)
	if err != nil {
		return nil
	}
	add := func(h rollout.Hash, what string) {
		if h != "" && !slices.ContainsFunc(hashes, func(known string) bool { return strings.HasPrefix(known, string(h)) }) {
			hashes = append(hashes, fmt.Sprintf("%s\t%s", h, what))
		}
	}
	if s.Release != nil {
		add(s.Release.Hash, "in flight: "+terminal.Clean(s.Release.Subject))
	}
	if s.Stable != nil {
		add(s.Stable.Hash, "stable: "+terminal.Clean(s.Stable.Subject))
	}
	for _, r := range s.Rejected {
		add(r.Hash, "rejected: "+terminal.Clean(r.Reason))
	}
	for _, h := range s.Verified {
		add(h, "served before")
	}
	return hashes
}

// StepNames returns a line for each step: name or number, tab, text.
func (w *Session) StepNames(ctx context.Context, name string) (names []string) {
	app, err := w.App(name)
	if err != nil {
		return nil
	}
	w.Detail = true
	in, err := w.Input(ctx, app, w.Now())
	if err != nil {
		return nil
	}
	for _, e := range strategies.Explain(in) {
		for i, step := range e.Steps {
			name := fmt.Sprintf("%s\t%s", cmp.Or(step.Name, fmt.Sprint(i+1)), step.Text)
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
