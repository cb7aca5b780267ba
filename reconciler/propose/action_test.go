package propose_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

func TestActionsAreAboutWhatIsShown(t *testing.T) {
	flying := strategies.Input{State: rollout.State{Release: &rollout.Release{Hash: "h1-2"}}, Head: strategies.Head{Render: &rollout.Render{}}}
	waits := rejected()
	waits.State.Phase, waits.State.Held = rollout.Healthy, &rollout.Held{Reason: rollout.HeldHook}
	for name, c := range map[string]struct {
		in   strategies.Input
		a    propose.Action
		fine bool
	}{
		"NotBegun":       {waits, propose.Action{Verb: "abort", Release: waits.Head.Render.Release()}, true},
		"NotBegunUnseen": {waits, propose.Action{Verb: "abort"}, false},
		"UndoBefore":     {waits, propose.Action{Verb: "undo"}, true},
		"TheSame":        {flying, propose.Action{Verb: "promote", Release: "h1-2"}, true},
		"AnotherOne":     {flying, propose.Action{Verb: "promote", Release: "h1-1"}, false},
		"NoneWasShown":   {flying, propose.Action{Verb: "abort"}, false},
		"NoneNow":        {strategies.Input{}, propose.Action{Verb: "abort", Release: "h1-2"}, false},
		"NoneAtAll":      {strategies.Input{}, propose.Action{Verb: "promote", Full: true}, true}, // adoption
		"RetryAnother":   {flying, propose.Action{Verb: "retry", Release: "h1-2"}, false},
		"RetryUnstaged":  {flying, propose.Action{Verb: "retry"}, true},
		"RetryOfTheHead": {rejected(), propose.Action{Verb: "retry", Release: rejected().Head.Render.Release()}, true},
		"RetryUnread":    {strategies.Input{State: flying.State}, propose.Action{Verb: "retry", Release: "h1-2"}, true},
		"UndoTheLastOne": {strategies.Input{}, propose.Action{Verb: "undo"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.a.StillAbout(c.in)
			compare.CheckNamed(t, fmt.Sprint("accepted; the error is ", err), c.fine, err == nil)
		})
	}
}

// hour returns the given hour of the day 2026-11-22.
func hour(n int) time.Time { return time.Date(2026, 11, 22, n, 0, 0, 0, time.UTC) }

const promotionFile = ".gitrollout/prod/promote/shop.yaml"

var to = propose.Target{Cluster: "prod", Branch: "main"}

// refused fails the test unless the action is refused with an error that contains the text.
func refused(t *testing.T, in strategies.Input, a propose.Action, text string) {
	t.Helper()
	_, err := to.Decide(in, a)
	compare.Contains(t, fmt.Sprint(err), text)
}

// decided returns the Change of an action, and the Change's promotion file. It fails the test if the action is refused.
func decided(t *testing.T, in strategies.Input, a propose.Action) (file string, o propose.Change) {
	t.Helper()
	o, err := to.Decide(in, a)
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Edits[promotionFile]), o
}

// shop returns the input of the app shop, whose release waits at the gate of step 2 of 3.
func shop() strategies.Input {
	w := rollout.Workload{Namespace: "shop", Name: "shop"}
	stable := &rollout.Render{Templates: map[rollout.Workload]rollout.Hash{w: "h1-1"}}
	return strategies.Input{
		Now: hour(10), App: rollout.App{Name: "shop", Path: "apps/shop"}, Head: strategies.Head{Render: stable},
		State: rollout.State{
			App: "shop", Phase: rollout.Progressing, Source: "c2c2c2c2c2",
			Release:  &rollout.Release{Hash: "h1-2", Commit: "c2c2c2c2c2", Author: "Ada <ada@example.com>", Subject: "Version 2"},
			Stable:   &rollout.Release{Hash: "h1-1", Commit: "c1c1c1c1c1", Author: "Bob <bob@example.com>", Subject: "Version 1"},
			Rejected: []rollout.Rejection{{Hash: "h1-0", Commit: "c0c0c0c0c0", Reason: "it was slow", At: hour(1)}},
			Progress: []rollout.Progress{{Workload: w, Step: 1, Of: 3, Name: "pause", Weight: 20, Entered: hour(9)}},
		},
	}
}

