package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Partitioned describes a kind of workload with a partition: a field that counts old pods or, with CountsNew, new pods.
// Objects need spec.template and, without Nodes, spec.replicas. A pod's LabelRevision must equal its
// ControllerRevision's LabelRevision or, if that revision lacks the label, the revision's name.
type Partitioned struct {
	APIVersion string
	Kind       string
	Partition  string // path of the field
	CountsNew  bool   // the field counts new pods
	Percent    bool   // percentages are allowed; the controller rounds them up
	Ordered    bool   // updates by ordinal; in a rollback, broken pods must be evicted
	MinReady   string // path of minReadySeconds
	Nodes      string // path of the number of nodes that need a pod; "" if spec.replicas counts pods
	Only       string // path of a field that limits updates to selected pods, or ""
	Status     PartitionStatus

	Unavailable any  `json:"-" cbor:"unavailable"` // default of the maxUnavailable beside the partition; nil if unknown
	Surges      bool `json:"-" cbor:"surges"`      // has maxSurge beside the partition
}

// PartitionStatus has the paths of status fields.
type PartitionStatus struct {
	ObservedGeneration string `json:"observedGeneration" default:"status.observedGeneration" is:"statusPath"`
	Replicas           string `json:"replicas" default:"status.replicas" is:"statusPath"`
	Updated            string `json:"updated" default:"status.updatedReplicas" is:"statusPath"`
	UpdatedReady       string `json:"updatedReady" is:"statusPath"` // "": read from the pods
	Available          string `json:"available" default:"status.availableReplicas" is:"statusPath"`
	CurrentRevision    string `json:"currentRevision" default:"status.currentRevision" is:"statusPath"`
	UpdateRevision     string `json:"updateRevision" default:"status.updateRevision" is:"statusPath"`
}

var partitionStatus = PartitionStatus{
	ObservedGeneration: "status.observedGeneration", Replicas: "status.replicas", Updated: "status.updatedReplicas",
	UpdatedReady: "status.updatedReadyReplicas", Available: "status.availableReplicas",
	CurrentRevision: "status.currentRevision", UpdateRevision: "status.updateRevision",
}

const ownMinReady = "spec.minReadySeconds"

// PartitionedKinds lists OpenKruise's kinds (apis/apps/v1alpha1 and v1beta1).
var PartitionedKinds = []Partitioned{
	{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Partition: "spec.updateStrategy.partition",
		Percent: true, MinReady: ownMinReady, Status: partitionStatus, Unavailable: "20%", Surges: true},
	{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Partition: "spec.updateStrategy.rollingUpdate.partition",
		Percent: true, MinReady: ownMinReady, Status: partitionStatus, Unavailable: "20%", Surges: true},
	{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Partition: "spec.updateStrategy.rollingUpdate.partition",
		Ordered: true, MinReady: "spec.updateStrategy.rollingUpdate.minReadySeconds", Status: partitionStatus,
		Unavailable: int64(1)},
	{APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet", Partition: "spec.updateStrategy.rollingUpdate.partition",
		MinReady: ownMinReady, Nodes: "status.desiredNumberScheduled", Only: "spec.updateStrategy.rollingUpdate.selector",
		Unavailable: int64(1),
		Status: PartitionStatus{ObservedGeneration: "status.observedGeneration",
			Replicas: "status.currentNumberScheduled", Updated: "status.updatedNumberScheduled",
			Available: "status.numberAvailable", UpdateRevision: "status.daemonSetHash"}},
}

// FindPartitioned finds a kind in PartitionedKinds or the additional kinds. If only other apiVersions of the kind
// exist, the second result lists them.
func FindPartitioned(more []Partitioned, apiVersion, kind string) (p *Partitioned, instead []string) {
	group := Object{"apiVersion": apiVersion}.Ref().Group
	for _, p := range slices.Concat(more, PartitionedKinds) {
		switch is := p.Ref(); {
		case p.APIVersion == apiVersion && p.Kind == kind:
			return &p, nil
		case is.Group == group && is.Kind == kind:
			instead = append(instead, p.APIVersion)
		}
	}
	return nil, instead
}

// Ref returns group and kind.
func (p Partitioned) Ref() Ref { return Object{"apiVersion": p.APIVersion, "kind": p.Kind}.Ref() }

// In returns the value at a path, or nil.
func In(o Object, field string) any {
	path := strings.Split(field, ".")
	return o.Map(path[:len(path)-1]...)[path[len(path)-1]]
}

