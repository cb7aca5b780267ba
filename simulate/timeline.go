package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// Timeline is a script with its results.
type Timeline struct {
	Events []*Event `json:"events"`
	Failed int      `json:"failed"` // expectations that were not met
}

// Event is a command and its results.
type Event struct {
	Line    int       `json:"line"`
	At      time.Time `json:"at"` // when the command ended
	Text    string    `json:"text,omitempty"`
	Commits []string  `json:"commits,omitempty"` // subjects of new commits on the state branch
	Errors  []string  `json:"errors,omitempty"`  // of the reconciler's passes
	Status  []string  `json:"status,omitempty"`  // a line for each app
	Failed  []string  `json:"failed,omitempty"`  // expectations that were not met

	wanted []wanted
}

type wanted struct {
	line int
	text string
}

// Play executes a script. A line that is not indented is a command. The indented lines below it are its expectations:
//
//	push v2
//	  commit release v2
//	  expect Paused | web: 4 v1, 1 v2
//
// A "commit" line needs a commit whose subject has the text. The commits must have the order of their lines. An
// "expect" line needs an app whose status has all parts between | characters. An "error" line needs a pass's error with
// the text.
func (s *Story) Play(script string) (*Timeline, error) {
	t := &Timeline{}
	for i, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		line = strings.TrimRight(line, " \t\r")
		switch {
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			if len(t.Events) == 0 || t.Events[len(t.Events)-1].Text == "" {
				return nil, fmt.Errorf("line %d: %q is an expectation without a command: "+
					"write the command above this line, at the margin", i+1, strings.TrimSpace(line))
			}
			e, text := t.Events[len(t.Events)-1], strings.TrimSpace(line)
			if verb, _, _ := strings.Cut(text, " "); !slices.Contains([]string{"commit", "expect", "error"}, verb) {
				return nil, fmt.Errorf("line %d: %q: each line below a command must begin with commit, expect or error",
					i+1, text)
			}
			e.wanted = append(e.wanted, wanted{i + 1, text})
		default:
			t.Events = append(t.Events, &Event{Line: i + 1, Text: line})
		}
	}
	for _, e := range t.Events {
		if err := s.play(e); err != nil {
			return nil, fmt.Errorf("line %d: %w", e.Line, err)
		}
		t.Failed += len(e.Failed)
	}
	return t, nil
}

func (s *Story) play(e *Event) error {
	s.event = e
	e.At = s.cluster.Kube.Now
	if e.Text == "" || strings.HasPrefix(e.Text, "#") {
		return nil
	}
	words := strings.Fields(e.Text)
	if err := s.command(words[0], words[1:]); err != nil {
		return err
	}
	if err := s.rest(); err != nil {
		return err
	}
	e.At = s.cluster.Kube.Now
	for i, subject := range e.Commits {
		e.Commits[i] = s.readable(subject)
	}
	for i, text := range e.Errors {
		e.Errors[i] = s.readable(strings.ReplaceAll(text, "\n", "; "))
	}
	e.Status = s.status()
	e.check()
	return nil
}

func (e *Event) check() {
	from := 0
	for _, w := range e.wanted {
		verb, rest, _ := strings.Cut(w.text, " ")
		rest, met := strings.TrimSpace(rest), false
		contains := func(s string) bool { return strings.Contains(s, rest) }
		switch verb {
		case "commit":
			at := slices.IndexFunc(e.Commits[from:], contains)
			met, from = at >= 0, from+at+1
		case "error":
			met = slices.ContainsFunc(e.Errors, contains)
		default:
			hasAll := func(status string) bool {
				lacks := func(part string) bool { return !strings.Contains(status, strings.TrimSpace(part)) }
				return !slices.ContainsFunc(strings.Split(rest, "|"), lacks)
			}
			met = slices.ContainsFunc(e.Status, hasAll)
		}
		if !met {
			e.Failed = append(e.Failed, fmt.Sprintf("line %d: %s", w.line, w.text))
		}
	}
}

// String returns the script with results.
func (t *Timeline) String() string {
	var b strings.Builder
	for _, e := range t.Events {
		b.WriteString(e.Text + "\n")
		for i, lines := range [][]string{e.Commits, e.Errors, e.Status, e.Failed} {
			for _, line := range lines {
				b.WriteString("  " + []string{"commit", "error", "expect", "FAILED"}[i] + " " + line + "\n")
			}
		}
	}
	return b.String()
}

