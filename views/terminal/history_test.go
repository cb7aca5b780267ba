package terminal_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

func past() status.History {
	day := func(d time.Duration) *time.Time { return ptr(before(d)) }
	return status.History{App: "shop", Cluster: "prod-eu", Releases: []status.Past{
		{Images: []string{"acme/shop:v3", "proxy:1"}, Hash: "h1-7b4e2a91d0", Commit: "9f31c0a4d2e8",
			Author: "Ann Lee <ann@example.com>", Subject: "A bigger cache for the checkout",
			Started: before(14 * time.Minute), Outcome: status.InFlight, Step: 1, Of: 4},
		{Images: []string{"acme/shop:v2", "proxy:2"}, Hash: "h1-55d0c1ab02", Commit: "77ab01c9d2e8",
			Author: "山田太郎 <yamada@example.com>", Subject: "価格に消費税を含める",
			Started: before(26 * time.Hour), Ended: day(25*time.Hour + 40*time.Minute), Outcome: status.Refused,
			Step: 2, Of: 4, PromotedBy: []string{"Carl Fey <carl@example.com>"},
			Reason:   "analysis background failed: success-rate: 4 of 20 measurements failed, more than failureLimit 3 allows",
			Analyses: measured().Analyses[:1], Transitions: []status.Transition{
				{At: before(26 * time.Hour), Phase: rollout.Progressing, Text: "shop release h1-55d0c1ab02 (77ab01c by 山田太郎): setWeight 20",
					Commit: "0011223344"},
				{At: before(25*time.Hour + 59*time.Minute), Object: "ReplicaSet shop/shop-5d8f7c9b4", Type: "Normal",
					Reason: "SuccessfulCreate", Count: 1, Text: "Created pod: shop-5d8f7c9b4-bbbbb"},
				{At: before(25*time.Hour + 41*time.Minute), Object: "Pod shop/shop-5d8f7c9b4-bbbbb", Type: "Warning",
					Reason: "BackOff", Count: 12, Text: "Back-off restarting failed container app in pod shop-5d8f7c9b4-bbbbb"},
				{At: before(25*time.Hour + 40*time.Minute), Phase: rollout.Aborting, Text: "shop back to h1-2c9d0f1b77: analysis background failed",
					Commit: "5566778899"},
			}},
		{Images: []string{"acme/shop:v1", "proxy:1"}, Hash: "h1-2c9d0f1b77", Commit: "4be01d2c9a3f",
			Author: "Bob Ray <bob@example.com>", Subject: "Prices with VAT",
			Started: before(75 * time.Hour), Ended: day(75*time.Hour - 3*time.Minute), Outcome: status.Succeeded, Fast: true,
			Hooks: []rollout.HookRun{{Name: "shop/migrate", When: rollout.HookBefore, Release: "h1-2c9d0f1b77", Job: "migrate-2c9d0f1b-1",
				Phase: rollout.HookSucceeded, Since: before(75 * time.Hour), Attempt: 1}}},
		{Hash: "h1-0a9d0f1b77", Commit: "3be01d2c9a3f", Started: before(80 * time.Hour), Ended: day(79 * time.Hour), Outcome: status.Succeeded,
			Step: 4, Of: 4, Skipped: 2, PromotedBy: []string{"Bob Ray <bob@example.com>"}},
		{Commit: "1be01d2c9a3f", Started: before(90 * time.Hour), Ended: day(90 * time.Hour), Outcome: status.Applied},
	}, Note: "there are older releases; to show them, use --limit 8"}
}

func TestHistoryView(t *testing.T) {
	golden(t, "history", terminal.History(past(), terminal.Look{Width: 80, Now: at()}))
	golden(t, "history-wide", terminal.History(past(), terminal.Look{Wide: true, Now: at()}))
	compare.Contains(t, terminal.History(past(), terminal.Look{Width: 80, Wide: true, Now: at()}),
		"    10:19:00  Pod shop/shop-5d8f7c9b4-bbbbb BackOff 12 times: Back-off\n"+
			"              restarting failed container app in pod shop-5d8f7c9b4-bbbbb\n")
}
