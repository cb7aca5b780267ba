package propose

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func TestActionsAreAboutWhatIsShown(t *testing.T) {
	flying := strategies.Input{State: rollout.State{Release: &rollout.Release{Hash: "h1-2"}}, Head: strategies.Head{Render: &rollout.Render{}}}
	waits := rejected()
	waits.State.Phase, waits.State.Held = rollout.Healthy, &rollout.Held{Reason: rollout.HeldHook}
	for name, c := range map[string]struct {
		in   strategies.Input
		a    Action
		fine bool
	}{
		"NotBegun":       {waits, Action{Verb: "abort", Release: waits.Head.Render.Release()}, true},
		"NotBegunUnseen": {waits, Action{Verb: "abort"}, false},
		"UndoBefore":     {waits, Action{Verb: "undo"}, true},
		"TheSame":        {flying, Action{Verb: "promote", Release: "h1-2"}, true},
		"AnotherOne":     {flying, Action{Verb: "promote", Release: "h1-1"}, false},
		"NoneWasShown":   {flying, Action{Verb: "abort"}, false},
		"NoneNow":        {strategies.Input{}, Action{Verb: "abort", Release: "h1-2"}, false},
		"NoneAtAll":      {strategies.Input{}, Action{Verb: "promote", Full: true}, true}, // adoption
		"RetryAnother":   {flying, Action{Verb: "retry", Release: "h1-2"}, false},
		"RetryUnstaged":  {flying, Action{Verb: "retry"}, true},
		"RetryOfTheHead": {rejected(), Action{Verb: "retry", Release: rejected().Head.Render.Release()}, true},
		"RetryUnread":    {strategies.Input{State: flying.State}, Action{Verb: "retry", Release: "h1-2"}, true},
		"UndoTheLastOne": {strategies.Input{}, Action{Verb: "undo"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.a.StillAbout(c.in); (err == nil) != c.fine {
				t.Errorf("got %v", err)
			}
		})
	}
}

// shop returns an app at a gate: step 2 of 3.
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

