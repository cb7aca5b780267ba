package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

type row struct {
	send     func(ctx context.Context, s *session, m notify.Message) error
	defaults []rollout.EventKind // the events for receivers that have selected none
	resolves bool                // the service also gets a message at the end of a problem
	dedups   bool                // a repeated message can be recognized by its key
}

var chat = []rollout.EventKind{
	rollout.EventStarted, rollout.EventPaused, rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack,
	rollout.EventStalled, rollout.EventDegraded, rollout.EventHeld, rollout.EventRecovered,
}

// rows has a row for each service's block in a receiver's configuration.
type rows map[string]row

// table lists all services.
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

// ProfileOf returns the profile of a service.
func ProfileOf(service string) notify.Profile { return table.profile(service) }

func (t rows) profile(service string) notify.Profile {
	return notify.Profile{Defaults: t[service].defaults, Resolves: t[service].resolves}
}

// Dedups reports whether the service or its reader can recognize a repeated message.
func Dedups(service string) bool { return table[service].dedups }