// TestAbortOfAWatch aborts the watch after a release. The promotion file names the stable version, and the version stays. Without a watch,
// or during draining, the abort is refused.
func TestAbortOfAWatch(t *testing.T) {
	in := shop()
	in.State = in.State.AtRest(rollout.Healthy, "")
	in.State.Watch = &rollout.Watch{Until: hour(20), Former: rollout.Release{Hash: "h1-0"}}
	abort := propose.Action{Verb: rollout.Abort, Release: "h1-1", Reason: "noise"}
	file, o := decided(t, in, abort)
	compare.Contains(t, file, "reason: noise\nrelease: h1-1")
	compare.Contains(t, o.Effect, "the watch ends and the version stays; to go back: gitrollout undo shop")
	compare.CheckNamed(t, "about the watched version", error(nil), abort.StillAbout(in))
	in.State.Draining = &rollout.Draining{}
	refused(t, in, abort, "no release is in flight")
	in.State.Draining, in.State.Watch = nil, nil
	refused(t, in, abort, "no release is in flight")
}

// TestPromoteOverAWayBack checks a full promotion of the head during a rollback. The promotion is accepted, because the
// rollback may never end. If the head's version was rejected, the promotion is refused.
func TestPromoteOverAWayBack(t *testing.T) {
	in := shop()
	w := in.State.Progress[0].Workload
	in.State.Phase = rollout.Aborting
	in.Head.Render = &rollout.Render{Specs: []rollout.Spec{{Workload: w}}, Templates: map[rollout.Workload]rollout.Hash{w: "h1-3"}}
	full := propose.Action{Verb: rollout.Promote, Full: true}
	file, o := decided(t, in, full)
	compare.Contains(t, file, "release: h1-3\nthrough: full")
	compare.Contains(t, o.Effect, "replaces all pods without steps, whether the rollback ends or not; watch:")
	compare.CheckNamed(t, "h1-2 is in: "+o.Message, false, strings.Contains(o.Message, "h1-2"))
	in.State.Rejected = []rollout.Rejection{{Hash: "h1-3"}}
	refused(t, in, full, "already rolling back to h1-1")
}