func (s *Story) status() (all []string) {
	b := s.branch()
	if b.Behind != nil {
		all = append(all, "the configuration cannot be read, and no release advances: "+b.Behind.Error())
	}
	for _, u := range b.InvalidNames {
		all = append(all, u.Path+" is not an app: "+u.Err.Error())
	}
	for _, a := range b.Apps {
		text := s.readable(s.statusOf(a))
		if len(b.Apps) > 1 {
			text = a.Name + " " + text
		}
		all = append(all, text)
	}
	return all
}

func (s *Story) statusOf(a rollout.App) string {
	state := s.state(a.Name)
	phase := string(state.Phase)
	for _, p := range state.Progress {
		if state.Phase != rollout.Aborting {
			phase += fmt.Sprintf(" %s %d/%d %s (%d%%)", p.Workload.Name, min(p.Step+1, p.Of), p.Of, p.Name, p.Weight)
		}
	}
	switch {
	case state.Unhealthy != "":
		phase = string(rollout.Degraded) // like gitrollout get
	case phase == "":
		phase = "Unknown"
	}
	parts := []string{phase + " at " + cmp.Or(rollout.ShortID(state.Source), "nothing")}
	for _, ref := range state.Inventory {
		w, is := s.cluster.Kube.WorkloadOf(ref)
		if d := s.cluster.Kube.Deployments[w]; is && d != nil {
			parts = append(parts, w.Name+": "+strings.Join(append(podsOf(d), s.pinsOf(d, state)...), ", "))
		}
	}
	waiting := strategies.Decide(s.input(a)).Waiting
	if waiting != "" {
		waiting = "waits for " + waiting
	}
	if state.Held != nil {
		waiting = "held: " + string(state.Held.Reason) + ": " + state.Held.Message
	}
	if state.Held.Waits() {
		waiting = state.Held.Message
	}
	if waiting != "" {
		parts = append(parts, waiting)
	}
	for _, why := range []string{state.Reason, state.Unhealthy} {
		if why != "" && !strings.Contains(waiting, why) {
			parts = append(parts, why)
		}
	}
	return strings.Join(parts, " | ")
}

func podsOf(d *kube.Deployment) (sets []string) {
	for _, rs := range d.Sets {
		if live := len(rs.Live()); rs.Replicas > 0 || live > 0 {
			text := fmt.Sprintf("%d %s", live, kube.VersionOf(rs.Template))
			if n := rs.Ready(); n < live {
				text += fmt.Sprintf(" (%d ready)", n)
			}
			sets = append(sets, text)
		}
	}
	return sets
}

func (s *Story) pinsOf(d *kube.Deployment, state rollout.State) (pins []string) {
	for _, ref := range state.Inventory {
		for _, rs := range d.Sets {
			if pin := s.cluster.Kube.Pins[ref]; pin != "" && pin == rs.PodHash {
				pins = append(pins, ref.Name+" -> "+kube.VersionOf(rs.Template))
			}
		}
	}
	return pins
}

func (s *Story) readable(text string) string {
	pairs := slices.Concat(rollout.Mapped(s.renders(), versions)...)
	for i, id := range s.pushes {
		name := fmt.Sprintf("#%d", i)
		pairs = append(pairs, id, name, rollout.ShortID(id), name)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func versions(r *rollout.Render) []string {
	var pairs, staged []string
	for _, o := range r.Objects {
		w, _ := rollout.WorkloadOf(o.Ref())
		hash, is := r.Templates[w]
		if !is {
			continue
		}
		template, err := json.Marshal(o.Map("spec")["template"])
		if err != nil {
			continue
		}
		version := kube.VersionOf(string(template))
		pairs = append(pairs, string(hash), version)
		if _, ok := r.Spec(w); ok {
			staged = append(staged, version)
		}
	}
	if release := string(r.Release()); release != "" && len(staged) > 0 { // otherwise, the hash is of all objects
		pairs = append(pairs, release, strings.Join(staged, "+"))
	}
	return pairs
}
