package traffic

import "gitrollout.dev/gitrollout/rollout"

var (
	List    = list    // reads a list of a router's object
	Mapping = mapping // reads a mapping of a router's object
	Text    = text    // reads a text of a router's object
	Number  = number  // reads a number of a router's object
	Matches = matches // compares a text as a router does
	Below   = below   // reports whether a path is in a folder
)

func (o *Objects) After(ref rollout.Ref) int { return o.after(ref) } // returns the index after an object

// Generate inserts an object at an index.
func (o *Objects) Generate(made rollout.Object, at int, r Route) error {
	return o.generate(made, at, r)
}

func Set(m map[string]any, value any, path ...string) { set(m, value, path...) } // sets a value in an object

// ALBAction is the value of an annotation.
type ALBAction = albAction

// Row returns a row of the table, with the comparisons of each feature as text, such as "exact".
func Row(kind string) (title, since string, features map[string]string, reports bool) {
	r, _ := find(kind)
	features = map[string]string{}
	for f, by := range r.features {
		features[string(f)] = by.String()
	}
	_, reports = r.config().(reporter)
	return r.title, r.since, features, reports
}

// Optional returns the settings that some routers lack.
func Optional() map[string]string {
	all := map[string]string{}
	for f, text := range optional {
		all[string(f)] = text
	}
	return all
}

// OverlayAlone applies a Route, and claims no Services for the router.
func OverlayAlone(o *Objects, router rollout.Router, r Route) error {
	return router.Config.(editor).overlay(o, r)
}

// fake is a router that writes the canary's weight to one field.
var fake = router{
	kind: "fake", title: "Fake", since: "v1",
	features: features{splits: can, byHeader: exact, reports: can},
	config:   func() editor { return &fakeConfig{} },
}

type fakeConfig struct {
	Switch string `json:"switch" object:"Switch"`
}

func (c *fakeConfig) ref(namespace string) rollout.Ref {
	return rollout.Ref{Group: "example.com", Kind: "Switch", Namespace: namespace, Name: c.Switch}
}

func (c *fakeConfig) watched(namespace string) []rollout.Ref {
	return []rollout.Ref{c.ref(namespace)}
}

func (c *fakeConfig) verify(_ rollout.Ref, route rollout.ObservedRoute) Verdict {
	return Verdict{Taken: route.Status["ready"] == true, Text: "is not ready"}
}

func (c *fakeConfig) overlay(o *Objects, r Route) error {
	object, ok := o.Edit(c.ref(r.Namespace))
	if !ok {
		return missing("switch", c.ref(r.Namespace))
	}
	set(object, int64(r.Weight), "spec", "share")
	return nil
}

// AddFake adds a row to the table.
func AddFake() (remove func()) {
	table = append(table, fake)
	return func() { table = table[:len(table)-1] }
}
