package propose

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func TestActionsAreAboutWhatIsShown(t *testing.T) {
	flying := strategies.Input{State: rollout.State{Release: &rollout.Release{Hash: "h1-2"}}, Head: strategies.Head{Render: &rollout.Render{}}}
	for name, c := range map[string]struct {
		in   strategies.Input
		a    Action
		fine bool
	}{
		"TheSame":        {flying, Action{Verb: "promote", Release: "h1-2"}, true},
		"AnotherOne":     {flying, Action{Verb: "promote", Release: "h1-1"}, false},
		"NoneWasShown":   {flying, Action{Verb: "abort"}, false},
		"NoneNow":        {strategies.Input{}, Action{Verb: "abort", Release: "h1-2"}, false},
		"NoneAtAll":      {strategies.Input{}, Action{Verb: "promote", Full: true}, true}, // adoption
		"RetryAnother":   {flying, Action{Verb: "retry", Release: "h1-2"}, false},
		"RetryUnstaged":  {flying, Action{Verb: "retry"}, true},
		"UndoTheLastOne": {strategies.Input{}, Action{Verb: "undo"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.a.StillAbout(c.in); (err == nil) != c.fine {
				t.Errorf("got %v", err)
			}
		})
	}
}

// shop is at a gate: step 2 of 3.
func shop() strategies.Input {
	w := rollout.Workload{Namespace: "shop", Name: "shop"}
	stable := &rollout.Render{Templates: map[rollout.Workload]rollout.Hash{w: "h1-1"}}
	return strategies.Input{
		Now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), App: rollout.App{Name: "shop", Path: "apps/shop"}, Head: strategies.Head{Render: stable},
		State: rollout.State{
			App: "shop", Phase: rollout.Progressing, Source: "c2c2c2c2c2",
			Release:  &rollout.Release{Hash: "h1-2", Commit: "c2c2c2c2c2", Author: "Ada <ada@example.com>", Subject: "Version 2"},
			Stable:   &rollout.Release{Hash: "h1-1", Commit: "c1c1c1c1c1", Author: "Bob <bob@example.com>", Subject: "Version 1"},
			Rejected: []rollout.Rejection{{Hash: "h1-0", Commit: "c0c0c0c0c0", Reason: "it was slow", At: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}},
			Progress: []rollout.Progress{{Workload: w, Step: 1, Of: 3, Name: "pause", Weight: 20, Entered: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}},
		},
	}
}

func TestDecide(t *testing.T) {
	to := Target{Cluster: "prod", Branch: "main"}
	about := "\nRelease h1-2 of c2c2c2c by Ada <ada@example.com>:\nVersion 2\n"
	state := func(change func(*rollout.State)) strategies.Input {
		in := shop()
		change(&in.State)
		return in
	}
	held := shop()
	held.Promotion = &rollout.Promotion{Release: "h1-2", Decision: rollout.Hold}
	cases := map[string]struct {
		in      strategies.Input
		a       Action
		file    string // lines that the promotion file has
		message string
		then    string
		err     string
	}{
		"Fully":                 {shop(), Action{Verb: rollout.Promote, Full: true}, "release: h1-2\nthrough: full", "Promote shop fully in prod\n" + about, "skips the steps", ""},
		"ThroughFull":           {shop(), Action{Verb: rollout.Promote, Through: "full"}, "release: h1-2\nthrough: full", "Promote shop fully in prod\n" + about, "skips the steps", ""},
		"ThroughNothing":        {shop(), Action{Verb: rollout.Promote, Through: "smok"}, "", "", "", `--through "smok" is not a step`},
		"Hold":                  {shop(), Action{Verb: rollout.Hold, Reason: "lunch"}, "reason: lunch\nrelease: h1-2", "Hold release h1-2 of shop in prod\n" + about + "\nReason: lunch\n", "hold shop --off", ""},
		"NoHold":                {shop(), Action{Verb: rollout.Hold, Off: true}, "", "", "", "no hold to end"},
		"HoldOff":               {held, Action{Verb: rollout.Hold, Off: true}, "", "End the hold of shop in prod\n" + about, "goes on at the next pass", ""},
		"Abort":                 {shop(), Action{Verb: rollout.Abort, Reason: "slow"}, "reason: slow\nrelease: h1-2", "Abort release h1-2 of shop in prod\n" + about + "\nReason: slow\n", "back to h1-1", ""},
		"AbortTwice":            {state(func(s *rollout.State) { s.Phase = rollout.Aborting }), Action{Verb: rollout.Abort}, "", "", "", "already on its way back to h1-1"},
		"AbortDegraded":         {state(func(s *rollout.State) { s.Phase = rollout.Degraded }), Action{Verb: rollout.Abort}, "", "", "", "gitrollout retry shop"},
		"AbortFirst":            {state(func(s *rollout.State) { s.Stable = nil }), Action{Verb: rollout.Abort}, "", "", "", "nothing to go back to"},
		"AbortNothing":          {state(func(s *rollout.State) { s.Phase, s.Release = rollout.Healthy, nil }), Action{Verb: rollout.Abort}, "", "", "", "it is Healthy at h1-1"},
		"AbortUnknown":          {strategies.Input{}, Action{Verb: rollout.Abort}, "", "", "", "no record of it yet"},
		"RetryOfWhatIsInFlight": {shop(), Action{Verb: rollout.Retry}, "", "", "", "is in flight and was not rejected"},
		"NoSuchVerb":            {shop(), Action{Verb: "rollback"}, "", "", "", "no verb"},
		"NotUndo":               {shop(), Action{Verb: Undo}, "", "", "", "no verb"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := to.Decide(c.in, c.a)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			file, known := o.Edits[".gitrollout/prod/promote/shop.yaml"]
			if !known || len(o.Edits) != 1 || !strings.Contains(string(file), c.file) || (c.file == "") != (file == nil) {
				t.Errorf("it edits %q", o.Edits)
			}
			if o.Branch != "main" || !o.When.Equal(c.in.Now) || !strings.Contains(o.Then, c.then) {
				t.Errorf("the order is %+v", o)
			}
			if diff := cmp.Diff(c.message, o.Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRetry(t *testing.T) {
	in := shop()
	in.State.Phase, in.State.Release = rollout.Degraded, nil
	in.State.Rejected = []rollout.Rejection{{Hash: in.Head.Render.Release(), Reason: "it was slow"}}
	o, err := Target{Cluster: "prod", Branch: "main"}.Decide(in, Action{Verb: rollout.Retry})
	if err != nil {
		t.Fatal(err)
	}
	if file := string(o.Edits[".gitrollout/prod/promote/shop.yaml"]); !strings.Contains(file, `at: "2026-11-22T10:00:00Z"`) || !strings.Contains(o.Then, "it was rejected: it was slow") {
		t.Errorf("%s\n%s", file, o.Then)
	}
	in.Now = in.Now.Add(time.Second)
	again, err := Target{Cluster: "prod", Branch: "main"}.Decide(in, Action{Verb: rollout.Retry})
	if err != nil || string(again.Edits[".gitrollout/prod/promote/shop.yaml"]) == string(o.Edits[".gitrollout/prod/promote/shop.yaml"]) {
		t.Errorf("a second retry is the file of the first one: %v", err)
	}
}
