package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

type row struct {
	send     func(ctx context.Context, s *session, m notify.Message) error
	defaults []rollout.EventKind // for receivers that selected none
	resolves bool                // gets a message at a problem's end
	dedups   bool                // recognizes a repeat by its key
}

var chat = []rollout.EventKind{
	rollout.EventStarted, rollout.EventPaused, rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack,
	rollout.EventStalled, rollout.EventDegraded, rollout.EventHeld, rollout.EventRecovered,
}

// rows is by a receiver's block.
type rows map[string]row

var table = rows{
	"slack":        {send: sendSlack, defaults: chat},
	"msteams":      {send: sendChat, defaults: chat},
	"discord":      {send: sendChat, defaults: chat},
	"googleChat":   {send: sendGoogleChat, defaults: chat},
	"rocketChat":   {send: sendChat, defaults: chat},
	"webhook":      {send: sendWebhook, defaults: rollout.EventKinds(), dedups: true},
	"email":        {send: sendEmail, defaults: chat, dedups: true},
	"pagerDuty":    {send: sendPagerDuty, defaults: rollout.TroubleKinds(), resolves: true, dedups: true},
	"opsgenie":     {send: sendOpsgenie, defaults: rollout.TroubleKinds(), resolves: true, dedups: true},
	"alertmanager": {send: sendAlertmanager, defaults: rollout.TroubleKinds(), resolves: true, dedups: true},
	"grafana": {send: sendGrafana,
		defaults: []rollout.EventKind{rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack}},
}

// ProfileOf returns a service's profile.
func ProfileOf(service string) notify.Profile { return table.profile(service) }

func (t rows) profile(service string) notify.Profile {
	return notify.Profile{Defaults: t[service].defaults, Resolves: t[service].resolves}
}

// Dedups reports whether the service or its reader can recognize a repeat.
func Dedups(service string) bool { return table[service].dedups }
