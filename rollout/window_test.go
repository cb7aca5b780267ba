package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestWindowsRefuse(t *testing.T) {
	good := "kind: allow, schedule: 0 9 * * 1-5, duration: 8h"
	for name, tt := range map[string]struct{ window, want string }{
		"kind":        {strings.Replace(good, "allow", "block", 1), `windows[0].kind: "block" is not one of allow, deny`},
		"no schedule": {"kind: deny, duration: 8h", "windows[0].schedule: is missing; write five fields"},
		"schedule":    {strings.Replace(good, "0 9", "0 25", 1), "windows[0].schedule: \"0 25 * * 1-5\" is not a schedule"},
		"cron's zone": {strings.Replace(good, "0 9", "CRON_TZ=UTC 0 9", 1),
			"windows[0].schedule: \"CRON_TZ=UTC 0 9 * * 1-5\" has a time zone, which belongs in timeZone"},
		"zone": {good + ", timeZone: Europe/Bonn",
			`windows[0].timeZone: "Europe/Bonn" is not a time zone; use a name of the IANA database`},
		"no duration":  {"kind: deny, schedule: 0 9 * * *", "windows[0].duration: is missing; write 8h"},
		"duration":     {strings.Replace(good, "8h", "1d", 1), `windows[0].duration: "1d" is not a duration; write 8h`},
		"short":        {strings.Replace(good, "8h", "30s", 1), `windows[0].duration: "30s" is out of range; use 1m or more`},
		"a bit short":  {strings.Replace(good, "8h", "59.9s", 1), `windows[0].duration: "59.9s" is out of range`},
		"a bit long":   {strings.Replace(good, "8h", "8784h0m1s", 1), `windows[0].duration: "8784h0m1s" is out of range`},
		"long":         {strings.Replace(good, "8h", "9000h", 1), `windows[0].duration: "9000h" is out of range`},
		"glob":         {good + ", apps: [shop, 'a[']", `windows[0].apps[1]: "a[" is not a pattern for app names; name an app`},
		"path as glob": {good + ", apps: [apps/shop]", `windows[0].apps[0]: "apps/shop" is not a pattern for app names`},
		"field":        {good + ", app: shop", "windows[0].app: is not a known field"},
	} {
		_, err := rollout.ParseConfig(prodConfig, []byte(configHead+"apps: [{path: a}]\nwindows:\n- {"+tt.window+"}\n"))
		var invalid *rollout.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), prodConfig+": "+tt.want) {
			t.Errorf("%s:\n got: %v\nwant: %s", name, err, tt.want)
		}
	}
}

func TestFreezeRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no reason": {"", "freeze.yaml: reason: is missing; say why"},
		"blank":     {"reason: ' '\n", "freeze.yaml: reason: is missing; say why"},
		"until":     {"reason: x\nuntil: tomorrow\n", `freeze.yaml: until: "tomorrow" is not a time; write 2027-`},
		"glob":      {"reason: x\napps: ['']\n", `freeze.yaml: apps[0]: "" is not a pattern`},
		"field":     {"reason: x\nuntill: y\n", "freeze.yaml: untill: is not a known field"},
	} {
		_, err := rollout.ParseFreeze("freeze.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\n"+tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s:\n got: %v\nwant: %s", name, err, tt.want)
		}
	}
}

func TestShutAt(t *testing.T) {
	c := parsed(t, `apps: [{path: a}]
windows:
- {kind: allow, schedule: "0 9 * * *", duration: 8h, timeZone: Europe/Berlin, apps: ["shop*"]}
- {kind: deny, schedule: "0 0 24 12 *", duration: 336h}
`)
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		must(t, err)
		return v
	}
	over := &rollout.Freeze{Reason: "moving", Until: at("2026-11-21T20:00:00Z")}
	for name, tt := range map[string]struct {
		app    string
		freeze *rollout.Freeze
		now    string
		want   string
	}{
		"open":                {"shop", nil, "2026-11-21T10:00:00Z", ""},
		"outside":             {"shop-eu", nil, "2026-11-21T17:00:00Z", "a release window, until 2026-11-22T09:00:00+01:00"},
		"no window allows it": {"cart", nil, "2026-11-21T17:00:00Z", ""},
		"denied": {"cart", nil, "2026-12-30T17:00:00Z",
			"the end of windows[1] (deny 0 0 24 12 * for 336h), until 2027-01-07T00:00:00Z"},
		"denied, and opens later": {"shop", nil, "2026-12-30T17:00:00Z",
			"the end of windows[1] (deny 0 0 24 12 * for 336h), until 2027-01-07T09:00:00+01:00"},
		"frozen":             {"cart", &rollout.Freeze{Reason: "moving"}, "2026-11-21T10:00:00Z", `the end of the freeze "moving"`},
		"frozen for a while": {"cart", over, "2026-11-21T10:00:00Z", `the end of the freeze "moving", until 2026-11-21T20:00:00Z`},
		"frozen, and outside after that": {"shop", over, "2026-11-21T10:00:00Z",
			`the end of the freeze "moving", until 2026-11-22T09:00:00+01:00`},
		"over":          {"cart", over, "2026-11-21T20:00:00Z", ""},
		"another app's": {"cart", &rollout.Freeze{Reason: "x", Apps: []string{"shop"}}, "2026-11-21T10:00:00Z", ""},
	} {
		got := ""
		if shut, is := c.CalendarOf(tt.app, tt.freeze).ShutAt(at(tt.now)); is {
			got = shut.Cause() + shut.When()
		}
		compare.CheckNamed(t, name, tt.want, got)
	}
}

// TestWindowsAsLongAsMayBe checks that the minimum and the maximum duration of a window are valid.
func TestWindowsAsLongAsMayBe(t *testing.T) {
	for _, duration := range []string{"1m", "8784h"} {
		parsed(t, "apps: [{path: a}]\nwindows: [{kind: deny, schedule: 0 9 * * *, duration: "+duration+"}]\n")
	}
}