func TestDecide(t *testing.T) {
	promote, full := propose.Action{Verb: rollout.Promote}, propose.Action{Verb: rollout.Promote, Full: true}
	abort, retry := propose.Action{Verb: rollout.Abort}, propose.Action{Verb: rollout.Retry}
	slow := propose.Action{Verb: rollout.Abort, Reason: "slow"}
	hold, anyway := propose.Action{Verb: rollout.Hold}, propose.Action{Verb: rollout.Promote, AdoptAnyway: true}
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
	hookFailed.State.Hooks = []rollout.HookRun{
		{Name: "shop/migrate", Release: rollout.Hash(head), Phase: rollout.HookFailed, When: rollout.HookBefore},
	}
	left := adopted(rollout.HeldHook, nil)
	left.State.Phase, left.State.Stable = rollout.Healthy, &rollout.Release{Hash: rollout.Hash(head)}
	aborting := state(func(s *rollout.State) { s.Phase = rollout.Aborting })
	atRest := state(func(s *rollout.State) { s.Phase, s.Release = rollout.Healthy, nil })
	nothing := state(func(s *rollout.State) { s.Phase, s.Release, s.Stable = rollout.Healthy, nil, nil })
	first := state(func(s *rollout.State) { s.Stable = nil })
	const fully = "Promote shop fully in prod\n"
	abortHead, holdHead := "Abort release "+head+" of shop in prod\n"+about, "Hold release "+head+" of shop in prod\n"+about
	for name, c := range map[string]struct {
		in      strategies.Input
		a       propose.Action
		file    string // lines of the promotion file
		message string
		then    string
	}{
		"Fully": {shop(), full, "release: h1-2\nthrough: full", fully + about, "waits only for ready pods"},
		"ThroughFull": {shop(), propose.Action{Verb: rollout.Promote, Through: "full"}, "release: h1-2\nthrough: full", fully + about,
			"waits only for ready pods"},
		"FullyAdopted": {adopted(rollout.HeldAdoption, nil), full, "release: " + head + "\nthrough: full", fully,
			"the version in Git replaces the running version immediately; watch: gitrollout get shop -w"},
		"FullyRenamed":         {adopted(rollout.HeldRenamed, nil), full, "release: " + head, fully, "replaces the running version immediately"},
		"FullyRenamedInFlight": {adopted(rollout.HeldRenamed, inFlight), full, "release: h1-2", fully + about, "waits only for ready pods"},
		"AdoptAnyway": {adopted(rollout.HeldForeign, nil), anyway,
			"adoptAnyway: true\napiVersion: gitrollout.dev/v1alpha1\ndecision: promote\nkind: Promotion\nrelease: " + head + "\nthrough: adoption",
			"Adopt shop anyway in prod\n", "takes over the app's objects from the other controller"},
		"AdoptAnywayFully": {adopted(rollout.HeldForeign, nil), propose.Action{Verb: rollout.Promote, AdoptAnyway: true, Full: true},
			"through: full",
			"Adopt shop anyway in prod\n", "takes over"},
		"Hold": {shop(), propose.Action{Verb: rollout.Hold, Reason: "lunch"}, "reason: lunch\nrelease: h1-2",
			"Hold release h1-2 of shop in prod\n" + about + "\nReason: lunch\n", "hold shop --off"},
		"HoldOff": {onHold, propose.Action{Verb: rollout.Hold, Off: true}, "", "End the hold of shop in prod\n" +
			about, "goes on at the next pass"},
		"Abort": {shop(), slow, "reason: slow\nrelease: h1-2",
			"Abort release h1-2 of shop in prod\n" + about + "\nReason: slow\n", "back to h1-1"},
		"AbortBeforeItBegins": {waits, slow, "reason: slow\nrelease: " + head, abortHead + "\nReason: slow\n",
			"before the release begins; a running Job is not stopped"},
		"AbortFirstBefore":    {waitsFirst, abort, "release: " + head, abortHead, "before the release begins"},
		"HoldBeforeItBegins":  {waits, hold, "release: " + head, holdHead, "does not begin the release; to go on: gitrollout hold shop --off"},
		"FullyBeforeItBegins": {waits, full, "release: " + head + "\nthrough: full\n", fully + about, "as soon as the release may begin"},
		"AbortBeforeItsWindow": {closed, slow, "reason: slow\nrelease: " + head, abortHead + "\nReason: slow\n",
			"rejects the release at the next pass, before the release begins"},
		"HoldBeforeItsWindow":  {closed, hold, "release: " + head, holdHead, "does not begin the release; to go on: gitrollout hold shop --off"},
		"FullyBeforeItsWindow": {closed, full, "release: " + head + "\nthrough: full\n", fully + about, "as soon as the release may begin"},
		"AbortOnceMore":        {spent, abort, "at: \"2026-11-22T10:00:00Z\"", "Abort release h1-2 of shop in prod\n" + about, "back to h1-1"},
		"RetryOfAHook": {hookFailed, retry, "release: " + head, "Retry release " + head + " of shop in prod\n",
			"shop runs hook shop/migrate again; watch"},
	} {
		t.Run(name, func(t *testing.T) {
			file, o := decided(t, c.in, c.a)
			content, known := o.Edits[promotionFile]
			if !known || len(o.Edits) != 1 || !strings.Contains(file, c.file) || (c.file == "") != (content == nil) {
				t.Errorf("it edits %q", o.Edits)
			}
			if o.Branch != "main" || !o.When.Equal(c.in.Now) || !strings.Contains(o.Effect, c.then) {
				t.Errorf("the order is %+v", o)
			}
			compare.Check(t, c.message, o.Message)
		})
	}
	for name, c := range map[string]struct {
		in  strategies.Input
		a   propose.Action
		err string
	}{
		"ThroughNothing":        {shop(), propose.Action{Verb: rollout.Promote, Through: "smok"}, `--through "smok" is not a step`},
		"FullyNothing":          {adopted(rollout.HeldForeign, nil), full, "no release is in flight"},
		"AdoptAnywayNoHold":     {shop(), anyway, "it is not held for objects that another controller owns"},
		"AdoptAnywayElsewhy":    {adopted(rollout.HeldAdoption, nil), anyway, "it is not held for objects that another controller owns"},
		"AdoptAnywayUnread":     {unread, anyway, "it is not held for objects that another controller owns"},
		"PromoteOnHold":         {onHold, promote, "it is on hold; to end the hold: gitrollout hold shop --off"},
		"NothingButAPhase":      {nothing, abort, "no release is in flight: it is Healthy"},
		"RetryUnread":           {unread, retry, "the version in Git cannot be read: "},
		"RetryOfWhatServes":     {adopted("", nil), retry, "nothing to try again: the version in Git was not rejected"},
		"ThroughAfterItsEnd":    {adopted("", nil), propose.Action{Verb: rollout.Promote, Through: "2"}, "no release is in flight"},
		"HoldAfterItsEnd":       {adopted("", nil), hold, "no release is in flight"},
		"NoHold":                {shop(), propose.Action{Verb: rollout.Hold, Off: true}, "no hold to end"},
		"AbortTwice":            {aborting, abort, "already rolling back to h1-1"},
		"AbortDegraded":         {rejected(), abort, "gitrollout retry shop"},
		"AbortHealthy":          {atRest, abort, "to go back nevertheless: gitrollout undo shop"},
		"AbortNothing":          {atRest, abort, "the app is Healthy at h1-1"},
		"PromoteRolloutRemoved": {held(rollout.HeldRolloutRemoved), promote, "it is held: why: gitrollout promote shop --full"},
		"PromoteHeld":           {held(rollout.HeldInvalidInput), promote, "it is held, and a promotion does not end the hold: why"},
		"AbortFirst":            {first, abort, "no version to go back to"},
		"AbortUnknown":          {strategies.Input{}, abort, "no record of the app yet"},
		"RetryOfWhatIsInFlight": {shop(), retry, "is in flight and was not rejected"},
		"AbortWhatGitHasLeft":   {left, abort, "no release is in flight: the app is Healthy at " + head},
		"GateBeforeItBegins":    {waits, promote, "has not begun: why; to let it skip all gates when it begins: gitrollout promote shop --full"},
		"AbortFirstInAFreeze":   {closedFirst, abort, "no release is in flight: it is Pending"},
		"NoSuchVerb":            {shop(), propose.Action{Verb: "rollback"}, "no verb"},
		"NotUndo":               {shop(), propose.Action{Verb: propose.Undo}, "no verb"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.in, c.a, c.err) })
	}
}

