package reconciler_test

import "testing"

// TestStageBeforeLosesTheApp checks that prod takes a change that the stage before can no longer prove, because it has no such app any more.
func TestStageBeforeLosesTheApp(t *testing.T) {
	c := newClusters(t)
	c.push(baseAt("v2"))
	for range 5 {
		c.prod.pass()
	}
	c.push(map[string]string{"staging/shop/kustomization.yaml": "", "staging/shop/config.yaml": ""})
	for range 300 {
		c.staging.passes(1)
		c.prod.passes(1)
	}
	if c.prod.pods("v2") != 4 {
		t.Errorf("prod: %d pods of v2, held %+v", c.prod.pods("v2"), c.prod.state().Held)
	}
}
