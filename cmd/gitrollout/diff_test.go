package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestDiffNeverShowsASecret(t *testing.T) {
	secret := func(data map[string]any) rollout.Object {
		return rollout.Object{
			"apiVersion": "v1", "kind": "Secret", "data": data,
			"metadata": map[string]any{"name": "db", "namespace": "shop", "annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"b2xk"}}`,
			}},
		}
	}
	live := secret(map[string]any{"password": "b2xk", "user": "c2hvcA=="})
	after := secret(map[string]any{"password": "bmV3", "user": "c2hvcA==", "host": "ZGI="})
	for name, c := range map[string]struct {
		live, after rollout.Object
		want        []string
	}{
		"changed": {live, after, []string{"-  password: '*** (before)'", "+  password: '*** (after)'", "+  host: '***'"}},
		"new":     {nil, after, []string{"+  password: '***'"}},
		"pruned":  {live, nil, []string{"-  password: '***'"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			diff := &diffCommand{streams: streams{out: &out, err: io.Discard}}
			if err := diff.print(live.Ref(), c.live, c.after); err != nil || diff.differences != 1 {
				t.Fatalf("%d differences, error %v", diff.differences, err)
			}
			compare.Contains(t, out.String(), c.want...)
			for _, value := range []string{"b2xk", "bmV3", "c2hvcA", "ZGI"} {
				if strings.Contains(out.String(), value) {
					t.Errorf("%s is shown in\n%s", value, out.String())
				}
			}
		})
	}
}

func TestDiffLeavesOutWhatTheServerWrites(t *testing.T) {
	object := func(version, replicas string) rollout.Object {
		return rollout.Object{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"replicas": replicas}, "status": map[string]any{"at": version},
			"metadata": map[string]any{
				"name": "a", "resourceVersion": version, "managedFields": []any{},
				"labels": map[string]any{"gitrollout.dev/applied": version},
			},
		}
	}
	var out bytes.Buffer
	c := &diffCommand{streams: streams{out: &out}}
	if err := c.print(object("1", "3").Ref(), object("1", "3"), object("2", "3")); c.differences != 0 || err != nil {
		t.Errorf("%d differences, error %v:\n%s", c.differences, err, out.String())
	}
	if err := c.print(object("1", "3").Ref(), object("1", "3"), object("2", "4")); c.differences != 1 || err != nil {
		t.Errorf("%d differences, error %v", c.differences, err)
	}
}