// TestPromoteOverAWayBack checks that a rollback without an end does not block a full promotion of Git's version. A
// rejected version is refused.
func TestPromoteOverAWayBack(t *testing.T) {
	in := shop()
	w := in.State.Progress[0].Workload
	in.State.Phase = rollout.Aborting
	in.Head.Render = &rollout.Render{Specs: []rollout.Spec{{Workload: w}}, Templates: map[rollout.Workload]rollout.Hash{w: "h1-3"}}
	full := Action{Verb: rollout.Promote, Full: true}
	o, err := Target{Cluster: "prod", Branch: "main"}.Decide(in, full)
	if err != nil {
		t.Fatal(err)
	}
	file := string(o.Edits[".gitrollout/prod/promote/shop.yaml"])
	if !strings.Contains(file, "release: h1-3\nthrough: full") || strings.Contains(o.Message, "h1-2") ||
		!strings.Contains(o.Effect, "replaces all pods without steps, whether the rollback ends or not; watch:") {
		t.Errorf("the file is %q, the message %q, it says %q", file, o.Message, o.Effect)
	}
	in.State.Rejected = []rollout.Rejection{{Hash: "h1-3"}}
	if _, err := (Target{}).Decide(in, full); err == nil || !strings.Contains(err.Error(), "already rolling back to h1-1") {
		t.Errorf("a rejected release: %v", err)
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
	adopted := func(reason rollout.HeldReason, release *rollout.Release) strategies.Input {
		in := shop()
		in.Head.Render = rejected().Head.Render
		in.State.Held, in.State.Release = &rollout.Held{Reason: reason, Message: "why"}, release
		return in
	}
	inFlight, head := shop().State.Release, string(rejected().Head.Render.Release())
	unread := adopted(rollout.HeldForeign, nil)
	unread.Head.Render = nil
	onHold := shop()
	onHold.Promotion = &rollout.Promotion{Release: "h1-2", Decision: rollout.Hold}
	unread.Head.Err = errors.New("wrong")
	held := func(reason rollout.HeldReason) strategies.Input {
		return state(func(s *rollout.State) { s.Held = &rollout.Held{Reason: reason, Message: "why"} })
	}
	waits, waitsFirst := adopted(rollout.HeldHook, nil), adopted(rollout.HeldHook, nil)
	waits.Head.Commit = rollout.Commit{ID: inFlight.Commit, Author: inFlight.Author, Subject: inFlight.Subject}
	waitsFirst.Head.Commit = waits.Head.Commit
	waits.State.Phase, waitsFirst.State.Phase, waitsFirst.State.Stable = rollout.Healthy, rollout.Pending, nil
	closed, closedFirst := waits, waitsFirst
	closed.State.Held = &rollout.Held{Reason: rollout.HeldClosed, Message: "why"}
	closedFirst.State.Held = closed.State.Held
	spent := state(func(s *rollout.State) { s.Spent = "the abort of an earlier try" })
	hookFailed := adopted(rollout.HeldHookFailed, nil)
	hookFailed.State.Stable = &rollout.Release{Hash: rollout.Hash(head)}
	hookFailed.State.Hooks = []rollout.HookRun{{Name: "shop/migrate", Release: rollout.Hash(head), Phase: rollout.HookFailed, When: rollout.HookBefore}}
	left := adopted(rollout.HeldHook, nil)
	left.State.Phase, left.State.Stable = rollout.Healthy, &rollout.Release{Hash: rollout.Hash(head)}
	aborting := state(func(s *rollout.State) { s.Phase = rollout.Aborting })
	cases := map[string]struct {
		in      strategies.Input
		a       Action
		file    string // lines of the promotion file
		message string
		then    string
		err     string
	}{
		"Fully":          {shop(), Action{Verb: rollout.Promote, Full: true}, "release: h1-2\nthrough: full", "Promote shop fully in prod\n" + about, "waits for pods alone", ""},
		"ThroughFull":    {shop(), Action{Verb: rollout.Promote, Through: "full"}, "release: h1-2\nthrough: full", "Promote shop fully in prod\n" + about, "waits for pods alone", ""},
		"ThroughNothing": {shop(), Action{Verb: rollout.Promote, Through: "smok"}, "", "", "", `--through "smok" is not a step`},
		"FullyAdopted": {adopted(rollout.HeldAdoption, nil), Action{Verb: rollout.Promote, Full: true}, "release: " + head + "\nthrough: full",
			"Promote shop fully in prod\n", "the running version is replaced at once by the version in Git; watch: gitrollout get shop -w", ""},
		"FullyRenamed":         {adopted(rollout.HeldRenamed, nil), Action{Verb: rollout.Promote, Full: true}, "release: " + head, "Promote shop fully in prod\n", "replaced at once", ""},
		"FullyRenamedInFlight": {adopted(rollout.HeldRenamed, inFlight), Action{Verb: rollout.Promote, Full: true}, "release: h1-2", "Promote shop fully in prod\n" + about, "waits for pods alone", ""},
		"FullyNothing":         {adopted(rollout.HeldForeign, nil), Action{Verb: rollout.Promote, Full: true}, "", "", "", "no release is in flight"},
		"AdoptAnyway": {adopted(rollout.HeldForeign, nil), Action{Verb: rollout.Promote, AdoptAnyway: true},
			"adoptAnyway: true\napiVersion: gitrollout.dev/v1alpha1\ndecision: promote\nkind: Promotion\nrelease: " + head + "\nthrough: adoption", "Adopt shop anyway in prod\n", "taken over from its present controller", ""},
		"AdoptAnywayFully":      {adopted(rollout.HeldForeign, nil), Action{Verb: rollout.Promote, AdoptAnyway: true, Full: true}, "through: full", "Adopt shop anyway in prod\n", "taken over", ""},
		"AdoptAnywayNoHold":     {shop(), Action{Verb: rollout.Promote, AdoptAnyway: true}, "", "", "", "it is not held because another controller has it"},
		"AdoptAnywayElsewhy":    {adopted(rollout.HeldAdoption, nil), Action{Verb: rollout.Promote, AdoptAnyway: true}, "", "", "", "it is not held because another controller has it"},
		"AdoptAnywayUnread":     {unread, Action{Verb: rollout.Promote, AdoptAnyway: true}, "", "", "", "it is not held because another controller has it"},
		"PromoteOnHold":         {onHold, Action{Verb: rollout.Promote}, "", "", "", "it is on hold; to end that: gitrollout hold shop --off"},
		"NothingButAPhase":      {state(func(s *rollout.State) { s.Phase, s.Release, s.Stable = rollout.Healthy, nil, nil }), Action{Verb: rollout.Abort}, "", "", "", "no release is in flight: it is Healthy"},
		"RetryUnread":           {unread, Action{Verb: rollout.Retry}, "", "", "", "the version in Git cannot be read: "},
		"RetryOfWhatServes":     {adopted("", nil), Action{Verb: rollout.Retry}, "", "", "", "nothing to try again: the version in Git was not rejected"},
		"ThroughAfterItsEnd":    {adopted("", nil), Action{Verb: rollout.Promote, Through: "2"}, "", "", "", "no release is in flight"},
		"HoldAfterItsEnd":       {adopted("", nil), Action{Verb: rollout.Hold}, "", "", "", "no release is in flight"},
		"Hold":                  {shop(), Action{Verb: rollout.Hold, Reason: "lunch"}, "reason: lunch\nrelease: h1-2", "Hold release h1-2 of shop in prod\n" + about + "\nReason: lunch\n", "hold shop --off", ""},
		"NoHold":                {shop(), Action{Verb: rollout.Hold, Off: true}, "", "", "", "no hold to end"},
		"HoldOff":               {onHold, Action{Verb: rollout.Hold, Off: true}, "", "End the hold of shop in prod\n" + about, "goes on at the next pass", ""},
		"Abort":                 {shop(), Action{Verb: rollout.Abort, Reason: "slow"}, "reason: slow\nrelease: h1-2", "Abort release h1-2 of shop in prod\n" + about + "\nReason: slow\n", "back to h1-1", ""},
		"AbortTwice":            {aborting, Action{Verb: rollout.Abort}, "", "", "", "already rolling back to h1-1"},
		"AbortDegraded":         {rejected(), Action{Verb: rollout.Abort}, "", "", "", "gitrollout retry shop"},
		"AbortHealthy":          {state(func(s *rollout.State) { s.Phase, s.Release = rollout.Healthy, nil }), Action{Verb: rollout.Abort}, "", "", "", "to go back all the same: gitrollout undo shop"},
		"PromoteRolloutRemoved": {held(rollout.HeldRolloutRemoved), Action{Verb: rollout.Promote}, "", "", "", "it is held: why: gitrollout promote shop --full"},
		"PromoteHeld":           {held(rollout.HeldInvalidInput), Action{Verb: rollout.Promote}, "", "", "", "it is held, and a promotion does not change that: why"},
		"AbortFirst":            {state(func(s *rollout.State) { s.Stable = nil }), Action{Verb: rollout.Abort}, "", "", "", "nothing to go back to"},
		"AbortNothing":          {state(func(s *rollout.State) { s.Phase, s.Release = rollout.Healthy, nil }), Action{Verb: rollout.Abort}, "", "", "", "it is Healthy at h1-1"},
		"AbortUnknown":          {strategies.Input{}, Action{Verb: rollout.Abort}, "", "", "", "no record of it yet"},
		"RetryOfWhatIsInFlight": {shop(), Action{Verb: rollout.Retry}, "", "", "", "is in flight and was not rejected"},
		"AbortBeforeItBegins":   {waits, Action{Verb: rollout.Abort, Reason: "slow"}, "reason: slow\nrelease: " + head, "Abort release " + head + " of shop in prod\n" + about + "\nReason: slow\n", "before anything of it has begun; a Job that runs is left to end", ""},
		"AbortFirstBefore":      {waitsFirst, Action{Verb: rollout.Abort}, "release: " + head, "Abort release " + head + " of shop in prod\n" + about, "before anything of it has begun", ""},
		"AbortWhatGitHasLeft":   {left, Action{Verb: rollout.Abort}, "", "", "", "no release is in flight: it is Healthy at " + head},
		"HoldBeforeItBegins":    {waits, Action{Verb: rollout.Hold}, "release: " + head, "Hold release " + head + " of shop in prod\n" + about, "does not begin the release; to go on: gitrollout hold shop --off", ""},
		"FullyBeforeItBegins":   {waits, Action{Verb: rollout.Promote, Full: true}, "release: " + head + "\nthrough: full\n", "Promote shop fully in prod\n" + about, "as soon as the release may begin", ""},
		"GateBeforeItBegins":    {waits, Action{Verb: rollout.Promote}, "", "", "", "has not begun: why; to have it go on to the end then: gitrollout promote shop --full"},
		"AbortBeforeItsWindow":  {closed, Action{Verb: rollout.Abort, Reason: "slow"}, "reason: slow\nrelease: " + head, "Abort release " + head + " of shop in prod\n" + about + "\nReason: slow\n", "rejects it at the next pass, before anything of it has begun", ""},
		"HoldBeforeItsWindow":   {closed, Action{Verb: rollout.Hold}, "release: " + head, "Hold release " + head + " of shop in prod\n" + about, "does not begin the release; to go on: gitrollout hold shop --off", ""},
		"FullyBeforeItsWindow":  {closed, Action{Verb: rollout.Promote, Full: true}, "release: " + head + "\nthrough: full\n", "Promote shop fully in prod\n" + about, "as soon as the release may begin", ""},
		"AbortFirstInAFreeze":   {closedFirst, Action{Verb: rollout.Abort}, "", "", "", "no release is in flight: it is Pending"},
		"AbortOnceMore":         {spent, Action{Verb: rollout.Abort}, "at: \"2026-11-22T10:00:00Z\"", "Abort release h1-2 of shop in prod\n" + about, "back to h1-1", ""},
		"RetryOfAHook":          {hookFailed, Action{Verb: rollout.Retry}, "release: " + head, "Retry release " + head + " of shop in prod\n", "shop runs hook shop/migrate again; watch", ""},
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
			if o.Branch != "main" || !o.When.Equal(c.in.Now) || !strings.Contains(o.Effect, c.then) {
				t.Errorf("the order is %+v", o)
			}
			if diff := compare.Diff(c.message, o.Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPromote checks what a promotion opens, for which workloads, and which steps it reports as skipped.
func TestPromote(t *testing.T) {
	web, api := rollout.Workload{Namespace: "shop", Name: "web"}, rollout.Workload{Namespace: "shop", Name: "api"}
	at := func(steps map[rollout.Workload]int) strategies.Input {
		in := shop()
		in.State.Release.Since = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
		in.State.Phase, in.State.Progress, in.Source = rollout.Paused, nil, &rollout.Render{}
		for _, w := range []rollout.Workload{api, web} {
			step, moves := steps[w]
			if !moves {
				continue
			}
			metrics := &rollout.Analysis{Metrics: []rollout.Metric{{Name: "errors", Count: 3}}}
			in.Source.Specs = append(in.Source.Specs, rollout.Spec{Workload: w, Scaling: rollout.Surge, Replicas: new(4), Canary: &rollout.Canary{
				Steps: []rollout.Step{
					{SetWeight: new(20)}, {Pause: &rollout.Pause{}}, {Analysis: metrics}, {Pause: &rollout.Pause{Duration: new(time.Hour)}},
					{Name: "half-" + w.Name, SetWeight: new(50)},
				},
			}})
			in.State.Progress = append(in.State.Progress, rollout.Progress{Workload: w, Step: step, Of: 5, Entered: in.Now})
		}
		in.Answers.Healed = new(true)
		return in
	}
	one := func(step int) strategies.Input { return at(map[rollout.Workload]int{web: step}) }
	held := one(1)
	held.State.Held = &rollout.Held{Message: "it is not valid"}
	merged := one(1)
	merged.Promotion = &rollout.Promotion{Release: "h1-2", Decision: rollout.Promote, Through: "3"}
	old := one(1)
	old.Promotion = &rollout.Promotion{APIVersion: rollout.APIVersion, Release: "h1-2", Decision: rollout.Promote, Through: "1"}
	spent := one(1)
	spent.Promotion, spent.State.Spent = &rollout.Promotion{Release: "h1-2", Decision: rollout.Promote, Through: "2", Digest: "d"}, "d"
	cases := map[string]struct {
		in   strategies.Input
		a    Action
		file string
		then string
		err  string
	}{
		"AtAGate":      {one(1), Action{}, `since: "2026-11-22T08:00:00Z"` + "\nthrough: \"2\"", "goes on past step 2 as soon as pods serve; ", ""},
		"AtAnAnalysis": {one(2), Action{}, `through: "3"`, "past step 3 as soon as pods serve, and skips step 3/5 of shop/web (analysis errors); ", ""},
		"AtATimer":     {one(3), Action{}, `through: "4"`, "and skips step 4/5 of shop/web (pause 1h0m0s); ", ""},
		"ForPods":      {one(4), Action{}, "", "", "is at step 5/5 (setWeight 50)"},
		"Through":      {one(1), Action{Through: "4"}, `through: "4"`, "skips step 3/5 of shop/web (analysis errors), step 4/5 of shop/web (pause 1h0m0s); ", ""},
		"ByName":       {one(1), Action{Through: "half-web"}, `through: "5"`, "past step 5", ""},
		"Behind":       {one(3), Action{Through: "2"}, "", "", "it is past step 2 already"},
		"Full": {one(1), Action{Full: true}, "through: full",
			"skips step 3/5 of shop/web (analysis errors), step 4/5 of shop/web (pause 1h0m0s), step 5/5 of shop/web (setWeight 50); ", ""},
		"Held":         {held, Action{}, "", "", "a promotion does not change that"},
		"Merged":       {merged, Action{}, `through: "3"`, "past step 3", ""},
		"Spent":        {spent, Action{}, `at: "2026-11-22T10:00:00Z"`, "past step 2", ""},
		"Siblings":     {at(map[rollout.Workload]int{web: 1, api: 4}), Action{}, "workloads:\n  shop/web: \"2\"", "past step 2 of shop/web as soon", ""},
		"TwoGates":     {at(map[rollout.Workload]int{web: 1, api: 1}), Action{}, "workloads:\n  shop/api: \"2\"\n  shop/web: \"2\"", "past step 2 of shop/api and step 2 of shop/web", ""},
		"ThroughOne":   {at(map[rollout.Workload]int{web: 1, api: 1}), Action{Through: "half-api"}, "workloads:\n  shop/api: \"5\"", "step 5 of shop/api", ""},
		"ThroughBoth":  {at(map[rollout.Workload]int{web: 1, api: 1}), Action{Through: "4"}, "workloads:\n  shop/api: \"4\"\n  shop/web: \"4\"", "step 4 of shop/api and step 4 of shop/web", ""},
		"BehindOne":    {at(map[rollout.Workload]int{web: 1, api: 4}), Action{Through: "2"}, "workloads:\n  shop/web: \"2\"", "past step 2 of shop/web", ""},
		"Here":         {one(3), Action{Through: "4"}, `through: "4"`, "past step 4", ""},
		"BehindFirst":  {one(1), Action{Through: "1"}, "", "", "it is past step 1 already"},
		"MergedBefore": {old, Action{}, `through: "1"`, "past step 2", ""},
		"AtTheEnd":     {one(5), Action{}, "", "", "it does not wait for a promotion; to open gates ahead of time: --through STEP or --full"},
		"OneAtTheEnd":  {at(map[rollout.Workload]int{api: 5, web: 4}), Action{}, "", "", "but is at step 5/5 (setWeight 50); to open"},
		"BothAtSteps":  {at(map[rollout.Workload]int{api: 4, web: 0}), Action{}, "", "", "it does not wait for a promotion but is at step 5/5 (setWeight 50); to open"},
		"ThroughWhich": {at(map[rollout.Workload]int{web: 1, api: 1}), Action{Through: "6"}, "", "", "they are: 1, 2, 3, 4, half-web"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.a.Verb = rollout.Promote
			o, err := Target{Cluster: "prod", Branch: "main"}.Decide(c.in, c.a)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			file := string(o.Edits[".gitrollout/prod/promote/shop.yaml"])
			if !strings.Contains(file, c.file) || !strings.Contains(o.Effect, c.then) {
				t.Errorf("%s\n%s", file, o.Effect)
			}
		})
	}
}

// rejected returns the shop while Git asks for a rejected version.
func rejected() strategies.Input {
	in := shop()
	w := in.State.Progress[0].Workload
	in.Head.Render = &rollout.Render{
		Templates: map[rollout.Workload]rollout.Hash{w: "h1-2"},
		Specs:     []rollout.Spec{{Workload: w, Canary: &rollout.Canary{Steps: []rollout.Step{{SetWeight: new(20)}}}}},
	}
	in.State.Phase, in.State.Release, in.State.Progress = rollout.Degraded, nil, nil
	in.State.Stable.Templates = map[rollout.Workload]rollout.Hash{w: "h1-1"}
	in.State.Rejected = []rollout.Rejection{{Hash: in.Head.Render.Release(), Reason: "it was slow"}}
	return in
}

// TestRetryWithoutDocument checks that a release without its Rollout document cannot be retried, and that no message
// advises it.
func TestRetryWithoutDocument(t *testing.T) {
	in := rejected()
	in.Head.Render.Specs = nil
	_, err := Target{}.Decide(in, Action{Verb: rollout.Retry})
	if err == nil || !strings.Contains(err.Error(), "its Rollout document is gone") {
		t.Errorf("retry says %v", err)
	}
	if _, err = (Target{}).Decide(in, Action{Verb: rollout.Promote}); err == nil || strings.Contains(err.Error(), "retry") {
		t.Errorf("promote says %v", err)
	}
}

func TestRetry(t *testing.T) {
	in := rejected()
	o, err := Target{Cluster: "prod", Branch: "main"}.Decide(in, Action{Verb: rollout.Retry})
	if err != nil {
		t.Fatal(err)
	}
	file := string(o.Edits[".gitrollout/prod/promote/shop.yaml"])
	if !strings.Contains(file, `at: "2026-11-22T10:00:00Z"`) || !strings.Contains(o.Effect, "it was rejected: it was slow") {
		t.Errorf("%s\n%s", file, o.Effect)
	}
	in.Now = in.Now.Add(time.Second)
	again, err := Target{Cluster: "prod", Branch: "main"}.Decide(in, Action{Verb: rollout.Retry})
	if err != nil || string(again.Edits[".gitrollout/prod/promote/shop.yaml"]) == string(o.Edits[".gitrollout/prod/promote/shop.yaml"]) {
		t.Errorf("a second retry is the file of the first one: %v", err)
	}
}

// TestPromotionReplacesNoRetry refuses to promote a retried release during its rollback: the promotion file would
// replace the retry, and the release would stay rejected.
func TestPromotionReplacesNoRetry(t *testing.T) {
	in := rejected()
	in.State.Phase, in.State.Release = rollout.Aborting, &rollout.Release{Hash: in.Head.Render.Release()}
	in.Promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Decision: rollout.Retry, Digest: "new"}
	_, err := Target{}.Decide(in, Action{Verb: rollout.Promote, Full: true})
	if err == nil || !strings.Contains(err.Error(), "rolling back") {
		t.Errorf("promote --full says %v", err)
	}
}
