package strategies_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestRoomIsGitsToSay checks that workloads with a Rollout document get explicit values for maxSurge and maxUnavailable. If Git has no
// values, the explicit values are the defaults of the kind. Other workloads get no such values.
func TestRoomIsGitsToSay(t *testing.T) {
	type fields = map[string]any
	const set, daemons = "updateStrategy", "DaemonSet"
	own := rollout.Partitioned{APIVersion: "example.com/v1", Kind: "Set", Partition: "spec.updateStrategy.partition"}
	one, surge := fields{"maxUnavailable": int64(1)}, fields{"maxSurge": int64(1)}
	for name, tc := range map[string]struct {
		kind  string
		of    *rollout.Partitioned
		field string
		given fields
		want  fields
	}{
		"Deployment": {"", nil, "strategy", nil,
			fields{"type": "RollingUpdate", "rollingUpdate": fields{"maxSurge": "25%", "maxUnavailable": "25%"}}},
		"a half": {"", nil, "strategy", fields{"rollingUpdate": fields{"maxUnavailable": int64(0)}},
			fields{"type": "RollingUpdate", "rollingUpdate": fields{"maxSurge": "25%", "maxUnavailable": int64(0)}}},
		"Recreate":    {"", nil, "strategy", fields{"type": "Recreate"}, fields{"type": "Recreate"}},
		"StatefulSet": {"StatefulSet", nil, set, nil, fields{"type": "RollingUpdate", "rollingUpdate": one}},
		"DaemonSet": {daemons, nil, set, nil,
			fields{"type": "RollingUpdate", "rollingUpdate": fields{"maxSurge": int64(0), "maxUnavailable": int64(1)}}},
		"DaemonSet that surges": {daemons, nil, set, fields{"rollingUpdate": surge}, fields{"type": "RollingUpdate", "rollingUpdate": surge}},
		"CloneSet": {"CloneSet.apps.kruise.io", ofKruise(t, "apps.kruise.io/v1alpha1", "CloneSet"), set, nil,
			fields{"partition": int64(0), "maxSurge": int64(0), "maxUnavailable": "20%"}},
		"Advanced StatefulSet": {"StatefulSet.apps.kruise.io", ofKruise(t, "apps.kruise.io/v1beta1", "StatefulSet"), set, nil,
			fields{"rollingUpdate": fields{"partition": int64(0), "maxUnavailable": int64(1)}}},
		"Advanced DaemonSet": {"DaemonSet.apps.kruise.io", ofKruise(t, "apps.kruise.io/v1alpha1", daemons), set, nil,
			fields{"rollingUpdate": fields{"partition": int64(0), "maxSurge": int64(0), "maxUnavailable": int64(1)}}},
		"Advanced DaemonSet that surges": {"DaemonSet.apps.kruise.io", ofKruise(t, "apps.kruise.io/v1alpha1", daemons), set,
			fields{"rollingUpdate": fields{"rollingUpdateType": "Surging"}},
			fields{"rollingUpdate": fields{"partition": int64(0), "rollingUpdateType": "Surging"}}},
		"a kind of the configuration": {"Set.example.com", &own, set, nil, fields{"partition": int64(0)}},
	} {
		spec := rollout.Spec{Workload: rollout.Workload{Kind: tc.kind, Namespace: "shop", Name: "web"}, Partition: tc.of}
		ref := spec.Workload.Ref()
		o := rollout.Object{"apiVersion": ref.Group + "/v1", "kind": ref.Kind,
			"metadata": fields{"namespace": "shop", "name": "web"}, "spec": fields{}}
		if tc.given != nil {
			o.Set(tc.given, "spec", tc.field)
		}
		before := o.Copy()
		v := workloads.View{Source: &rollout.Render{Specs: []rollout.Spec{spec}}, Observed: rollout.Observed{
			Workloads: map[rollout.Workload]rollout.ObservedWorkload{spec.Workload: {Room: true}}}}
		compare.CheckNamed(t, name, tc.want, workloads.Stamp(v, o, 1, "h1-a", "", "").Map("spec", tc.field))
		v.Observed.Workloads = nil
		if tc.kind == "StatefulSet" && workloads.Stamp(v, before, 1, "h1-a", "", "").Map("spec", tc.field) != nil {
			t.Errorf("%s has a field that its cluster does not know", name)
		}
		plain := workloads.Stamp(workloads.View{Source: &rollout.Render{}}, before, 1, "h1-a", "", "").Map("spec", tc.field)
		if diff := compare.Diff(before.Map("spec", tc.field), plain); tc.of == nil && diff != "" {
			t.Errorf("%s without a Rollout document (-want +got):\n%s", name, diff)
		}
	}
}
