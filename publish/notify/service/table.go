package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// row is what sets a service apart.
type row struct {
	send     func(ctx context.Context, s *session, m notify.Message) error
	defaults []rollout.EventKind // what a receiver is told of that does not say
	resolves bool                // it is told what is over, too
	dedups   bool                // it knows a message by its key, and shows it once
}

// chat is what a channel is told of.
var chat = []rollout.EventKind{
	rollout.EventStarted, rollout.EventPaused, rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack,
	rollout.EventStalled, rollout.EventDegraded, rollout.EventHeld, rollout.EventRecovered,
}

// rows are services, by the name of their block.
type rows map[string]row

// table is the services that there are. One is a file and a line of it.
var table = rows{
	"slack":        {send: sendSlack, defaults: chat},
	"msteams":      {send: sendTeams, defaults: chat},
	"discord":      {send: sendDiscord, defaults: chat},
	"googleChat":   {send: sendGoogleChat, defaults: chat},
	"rocketChat":   {send: sendRocketChat, defaults: chat},
	"webhook":      {send: sendWebhook, defaults: rollout.EventKinds(), dedups: true},
	"email":        {send: sendEmail, defaults: chat, dedups: true},
	"pagerDuty":    {send: sendPagerDuty, defaults: rollout.TroubleKinds(), resolves: true, dedups: true},
	"opsgenie":     {send: sendOpsgenie, defaults: rollout.TroubleKinds(), resolves: true, dedups: true},
	"alertmanager": {send: sendAlertmanager, defaults: rollout.TroubleKinds(), resolves: true, dedups: true},
	"grafana": {send: sendGrafana,
		defaults: []rollout.EventKind{rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack}},
}

// ProfileOf says how a service is told.
func ProfileOf(service string) notify.Profile { return table.profile(service) }

func (t rows) profile(service string) notify.Profile {
	return notify.Profile{Defaults: t[service].defaults, Resolves: t[service].resolves}
}

// Dedups reports whether a service, or who reads it, can tell that it has had a message: sending it again does no harm.
func Dedups(service string) bool { return table[service].dedups }
