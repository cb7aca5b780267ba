package propose_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

func TestTogether(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	of := func(app, branch string, edits map[string][]byte) propose.Change {
		return propose.Change{App: app, Branch: branch, Edits: edits, Message: "Act on " + app + "\n\nRelease of " + app + "\n", When: at,
			Subject: "Act on " + app, Effect: app + " goes on"}
	}
	to := propose.Target{Cluster: "prod", Branch: "main"}
	promote := propose.Action{Verb: rollout.Promote}
	cart, shop := of("cart", "main", map[string][]byte{"cart.yaml": []byte("c")}), of("shop", "main", map[string][]byte{"shop.yaml": nil})

	one, err := to.Together(promote, []propose.Change{cart})
	compare.Check(t, error(nil), err)
	compare.Check(t, cart, one)

	both, err := to.Together(promote, []propose.Change{cart, shop})
	compare.Check(t, error(nil), err)
	compare.Check(t, propose.Change{App: "cart, shop", Branch: "main", When: at,
		Edits:   map[string][]byte{"cart.yaml": []byte("c"), "shop.yaml": nil},
		Subject: "Promote cart and shop", Effect: "cart goes on\nshop goes on",
		Message: "Promote cart and shop in prod\n\nAct on cart\n\nRelease of cart\n\nAct on shop\n\nRelease of shop\n"}, both)

	opened, err := to.Together(propose.Action{Verb: rollout.Promote, Through: rollout.ThroughEntry}, []propose.Change{cart, shop})
	compare.Check(t, error(nil), err)
	compare.Check(t, "Let a shared change into cart and shop", opened.Subject)

	const differ, branch = " need different contents of base; undo one app after the other", "gitrollout/revert/prod/"
	one1, one2, gone := map[string][]byte{"base": []byte("1")}, map[string][]byte{"base": []byte("2")}, map[string][]byte{"base": nil}
	other, both2 := map[string][]byte{"app": nil}, map[string][]byte{"app": nil, "base": []byte("2")}
	for name, c := range map[string]struct {
		cart, shop map[string][]byte
		uses       string // the file that the version of shop needs
		err        string
	}{
		"Contents":    {one1, one2, "", "cart and shop" + differ},
		"Deleted":     {gone, map[string][]byte{"base": {}}, "", "cart and shop" + differ},
		"Unchanged":   {one1, other, "base", "cart and shop" + differ},
		"GoneButUsed": {gone, other, "base", "cart and shop" + differ},
		"Equal":       {one2, both2, "base", ""},
		"BothDelete":  {gone, gone, "base", ""},
		"NotUsed":     {one1, other, "app", ""},
	} {
		t.Run(name, func(t *testing.T) {
			shop := of("shop", branch+"shop", c.shop)
			shop.SetUses(c.uses)
			got := ""
			undo, err := to.Together(propose.Action{Verb: propose.Undo}, []propose.Change{of("cart", branch+"cart", c.cart), shop})
			if err != nil {
				got = err.Error()
			} else {
				compare.Check(t, branch+"cart+shop", undo.Branch)
			}
			compare.Check(t, c.err, got)
			_, err = to.Together(propose.Action{Verb: propose.Undo}, []propose.Change{shop, of("cart", branch+"cart", c.cart)})
			compare.CheckNamed(t, "an error in the other order", c.err != "", err != nil)
		})
	}
}

func TestSubjectOfSeveral(t *testing.T) {
	many := strings.Fields("cart catalogue checkout payments search shipping warehouse")
	for name, c := range map[string]struct {
		a    propose.Action
		apps []string
		most int
		want string
	}{
		"Two":     {propose.Action{Verb: rollout.Promote}, many[:2], 72, "Promote cart and catalogue"},
		"Three":   {propose.Action{Verb: rollout.Abort}, many[:3], 72, "Abort cart, catalogue and checkout"},
		"AtLimit": {propose.Action{Verb: rollout.Retry}, many[:2], 24, "Retry cart and catalogue"},
		"Above":   {propose.Action{Verb: rollout.Retry}, many[:2], 23, "Retry cart and 1 more"},
		"Many":    {propose.Action{Verb: rollout.Hold}, many, 40, "Hold cart, catalogue and 5 more"},
		"AtLeast": {propose.Action{Verb: propose.Undo}, many, 5, "Undo cart and 6 more"},
		"Off":     {propose.Action{Verb: rollout.Hold, Off: true}, many[:2], 72, "End the hold of cart and catalogue"},
		"Adopt":   {propose.Action{Verb: rollout.Promote, AdoptAnyway: true}, many[:2], 72, "Adopt cart and catalogue"},
	} {
		t.Run(name, func(t *testing.T) { compare.Check(t, c.want, propose.SubjectOf(c.a, c.apps, c.most)) })
	}
}

// TestJoined checks that the branch name of a proposal for many apps is short, and differs for other apps.
func TestJoined(t *testing.T) {
	var apps []string
	for i := range 40 {
		apps = append(apps, fmt.Sprintf("app-%d", i))
	}
	compare.Check(t, "app-0+app-1", propose.Joined(apps[:2]))
	all, fewer := propose.Joined(apps), propose.Joined(apps[:39])
	compare.Check(t, len("app-0+0123456789"), len(all))
	if all == fewer {
		t.Errorf("the branch of 40 apps is the branch of 39 apps: %s", all)
	}
}