// TestDecisionsOfASupersededRelease checks that a promotion file for an older release causes no warning.
func TestDecisionsOfASupersededRelease(t *testing.T) {
	in, next := shop(), shop()
	in.State.Release.Since = hour(8)
	next.State.Release = &rollout.Release{Hash: "h1-3", Since: hour(11)}
	for _, a := range []propose.Action{{Verb: rollout.Promote, Full: true}, {Verb: rollout.Hold}, {Verb: rollout.Abort},
		{Verb: rollout.Retry}} {
		before := in
		if a.Verb == rollout.Retry {
			before = rejected()
		}
		file, _ := decided(t, before, a)
		p, err := rollout.ParsePromotion(promotionFile, []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		next.Promotion = p
		compare.CheckNamed(t, string(a.Verb), "", strategies.Ignored(next))
	}
}

// TestPromote checks which steps of which workloads a promotion opens, and which skipped steps Change.Effect lists.
func TestPromote(t *testing.T) {
	web, api := rollout.Workload{Namespace: "shop", Name: "web"}, rollout.Workload{Namespace: "shop", Name: "api"}
	at := func(steps map[rollout.Workload]int) strategies.Input {
		in := shop()
		in.State.Release.Since = hour(8)
		in.State.Phase, in.State.Progress, in.Source = rollout.Paused, nil, &rollout.Render{}
		for _, w := range []rollout.Workload{api, web} {
			step, moves := steps[w]
			if !moves {
				continue
			}
			metrics := &rollout.Analysis{Metrics: []rollout.Metric{{Name: "errors", Count: 3}}}
			canary := &rollout.Canary{Steps: []rollout.Step{
				{SetWeight: new(20)}, {Pause: &rollout.Pause{}}, {Analysis: metrics}, {Pause: &rollout.Pause{Duration: new(time.Hour)}},
				{Name: "half-" + w.Name, SetWeight: new(50)},
			}}
			in.Source.Specs = append(in.Source.Specs, rollout.Spec{Workload: w, Scaling: rollout.Surge, Replicas: new(4), Canary: canary})
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
	old.Promotion = &rollout.Promotion{APIVersion: rollout.AlphaVersion, Release: "h1-2", Decision: rollout.Promote, Through: "1"}
	oldName := one(1)
	oldName.Promotion = &rollout.Promotion{APIVersion: rollout.AlphaVersion, Release: "h1-2", Decision: rollout.Promote, Through: "half-web"}
	spent := one(1)
	spent.Promotion, spent.State.Spent = &rollout.Promotion{Release: "h1-2", Decision: rollout.Promote, Through: "2", Digest: "d"}, "d"
	both := at(map[rollout.Workload]int{web: 1, api: 1})
	apiAhead := at(map[rollout.Workload]int{web: 1, api: 4})
	for name, c := range map[string]struct {
		in   strategies.Input
		a    propose.Action
		file string
		then string
	}{
		"AtAGate": {one(1), propose.Action{}, `since: "2026-11-22T08:00:00Z"` +
			"\nthrough: \"2\"", "continues past step 2 as soon as pods serve; "},
		"AtAnAnalysis": {one(2), propose.Action{}, `through: "3"`,
			"past step 3 as soon as pods serve, and skips step 3/5 of shop/web (analysis errors); "},
		"AtATimer": {one(3), propose.Action{}, `through: "4"`, "and skips step 4/5 of shop/web (pause 1h0m0s); "},
		"Through": {one(1), propose.Action{Through: "4"}, `through: "4"`,
			"skips step 3/5 of shop/web (analysis errors), step 4/5 of shop/web (pause 1h0m0s); "},
		"ByName": {one(1), propose.Action{Through: "half-web"}, `through: "5"`, "past step 5"},
		"Full": {one(1), propose.Action{Full: true}, "through: full",
			"skips step 3/5 of shop/web (analysis errors), step 4/5 of shop/web (pause 1h0m0s), step 5/5 of shop/web (setWeight 50); "},
		"Merged":   {merged, propose.Action{}, `through: "3"`, "past step 3"},
		"Spent":    {spent, propose.Action{}, `at: "2026-11-22T10:00:00Z"`, "past step 2"},
		"Siblings": {apiAhead, propose.Action{}, "workloads:\n  shop/web: \"2\"", "past step 2 of shop/web as soon"},
		"TwoGates": {both, propose.Action{}, "workloads:\n  shop/api: \"2\"\n  shop/web: \"2\"",
			"past step 2 of shop/api and step 2 of shop/web"},
		"ThroughOne": {both, propose.Action{Through: "half-api"}, "workloads:\n  shop/api: \"5\"", "step 5 of shop/api"},
		"ThroughBoth": {both, propose.Action{Through: "4"}, "workloads:\n  shop/api: \"4\"\n  shop/web: \"4\"",
			"step 4 of shop/api and step 4 of shop/web"},
		"BehindOne":    {apiAhead, propose.Action{Through: "2"}, "workloads:\n  shop/web: \"2\"", "past step 2 of shop/web"},
		"Here":         {one(3), propose.Action{Through: "4"}, `through: "4"`, "past step 4"},
		"MergedBefore": {old, propose.Action{}, `through: "1"`, "past step 2"},
		"NamedBefore":  {oldName, propose.Action{}, "through: half-web", "past step half-web"},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Verb = rollout.Promote
			if file, o := decided(t, c.in, c.a); !strings.Contains(file, c.file) || !strings.Contains(o.Effect, c.then) {
				t.Errorf("%s\n%s", file, o.Effect)
			}
		})
	}
	for name, c := range map[string]struct {
		in  strategies.Input
		a   propose.Action
		err string
	}{
		"ForPods":     {one(4), propose.Action{}, "is at step 5/5 (setWeight 50)"},
		"Behind":      {one(3), propose.Action{Through: "2"}, "it is past step 2 already"},
		"Held":        {held, propose.Action{}, "a promotion does not end the hold"},
		"BehindFirst": {one(1), propose.Action{Through: "1"}, "it is past step 1 already"},
		"AtTheEnd":    {one(5), propose.Action{}, "it does not wait for a promotion; to open gates ahead of time: --through STEP or --full"},
		"OneAtTheEnd": {at(map[rollout.Workload]int{api: 5, web: 4}), propose.Action{}, "but is at step 5/5 (setWeight 50); to open"},
		"BothAtSteps": {at(map[rollout.Workload]int{api: 4, web: 0}), propose.Action{},
			"it does not wait for a promotion but is at step 5/5 (setWeight 50); to open"},
		"ThroughWhich": {both, propose.Action{Through: "6"}, "the steps are: 1, 2, 3, 4, half-web"},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Verb = rollout.Promote
			refused(t, c.in, c.a, c.err)
		})
	}
}

