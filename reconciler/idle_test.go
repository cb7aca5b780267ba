package reconciler_test

import (
	"fmt"
	"testing"
)

// TestIdleLookIsFree checks that a look at an unchanged repository allocates nothing for each app.
func TestIdleLookIsFree(t *testing.T) {
	allocations := func(apps int) float64 {
		files := map[string]string{configFile: plainConfig, "apps/shop/kustomization.yaml": "resources: [app.yaml]\n",
			"apps/shop/app.yaml": version("v1")}
		for i := range apps {
			files[fmt.Sprintf("apps/app%d/kustomization.yaml", i)] = fmt.Sprintf(
				"configMapGenerator:\n- name: app%d\n  literals: [colour=blue]\n", i)
		}
		w := worldOf(t, files, nil)
		return testing.AllocsPerRun(10, func() { must(t, w.r.Look(t.Context())) })
	}
	if one, many := allocations(1), allocations(31); many-one >= 15 {
		t.Errorf("%v allocations with 31 apps, %v with one app", many, one)
	}
}