type partitionedFile struct {
	APIVersion string `json:"apiVersion" needs:"write group/version, as objects of the kind have it" is:"groupVersion"`
	Kind       string `json:"kind" needs:"name the kind" is:"kindName"`
	Partition  struct {
		Path   string `json:"path" needs:"name the field, as in spec.updateStrategy.partition" is:"specPath"`
		Counts string `json:"counts" default:"old" oneOf:"old new" fix:"write old if the field counts pods of the old version, and new if it counts updated pods"`
		Unit   string `json:"unit" default:"pods" oneOf:"pods percent" fix:"write pods if the field takes only a number, and percent if it also takes a percentage and rounds it up"`
	} `json:"partition" needs:"say which field stages its pods: partition: {path: spec.updateStrategy.partition}; if none does, remove this entry and the Rollout: the workload is applied as it is"`
	Ordered         bool            `json:"ordered"`
	MinReadySeconds string          `json:"minReadySeconds" default:"spec.minReadySeconds" is:"specPath"`
	Status          PartitionStatus `json:"status" default:"{}"`
}

func parsePartitioned(file string, raw []partitionedFile) (all []Partitioned, err error) {
	seen := map[Ref]int{}
	for i, r := range raw {
		at := place{file, fmt.Sprintf("workloads[%d]", i)}
		p := Partitioned{APIVersion: r.APIVersion, Kind: r.Kind, Partition: r.Partition.Path,
			CountsNew: r.Partition.Counts == "new", Percent: r.Partition.Unit == "percent", Ordered: r.Ordered,
			MinReady: r.MinReadySeconds, Status: r.Status}
		ref := p.Ref()
		first, twice := seen[ref]
		_, builtIn := WorkloadOf(ref)
		partitioned, _ := FindPartitioned(nil, r.APIVersion, r.Kind)
		switch {
		case builtIn || partitioned != nil:
			return nil, at.invalid("kind", "leave the entry out", "%s is released in stages without an entry", r.Kind)
		case ref.Group == "batch" || strings.HasPrefix(APIVersion, ref.Group+"/"):
			return nil, at.invalid("apiVersion", "leave the entry out", "%s %s has no partition", r.APIVersion, r.Kind)
		case twice:
			return nil, at.invalid("kind", "keep only the entry for the version in your manifests",
				"%s of %s is also in workloads[%d]", r.Kind, ref.Group, first)
		case isTaken(p.Partition, p.MinReady, ownMinReady):
			return nil, at.invalid("partition.path", "name the field that says how many pods keep their version",
				"%q has a fixed meaning already", p.Partition)
		case isTaken(p.MinReady):
			return nil, at.invalid("minReadySeconds", "name the field that says how long a pod is to be ready",
				"%q has a fixed meaning already", p.MinReady)
		case p.Percent && p.CountsNew:
			return nil, at.invalid("partition.unit", "write unit: pods",
				"is percent, and the rounding of a percentage of new pods is undefined")
		}
		seen[ref] = i
		all = append(all, p)
	}
	return all, nil
}

func isTaken(field string, more ...string) bool {
	return slices.ContainsFunc(append(more, "spec.template", "spec.replicas", "spec.selector"), func(of string) bool {
		return field == of || strings.HasPrefix(field, of+".")
	})
}

// PartitionedText encodes kinds for App.Workloads.
func PartitionedText(all []Partitioned) string {
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // texts and booleans always encode
	return string(text)
}

// PartitionedOf decodes App.Workloads.
func PartitionedOf(a App) (all []Partitioned) {
	_ = json.Unmarshal([]byte(a.Workloads), &all)
	return all
}

// OnNodes reports whether nodes, not replicas, decide the number of pods.
func (s Spec) OnNodes() bool {
	return s.Workload.Kind == "DaemonSet" || s.Partition != nil && s.Partition.Nodes != ""
}

// Unavailable returns how many of n pods may be missing. Percentages of nodes are rounded up. For a StatefulSet, it
// returns 0 if the API server dropped maxUnavailable (feature gate MaxUnavailableStatefulSet).
func (s Spec) Unavailable(live ObservedWorkload, n int) int {
	switch {
	case s.OnNodes():
		return s.MaxUnavailable.RoundUp(n) // as UnavailableCount in k8s.io/kubernetes pkg/controller/daemon/util
	case s.Workload.Kind == "StatefulSet" && !live.Room:
		return 0
	}
	return s.MaxUnavailable.RoundDown(n)
}

// Partitioneds returns the Partitioned kinds of staged workloads.
func Partitioneds(renders ...*Render) []Partitioned {
	found := map[Ref]Partitioned{}
	for _, r := range renders {
		if r == nil {
			continue
		}
		for _, spec := range r.Specs {
			if p := spec.Partition; p != nil && found[p.Ref()] == (Partitioned{}) {
				found[p.Ref()] = *p
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Partitioned) int { return a.Ref().Compare(b.Ref()) })
}
