package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// FuzzDocuments checks that any bytes are either parsed, or refused with an InvalidError of one line. Methods of a parsed document must
// not panic.
func FuzzDocuments(f *testing.F) {
	head := "apiVersion: gitrollout.dev/v1alpha1\nkind: "
	f.Add([]byte(head + "Config\napps:\n- path: apps/*\n  namespace: shop\n  prune: true\ninterval: 10s\n" +
		"windows:\n- allow: {from: \"0 8 * * 1-5\", for: 8h, timezone: Europe/Berlin}\n"))
	f.Add([]byte(head + "Config\napps: [{path: a, name: b}]\nstateBranch: x/y\nautoRevert: push\nforge: {}\n" +
		"notifications:\n- name: chat\n  slack: {url: {secretRef: {name: a, key: b}}}\n  events: [Degraded]\n"))
	f.Add([]byte(head + "Config\napps: [{path: a}]\nnotifications:\n- name: chat\n  slack: {url: {env: GITROLLOUT_NOTIFY_A}}\n" +
		"  template: {title: \"{{range .Kinds}}{{.}}{{end}}\", text: \"{{$a := .App}}{{printf \\\"%9s\\\" $a | html}}\"}\n"))
	f.Add([]byte(head + "Freeze\nreason: holidays\nuntil: 2027-01-07T08:00:00+01:00\napps: [shop-*]\n"))
	f.Add([]byte(head + "Freeze\nreason: \"  \"\napps: [\"[\"]\n"))
	f.Add([]byte(head + "Fleet\nstages: [{name: a, clusters: [dev, 'prod-*'], maxUpdate: 25%, requiredSoakTime: 1h}]\nfreeze: {reason: x}\n"))
	f.Add([]byte(head + "Cluster\ncluster: prod\nuid: u\nwriter: {id: a, epoch: 3}\n"))
	f.Add([]byte(head + "Notified\nreceivers: {chat: {told: abc, app: shop}}\n"))
	f.Add([]byte("a: &a [*a]\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const file = ".gitrollout/prod/file.yaml"
		config, err := rollout.ParseConfig(file, data)
		read(t, config != nil, err)
		if err == nil {
			if len(config.Apps) == 0 || config.Interval < time.Second || rollout.CheckBranch(config.StateBranch) != "" {
				t.Errorf("%+v is a configuration", config)
			}
			config.CalendarOf("shop", nil)
		}
		freeze, err := rollout.ParseFreeze(file, data)
		read(t, freeze != nil, err)
		if err == nil {
			calendar := (&rollout.Config{}).CalendarOf("shop", freeze)
			if strings.TrimSpace(freeze.Reason) == "" || !freeze.Equal(freeze) || calendar.Freeze != nil && !calendar.Freeze.Equal(freeze) {
				t.Errorf("%+v is a freeze", freeze)
			}
			freeze.At(noon)
		}
		fleet, err := rollout.ParseFleet(data, []string{"dev", "prod-eu"})
		read(t, fleet != nil, err)
		if err == nil && fleet.StageOf("dev") >= len(fleet.Stages) {
			t.Errorf("%+v is a fleet", fleet)
		}
		cluster, err := rollout.ParseCluster(data)
		read(t, cluster != nil, err)
		if err == nil {
			once, err := cluster.Encode()
			if again, failed := rollout.ParseCluster(once); err != nil || failed != nil || *again != *cluster {
				t.Errorf("%+v is written as\n%s%v, %v", cluster, once, err, failed)
			}
		}
		notified, err := rollout.ParseNotified(data)
		read(t, notified != nil, err)
		if err == nil {
			once, err := notified.Encode()
			if _, failed := rollout.ParseNotified(once); err != nil || failed != nil {
				t.Errorf("%+v is written as\n%s%v, %v", notified, once, err, failed)
			}
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read checks that a parser has returned either a document or an InvalidError with a text of one line.
func read(t *testing.T, is bool, err error) {
	t.Helper()
	var invalid *rollout.InvalidError
	switch {
	case is != (err == nil):
		t.Errorf("read: %t, %v", is, err)
	case err != nil && !errors.As(err, &invalid):
		t.Errorf("%T is not an InvalidError: %v", err, err)
	case err != nil && strings.ContainsAny(err.Error(), "\n\x00"):
		t.Errorf("the message is %q", err)
	}
}
