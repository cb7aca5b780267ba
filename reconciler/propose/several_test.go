package propose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestTogether(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	of := func(app, branch string, edits map[string][]byte) Change {
		return Change{App: app, Branch: branch, Edits: edits, Message: "Act on " + app + "\n\nRelease of " + app + "\n", When: at,
			Subject: "Act on " + app, Effect: app + " goes on"}
	}
	to := Target{Cluster: "prod", Branch: "main"}
	promote := Action{Verb: rollout.Promote}
	cart, shop := of("cart", "main", map[string][]byte{"cart.yaml": []byte("c")}), of("shop", "main", map[string][]byte{"shop.yaml": nil})

	one, err := to.Together(promote, []Change{cart})
	compare.Check(t, error(nil), err)
	compare.Check(t, cart, one)

	both, err := to.Together(promote, []Change{cart, shop})
	compare.Check(t, error(nil), err)
	compare.Check(t, Change{App: "cart, shop", Branch: "main", When: at,
		Edits:   map[string][]byte{"cart.yaml": []byte("c"), "shop.yaml": nil},
		Subject: "Promote cart and shop", Effect: "cart goes on\nshop goes on",
		Message: "Promote cart and shop in prod\n\nAct on cart\n\nRelease of cart\n\nAct on shop\n\nRelease of shop\n"}, both)

	for name, c := range map[string]struct{ cart, shop []byte }{
		"Contents": {[]byte("1"), []byte("2")}, "Deleted": {nil, []byte("")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := to.Together(Action{Verb: Undo}, []Change{of("cart", "b", map[string][]byte{"base": c.cart}),
				of("shop", "b", map[string][]byte{"base": c.shop})})
			compare.Check(t, "cart and shop need different contents of base; use one command for each app", fmt.Sprint(err))
		})
	}
	same := map[string][]byte{"base": []byte("1")}
	undo, err := to.Together(Action{Verb: Undo}, []Change{of("cart", "gitrollout/revert/prod/cart", same),
		of("shop", "gitrollout/revert/prod/shop", same)})
	compare.Check(t, error(nil), err)
	compare.Check(t, "gitrollout/revert/prod/cart+shop", undo.Branch)
}

func TestSubjectOfSeveral(t *testing.T) {
	many := strings.Fields("cart catalogue checkout payments search shipping warehouse")
	for name, c := range map[string]struct {
		a    Action
		apps []string
		most int
		want string
	}{
		"Two":     {Action{Verb: rollout.Promote}, many[:2], 72, "Promote cart and catalogue"},
		"Three":   {Action{Verb: rollout.Abort}, many[:3], 72, "Abort cart, catalogue and checkout"},
		"AtLimit": {Action{Verb: rollout.Retry}, many[:2], 24, "Retry cart and catalogue"},
		"Above":   {Action{Verb: rollout.Retry}, many[:2], 23, "Retry cart and 1 more"},
		"Many":    {Action{Verb: rollout.Hold}, many, 40, "Hold cart, catalogue and 5 more"},
		"AtLeast": {Action{Verb: Undo}, many, 5, "Undo cart and 6 more"},
		"Off":     {Action{Verb: rollout.Hold, Off: true}, many[:2], 72, "End the hold of cart and catalogue"},
		"Adopt":   {Action{Verb: rollout.Promote, AdoptAnyway: true}, many[:2], 72, "Adopt cart and catalogue"},
	} {
		t.Run(name, func(t *testing.T) { compare.Check(t, c.want, subjectOf(c.a, c.apps, c.most)) })
	}
}

// TestJoined checks that the branch of a proposal for many apps has a short name, and another name for other apps.
func TestJoined(t *testing.T) {
	var apps []string
	for i := range 40 {
		apps = append(apps, fmt.Sprintf("app-%d", i))
	}
	compare.Check(t, "app-0+app-1", joined(apps[:2]))
	all, fewer := joined(apps), joined(apps[:39])
	compare.Check(t, len("app-0+0123456789"), len(all))
	if all == fewer {
		t.Errorf("the branch of 40 apps is the branch of 39 apps: %s", all)
	}
}
