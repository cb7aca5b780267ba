package render

import (
	"errors"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

// readPauseUntil reads a pause that ends at a moment of a schedule.
func (d *document) readPauseUntil(v value, p *rollout.Pause) {
	until, zone := v.field("until"), v.field("timeZone")
	for _, field := range []value{until, zone} {
		if field.given() && d.argo {
			field.fail("use apiVersion "+rollout.APIVersion, "is not a field of Argo Rollouts")
			return
		}
	}
	switch {
	case !until.given() && zone.given():
		zone.fail("leave it out", "is given, and there is no until that it would be about")
		return
	case !until.given():
		return
	case p.Duration != nil || p.Timeout != nil:
		until.fail("keep one of them", "is given, and duration or timeout too")
		return
	}
	p.Until, p.TimeZone = until.text(), zone.text()
	var wrong *schedule.ParseError
	if _, err := schedule.Parse(p.Until, p.TimeZone); errors.As(err, &wrong) {
		field := until
		if wrong.Zone {
			field = zone
		}
		field.fail(wrong.Fix, "%s", wrong.Msg)
	}
}
