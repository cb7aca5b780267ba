package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

type row struct {
	send func(ctx context.Context, s *session, m notify.Message) error
	notify.Profile
	dedups bool // recognizes a repeat by its key
}

var (
	chat = notify.Profile{Defaults: []rollout.EventKind{
		rollout.EventStarted, rollout.EventPaused, rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack,
		rollout.EventStalled, rollout.EventDegraded, rollout.EventHeld, rollout.EventRecovered,
	}}
	onCall = notify.Profile{Defaults: rollout.TroubleKinds(), Resolves: true}
)

// rows is by a receiver's block.
type rows map[string]row

var table = rows{
	"slack":        {send: sendSlack, Profile: chat},
	"msteams":      {send: sendChat, Profile: chat},
	"discord":      {send: sendChat, Profile: chat},
	"googleChat":   {send: sendGoogleChat, Profile: chat},
	"rocketChat":   {send: sendChat, Profile: chat},
	"webhook":      {send: sendWebhook, Profile: notify.Profile{Defaults: rollout.EventKinds()}, dedups: true},
	"email":        {send: sendEmail, Profile: chat, dedups: true},
	"pagerDuty":    {send: sendPagerDuty, Profile: onCall, dedups: true},
	"opsgenie":     {send: sendOpsgenie, Profile: onCall, dedups: true},
	"alertmanager": {send: sendAlertmanager, Profile: onCall, dedups: true},
	"grafana": {send: sendGrafana, Profile: notify.Profile{
		Defaults: []rollout.EventKind{rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack}}},
}

// ProfileOf returns a service's profile.
func ProfileOf(service string) notify.Profile { return table[service].Profile }

// Dedups reports whether the service or its reader can recognize a repeat.
func Dedups(service string) bool { return table[service].dedups }