// rejected returns the input of the app shop after the head's version was rejected (phase Degraded).
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

// TestRetryWithoutDocument checks that a release whose Rollout document was removed cannot be retried, and that no message advises a retry.
func TestRetryWithoutDocument(t *testing.T) {
	in := rejected()
	in.Head.Render.Specs = nil
	refused(t, in, propose.Action{Verb: rollout.Retry}, "its Rollout document was removed")
	if _, err := (propose.Target{}).Decide(in, propose.Action{Verb: rollout.Promote}); err == nil || strings.Contains(err.Error(), "retry") {
		t.Errorf("promote says %v", err)
	}
}

// TestRetryOfAnOlderCommit checks that a rejected older version can be retried while the head waits for the previous stage. If the head
// does not wait, a retry is refused, because the head was not rejected.
func TestRetryOfAnOlderCommit(t *testing.T) {
	in := rejected()
	in.State.Rejected[0].Hash = "h1-older"
	refused(t, in, propose.Action{Verb: rollout.Retry}, "the version in Git was not rejected")
	in.Entry = &cohort.Entry{Held: rollout.HeldStage, Waits: "the stage before"}
	file, o := decided(t, in, propose.Action{Verb: rollout.Retry})
	compare.Contains(t, file, "release: h1-older")
	compare.Contains(t, o.Effect, "it was rejected: it was slow")
	possible := slices.ContainsFunc(propose.Possible(in), func(a propose.Action) bool {
		return a.Verb == rollout.Retry && a.Release == "h1-older"
	})
	compare.CheckNamed(t, "a retry of the older commit is possible", true, possible)
	in.State.Reason = "Git asks for h1-older, which was rejected: it was slow"
	in.State.Rejected = append([]rollout.Rejection{{Hash: "h1-newer", Reason: "it crashed"}}, in.State.Rejected...)
	file, o = decided(t, in, propose.Action{Verb: rollout.Retry})
	compare.Contains(t, file, "release: h1-older")
	compare.Contains(t, o.Effect, "it was rejected: it was slow")
	in.Entry.Open = true
	refused(t, in, propose.Action{Verb: rollout.Retry}, "the version in Git was not rejected")
}

