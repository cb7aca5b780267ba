package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

type row struct {
	send func(ctx context.Context, s *session, m notify.Message) error
	notify.Profile
}

var (
	chat = notify.Profile{Defaults: []rollout.EventKind{
		rollout.EventStarted, rollout.EventPaused, rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack,
		rollout.EventStalled, rollout.EventDegraded, rollout.EventHeld, rollout.EventRecovered,
	}}
	onCall = notify.Profile{Defaults: rollout.TroubleKinds(), Resolves: true, Dedups: true}
)

type rows map[string]row

var table = rows{
	"slack":        {send: sendSlack, Profile: chat},
	"msteams":      {send: sendChat, Profile: chat},
	"discord":      {send: sendChat, Profile: chat},
	"googleChat":   {send: sendGoogleChat, Profile: chat},
	"rocketChat":   {send: sendChat, Profile: chat},
	"webhook":      {send: sendWebhook, Profile: notify.Profile{Defaults: rollout.EventKinds(), Dedups: true}},
	"email":        {send: sendEmail, Profile: notify.Profile{Defaults: chat.Defaults, Dedups: true}},
	"pagerDuty":    {send: sendPagerDuty, Profile: onCall},
	"opsgenie":     {send: sendOpsgenie, Profile: onCall},
	"alertmanager": {send: sendAlertmanager, Profile: onCall},
	"grafana": {send: sendGrafana, Profile: notify.Profile{
		Defaults: []rollout.EventKind{rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack}}},
}

// ProfileOf returns a service's profile.
func ProfileOf(service string) notify.Profile { return table[service].Profile }
