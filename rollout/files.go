package rollout

import "reflect"

// FileTypes are the forms of the files below .gitrollout on the users' branch, of the policy and
// of vendor.yaml, by kind, for the schemas that editors check them by.
func FileTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Config":    reflect.TypeFor[configFile](),
		"Promotion": reflect.TypeFor[promotionFile](),
		"Freeze":    reflect.TypeFor[freezeFile](),
		"Vendor":    reflect.TypeFor[vendorFile](),
		"Policy":    reflect.TypeFor[policyFile](),
	}
}