// TestRetryKeepsTheApproval checks that the file of a retry keeps the approval of the rejected version, and no other approval.
func TestRetryKeepsTheApproval(t *testing.T) {
	in := rejected()
	in.Promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Decision: rollout.Promote, Through: rollout.ThroughEntry,
		Commit: "c3"}
	file, _ := decided(t, in, propose.Action{Verb: rollout.Retry})
	compare.Contains(t, file, "commit: c3\n")
	compare.Contains(t, file, "through: entry\n")
	in.Promotion.Barred = true
	file, _ = decided(t, in, propose.Action{Verb: rollout.Retry})
	compare.CheckNamed(t, "keeps a barred approval", false, strings.Contains(file, "commit: "))
}

func TestRetry(t *testing.T) {
	in := rejected()
	file, o := decided(t, in, propose.Action{Verb: rollout.Retry})
	compare.Contains(t, file, `at: "2026-11-22T10:00:00Z"`)
	compare.Contains(t, o.Effect, "it was rejected: it was slow")
	in.Now = in.Now.Add(time.Second)
	again, _ := decided(t, in, propose.Action{Verb: rollout.Retry})
	compare.CheckNamed(t, "a second retry is the file of the first one: "+again, false, again == file)
}

// TestPromotionReplacesNoRetry checks that a release cannot be promoted after its retry was requested during its
// rollback. The promotion would replace the retry in the promotion file, and the release would stay rejected.
func TestPromotionReplacesNoRetry(t *testing.T) {
	in := rejected()
	in.State.Phase, in.State.Release = rollout.Aborting, &rollout.Release{Hash: in.Head.Render.Release()}
	in.Promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Decision: rollout.Retry, Digest: "new"}
	refused(t, in, propose.Action{Verb: rollout.Promote, Full: true}, "rolling back")
}
