package console

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

func TestDiffMasksSecrets(t *testing.T) {
	secret := func(field, value string) rollout.Object {
		return rollout.Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "keys"}, field: map[string]any{"password": value, "same": "as before"}}
	}
	from := &rollout.Render{Commit: rollout.Commit{ID: "1"}, Objects: []rollout.Object{secret("stringData", "hunter2")}}
	to := &rollout.Render{Commit: rollout.Commit{ID: "2"}, Objects: []rollout.Object{secret("data", "aHVudGVyMw==")}}
	d, err := diffOf(from, to)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Objects) != 1 || !strings.Contains(d.Objects[0].Text, "+  password: '*** (after)'") || strings.Contains(d.Objects[0].Text, "unter") || strings.Contains(d.Objects[0].Text, "aHVu") || strings.Contains(d.Objects[0].Text, "as before") {
		t.Errorf("%+v", d.Objects)
	}
	if gone, err := diffOf(from, &rollout.Render{}); err != nil || len(gone.Objects) != 1 || gone.Objects[0].Verb != "removed" || strings.Contains(gone.Objects[0].Text, "hunter2") {
		t.Errorf("%v %+v", err, gone.Objects)
	}
}
